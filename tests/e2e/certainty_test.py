"""How sure an answer is: three intervals, what narrows them, rates that nobody measured, and a choice that says how likely it is the best; asked by grpcio."""

import re
import unittest

from contract import allocation_pb2, details_of, from_json, grpc, order_pb2, prediction, recommendation_pb2, scenario_pb2, strategy_pb2, tuning_pb2
from sample import recorded, small
from stepcastd import ServerTest

Options = scenario_pb2.SimulationOptions
MILLISECOND = 1000000


def training(factors):
    """A step of 60 ms of computation, the last 20 beside an all-reduce of 4 MB, recorded once for each factor."""
    names = [("forward", 20), ("backward", 20), ("rest", 20)]
    operations = [{"name": name, "resource": "WORKER", "waiting_for": [i - 1] if i else []} for i, (name, _) in enumerate(names)]
    operations.append({"name": "gradient", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 4000000, "waiting_for": [1]})
    steps = []
    for factor in factors:
        ends = [round(factor * MILLISECOND * 20 * (i + 1)) for i in range(3)]
        steps.append({"start_ns": [0, ends[0], ends[1], ends[1]], "end_ns": [*ends, ends[1]]})
    return {"batch_size": 32, "platform": {"bandwidth_bytes_per_second": 1e9}, "operations": operations, "steps": steps}


def two_variables():
    """Two tensors, of which one has two thirds of the bytes, as if each had been sent alone."""
    transfers = [(f"{kind} {name}", resource, size) for kind, resource in (("recv", "DOWNLINK"), ("send", "UPLINK")) for name, size in (("a", 4000000), ("b", 2000000))]
    operations = [{"name": name, "resource": resource, "size_bytes": size, "parameter": name[-1]} for name, resource, size in transfers]
    operations.insert(2, {"name": "compute", "resource": "WORKER", "waiting_for": [0, 1]})
    for send in operations[3:]:
        send["waiting_for"] = [2]
    steps = []
    for computing in (4, 5, 6):
        start = [0, 0, 4, 4 + computing, 4 + computing]
        steps.append({"start_ns": [at * MILLISECOND for at in start], "end_ns": [(at + length) * MILLISECOND for at, length in zip(start, (4, 2, computing, 4, 2))]})
    return {"batch_size": 1, "platform": {"bandwidth_bytes_per_second": 1e9}, "operations": operations, "steps": steps}


def half_width(interval):
    return (interval.upper - interval.lower) / 2


class CertaintyTest(ServerTest):
    def predicted(self, profile, workers=4, options=None, scenario=None):
        request = {"inline_profile": profile, "scenario": {"workers": workers, **(scenario or {})}, "options": options or {}}
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer

    def test_each_interval_holds_the_one_that_knows_more(self):
        answer = self.predicted(training([0.95, 1.02, 1.0, 1.03]))
        simulation, job, run = answer.simulation_interval, answer.confidence_interval, answer.run_interval
        self.assertLess(run.lower, job.lower)
        self.assertLess(job.lower, simulation.lower)
        self.assertLess(simulation.upper, job.upper)
        self.assertLess(job.upper, run.upper)
        self.assertEqual({each.level for each in (simulation, job, run)}, {0.95})
        self.assertGreater(answer.input_fraction, 0.5)
        self.assertLess(answer.half_width_with_more_steps, 0.7 * half_width(job))
        self.assertGreater(answer.model_error.fraction, 0)
        self.assertIn("testbed", answer.model_error.source)

    def test_more_recorded_steps_make_the_interval_narrower_as_it_was_said(self):
        short = self.predicted(training([0.95, 1.05, 0.97, 1.03]), workers=1)
        long = self.predicted(training([0.95, 1.05, 0.97, 1.03] * 6), workers=1)
        self.assertLess(half_width(long.confidence_interval), 0.5 * half_width(short.confidence_interval))
        said, found = short.half_width_with_more_steps, half_width(long.confidence_interval)
        self.assertAlmostEqual(said / found, 1, delta=0.3)

    def test_many_workers_wait_for_a_step_slower_than_any_that_was_recorded(self):
        profile = training([0.97, 0.99, 1.01, 1.03])
        modelled = self.predicted(profile, workers=256)
        recorded = self.predicted(profile, workers=256, options={"step_variation": "AS_RECORDED"})
        self.assertLess(modelled.examples_per_second, 0.99 * recorded.examples_per_second)

    def test_as_recorded_repeats_the_recording_exactly(self):
        answer = self.predicted(training([1]), workers=1, options={"step_variation": "AS_RECORDED"})
        self.assertAlmostEqual(answer.steps_per_second, 1 / 0.060, delta=1e-6)
        self.assertEqual(half_width(answer.confidence_interval), 0)
        self.assertEqual(answer.model_error.fraction, 0)
        self.assertIn(prediction.Warning.NOTHING_RANDOM, [warning.reason for warning in answer.warnings])

    def test_a_recording_of_one_step_is_as_unsure_as_a_step_of_such_jobs(self):
        answer = self.predicted(training([1]), workers=1)
        self.assertGreater(half_width(answer.confidence_interval) / answer.examples_per_second, 0.05)
        self.assertNotIn(prediction.Warning.NOTHING_RANDOM, [warning.reason for warning in answer.warnings])

    def test_the_first_steps_are_as_recorded_unless_they_are_asked_to_vary(self):
        options = {"horizon": "FIRST_STEPS", "horizon_steps": 3}
        self.assertAlmostEqual(self.predicted(training([1]), 1, options).steps_per_second, 1 / 0.060, delta=1e-6)
        varied = self.predicted(training([1]), 1, {**options, "step_variation": "MODELLED"})
        self.assertNotAlmostEqual(varied.steps_per_second, 1 / 0.060, delta=1e-6)

    def test_a_rate_that_nobody_measured_is_told_with_the_answer_at_half_of_it(self):
        profile = training([0.95, 1.02, 1.0, 1.03])
        nominal = self.predicted(profile, scenario={"bandwidth_bytes_per_second": 1.25e8})
        self.assertIn(prediction.Warning.LINK_RATE_NOT_MEASURED, [warning.reason for warning in nominal.warnings])
        halved = self.predicted(profile, scenario={"bandwidth_bytes_per_second": 0.625e8})
        self.assertAlmostEqual(nominal.half_rate_examples_per_second / halved.examples_per_second, 1, delta=0.02)
        measured = self.predicted(profile, scenario={"bandwidth_bytes_per_second": 1.25e8, "bandwidth_is_measured": True})
        self.assertNotIn(prediction.Warning.LINK_RATE_NOT_MEASURED, [warning.reason for warning in measured.warnings])
        self.assertFalse(measured.HasField("half_rate_examples_per_second"))
        self.assertEqual(measured.examples_per_second, nominal.examples_per_second)

    def test_half_the_rate_is_told_of_racks_of_servers_and_as_recorded_and_not_where_nothing_goes_at_it(self):
        def reasons(answer):
            return [warning.reason for warning in answer.warnings]

        said, link = prediction.Warning.LINK_RATE_NOT_MEASURED, 1.25e8
        steps = training([0.95, 1.02, 1.0, 1.03])
        racks = {"workers_per_rack": 4, "rack_bandwidth_bytes_per_second": link}
        cases = (
            ("as recorded", steps, 4, lambda factor: {"bandwidth_bytes_per_second": link * factor}, {"step_variation": "AS_RECORDED"}, 0.02),
            (
                "racks",
                steps,
                16,
                lambda factor: {"bandwidth_bytes_per_second": 4 * link * factor, "all_reduce": {**racks, "rack_bandwidth_bytes_per_second": link * factor}},
                {},
                0.02,
            ),
            ("servers", two_variables(), 4, lambda factor: {"bandwidth_bytes_per_second": link * factor}, {}, 0.1),
            ("one worker of servers", two_variables(), 1, lambda factor: {"bandwidth_bytes_per_second": link * factor}, {}, 0.02),
        )
        for name, profile, workers, scenario, options, delta in cases:
            with self.subTest(name):
                nominal = self.predicted(profile, workers, options, scenario(1))
                self.assertIn(said, reasons(nominal))
                halved = self.predicted(profile, workers, options, scenario(0.5))
                self.assertAlmostEqual(nominal.half_rate_examples_per_second / halved.examples_per_second, 1, delta=delta)
        on_a_node = {"bandwidth_bytes_per_second": link, "all_reduce": {"workers_per_node": 8, "intra_node_bandwidth_bytes_per_second": 1e11}}
        alone = self.predicted(steps, 8, scenario=on_a_node)
        self.assertNotIn(said, reasons(alone))
        self.assertFalse(alone.HasField("half_rate_examples_per_second"))
        self.assertIn(said, reasons(self.predicted(steps, 16, scenario=on_a_node)))

    def test_several_servers_whose_sharing_nothing_says_are_warned_of_with_both_figures(self):
        def reasons(warnings):
            return [warning.reason for warning in warnings]

        matters, workers = prediction.Warning.LINK_SHARING_MATTERS, 4
        answer = self.predicted(two_variables(), workers, scenario={"parameter_servers": {"servers": 2}})
        [warning] = [one for one in answer.warnings if one.reason == matters]
        equal, first_come = map(float, re.search(r": (\S+) examples/s in equal shares, as predicted, (\S+) first come", warning.message).groups())
        self.assertAlmostEqual(equal / answer.examples_per_second, 1, delta=1e-3)
        asked = self.predicted(two_variables(), workers, scenario={"parameter_servers": {"servers": 2, "first_come": {}}})
        self.assertAlmostEqual(first_come / asked.examples_per_second, 1, delta=0.1)
        for sharing in ({"equal": {}}, {"first_come": {}}, {"turns": {}}):
            answer = self.predicted(two_variables(), workers, scenario={"parameter_servers": {"servers": 2, **sharing}})
            self.assertNotIn(matters, reasons(answer.warnings))
        request = {"inline_profile": two_variables(), "constraints": {"max_workers": workers, "max_parameter_servers": 2}}
        reply = self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), request))
        self.assertIn(matters, reasons(reply.warnings))

    def test_turns_are_the_default_of_several_servers_where_a_real_link_was_recorded(self):
        answer = self.predicted(recorded(), scenario={"parameter_servers": {"servers": 2}})
        self.assertEqual(answer.scenario.parameter_servers.turns.bytes, 65160)
        self.assertNotIn(prediction.Warning.LINK_SHARING_MATTERS, [warning.reason for warning in answer.warnings])
        # A real job made 37.4 steps/s, and equal shares say 31.
        self.assertAlmostEqual(answer.steps_per_second / 37.4, 1, delta=0.12)

    def test_a_model_error_of_ones_own_widens_single_runs_alone(self):
        profile = training([0.95, 1.02, 1.0, 1.03])
        narrow = self.predicted(profile, options={"model_error_fraction": 0})
        wide = self.predicted(profile, options={"model_error_fraction": 0.2})
        self.assertEqual(narrow.confidence_interval, wide.confidence_interval)
        self.assertGreater(half_width(wide.run_interval), 3 * half_width(narrow.run_interval))
        for value in (-0.1, 1.5, float("nan")):
            with self.assertRaises(grpc.RpcError) as refused:
                self.server.predictions.PredictThroughput(
                    prediction.PredictThroughputRequest(
                        inline_profile=from_json(prediction.PredictThroughputRequest(), {"inline_profile": profile}).inline_profile,
                        options=Options(model_error_fraction=value),
                    )
                )
            self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("options.model_error_fraction", details_of(refused.exception).violations)

    def test_an_unknown_variation_is_refused_by_its_field(self):
        request = from_json(prediction.PredictThroughputRequest(), {"inline_profile": small()})
        request.options.step_variation = 77
        with self.assertRaises(grpc.RpcError) as refused:
            self.server.predictions.PredictThroughput(request)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("step_variation", refused.exception.details())

    def test_the_recommended_choice_says_how_likely_it_is_the_best_and_what_it_may_lose(self):
        request = {
            "inline_profile": training([0.95, 1.02, 1.0, 1.03]),
            "scenario": {"bandwidth_bytes_per_second": 1.25e8},
            "objective": "MAX_THROUGHPUT",
            "constraints": {"max_workers": 8},
        }
        reply = self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), request))
        self.assertEqual(reply.workers, 8)
        self.assertGreater(reply.probability_best, 0.99)
        self.assertLess(reply.expected_loss, 0.001)

    def test_every_method_that_chooses_says_so_too(self):
        calls = self.server.predictions
        noisy = training([0.9, 1.1, 1.0, 1.05, 0.95])
        scenario = {"workers": 4, "bandwidth_bytes_per_second": 1.25e8, "all_reduce": {"latency_seconds": 1e-5}}
        tuned = calls.OptimizeCommunication(from_json(tuning_pb2.OptimizeCommunicationRequest(), {"inline_profile": noisy, "scenario": scenario}))
        of_any = {key: value for key, value in scenario.items() if key != "workers"}
        at_counts = calls.OptimizeCommunication(
            from_json(tuning_pb2.OptimizeCommunicationRequest(), {"inline_profile": noisy, "scenario": of_any, "worker_counts": [2, 4]})
        )
        optimized = calls.OptimizeJob(from_json(strategy_pb2.OptimizeJobRequest(), {"inline_profile": noisy, "scenario": scenario}))
        ordered = calls.OptimizeOrder(from_json(order_pb2.OptimizeOrderRequest(), {"inline_profile": small(), "scenario": {"workers": 2}}))
        jobs = [{"id": name, "inline_profile": noisy, "weight": weight} for name, weight in (("a", 1), ("b", 3))]
        asked = {"jobs": jobs, "capacity": {"workers": 4}}
        shared = calls.AllocateWorkers(from_json(allocation_pb2.AllocateWorkersRequest(), asked))
        for reply in (tuned, *at_counts.advice, optimized, ordered, shared):
            self.assertGreater(reply.probability_best, 0.01, reply)
            self.assertLessEqual(reply.probability_best, 1)
            self.assertGreaterEqual(reply.expected_loss, 0)
            self.assertLess(reply.expected_loss, 0.02)
        # Nobody adds up what other objectives do.
        fair = calls.AllocateWorkers(from_json(allocation_pb2.AllocateWorkersRequest(), {**asked, "objective": "MAX_MIN_FAIR"}))
        self.assertFalse(fair.HasField("probability_best"))

    def test_jobs_that_are_alike_are_a_close_call_that_costs_nothing_and_unlike_ones_are_clear(self):
        def told(weight):
            jobs = [{"id": "a", "inline_profile": training([0.9, 1.1, 1.0]), "weight": weight}, {"id": "b", "inline_profile": training([0.9, 1.1, 1.0])}]
            request = {"jobs": jobs, "capacity": {"workers": 6}, "options": {"seed": 3}}
            return self.server.predictions.AllocateWorkers(from_json(allocation_pb2.AllocateWorkersRequest(), request))

        self.assertGreater(told(10).probability_best, 0.95)
        self.assertLess(told(1).expected_loss, 0.02)


if __name__ == "__main__":
    unittest.main()
