"""Advice on the communication of an all-reduce job, from the real server."""

import unittest

from contract import from_json, grpc, prediction, store, tuning_pb2
from google.longrunning import operations_pb2, operations_pb2_grpc
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc
from patience import PASSING_SECONDS
from stepcastd import PATIENCE_SECONDS, ServerTest

METHOD = tuning_pb2.OptimizeCommunicationRequest


def training(gradients=12):
    """10 ms forward, 5 ms of backward a gradient of 2 MB, which is ready then, 1 ms of optimizer; bytes take 4 ms between two workers."""
    operations = [{"name": "forward", "resource": "WORKER"}]
    starts, ends = [0], [10]
    before = 0
    for each in range(gradients):
        operations.append({"name": f"backward {each}", "resource": "WORKER", "waiting_for": [before]})
        before = len(operations) - 1
        operations.append({"name": f"gradient {each}", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 2000000, "waiting_for": [before]})
        starts += [ends[-1], ends[-1] + 5]
        ends += [ends[-1] + 5, ends[-1] + 5]
    waits = [index for index, operation in enumerate(operations) if operation["resource"] == "COLLECTIVE"]
    operations.append({"name": "optimizer", "resource": "WORKER", "waiting_for": waits})
    starts.append(ends[-1])
    ends.append(ends[-1] + 1)
    milliseconds = lambda values: [value * 1000000 for value in values]
    return {
        "display_name": "training",
        "batch_size": 8,
        "platform": {"bandwidth_bytes_per_second": 5e8},
        "operations": operations,
        "steps": [{"start_ns": milliseconds(starts), "end_ns": milliseconds(ends)}],
        "buckets": {"rule": {"cap_bytes": 26214400}},
    }


class TuneTest(ServerTest):
    def tuned(self, **request):
        asked = {"inline_profile": training(), "scenario": {"workers": 2, "all_reduce": {"latency_seconds": 1e-5}}, "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 60}, **request}
        return self.server.predictions.OptimizeCommunication(from_json(METHOD(), asked))

    def test_one_bucket_of_all_is_worse_than_many_by_what_follows_by_hand(self):
        reply = self.tuned()
        by_method = {strategy.method: strategy for strategy in reply.strategies}
        self.assertEqual(list(by_method), [METHOD.AS_RECORDED, METHOD.DDP_BUCKETS, METHOD.HOROVOD, METHOD.MG_WFBP, METHOD.SEARCH, METHOD.SEQUENTIAL])
        # PyTorch's own buckets: the first gradient, from 15 ms on, and all others, 44 ms of bytes from 70 ms on.
        recorded = by_method[METHOD.AS_RECORDED]
        self.assertEqual([group.size_bytes for group in recorded.groups], [2000000, 22000000])
        self.assertAlmostEqual(recorded.step_seconds, 0.070 + 0.044 + 2e-5 + 0.001, places=8)
        self.assertTrue(recorded.no_difference)
        # Each by itself is hidden but for the last one.
        search = by_method[METHOD.SEARCH]
        self.assertAlmostEqual(search.step_seconds, 0.070 + 0.004 + 2e-5 + 0.001, places=8)
        self.assertAlmostEqual(search.gain, recorded.step_seconds / search.step_seconds - 1, places=6)
        self.assertAlmostEqual(search.lower_bound_seconds, 0.074 + 2e-5, places=8)
        self.assertEqual(search.step_seconds, min(strategy.step_seconds for strategy in reply.strategies))
        self.assertEqual(reply.chosen, METHOD.DDP_BUCKETS)
        self.assertRegex(by_method[METHOD.DDP_BUCKETS].setting, r"^bucket_cap_mb=1\.5$")
        self.assertIn("bucket_cap_mb=1.5 gains +53.", reply.reason)
        names = [name for group in search.groups for name in group.operations]
        self.assertEqual(names, [f"gradient {each}" for each in range(12)])
        self.assertEqual([point.cap_bytes for point in reply.curve], sorted(point.cap_bytes for point in reply.curve))
        self.assertEqual(len(reply.curve), 27)

    def test_a_strategy_is_what_a_prediction_says_of_its_buckets(self):
        reply = self.tuned(methods=["DDP_BUCKETS"], bucket_caps_bytes=[5000000, 9000000])
        [strategy] = reply.strategies
        cap = int(float(strategy.setting.removeprefix("bucket_cap_mb=")) * 1048576 + 0.5)
        asked = {
            "inline_profile": training(),
            "scenario": {"workers": 2, "all_reduce": {"latency_seconds": 1e-5, "buckets": {"cap_bytes": cap}}},
            "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 60},
        }
        [predicted] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), asked)).predictions
        self.assertAlmostEqual(predicted.examples_per_second, strategy.examples_per_second, places=6)

    def test_advice_for_several_numbers_of_workers(self):
        reply = self.tuned(scenario={"all_reduce": {"latency_seconds": 1e-5}}, worker_counts=[4, 2])
        self.assertEqual([advice.workers for advice in reply.advice], [4, 2])
        self.assertEqual(reply.advice[0].strategies, reply.strategies)
        self.assertEqual(reply.advice[1].strategies, self.tuned().strategies)

    def test_a_stored_profile_as_a_job(self):
        name = self.server.profiles.CreateProfile(from_json(store.CreateProfileRequest(), {"profile": training()})).name
        job = {"optimize_communication": {"profile": name, "scenario": {"workers": 2, "all_reduce": {"latency_seconds": 1e-5}}, "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 60}}}
        jobs = job_service_pb2_grpc.JobServiceStub(self.server.channel)
        operations = operations_pb2_grpc.OperationsStub(self.server.channel)
        operation = jobs.StartJob(from_json(job_service_pb2.StartJobRequest(), job))
        done = operations.WaitOperation(operations_pb2.WaitOperationRequest(name=operation.name), timeout=PATIENCE_SECONDS)
        reply = tuning_pb2.OptimizeCommunicationResponse()
        self.assertTrue(done.done and done.response.Unpack(reply), done)
        self.assertEqual(reply.strategies, self.tuned().strategies)
        self.assertEqual(
            self.server.metric("stepcast_predictions_total", method="OptimizeCommunication", communication="all_reduce", code="OK"), 2
        )

    def test_bytescheduler_sends_first_what_the_next_step_needs_first(self):
        # Two layers of 10 ms forward and 20 ms backward; 4 ms for the first one's 2 MB between two workers, 40 ms for
        # the other's 20 MB, which are ready after 20 ms of backward, the first one's after 40 ms.
        layers = (("a", 2000000), ("b", 20000000))
        operations = []
        add = lambda name, **more: operations.append({"name": name, "resource": "WORKER", "waiting_for": [at for at in [len(operations) - 1] if at >= 0], **more})
        add("forward/a")
        add("forward/b")
        add("backward/b")
        operations.append({"name": "gradient/b", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": layers[1][1], "waiting_for": [2]})
        operations.append({"name": "backward/a", "resource": "WORKER", "waiting_for": [2]})
        operations.append({"name": "gradient/a", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": layers[0][1], "waiting_for": [4]})
        starts, ends = [0, 10, 20, 40, 40, 60], [10, 20, 40, 40, 60, 60]
        milliseconds = lambda values: [value * 1000000 for value in values]
        job = {
            "batch_size": 8,
            "platform": {"bandwidth_bytes_per_second": 5e8},
            "operations": operations,
            "steps": [{"start_ns": milliseconds(starts), "end_ns": milliseconds(ends)}],
        }
        reply = self.tuned(inline_profile=job, scenario={"workers": 2, "all_reduce": {"latency_seconds": 0}}, methods=["AS_RECORDED", "BYTESCHEDULER"])
        by_method = {strategy.method: strategy for strategy in reply.strategies}
        # All sums first, b's from 40 to 80 ms, a's to 84 ms. By ByteScheduler b's begin 20 ms after the begin of the
        # backward pass, partition by partition; at 40 ms a's overtake them; forward/a runs from at most 46 ms on, and
        # forward/b when b's last bytes have come at 64 ms.
        self.assertAlmostEqual(by_method[METHOD.AS_RECORDED].step_seconds, 0.084, places=8)
        scheduled = by_method[METHOD.BYTESCHEDULER]
        self.assertAlmostEqual(scheduled.step_seconds, 0.074, places=8)
        self.assertAlmostEqual(scheduled.lower_bound_seconds, 0.060, places=8)
        self.assertRegex(scheduled.setting, r"^BYTESCHEDULER_PARTITION=\d+ BYTESCHEDULER_CREDIT=\d+ BYTESCHEDULER_CREDIT_TUNING=0 BYTESCHEDULER_PARTITION_TUNING=0$")
        self.assertEqual(reply.chosen, METHOD.BYTESCHEDULER)
        # What does not say which computation uses a parameter is not tried, and says so.
        untried = {left_out.method: left_out.reason for left_out in self.tuned().left_out}
        self.assertIn("does not say which computation of the forward pass uses its parameter", untried[METHOD.BYTESCHEDULER])
        self.assertIn("needs contention", untried[METHOD.LIBRA])
        with self.assertRaises(grpc.RpcError) as caught:
            self.tuned(methods=["BYTESCHEDULER"])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_libras_baselines_have_nccls_threads_and_the_bound_is_never_chosen(self):
        rate = {"gamma1": 1e9, "gamma2": 5e8, "gamma3": 0.02}
        contention = {"alpha2": 1.3e-4, "overlapped": rate, "alone": rate}
        reply = self.tuned(contention=contention, nccl_channels=3, threads=[128, 2048])
        by_method = {strategy.method: strategy for strategy in reply.strategies}
        total = sum(group.size_bytes for group in by_method[METHOD.SEQUENTIAL].groups)
        self.assertEqual([(group.size_bytes, group.threads) for group in by_method[METHOD.SEQUENTIAL].groups], [(total, 3 * 544)])
        for method in METHOD.MG_WFBP, METHOD.MG_CF, METHOD.DDP_BUCKETS:
            self.assertEqual({group.threads for group in by_method[method].groups}, {3 * 544})
        names = lambda method: [list(group.operations) for group in by_method[method].groups]
        self.assertEqual(names(METHOD.LIBRA_M), names(METHOD.MG_WFBP))
        self.assertEqual(names(METHOD.MG_CF), names(METHOD.MG_WFBP))
        self.assertLessEqual({group.threads for group in by_method[METHOD.LIBRA_M].groups}, {128, 2048})
        self.assertLess(by_method[METHOD.MG_CF].step_seconds, by_method[METHOD.MG_WFBP].step_seconds)
        self.assertNotEqual(reply.chosen, METHOD.MG_CF)
        self.assertEqual(by_method[METHOD.MG_CF].setting, "")

    def test_groups_that_no_cap_makes_have_a_cap_a_bucket(self):
        reply = self.tuned(methods=["SEARCH"], scenario={"workers": 8, "all_reduce": {"latency_seconds": 5e-4}}, bucket_caps_bytes=[1 << 30])
        [strategy] = reply.strategies
        self.assertGreater(len(strategy.groups), 1)
        caps = [float(cap) for cap in strategy.setting.removeprefix("bucket_cap_mb_list=[").removesuffix("]").split(",")]
        # PyTorch closes a bucket that has reached its cap.
        sizes, filled = [], 0
        for size in [2000000] * 12:
            filled += size
            if filled >= int(caps[min(len(sizes), len(caps) - 1)] * 1048576):
                sizes.append(filled)
                filled = 0
        self.assertEqual(sizes, [group.size_bytes for group in strategy.groups])

    def test_a_passed_deadline_ends_it(self):
        request = {"inline_profile": training(600), "worker_counts": [256, 512, 1024], "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 100000, "replications": 50}}
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.predictions.OptimizeCommunication(from_json(METHOD(), request), timeout=PASSING_SECONDS)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


if __name__ == "__main__":
    unittest.main()
