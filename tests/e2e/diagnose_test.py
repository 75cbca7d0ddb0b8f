"""The diagnosis of a job, through the real server."""

import unittest

from contract import diagnosis_pb2, from_json, grpc, prediction, profile_pb2, scenario_pb2, store
from sample import message, recorded, small
from patience import PASSING_SECONDS
from stepcastd import ServerTest

TIME, CHANGE = diagnosis_pb2.PathTime, diagnosis_pb2.WhatIf
# Forward 20 ms, backward 10 ms, and a gradient of 1 MB at 100 MB/s.
ALL_REDUCE = {
    "batch_size": 8,
    "platform": {"bandwidth_bytes_per_second": 1e8},
    "operations": [
        {"name": "forward", "resource": "WORKER"},
        {"name": "backward", "resource": "WORKER", "waiting_for": [0]},
        {"name": "gradient", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 1_000_000, "waiting_for": [1]},
    ],
    "steps": [{"start_ns": [0, 20_000_000, 30_000_000], "end_ns": [20_000_000, 30_000_000, 30_000_000]}],
}
# Three workers, and one of half their speed.
UNEQUAL = {"workers": 4, "worker_groups": [{"count": 3}, {"count": 1, "compute_speed_factor": 0.5}]}


def by_kind(times):
    return {time.kind: time.seconds for time in times}


class DiagnoseTest(ServerTest):
    options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=200, replications=2)

    def request(self, **request):
        asked = from_json(diagnosis_pb2.DiagnoseJobRequest(), request)
        asked.options.CopyFrom(self.options)
        return asked

    def diagnose(self, **request):
        return self.server.predictions.DiagnoseJob(self.request(**request))

    def test_the_diagnosis_of_a_straggler_follows_by_hand(self):
        reply = self.diagnose(inline_profile=ALL_REDUCE, scenario={**UNEQUAL, "all_reduce": {"latency_seconds": 0}})
        # 30 ms on all, 30 more on the slow one; six rounds of a quarter, 2.5 ms each.
        self.assertAlmostEqual(reply.prediction.step_time.mean.ToNanoseconds() * 1e-9, 0.075)
        self.assertAlmostEqual(reply.path_seconds, 0.075)
        self.assertEqual(reply.path_steps, 20)
        path = by_kind(reply.path)
        self.assertEqual(set(path), {TIME.COMPUTATION, TIME.COMMUNICATION, TIME.WAITING})
        for kind, seconds in ((TIME.COMPUTATION, 0.030), (TIME.WAITING, 0.030), (TIME.COMMUNICATION, 0.015)):
            self.assertAlmostEqual(path[kind], seconds)
        self.assertTrue(reply.HasField("straggler"))
        self.assertEqual((reply.straggler, len(reply.workers)), (3, 4))
        self.assertAlmostEqual(reply.workers[3].waited_for_seconds, 0.030)
        self.assertAlmostEqual(reply.workers[3].on_path_seconds, 0.060)
        self.assertAlmostEqual(by_kind(reply.workers[0].own)[TIME.WAITING], 0.030)
        self.assertEqual(reply.operations[0].operations, ["forward"])
        ratios = {answer.change: answer.ratio for answer in reply.what_ifs}
        for change, seconds in ((CHANGE.NO_STRAGGLERS, 0.045), (CHANGE.COMPUTATION_TWICE_AS_FAST, 0.045), (CHANGE.LINKS_TWICE_AS_FAST, 0.0675)):
            self.assertAlmostEqual(ratios[change], 0.075 / seconds)
        # Without the slow one: four rounds of a third.
        self.assertAlmostEqual(ratios[CHANGE.ONE_WORKER_FEWER], (3 / (0.030 + 4 * 0.01 / 3)) / (4 / 0.075))
        # Of one gradient there are no other buckets.
        self.assertEqual([(out.change, bool(out.reason)) for out in reply.left_out], [(change, True) for change in (CHANGE.NO_LATENCY, CHANGE.SERVERS_TWICE_AS_FAST, CHANGE.NO_HOST_WAIT, CHANGE.DATA_LOADING_TWICE_AS_FAST, CHANGE.NO_DATA_WAIT, CHANGE.BEST_BUCKETS, CHANGE.BEST_TRANSFER_ORDER)])
        self.assertEqual(sorted(ratios.values(), reverse=True), [answer.ratio for answer in reply.what_ifs])

    def test_what_faster_data_loading_brings_follows_by_hand(self):
        """Two workers load data for the 20 ms that are called forward, and send for 10 ms."""
        loading = {**ALL_REDUCE, "operations": [{**ALL_REDUCE["operations"][0], "pass": "DATA_LOADING"}, *ALL_REDUCE["operations"][1:]]}
        reply = self.diagnose(inline_profile=loading, scenario={"workers": 2, "all_reduce": {"latency_seconds": 0}})
        ratios = {answer.change: answer.ratio for answer in reply.what_ifs}
        self.assertAlmostEqual(ratios[CHANGE.DATA_LOADING_TWICE_AS_FAST], 0.040 / 0.030, places=5)
        self.assertAlmostEqual(ratios[CHANGE.NO_DATA_WAIT], 0.040 / 0.020, places=5)
        never = self.diagnose(inline_profile=ALL_REDUCE, scenario={"workers": 2, "all_reduce": {"latency_seconds": 0}})
        reasons = {out.change: out.reason for out in never.left_out}
        self.assertEqual(reasons[CHANGE.NO_DATA_WAIT], "the profile does not say for how long workers wait for data")

    def test_buckets_where_collectives_start_free_are_those_of_ddp_and_warned_of(self):
        """Nothing that merges by the cost of a start would make buckets of single gradients."""
        profile = {"batch_size": 8, "platform": {"bandwidth_bytes_per_second": 1e9}, "operations": [], "steps": [{"start_ns": [], "end_ns": []}]}
        for i in range(40):
            waits = {"waiting_for": [2 * i - 2]} if i else {}
            profile["operations"] += [
                {"name": f"backward {i}", "resource": "WORKER", **waits},
                {"name": f"gradient {i}", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 256 if i % 2 else 4_000_000, "waiting_for": [2 * i]},
            ]
            profile["steps"][0]["start_ns"] += [i * 1_000_000, (i + 1) * 1_000_000]
            profile["steps"][0]["end_ns"] += [(i + 1) * 1_000_000] * 2
        free = self.diagnose(inline_profile=profile, scenario={"workers": 4, "all_reduce": {"latency_seconds": 0, "buckets": {"cap_bytes": 200 << 20}}})
        (best,) = [answer for answer in free.what_ifs if answer.change == CHANGE.BEST_BUCKETS]
        self.assertGreater(best.ratio, 1)
        self.assertGreaterEqual(min(group.size_bytes for group in best.groups[:-1]), 1 << 20)
        self.assertIn(prediction.Warning.COLLECTIVES_START_FREE, [warning.reason for warning in free.prediction.warnings])
        late = self.diagnose(inline_profile=profile, scenario={"workers": 4, "all_reduce": {"latency_seconds": 1e-4, "buckets": {"cap_bytes": 200 << 20}}})
        self.assertNotIn(prediction.Warning.COLLECTIVES_START_FREE, [warning.reason for warning in late.prediction.warnings])

    def test_the_best_buckets_are_named_and_are_what_a_prediction_of_them_says(self):
        # Ten gradients of 1 MB, each ready 1 ms after the one before; messages of a millisecond.
        profile = {"batch_size": 8, "platform": {"bandwidth_bytes_per_second": 1e9}, "operations": [], "steps": [{"start_ns": [], "end_ns": []}]}
        for i in range(10):
            waits = {"waiting_for": [2 * i - 2]} if i else {}
            profile["operations"] += [
                {"name": f"backward {i}", "resource": "WORKER", **waits},
                {"name": f"gradient {i}", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 1_000_000, "waiting_for": [2 * i]},
            ]
            profile["steps"][0]["start_ns"] += [i * 1_000_000, (i + 1) * 1_000_000]
            profile["steps"][0]["end_ns"] += [(i + 1) * 1_000_000] * 2
        reply = self.diagnose(inline_profile=profile, scenario={"workers": 4, "all_reduce": {"latency_seconds": 1e-3}})
        (best,) = [answer for answer in reply.what_ifs if answer.change == CHANGE.BEST_BUCKETS]
        self.assertGreater(best.ratio, 1.5)
        self.assertRegex(best.setting, "^bucket_cap_mb")
        self.assertLess(len(best.groups), 10)
        self.assertEqual([name for group in best.groups for name in group.operations], [f"gradient {i}" for i in range(10)])
        self.assertEqual([group.size_bytes for group in best.groups], [1_000_000 * len(group.operations) for group in best.groups])
        asked = prediction.PredictThroughputRequest(inline_profile=from_json(profile_pb2.Profile(), profile), scenario=best.prediction.scenario, options=self.options)
        predicted = self.server.predictions.PredictThroughput(asked).predictions[0]
        self.assertAlmostEqual(predicted.steps_per_second, best.prediction.steps_per_second)
        self.assertAlmostEqual(best.ratio, predicted.steps_per_second / reply.prediction.steps_per_second)
        self.assertEqual([out.change for out in reply.left_out if out.change == CHANGE.BEST_TRANSFER_ORDER], [CHANGE.BEST_TRANSFER_ORDER])

    def test_it_is_of_the_job_that_is_predicted(self):
        reply = self.diagnose(inline_profile=recorded(), scenario={"workers": 2})
        asked = prediction.PredictThroughputRequest(inline_profile=message(recorded()), worker_counts=[2], options=self.options)
        predicted = self.server.predictions.PredictThroughput(asked)
        self.assertEqual(reply.prediction, predicted.predictions[0])
        self.assertEqual((reply.profile_digest, reply.engine_version), (predicted.profile_digest, predicted.engine_version))
        self.assertEqual(reply.options, predicted.options)
        self.assertAlmostEqual(sum(by_kind(reply.path).values()), reply.path_seconds)
        for answer in reply.what_ifs:
            self.assertLessEqual(answer.ratio_interval.lower, answer.ratio)
            self.assertLessEqual(answer.ratio, answer.ratio_interval.upper)
            self.assertEqual(answer.ratio_interval.level, 0.95)

    def test_an_equal_call_is_answered_from_the_cache_and_counted(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small()))).name
        first, second = self.diagnose(profile=name), self.diagnose(inline_profile=small())
        self.assertEqual((first.simulation.cached, second.simulation.cached), (False, True))
        self.assertEqual(first.what_ifs, second.what_ifs)
        self.assertEqual([reply.prediction.scenario.workers for reply in (first, second)], [1, 1])
        self.assertEqual(self.server.metric("stepcast_predictions_total", method="DiagnoseJob", communication="parameter_servers", code="OK"), 1)
        self.assertEqual(self.server.metric("stepcast_shared_answers_total", **{"method": "DiagnoseJob", "from": "cache"}), 1)

    def test_a_passed_deadline_ends_it(self):
        request = self.request(inline_profile=recorded(), scenario={"workers": 256})
        request.options.steps_per_worker = 1_000_000
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.predictions.DiagnoseJob(request, timeout=PASSING_SECONDS)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


if __name__ == "__main__":
    unittest.main()
