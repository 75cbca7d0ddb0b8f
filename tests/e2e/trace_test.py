"""A trace, as a user of Google's Python client gets and reads it."""

import collections
import contextlib
import json
import unittest

from contract import details_of, grpc, prediction, scenario_pb2, trace_pb2
from patience import growing_seconds
from sample import message, recorded, small
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

PIECE_BYTES = 65536


def request(profile, steps=3, **scenario):
    return trace_pb2.GenerateTraceRequest(
        inline_profile=message(profile), scenario=scenario_pb2.Scenario(**scenario), options=scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=steps)
    )


def endless():
    """A trace of half a gigabyte and more."""
    return request(small(), steps=900_000)


def picoseconds(event):
    """(start, end) of an event."""
    begin = round(event["ts"] * 1e6)
    return begin, begin + round(event["dur"] * 1e6)


class TraceTest(ServerTest):
    def trace(self, asked):
        pieces = [reply.chunk for reply in self.server.predictions.GenerateTrace(asked)]
        self.assertTrue(all(0 < len(piece) <= PIECE_BYTES for piece in pieces))
        return json.loads(b"".join(pieces))["traceEvents"]

    def test_every_operation_of_every_step_is_there_and_lanes_run_one_thing_at_a_time(self):
        workers, steps, window = 4, 3, 65536
        profile = recorded()
        events = self.trace(request(profile, steps, workers=workers, parameter_servers={"round_robin": {}}))
        slices = [event for event in events if event["ph"] == "X"]
        by_step = collections.defaultdict(list)
        by_lane = collections.defaultdict(list)
        for event in slices:
            by_lane[event["pid"], event["tid"]].append(picoseconds(event))
            by_step[event["pid"], event["args"]["step"]].append(event)
        self.assertEqual(set(by_step), {(pid, step) for pid in range(1, workers + 1) for step in range(steps)})
        names = sorted(operation["name"] for operation in profile["operations"])
        sizes = {operation["name"]: int(operation["size_bytes"]) for operation in profile["operations"] if "LINK" in operation["resource"]}
        for (_, step), inside in by_step.items():
            (whole,) = [event for event in inside if event["cat"] == "step"]
            rest = [event for event in inside if event["cat"] not in ("step", "parsing")]
            self.assertEqual(whole["name"], f"step {step}")
            self.assertEqual(picoseconds(whole)[0], min(picoseconds(event)[0] for event in inside))
            self.assertEqual(picoseconds(whole)[1], max(picoseconds(event)[1] for event in inside if event is not whole))
            self.assertEqual(sorted({event["name"] for event in rest}), names)
            carried = collections.Counter()
            for event in rest:
                if event["cat"] == "transfer":
                    carried[event["name"]] += event["args"]["bytes"]
                    self.assertLessEqual(event["args"]["bytes"], window if event["args"]["service"] == 0 else 1 << 20)
                    self.assertLessEqual(event["args"]["link_share"], 1.000001)
            self.assertEqual(dict(carried), sizes)
        self.assertTrue(any(event["args"].get("service", 0) > 1 for event in slices), "turns after the second")
        for lane, spans in by_lane.items():
            spans.sort()
            for before, after in zip(spans, spans[1:]):
                self.assertLessEqual(before[1], after[0], lane)

    def test_the_critical_path_of_every_kind_of_job_is_whole(self):
        # Servers, and collectives of workers of whom the last one is slow.
        unequal = {"workers": 3, "worker_groups": [{"count": 2}, {"count": 1, "compute_speed_factor": 0.5}]}
        for scenario in ({"workers": 3}, {**unequal, "all_reduce": {}}):
            asked = request(recorded(), 2, **scenario)
            asked.critical_path = True
            events = self.trace(asked)
            names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
            self.assertEqual(names[4], "critical path")
            slices = [event for event in events if event["ph"] == "X"]
            path = [event for event in slices if event["cat"] == "path"]
            work = [event for event in slices if event["cat"] not in ("path", "step")]
            spans = [picoseconds(event) for event in path]
            self.assertEqual(spans[0][0], 0)
            self.assertEqual(spans[-1][1], max(picoseconds(event)[1] for event in slices))
            for before, after in zip(spans, spans[1:]):
                self.assertEqual(before[1], after[0])
            for event in path:
                if event["args"]["kind"] == "GAP":
                    continue
                begin, end = picoseconds(event)
                holders = [one for one in work if one["name"] == event["args"]["operation"] and picoseconds(one)[0] <= begin and end <= picoseconds(one)[1]]
                self.assertTrue(any(one["pid"] == event["args"].get("worker", one["pid"] - 1) + 1 for one in holders), event)
            kinds = {event["args"]["kind"] for event in path}
            self.assertEqual("WAITING" in kinds, "all_reduce" in scenario)
            arrows = [event["ph"] for event in events if event["ph"] in "stf"]
            self.assertEqual(arrows, ["s"] + ["t"] * (len(arrows) - 2) + ["f"])
            without = request(recorded(), 2, **scenario)
            self.assertEqual([event for event in events if event["pid"] != 4 and event["ph"] in "MX"], self.trace(without))

    def test_processes_and_threads_have_names_and_an_order(self):
        events = self.trace(request(small(), workers=2))
        names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
        order = {(event["pid"], event["tid"]): event["args"]["sort_index"] for event in events if event["name"] == "thread_sort_index"}
        processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(processes, {1: "worker 0", 2: "worker 1"})
        for pid in processes:
            lanes = [names[lane] for lane in sorted(order, key=order.get) if lane[0] == pid]
            self.assertEqual(lanes, ["steps", "downlink", "worker", "uplink", "parameter server"])
        self.assertTrue(all((event["pid"], event["tid"]) in names for event in events if event["ph"] == "X"))

    def test_any_name_comes_back_as_it_was(self):
        profile = small()
        hard = ['a "quoted" \\ name', "tabs\tand\nlines\x01\x1f\x7f", "é 漢字 \U0001f600 \u2028", "\ud7ff\ue000\uffff"]
        for operation, name in zip(profile["operations"], hard):
            operation["name"] = name
        events = self.trace(request(profile, steps=1))
        self.assertEqual([event["name"] for event in events if event["ph"] == "X" and event["cat"] != "step"], hard)

    def test_the_same_request_gives_the_same_bytes(self):
        asked = request(recorded(), workers=3)
        first, second = ([reply.chunk for reply in self.server.predictions.GenerateTrace(asked)] for _ in range(2))
        self.assertEqual(first, second)
        self.assertGreater(len(first), 1)

    def test_calls_are_counted(self):
        list(self.server.predictions.GenerateTrace(request(small())))
        # The client has the answer before the server has counted it.
        labels = {"grpc_method": "GenerateTrace", "grpc_code": "OK", "grpc_type": "server_stream"}
        eventually(lambda: self.server.metric("grpc_server_handled_total", **labels) == 1, "it is counted")
        self.assertGreaterEqual(self.server.metric("grpc_server_msg_sent_total", grpc_method="GenerateTrace"), 1)
        self.assertEqual(self.server.metric("stepcast_predictions_total", method="GenerateTrace", code="OK"), 1)
        self.assertGreater(self.server.metric("stepcast_simulated_operations_total"), 0)

    def test_a_call_cancelled_in_the_middle_stops_its_simulation(self):
        call = self.server.predictions.GenerateTrace(endless(), timeout=PATIENCE_SECONDS)
        for _ in range(3):
            self.assertEqual(len(next(call).chunk), PIECE_BYTES)
        self.assertEqual(self.server.metric("stepcast_jobs_running", pool="simulation"), 1)
        call.cancel()
        eventually(lambda: self.server.metric("stepcast_jobs_running", pool="simulation") == 0, "no simulation runs")
        eventually(lambda: self.server.metric("stepcast_predictions_total", method="GenerateTrace", code="Canceled") == 1, "it is counted")

    def test_a_deadline_stops_a_trace_that_nobody_reads(self):
        for seconds in growing_seconds(1):
            call = self.server.predictions.GenerateTrace(endless(), timeout=seconds)
            # Nothing where it passes before there is anything.
            with contextlib.suppress(grpc.RpcError):
                next(call)
                break
        eventually(lambda: self.server.metric("stepcast_jobs_running", pool="simulation") == 0, "no simulation runs")
        with self.assertRaises(grpc.RpcError) as raised:
            list(call)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


class PatienceTest(ServerTest):
    flags = ("--max-job-seconds", "3", "--threads", "1")

    def sent(self):
        return self.server.metric("grpc_server_msg_sent_total", grpc_method="GenerateTrace")

    def test_the_simulation_waits_for_a_reader_but_not_for_ever(self):
        # Bounded by what gRPC itself sends ahead; three seconds of writing without waiting are thousands of pieces.
        call = self.server.predictions.GenerateTrace(endless(), timeout=PATIENCE_SECONDS)
        next(call)
        eventually(lambda: self.server.metric("stepcast_jobs_running", pool="simulation") == 0, "the job ends by itself")
        self.assertLess(self.sent(), 300)
        with self.assertRaises(grpc.RpcError) as raised:
            list(call)
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.DEADLINE_EXCEEDED, "JOB_TOO_LONG"))
        # Its thread is free again.
        self.assertGreater(len(list(self.server.predictions.GenerateTrace(request(small()), timeout=PATIENCE_SECONDS))), 0)


if __name__ == "__main__":
    unittest.main()
