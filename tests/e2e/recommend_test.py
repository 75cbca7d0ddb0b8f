"""Recommendations: every objective and constraint is weighed, and what is answered explains itself."""

import unittest

from contract import details_of, details_within, from_json, grpc, prediction, recommendation_pb2
from sample import small
from stepcastd import PATIENCE_SECONDS, ServerTest

from google.longrunning import operations_pb2, operations_pb2_grpc
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc


class RecommendTest(ServerTest):
    """Of small(), W workers that wait for each other take 20 W + 22 ms for a step: 42, 62, 82, 102."""

    def recommended(self, request):
        complete = {"inline_profile": small(), "scenario": {"parameter_servers": {"synchronization": "SYNCHRONOUS"}}, "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 50}, **request}
        return self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), complete))

    def test_time_and_cost_are_those_of_the_remaining_examples(self):
        batch = small()["batch_size"]
        reply = self.recommended(
            {
                "objective": "MIN_TIME",
                "constraints": {"max_workers": 4, "examples": 1000 * batch},
                "prices": {"worker_hour": 3600, "parameter_server_hour": 7200, "currency_code": "EUR"},
            }
        )
        self.assertEqual((reply.workers, reply.parameter_servers, reply.choices), (4, 1, 4))
        self.assertAlmostEqual(reply.duration.ToTimedelta().total_seconds(), 1000 * 0.102 / 4, delta=1e-3)
        self.assertAlmostEqual(reply.cost, 1000 * 0.102 / 4 * (4 + 2), delta=1e-3)
        self.assertEqual(reply.currency_code, "EUR")
        costs = [each.cost for each in reply.frontier_outcomes]
        for workers, cost in enumerate(costs, 1):
            self.assertAlmostEqual(cost, 1000 * (0.020 + 0.022 / workers) * (workers + 2), delta=1e-3)
        self.assertTrue(all(each.keeps_constraints for each in reply.frontier_outcomes))
        self.assertIn("the least time", reply.reason)

    def test_the_edge_of_what_was_asked_about_is_told(self):
        edges = recommendation_pb2
        batch = small()["batch_size"]
        # W / (20 W + 22): throughput always rises, and is the most per worker with one, or two.
        cases = [
            ({"objective": "MAX_THROUGHPUT"}, {"max_workers": 4}, edges.AT_LARGEST_ASKED, "4 is the largest number asked about, and throughput was still rising, by 7.19 % from 3"),
            ({}, {"min_workers": 3, "max_workers": 6}, edges.AT_SMALLEST_ASKED, "3 is the smallest number asked about"),
            ({}, {"min_workers": 3, "max_workers": 3}, edges.ONLY_CHOICE, "the only number asked about;"),
            ({}, {"worker_counts": [5]}, edges.ONLY_CHOICE, "the only number asked about;"),
            ({}, {"min_workers": 2, "max_workers": 4, "min_scaling_efficiency": 0.65}, edges.ONLY_FEASIBLE, "of the 3 tried no other keeps a scaling efficiency of 0.65"),
            ({}, {"max_workers": 4}, edges.CHOICE_EDGE_UNSPECIFIED, "of 1 to 4;"),
            ({}, {"worker_counts": [8, 1, 2, 2]}, edges.CHOICE_EDGE_UNSPECIFIED, "of 1, 2 and 8;"),
            ({"objective": "MIN_TIME"}, {"max_workers": 3, "examples": 1000 * batch, "deadline": "28s"}, edges.ONLY_FEASIBLE, "3 is the largest number asked about"),
        ]
        for request, constraints, edge, words in cases:
            with self.subTest(constraints=constraints):
                reply = self.recommended({**request, "constraints": constraints})
                self.assertEqual(reply.workers_edge, edge, reply.reason)
                self.assertIn(words, reply.reason)
                if edge == edges.ONLY_CHOICE:
                    self.assertNotIn("the most throughput", reply.reason)

    def test_more_than_256_numbers_are_looked_at_in_strides_and_then_one_by_one(self):
        options = {"step_variation": "AS_RECORDED", "steps_per_worker": 60, "replications": 1}
        synchronous = {"parameter_servers": {"synchronization": "SYNCHRONOUS"}}
        every = from_json(prediction.PredictThroughputRequest(), {"inline_profile": small(), "scenario": synchronous, "options": options})
        every.worker_counts.extend(range(1, 401))
        rates = [each.examples_per_second for each in self.server.predictions.PredictThroughput(every).predictions]
        # The dearer the server, the more workers are worth their price: here, some on either side of the first strides.
        for server_hour in (500, 9000):
            reply = self.recommended(
                {
                    "objective": "MIN_COST",
                    "constraints": {"max_workers": 400},
                    "options": options,
                    "prices": {"worker_hour": 1, "parameter_server_hour": server_hour},
                }
            )
            self.assertEqual(reply.choices, 400)
            self.assertLess(len(reply.frontier), 150)
            self.assertIn("of 1 to 400 (all to 64, in strides of up to 8, then all around the best)", reply.reason)
            # What differs by less than 0.05 %, or than the intervals explain, is as good: of that the fewest are taken.
            costs = [(workers + server_hour) / rate for workers, rate in enumerate(rates, 1)]
            as_good = [workers for workers, cost in enumerate(costs, 1) if cost <= 1.0005 * min(costs)]
            self.assertIn(as_good[0], [reply.workers, *(tie.workers for tie in reply.ties)], reply.reason)
            self.assertLessEqual(costs[reply.workers - 1], 1.001 * min(costs), reply.reason)
            tried = [each.scenario.workers for each in reply.frontier]
            self.assertTrue({reply.workers - 1, reply.workers + 1} <= set(tried), tried)

    def test_the_least_cost_needs_no_examples(self):
        # (20 + 22 / W) (W + s): with a server as dear as ten workers the least is at 3.3, with a cheap one at 1.
        for server_hour, workers in ((10, 3), (0.01, 1)):
            reply = self.recommended(
                {"objective": "MIN_COST", "constraints": {"max_workers": 8}, "prices": {"worker_hour": 1, "parameter_server_hour": server_hour}}
            )
            self.assertEqual(reply.workers, workers)
            self.assertFalse(reply.HasField("cost") or reply.HasField("duration"))

    def test_what_cannot_be_kept_is_answered_with_the_nearest_choice(self):
        batch = small()["batch_size"]
        reply = self.recommended({"constraints": {"max_workers": 4, "examples": 1000 * batch, "deadline": "20s"}})
        self.assertEqual(reply.workers, 0)
        self.assertFalse(reply.HasField("prediction"))
        self.assertEqual(reply.nearest.workers, 4)
        [missed] = reply.nearest.outcome.broken_constraints
        self.assertEqual(missed.kind, recommendation_pb2.BrokenConstraint.DEADLINE)
        self.assertAlmostEqual(missed.missed_by, 0.275, delta=1e-3)
        self.assertIn("which is 5.5 s too long", reply.infeasible_reason)
        self.assertFalse(any(each.keeps_constraints for each in reply.frontier_outcomes))

    def test_a_running_job_moves_only_where_the_rest_pays_for_it(self):
        batch = small()["batch_size"]
        current = {"workers": 3, "rescale_seconds": 10}
        for steps, workers in ((1000, 3), (100_000, 4)):
            reply = self.recommended(
                {"objective": "MAX_THROUGHPUT", "constraints": {"max_workers": 4, "examples": steps * batch}, "current": current}
            )
            self.assertEqual(reply.workers, workers)
        self.assertIn("the change from 3 workers takes 10 s", reply.reason)
        unknown = self.recommended({"objective": "MAX_THROUGHPUT", "constraints": {"max_workers": 4}, "current": current})
        self.assertIn("cannot be weighed without the remaining examples", unknown.reason)

    def test_a_long_range_is_searched_not_tried(self):
        reply = self.recommended({"objective": "MAX_THROUGHPUT", "constraints": {"max_workers": 200}})
        self.assertEqual(reply.choices, 200)
        self.assertLess(len(reply.frontier), 60)
        self.assertEqual(len(reply.frontier), len(reply.frontier_outcomes))
        counts = [each.scenario.workers for each in reply.frontier]
        self.assertEqual(counts, sorted(counts))
        best = max(each.examples_per_second for each in reply.frontier)
        self.assertGreaterEqual(reply.prediction.examples_per_second, best * 0.999)

    def test_servers_are_chosen_where_they_can_be(self):
        profile = small()
        profile["operations"] += [
            {"name": "pull b", "resource": "DOWNLINK", "size_bytes": profile["operations"][0]["size_bytes"], "parameter": "b"},
        ]
        profile["operations"][1]["waiting_for"] = [0, 4]  # 40 W + 22 ms on one server, 20 W + 22 on two
        for step in profile["steps"]:
            step["start_ns"].append(0)
            step["end_ns"].append(1)
        reply = self.recommended({"inline_profile": profile, "objective": "MAX_THROUGHPUT", "constraints": {"max_workers": 4, "max_parameter_servers": 2}})
        self.assertEqual((reply.parameter_servers, reply.choices), (2, 8))
        self.assertEqual({each.scenario.parameter_servers.servers for each in reply.frontier}, {1, 2})

    def test_a_choice_that_costs_nothing_is_refused_in_a_call_and_in_a_job(self):
        profile = small()
        profile["operations"] = [{"name": "compute", "resource": "WORKER"}, {"name": "gradient", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 1000, "waiting_for": [0]}]
        profile["steps"] = [{"start_ns": [0, 10], "end_ns": [10, 20]}]
        jobs = job_service_pb2_grpc.JobServiceStub(self.server.channel)
        operations = operations_pb2_grpc.OperationsStub(self.server.channel)
        for prices, field in (({"parameter_server_hour": 2}, "prices.parameter_server_hour"), ({"worker_hour": 1e-320}, "prices.worker_hour"), ({}, "prices")):
            asked = from_json(recommendation_pb2.RecommendWorkersRequest(), {"inline_profile": profile, "objective": "MIN_COST", "constraints": {"max_workers": 4}, "prices": prices})
            with self.subTest(field), self.assertRaises(grpc.RpcError) as caught:
                self.server.predictions.RecommendWorkers(asked)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn(field, details_of(caught.exception).violations)
            name = jobs.StartJob(job_service_pb2.StartJobRequest(recommend_workers=asked), timeout=PATIENCE_SECONDS).name
            done = operations.WaitOperation(operations_pb2.WaitOperationRequest(name=name), timeout=PATIENCE_SECONDS)
            self.assertIn(field, details_within(done.error).violations)

    def test_one_request_has_one_answer(self):
        request = {"objective": "MIN_COST", "constraints": {"max_workers": 40}, "prices": {"worker_hour": 1}}
        first, second = (self.recommended(request) for _ in range(2))
        for reply in (first, second):
            reply.simulation.ClearField("engine_seconds")
            reply.simulation.ClearField("cached")
        self.assertEqual(first, second)

    def test_what_needs_another_field_says_which(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.recommended({"constraints": {"budget": 5, "deadline": "1s"}})
        self.assertEqual(set(details_of(caught.exception).violations), {"constraints.examples", "prices"})


if __name__ == "__main__":
    unittest.main()
