"""Parameter servers that add up what all workers upload before they send it on: predicted, in parts, of profiles of servers and of all-reduces, and refused by name."""

import json
import unittest

from contract import allocation_pb2, comparison_pb2, details_of, diagnosis_pb2, from_json, grpc, order_pb2, prediction, recommendation_pb2, strategy_pb2, trace_pb2
from sample import recorded, small
from stepcastd import ServerTest

MILLISECOND = 1_000_000


def profile_of(operations, times_ms, **fields):
    """`times_ms`: of computations; at 100 MB/s a megabyte takes 10 ms."""
    names = [operation["name"] for operation in operations]
    wire = [dict(operation, waiting_for=[names.index(before) for before in operation.get("waiting_for", ())]) for operation in operations]
    ends = [times_ms.get(name, 0) * MILLISECOND for name in names]
    return {"batch_size": 1, "platform": {"bandwidth_bytes_per_second": 1e8}, "operations": wire, "steps": [{"start_ns": [0] * len(ends), "end_ns": ends}], **fields}


def aggregated(scale=1):
    """Each gradient goes to the server and comes back as the sum, which the worker applies."""
    push = {"resource": "UPLINK", "size_bytes": scale * 1_000_000}
    pull = {"resource": "DOWNLINK", "size_bytes": scale * 1_000_000}
    operations = [
        {"name": "forward", "resource": "WORKER"},
        {"name": "backward 2", "resource": "WORKER", "waiting_for": ["forward"]},
        {"name": "push 2", **push, "waiting_for": ["backward 2"], "parameter": "w2"},
        {"name": "pull 2", **pull, "waiting_for": ["push 2"], "parameter": "w2"},
        {"name": "update 2", "resource": "WORKER", "waiting_for": ["pull 2"]},
        {"name": "backward 1", "resource": "WORKER", "waiting_for": ["backward 2"]},
        {"name": "push 1", **push, "waiting_for": ["backward 1"], "parameter": "w1"},
        {"name": "pull 1", **pull, "waiting_for": ["push 1"], "parameter": "w1"},
        {"name": "update 1", "resource": "WORKER", "waiting_for": ["pull 1"]},
    ]
    return profile_of(operations, {"forward": 40, "backward 2": 80, "update 2": 10, "backward 1": 40, "update 1": 10})


def all_reduced():
    operations = [
        {"name": "forward/1", "resource": "WORKER"},
        {"name": "forward/2", "resource": "WORKER", "waiting_for": ["forward/1"]},
        {"name": "backward/2", "resource": "WORKER", "waiting_for": ["forward/2"]},
        {"name": "g2", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 1_000_000, "waiting_for": ["backward/2"], "parameter": "w2"},
        {"name": "backward/1", "resource": "WORKER", "waiting_for": ["backward/2"]},
        {"name": "g1", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 1_000_000, "waiting_for": ["backward/1"], "parameter": "w1"},
        {"name": "optimizer", "resource": "WORKER", "waiting_for": ["g2", "g1"]},
    ]
    return profile_of(operations, {"forward/1": 30, "forward/2": 30, "backward/2": 50, "backward/1": 50, "optimizer": 20})


UNLIKE = [{"count": 1, "compute_speed_factor": 1}, {"count": 1, "compute_speed_factor": 0.5}]
STEPS = {"step_variation": "AS_RECORDED", "steps_per_worker": 60}


class SummedTest(ServerTest):
    def test_the_models_error_is_said_to_be_that_of_others(self):
        for synchronization, measured in (("SUMMED", False), ("ASYNCHRONOUS", True)):
            request = {"inline_profile": aggregated(), "scenario": {"workers": 2, "parameter_servers": {"synchronization": synchronization}}}
            [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
            self.assertEqual("none of servers that sum is measured; of others: " not in answer.model_error.source, measured)
            self.assertIn("./dev testbed", answer.model_error.source)

    def predicted(self, profile, servers, workers=2, **scenario):
        request = {
            "inline_profile": profile,
            "scenario": {"workers": workers, "parameter_servers": {"synchronization": "SUMMED", **servers}, **scenario},
            "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 60, "start": "SIMULTANEOUS"},
        }
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer

    def refused(self, profile, servers, **scenario):
        with self.assertRaises(grpc.RpcError) as caught:
            self.predicted(profile, servers, **scenario)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        return details_of(caught.exception).violations

    def assert_steps(self, answer, steps_per_second):
        self.assertAlmostEqual(answer.steps_per_second / steps_per_second, 1, delta=1e-6)

    def test_the_slowest_upload_of_a_tensor_is_what_all_wait_for(self):
        answer = self.predicted(aggregated(), {}, worker_groups=UNLIKE)
        # The slow one: 320 ms, its upload 10, both downloads 20, and its last update 20.
        self.assert_steps(answer, 2 / 0.370)
        self.assertEqual(answer.scenario.parameter_servers.synchronization, 3)
        told = {each.field: each.value for each in answer.assumptions}
        self.assertEqual(told["scenario.parameter_servers.synchronization"], "sums in no time")
        # Without sums the fast one goes at its own speed.
        self.assertGreater(self.predicted(aggregated(), {"synchronization": "ASYNCHRONOUS"}, worker_groups=UNLIKE).steps_per_second, 2 / 0.3)

    def test_workers_that_are_alike_take_the_time_that_follows_by_hand(self):
        for workers in (1, 2, 4):
            # The last gradient at 160 ms, up and down at a share of the link, the last update.
            self.assert_steps(self.predicted(aggregated(), {}, workers), workers / (0.160 + 2 * workers * 0.010 + 0.010))

    def test_a_worker_alone_has_nobody_to_add_up_with(self):
        for profile in (small(), recorded(), aggregated()):
            rates = {self.predicted(profile, {"synchronization": how}, workers=1).steps_per_second for how in ("ASYNCHRONOUS", "SYNCHRONOUS", "SUMMED")}
            self.assertEqual(len(rates), 1)

    def test_parts_come_back_while_others_are_still_sent(self):
        # Two workers: the last gradient's upload takes 20 ms, its download as long. In five parts the download begins 4 ms after the upload.
        answer = self.predicted(aggregated(), {"partition_bytes": 200_000})
        self.assert_steps(answer, 2 / (0.160 + 0.004 + 0.020 + 0.010))
        self.assertEqual(answer.scenario.parameter_servers.partition_bytes, 200_000)

    def test_all_reduces_become_uploads_and_downloads_that_the_next_forward_pass_overlaps(self):
        # g2 is made after 50 ms and is back after 90; g1 after 100, 120 up and 140 down; half of the update, the two layers.
        self.assert_steps(self.predicted(all_reduced(), {"servers": 1}), 2 / (0.140 + 0.010 + 0.060))
        # On two servers as fast: the tensors do not meet.
        self.assert_steps(self.predicted(all_reduced(), {"servers": 2}), 2 / (0.140 + 0.010 + 0.060))
        # Four parts to two servers: half of the time on each link.
        self.assert_steps(self.predicted(all_reduced(), {"servers": 2, "partition_bytes": 250_000}), 2 / (0.100 + 0.010 + 0.005 + 0.010 + 0.060))

    def asked(self, request, **fields):
        return from_json(request, {"inline_profile": aggregated(), "scenario": {"workers": 2, "parameter_servers": {"synchronization": "SUMMED"}}, "options": STEPS, **fields})

    def test_a_trace_shows_the_sums_on_their_way_during_the_backward_pass(self):
        scenario = {"workers": 2, "worker_groups": UNLIKE, "parameter_servers": {"synchronization": "SUMMED"}}
        options = {"step_variation": "AS_RECORDED", "steps_per_worker": 1}
        request = self.asked(trace_pb2.GenerateTraceRequest(), scenario=scenario, options=options)
        events = json.loads(b"".join(reply.chunk for reply in self.server.predictions.GenerateTrace(request)))["traceEvents"]
        spans = {(event["pid"], event["name"]): (round(event["ts"] / 1000), round((event["ts"] + event["dur"]) / 1000)) for event in events if event["ph"] == "X"}
        self.assertEqual([spans[worker, "push 2"] for worker in (1, 2)], [(120, 130), (240, 250)])
        self.assertEqual([spans[worker, "pull 2"] for worker in (1, 2)], [(250, 270)] * 2)
        self.assertEqual(spans[2, "backward 1"], (240, 320))

    def test_a_diagnosis_finds_the_worker_whose_uploads_are_waited_for(self):
        scenario = {"workers": 2, "worker_groups": UNLIKE, "parameter_servers": {"synchronization": "SUMMED"}}
        reply = self.server.predictions.DiagnoseJob(self.asked(diagnosis_pb2.DiagnoseJobRequest(), scenario=scenario))
        self.assertTrue(reply.HasField("straggler"))
        self.assertEqual(reply.straggler, 1)
        self.assertGreater(reply.workers[1].on_path_seconds, reply.workers[0].on_path_seconds)

    def test_recommending_sharing_and_comparing_take_the_same_rates(self):
        # With more the last gradient would wait for the one before.
        by_hand = {workers: workers / (0.170 + 0.020 * workers) for workers in range(1, 5)}
        reply = self.server.predictions.RecommendWorkers(
            self.asked(recommendation_pb2.RecommendWorkersRequest(), scenario={"parameter_servers": {"synchronization": "SUMMED"}}, constraints={"max_workers": 4}, objective="MIN_TIME")
        )
        self.assertEqual(reply.workers, 4)
        for row in reply.frontier:
            self.assert_steps(row, by_hand[row.scenario.workers])
        job = {"id": "a", "inline_profile": aggregated(), "scenario": {"parameter_servers": {"synchronization": "SUMMED"}}}
        shares = from_json(allocation_pb2.AllocateWorkersRequest(), {"jobs": [job], "capacity": {"workers": 4}, "options": STEPS})
        curve = {point.workers: point.examples_per_second for point in self.server.predictions.AllocateWorkers(shares).allocations[0].curve}
        self.assertIn(4, curve)
        for workers in set(curve) & set(by_hand):
            self.assertAlmostEqual(curve[workers] / by_hand[workers], 1, delta=1e-6)
        compared = self.server.predictions.CompareModels(self.asked(comparison_pb2.CompareModelsRequest(), scenario={"parameter_servers": {"synchronization": "SUMMED"}}, worker_counts=[2]))
        self.assert_steps(compared.comparisons[0].prediction, by_hand[2])
        self.assertIn("asynchronous training", compared.comparisons[0].models[0].unavailable_reason)

    def test_orders_are_those_of_the_downloads(self):
        reply = self.server.predictions.OptimizeOrder(self.asked(order_pb2.OptimizeOrderRequest(), methods=["TAC", "SEARCH", "GRAPH"]))
        for order in reply.orders:
            self.assertEqual({transfer.name for transfer in order.transfers}, {"pull 1", "pull 2"})
            # One worker alone: what comes last is the last upload, its download and update.
            self.assertEqual(order.makespan_ns, 190 * MILLISECOND)

    def test_the_schedule_of_byteps_is_compared_and_never_beats_what_is_found(self):
        reply = self.server.predictions.OptimizeJob(
            self.asked(strategy_pb2.OptimizeJobRequest(), inline_profile=aggregated(scale=10), scenario={"workers": 2, "bandwidth_bytes_per_second": 1e9, "parameter_servers": {"synchronization": "SUMMED"}})
        )
        rates = {row.name: row.examples_per_second for row in reply.compared}
        # 10 MB each: whole, up and down one after the other; in three parts they overlap.
        self.assertAlmostEqual(rates["AS_RECORDED"], 2 / 0.210, delta=1e-6)
        self.assertAlmostEqual(rates["BYTEPS"], 2 / (0.160 + 0.020 + 0.020 / 3 + 0.010), delta=1e-3)
        self.assertGreaterEqual(reply.prediction.examples_per_second, rates["BYTEPS"] * (1 - 1e-9))

    def test_what_cannot_be_added_up_is_named(self):
        unnamed = small()
        for operation in unnamed["operations"]:
            operation.pop("parameter", None)
        [(field, why)] = self.refused(unnamed, {}).items()
        self.assertEqual(field, "scenario.parameter_servers.synchronization")
        self.assertIn("names no parameter", why)
        self.assertIn("scenario.parameter_servers.partition_bytes", self.refused(aggregated(), {"partition_bytes": 0}))
        self.assertIn("is below 1", self.refused(aggregated(), {"partition_bytes": -5})["scenario.parameter_servers.partition_bytes"])
        self.assertIn("max_turns", self.refused(aggregated(), {"partition_bytes": 1})["scenario.parameter_servers.partition_bytes"])
        self.assertIn("scenario.parameter_servers.synchronization", self.refused(aggregated(), {"synchronization": 77}))
        self.assertIn("scenario.parameter_servers.synchronization", self.refused(all_reduced(), {}))


if __name__ == "__main__":
    unittest.main()
