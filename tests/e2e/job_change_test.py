"""A job that differs from the recorded one: another batch, micro-batches, a faster device, smaller gradients; asked by grpcio, and by the command line."""

import json
import os
import subprocess
import tempfile
import unittest

from contract import allocation_pb2, details_of, details_within, from_json, grpc, prediction, recommendation_pb2, store
from stepcastd import ServerTest

MILLISECOND = 1000000
EXACT = {"step_variation": "AS_RECORDED"}


def training(batch=32, forward=10, backward=20):
    """A step of forward and backward (ms), an all-reduce of 4 MB, and an optimizer of 1 ms."""
    names = ["forward", "backward"]
    operations = [{"name": name, "resource": "WORKER", "waiting_for": [i - 1] if i else []} for i, name in enumerate(names)]
    operations.append({"name": "gradient", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 4000000, "waiting_for": [1]})
    operations.append({"name": "optimizer", "resource": "WORKER", "waiting_for": [2]})
    end = forward + backward
    times = {"start_ns": [0, forward, end, end], "end_ns": [forward, end, end, end + 1]}
    step = {key: [MILLISECOND * value for value in values] for key, values in times.items()}
    return {"batch_size": batch, "platform": {"bandwidth_bytes_per_second": 1e9}, "operations": operations, "steps": [step]}


class JobChangeTest(ServerTest):
    def ask(self, profile, counts, change=None, **scenario):
        request = {"inline_profile": profile, "worker_counts": counts, "options": EXACT, "scenario": {"all_reduce": {"latency_seconds": 0}, **scenario}}
        if change is not None:
            request["scenario"]["change"] = change
        return self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request))

    def rate(self, workers, change=None, profile=None):
        [answer] = self.ask(profile or training(), [workers], change).predictions
        return answer.examples_per_second

    def refused(self, change, counts=(1,), profile=None):
        with self.assertRaises(grpc.RpcError) as caught:
            self.ask(profile or training(), list(counts), change)
        details = details_of(caught.exception)
        self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT)
        return details.violations

    def test_steps_take_what_a_hand_computes(self):
        # Of two workers a ring takes 4 MB / 1 GB/s; latency 0.
        self.assertAlmostEqual(self.rate(1), 32 / 0.031, delta=1e-3)
        self.assertAlmostEqual(self.rate(2), 2 * 32 / 0.035, delta=1e-3)
        self.assertAlmostEqual(self.rate(2, {"batch_size": 64}), 2 * 64 / (0.060 + 0.001 + 0.004), delta=1e-3)
        self.assertAlmostEqual(self.rate(2, {"batch_size": 64, "fixed_fraction": 0.5}), 2 * 64 / (1.5 * 0.030 + 0.001 + 0.004), delta=1e-3)
        self.assertAlmostEqual(self.rate(2, {"accumulate": 4}), 2 * 128 / (0.120 + 0.004 + 0.001), delta=1e-3)
        self.assertAlmostEqual(self.rate(2, {"compute_speed_factor": 2}), 2 * 32 / (0.0155 + 0.004), delta=1e-3)
        self.assertAlmostEqual(self.rate(2, {"gradient_bytes_factor": 0.5}), 2 * 32 / (0.031 + 0.002), delta=1e-3)

    def test_a_second_recording_tells_what_grows(self):
        # 10 + 20 ms at 32 and 15 + 35 ms at 64: 5 + 5/32 and 5 + 15/32 ms an example.
        change = {"batch_size": 128, "second_inline_profile": training(64, 15, 35)}
        reply = self.ask(training(), [1], change)
        self.assertAlmostEqual(reply.predictions[0].examples_per_second, 128 / (0.025 + 0.065 + 0.001), delta=1e-3)
        [told] = [each for each in reply.predictions[0].assumptions if each.field == "scenario.change.second_profile"]
        self.assertIn("recordings with 32 and 64", told.message)
        stored = self.server.profiles.CreateProfile(from_json(store.CreateProfileRequest(), {"profile_id": "larger", "profile": training(64, 15, 35)}))
        again = self.ask(training(), [1], {"batch_size": 128, "second_profile": stored.name})
        self.assertEqual(again.predictions[0].examples_per_second, reply.predictions[0].examples_per_second)

    def test_one_recording_alone_says_that_its_fixed_part_is_not_known(self):
        [answer] = self.ask(training(), [1], {"batch_size": 64}).predictions
        [told] = [each for each in answer.assumptions if each.field == "scenario.change.fixed_fraction"]
        self.assertIn("nothing shows the part of them that does not grow", told.message)
        self.assertEqual(answer.scenario.change.batch_size, 64)

    def test_the_digest_is_that_of_the_changed_profile(self):
        plain, changed = self.ask(training(), [1]), self.ask(training(), [1], {"batch_size": 64})
        self.assertNotEqual(plain.profile_digest, changed.profile_digest)
        self.assertEqual(self.ask(training(), [1], {}).profile_digest, plain.profile_digest)

    def test_workers_divide_a_global_batch(self):
        reply = self.ask(training(), [1, 2, 4], {"global_batch_size": 64})
        for answer, workers in zip(reply.predictions, (1, 2, 4)):
            ring = 2 * (workers - 1) / workers * 0.004
            step = 0.030 * 64 / workers / 32 + 0.001 + ring
            self.assertAlmostEqual(answer.examples_per_second, 64 / step, delta=1e-2)
            self.assertAlmostEqual(answer.speedup, 0.061 / step, delta=1e-4)
            self.assertAlmostEqual(answer.scaling_efficiency, 0.061 / step / workers, delta=1e-4)
            self.assertEqual(answer.scenario.change.batch_size, 64 // workers)

    def test_workers_divide_each_micro_batch_of_a_global_batch(self):
        # 192 examples of a step are 2 micro-batches of 96.
        counts = [1, 2, 3, 4, 6, 8, 12, 16]
        change = {"global_batch_size": 192, "accumulate": 2}
        for answer in [*self.ask(training(), counts, change).predictions, *self.recommend({"max_workers": 16}, change).frontier]:
            workers = answer.scenario.workers
            step = 0.030 * 192 / workers / 32 + 0.001 + 2 * (workers - 1) / workers * 0.004
            self.assertAlmostEqual(answer.examples_per_second, 192 / step, delta=0.1)
            self.assertEqual(answer.scenario.change.batch_size, 96 // workers)
            self.assertEqual(answer.scenario.change.accumulate, 2)
        self.assertIn("worker_counts[0]", self.refused(change, [64]))
        self.assertIn("scenario.change.global_batch_size", self.refused({"global_batch_size": 193, "accumulate": 2}))

    def test_micro_batches_follow_the_forward_pass_that_priorities_bring_forward(self):
        # A step turned: backward, 40 ms of a ring, the optimizer, forward, and the other micro-batches.
        profile = training()
        profile["platform"] = {"bandwidth_bytes_per_second": 1e8}
        profile["operations"][0]["name"], profile["operations"][1]["name"] = "forward/a", "backward/a"
        for batches in (1, 2, 4):
            [answer] = self.ask(profile, [2], {"accumulate": batches}, all_reduce={"latency_seconds": 0, "byte_scheduler": {}}).predictions
            self.assertAlmostEqual(answer.examples_per_second, 2 * 32 * batches / (0.030 * batches + 0.040 + 0.001), delta=1e-2)

    def test_the_kind_that_is_asked_for_says_whether_gradients_add_up(self):
        field = "scenario.change.accumulate"
        servers = {"parameter_servers": {"servers": 1}}
        sharded = {"all_reduce": {"sharding": "FULL"}}
        changes = ({"accumulate": 2}, {"accumulate": 2, "global_batch_size": 64})
        for scenario in (servers, sharded):
            for change in changes:
                with self.subTest(scenario=scenario, change=change):
                    request = {"inline_profile": training(), "worker_counts": [2], "options": EXACT, "scenario": {**scenario, "change": change}}
                    with self.assertRaises(grpc.RpcError) as caught:
                        self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request))
                    self.assertIn(field, details_of(caught.exception).violations)
                    bad = {"id": "bad", "inline_profile": training(), "max_workers": 2, "scenario": request["scenario"]}
                    reply = self.allocate(bad, workers=4)
                    self.assertIn(field, details_within(reply.allocations[0].error).violations)
        recorded = training()
        recorded["operations"][2] = {"name": "gradient", "resource": "UPLINK", "size_bytes": 4000000, "parameter": "w", "waiting_for": [1]}
        recorded["operations"][3]["resource"] = "PARAMETER_SERVER"
        self.assertAlmostEqual(self.rate(2, {"accumulate": 4}, recorded), 2 * 128 / (0.120 + 0.004), delta=1e-2)

    def test_hosts_are_no_faster_with_other_devices(self):
        profile = {**training(), "device_idle_fraction": 0.4}
        self.assertAlmostEqual(self.rate(1, {"compute_speed_factor": 2}, profile), 32 / (0.7 * 0.031), delta=1e-2)
        # 0.4 of forward and backward are as long with any batch; the optimizer takes its millisecond.
        self.assertAlmostEqual(self.rate(1, {"batch_size": 64}, profile), 64 / (1.6 * 0.030 + 0.001), delta=1e-2)

    def test_other_methods_answer_of_the_changed_job(self):
        request = {"inline_profile": training(), "scenario": {"change": {"accumulate": 64}}, "options": EXACT, "constraints": {"max_workers": 8}, "objective": "KNEE"}
        recommended = self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), request))
        self.assertEqual(recommended.workers, 8)
        self.assertGreater(recommended.prediction.scaling_efficiency, 0.99)

    def recommend(self, constraints, change, objective="KNEE"):
        request = {"inline_profile": training(), "scenario": {"change": change, "all_reduce": {"latency_seconds": 0}}, "options": EXACT, "constraints": constraints, "objective": objective}
        return self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), request))

    def test_a_recommendation_divides_a_global_batch(self):
        def pace(workers):
            return 192 / (0.030 * 192 / workers / 32 + 0.001 + 2 * (workers - 1) / workers * 0.004)

        counts = [1, 2, 3, 4, 6, 8, 12, 16]
        for objective, value in (("KNEE", lambda workers: pace(workers) ** 2 / workers), ("MAX_THROUGHPUT", pace)):
            reply = self.recommend({"max_workers": 16}, {"global_batch_size": 192}, objective)
            self.assertEqual([row.scenario.workers for row in reply.frontier], counts)
            for row in reply.frontier:
                self.assertAlmostEqual(row.examples_per_second, pace(row.scenario.workers), delta=0.1)
                self.assertAlmostEqual(row.speedup, pace(row.scenario.workers) / pace(1), delta=1e-3)
                self.assertEqual(row.scenario.change.batch_size, 192 // row.scenario.workers)
            self.assertEqual(reply.workers, max(counts, key=value))
            self.assertIn(f"with {192 // reply.workers} of the 192 examples of a step each", reply.reason)
        self.assertEqual(self.recommend({"worker_counts": [2, 6]}, {"global_batch_size": 192}).workers, 6)

    def test_a_recommendation_refuses_workers_that_do_not_divide_the_batch(self):
        for constraints, change, field in (
            ({"worker_counts": [2, 5]}, {"global_batch_size": 192}, "constraints.worker_counts[1]"),
            ({"min_workers": 5, "max_workers": 5}, {"global_batch_size": 192}, "constraints.max_workers"),
            ({}, {"global_batch_size": 0}, "scenario.change.global_batch_size"),
            ({}, {"global_batch_size": 64, "batch_size": 32}, "scenario.change.batch_size"),
        ):
            with self.subTest(field), self.assertRaises(grpc.RpcError) as caught:
                self.recommend(constraints, change)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn(field, details_of(caught.exception).violations)

    def allocate(self, *jobs, workers):
        request = {"jobs": list(jobs), "capacity": {"workers": workers}, "options": EXACT}
        return self.server.predictions.AllocateWorkers(from_json(allocation_pb2.AllocateWorkersRequest(), request))

    def test_an_allocation_divides_a_global_batch(self):
        def pace(workers):
            return 192 / (0.030 * 192 / workers / 32 + 0.001 + 2 * (workers - 1) / workers * 0.004)

        shared = {"id": "shared", "inline_profile": training(), "max_workers": 12, "scenario": {"change": {"global_batch_size": 192}, "all_reduce": {"latency_seconds": 0}}}
        own = {"id": "own", "inline_profile": training(), "max_workers": 4, "weight": 0.5, "scenario": {"all_reduce": {"latency_seconds": 0}}}
        reply = self.allocate(shared, own, workers=10)
        counts = [1, 2, 3, 4, 6, 8, 12]
        curve = {point.workers: point.examples_per_second for point in reply.allocations[0].curve}
        self.assertEqual(sorted(curve), [count for count in counts if count <= 11])
        for workers, rate in curve.items():
            self.assertAlmostEqual(rate, pace(workers), delta=0.1)
        others = {point.workers: point.examples_per_second for point in reply.allocations[1].curve}
        ways = [(pace(ours) / pace(1) + 0.5 * rate / others[1], ours, theirs) for ours in counts for theirs, rate in others.items() if ours + theirs <= 10]
        best, ours, theirs = max(ways)
        self.assertEqual([each.workers for each in reply.allocations], [ours, theirs])
        self.assertAlmostEqual(reply.total_utility, best, delta=1e-3)
        self.assertAlmostEqual(reply.allocations[0].speedup, pace(ours) / pace(1), delta=1e-3)
        told = [each.field for each in reply.allocations[0].assumptions]
        self.assertEqual(told.count("scenario.change.fixed_fraction"), 1)

    def test_an_allocation_refuses_a_job_whose_workers_do_not_divide_its_batch(self):
        good = {"id": "good", "inline_profile": training(), "max_workers": 2}
        for job, change, field in (
            ({"min_workers": 5, "max_workers": 5}, {"global_batch_size": 192}, "min_workers"),
            ({}, {"global_batch_size": 0}, "scenario.change.global_batch_size"),
            ({}, {"global_batch_size": 64, "batch_size": 32}, "scenario.change.batch_size"),
        ):
            with self.subTest(field):
                bad = {"id": "bad", "inline_profile": training(), "scenario": {"change": change, "all_reduce": {}}, **job}
                reply = self.allocate(bad, good, workers=8)
                self.assertIn(field, details_within(reply.allocations[0].error).violations)
                self.assertEqual(reply.allocations[0].workers, 0)
                self.assertGreater(reply.allocations[1].workers, 0)

    def test_bad_changes_are_refused_by_field(self):
        cases = {
            "scenario.change.batch_size": {"batch_size": 0},
            "scenario.change.fixed_fraction": {"batch_size": 64, "fixed_fraction": -0.1},
            "scenario.change.accumulate": {"accumulate": 0},
            "scenario.change.compute_speed_factor": {"compute_speed_factor": 1e7},
            "scenario.change.gradient_bytes_factor": {"gradient_bytes_factor": 0},
            "scenario.change.global_batch_size": {"global_batch_size": 0},
            "scenario.change.second_profile": {"batch_size": 64, "second_inline_profile": training(32)},
        }
        for field, change in cases.items():
            with self.subTest(field=field):
                self.assertIn(field, self.refused(change))
        self.assertIn("worker_counts[1]", self.refused({"global_batch_size": 64}, [2, 3]))

    def test_a_second_recording_that_is_not_stored_is_not_found(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.ask(training(), [1], {"batch_size": 64, "second_profile": "profiles/nobody"})
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_a_second_recording_that_is_replaced_counts_at_once(self):
        for change in ({"batch_size": 128}, {"global_batch_size": 128}):
            name = self.server.profiles.CreateProfile(from_json(store.CreateProfileRequest(), {"profile_id": f"replaced-{len(change)}{next(iter(change))[0]}", "profile": training(64, 15, 35)})).name
            first = self.ask(training(), [1], {**change, "second_profile": name}).predictions[0].examples_per_second
            self.server.profiles.UpdateProfile(from_json(store.UpdateProfileRequest(), {"profile": {"name": name, **training(64, 20, 40)}}))
            second = self.ask(training(), [1], {**change, "second_profile": name}).predictions[0].examples_per_second
            self.assertAlmostEqual(first, 128 / (0.025 + 0.065 + 0.001), delta=1e-3)
            self.assertAlmostEqual(second, 128 / (0.040 + 0.080 + 0.001), delta=1e-3)

    def test_a_bad_second_recording_is_named_by_its_field(self):
        bad = training(64)
        bad["operations"][0]["name"] = ""
        self.assertIn("scenario.change.second_inline_profile.operations[0].name", self.refused({"batch_size": 128, "second_inline_profile": bad}))
        self.assertIn("scenario.change.second_profile", self.refused({"batch_size": 128, "second_profile": "nobody"}))

    def test_a_change_belongs_to_the_request_and_not_to_one_of_its_scenarios(self):
        request = {"inline_profile": training(), "scenarios": [{"workers": 1}, {"workers": 2, "change": {"batch_size": 64}}]}
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request))
        self.assertIn("scenarios[1].change", details_of(caught.exception).violations)

    def test_the_command_line_asks_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.json")
            with open(path, "w") as file:
                json.dump(training(), file)

            def examples(*flags):
                done = subprocess.run([os.environ["STEPCAST"], "predict", path, "--as-recorded", "--latency", "0s", "--output", "json", *flags], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                return {each["scenario"]["workers"]: each["examplesPerSecond"] for each in json.loads(done.stdout)["predictions"]}

            self.assertAlmostEqual(examples("--workers", "2", "--batch-size", "64", "--batch-fixed", "0.5")[2], 2 * 64 / (1.5 * 0.030 + 0.001 + 0.004), delta=1e-3)
            # Peak rates of 32 bits: 67 and 15.7 TFLOP/s.
            self.assertAlmostEqual(examples("--workers", "1", "--compute-speed", "h100/v100:fp32")[1], 32 / 0.031 * 67 / 15.7, delta=1)
            told = subprocess.run([os.environ["STEPCAST"], "predict", path, "--workers", "1", "--compute-speed", "h100/v100"], capture_output=True, text=True)
            self.assertIn("compute speed: x 7.916 (989.5 / 125 TFLOP/s)", told.stderr)
            self.assertIn("bound by memory gain x 3.722 (3350 / 900 GB/s)", told.stderr)
            for wrong, why in (("h100/z9", '"z9" is none of v100, '), ("h100", "stands behind a slash"), ("h100/v100:int8", '"int8" is neither fp16 nor fp32'), ("", "stands behind a slash")):
                refused = subprocess.run([os.environ["STEPCAST"], "predict", path, "--compute-speed", wrong], capture_output=True, text=True)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(why, refused.stderr)
            # Of 1 to 16 those that divide 24.
            self.assertEqual(sorted(examples("--global-batch", "24")), [1, 2, 3, 4, 6, 8, 12])


if __name__ == "__main__":
    unittest.main()
