"""How links are shared, how streams take turns, which part of a job is predicted, and which kind of job: each is answered, with the number that follows from it."""

import json
import os
import unittest

from google.protobuf import json_format

from contract import allocation_pb2, details_of, details_within, from_json, grpc, prediction, prediction_request, scenario_pb2
from sample import TOP, recorded, small
from stepcastd import ServerTest


def two_downloads():
    """10 ms of download for each of two computations of 20 ms; then as small()."""
    profile = small()
    profile["operations"] = [
        {"name": "pull a", "resource": "DOWNLINK", "size_bytes": 1000000, "parameter": "a"},
        {"name": "pull b", "resource": "DOWNLINK", "size_bytes": 1000000, "parameter": "b"},
        {"name": "compute a", "resource": "WORKER", "waiting_for": [0]},
        {"name": "compute b", "resource": "WORKER", "waiting_for": [1, 2]},
        {"name": "push", "resource": "UPLINK", "size_bytes": 1000000, "waiting_for": [3], "parameter": "a"},
        {"name": "update", "resource": "PARAMETER_SERVER", "waiting_for": [4], "parameter": "a"},
    ]
    starts, ends = [0, 10, 10, 30, 50, 60], [10, 20, 30, 50, 60, 62]
    profile["steps"] = [{"start_ns": [each * 1000000 for each in starts], "end_ns": [each * 1000000 for each in ends]}]
    return profile


class ScenarioKindsTest(ServerTest):
    def predicted(self, profile, servers=None, options=None, workers=1):
        scenario = {"workers": workers, "parameter_servers": servers or {}}
        request = {"inline_profile": profile, "scenario": scenario, "options": options or {"step_variation": "AS_RECORDED", "steps_per_worker": 50}}
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer

    def assert_steps(self, answer, steps_per_second):
        self.assertAlmostEqual(answer.steps_per_second / steps_per_second, 1, delta=1e-6)

    def test_a_link_that_serves_first_come_sets_workers_apart_where_equal_shares_keep_them_in_step(self):
        # Two workers: 20 ms down, 20 of computation, 20 up and 2 of update, both at once; or one 10 ms behind the other, and neither waits again.
        together = {"step_variation": "AS_RECORDED", "steps_per_worker": 50, "start": "SIMULTANEOUS"}
        self.assert_steps(self.predicted(small(), {"equal": {}}, together, workers=2), 2 / 0.062)
        answer = self.predicted(small(), {"first_come": {}}, workers=2)
        self.assert_steps(answer, 2 / 0.042)
        self.assertEqual(answer.scenario.parameter_servers.WhichOneof("link_sharing"), "first_come")

    def test_turns_longer_than_the_transfers_are_first_come_first_served(self):
        answer = self.predicted(small(), {"turns": {"bytes": 2500000}}, workers=2)
        self.assertEqual(answer.scenario.parameter_servers.turns.bytes, 2500000)
        self.assert_steps(answer, 2 / 0.042)
        self.assertEqual(self.predicted(small(), {"turns": {}}, workers=2).scenario.parameter_servers.turns.bytes, 65160)

    def test_a_worker_alone_does_not_see_how_links_are_shared(self):
        for profile in (small(), two_downloads()):
            rates = {self.predicted(profile, {sharing: {}}).steps_per_second for sharing in ("equal", "first_come", "turns")}
            self.assertEqual(len(rates), 1)

    def test_the_first_computation_waits_for_the_turns_of_the_other_stream(self):
        # The first download has ended after 10 ms, 15 or 17.5; what follows takes 52.
        self.assert_steps(self.predicted(two_downloads(), {"whole_stream": {}}), 1 / 0.062)
        self.assert_steps(self.predicted(two_downloads(), {"window": {"bytes": 500000}}), 1 / 0.067)
        answer = self.predicted(two_downloads(), {"round_robin": {"window_bytes": 500000, "quantum_bytes": 250000}})
        self.assert_steps(answer, 1 / 0.0695)
        robin = answer.scenario.parameter_servers.round_robin
        self.assertEqual((robin.window_bytes, robin.quantum_bytes), (500000, 250000))

    def test_the_first_steps_of_a_job_are_not_its_steady_state(self):
        # First come, the one worker ends its first step after 42 ms, the other after 52; later steps of both take 42.
        servers = {"first_come": {}}
        answer = self.predicted(small(), servers, {"horizon": "FIRST_STEPS", "horizon_steps": 1}, workers=2)
        self.assert_steps(answer, 1 / 0.042 + 1 / 0.052)
        self.assertFalse(answer.steady_state)
        self.assert_steps(self.predicted(small(), servers, {"horizon": "STEADY_STATE", "step_variation": "AS_RECORDED", "steps_per_worker": 50}, workers=2), 2 / 0.042)

    def test_the_first_seconds_of_a_job_count_what_ends_in_them(self):
        # Within 100 ms equal shares end a step of each worker, first come two of each.
        options = {"horizon": "FIRST_SECONDS", "horizon_seconds": 0.1}
        for sharing, steps in (("equal", 2), ("first_come", 4)):
            answer = self.predicted(small(), {sharing: {}}, options, workers=2)
            self.assert_steps(answer, steps / 0.1)
            self.assertFalse(answer.steady_state)


def gradients(**changes):
    """A job of all-reduces that PyTorch recorded without buckets: 30 ms of computation, and two gradients of 500 kB that each name a parameter."""
    both = [
        {"name": name, "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 500000, "parameter": name, "waiting_for": [1]} for name in ("b", "a")
    ]
    profile = {
        "framework": "pytorch",
        "batch_size": 8,
        "platform": {"bandwidth_bytes_per_second": 1e9},
        "operations": [{"name": "forward", "resource": "WORKER"}, {"name": "backward", "resource": "WORKER", "waiting_for": [0]}, *both],
        "steps": [{"start_ns": [0, 10000000, 30000000, 30000000], "end_ns": [10000000, 30000000, 30000000, 30000000]}],
    }
    profile.update(changes)
    return profile


METHODS = ("PredictThroughput", "RecommendWorkers", "OptimizeOrder", "OptimizeCommunication", "CompareModels", "DiagnoseJob", "OptimizeJob", "GenerateTrace")


class KindOfJobTest(ServerTest):
    """The kind of a job is the recorded one unless another one is asked for."""

    def call(self, method, profile, scenario):
        reply = getattr(self.server.predictions, method)(from_json(prediction_request(method), {"inline_profile": profile, "scenario": scenario}))
        return list(reply) if method == "GenerateTrace" else reply

    def refused(self, method, profile, scenario):
        with self.assertRaises(grpc.RpcError) as failure:
            self.call(method, profile, scenario)
        details = details_of(failure.exception)
        self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(details.domain, "stepcast")
        return details.violations

    def predicted(self, profile, scenario, workers=2):
        request = {"inline_profile": profile, "scenario": {"workers": workers, **scenario}, "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 50}}
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer, {each.field: each for each in answer.assumptions}

    def refused_of_allocation(self, jobs):
        """The violations of one job: of the request, or of the job's own error."""
        request = from_json(allocation_pb2.AllocateWorkersRequest(), {"jobs": jobs, "capacity": {"workers": 2}})
        try:
            [allocation] = self.server.predictions.AllocateWorkers(request).allocations
        except grpc.RpcError as error:
            return details_of(error).violations
        return details_within(allocation.error).violations

    def test_every_method_refuses_servers_that_nothing_asks_for_at_the_field_that_was_set(self):
        for method in METHODS:
            with self.subTest(method=method):
                violations = self.refused(method, gradients(), {"parameter_servers": {"synchronization": "SYNCHRONOUS"}})
                self.assertIn("ask about a job with servers (--servers N; in a request, parameter_servers.servers)", violations["scenario.parameter_servers.synchronization"])
                self.assertIn("scenario.parameter_servers", self.refused(method, gradients(), {"parameter_servers": {}}))
        jobs = [{"id": "a", "inline_profile": gradients(), "max_workers": 2, "scenario": {"parameter_servers": {"first_come": {}}}}]
        violations = self.refused_of_allocation(jobs)
        self.assertTrue(any(field.endswith("scenario.parameter_servers.first_come") for field in violations), violations)

    def test_a_choice_of_servers_does_not_make_servers_of_collectives(self):
        scenario = {"parameter_servers": {"transfer_order": "TAC"}}
        request = {"inline_profile": gradients(), "scenario": scenario, "constraints": {"max_workers": 2, "max_parameter_servers": 2}}
        with self.assertRaises(grpc.RpcError) as failure:
            self.server.predictions.RecommendWorkers(from_json(prediction_request("RecommendWorkers"), request))
        details = details_of(failure.exception)
        self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(sorted(details.violations), ["constraints.max_parameter_servers", "scenario.parameter_servers.transfer_order"])
        jobs = [{"id": "a", "inline_profile": gradients(), "max_workers": 2, "max_parameter_servers": 2, "scenario": {"parameter_servers": {}}}]
        violations = self.refused_of_allocation(jobs)
        for field in ("scenario.parameter_servers", "max_parameter_servers"):
            self.assertTrue(any(each.endswith(field) for each in violations), violations)

    def test_every_field_of_servers_but_their_number_is_refused_for_a_job_of_collectives(self):
        for field in scenario_pb2.ParameterServers.DESCRIPTOR.fields:
            with self.subTest(field=field.name):
                servers = scenario_pb2.ParameterServers()
                if field.label == field.LABEL_REPEATED:
                    servers.transfer_priorities["a"] = 1
                elif field.message_type is not None:
                    getattr(servers, field.name).SetInParent()
                else:
                    setattr(servers, field.name, 2)
                request = from_json(prediction.PredictThroughputRequest(), {"inline_profile": gradients(), "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 50}})
                request.scenario.parameter_servers.CopyFrom(servers)
                if field.name == "servers":
                    self.assertTrue(self.server.predictions.PredictThroughput(request).predictions)
                    continue
                with self.assertRaises(grpc.RpcError) as failure:
                    self.server.predictions.PredictThroughput(request)
                self.assertEqual(list(details_of(failure.exception).violations), [f"scenario.parameter_servers.{field.name}"])

    def test_who_wants_the_recorded_kind_alone_is_refused_both_others(self):
        only = {"recorded_kind_only": True}
        for method in METHODS:
            with self.subTest(method=method):
                violations = self.refused(method, small(), {"all_reduce": {"latency_seconds": 2e-5, "buckets": {"cap_bytes": 9}}, **only})
                self.assertLessEqual({"scenario.all_reduce.latency_seconds", "scenario.all_reduce.buckets.cap_bytes"}, set(violations))
                self.assertIn("scenario.parameter_servers.servers", self.refused(method, gradients(), {"parameter_servers": {"servers": 2}, **only}))
        self.assertEqual(self.predicted(small(), {"parameter_servers": {"servers": 1}, **only})[0].scenario.WhichOneof("communication"), "parameter_servers")
        self.assertEqual(self.predicted(gradients(), {"all_reduce": {"latency_seconds": 0}, **only})[0].scenario.WhichOneof("communication"), "all_reduce")

    def test_a_change_that_was_asked_for_is_told(self):
        answer, told = self.predicted(gradients(), {"parameter_servers": {"servers": 2, "transfer_order": "TAC"}})
        self.assertEqual(answer.scenario.parameter_servers.servers, 2)
        self.assertEqual(told["scenario.parameter_servers.servers"].value, "2 servers")
        self.assertIn("recorded with collectives", told["scenario.parameter_servers.servers"].message)
        answer, told = self.predicted(small(), {"all_reduce": {}})
        self.assertIn("recorded with parameter servers", told["scenario.all_reduce"].message)
        for profile in (small(), gradients()):
            self.assertFalse({"scenario.parameter_servers.servers", "scenario.all_reduce"} & set(self.predicted(profile, {})[1]))

    def test_what_was_neither_recorded_nor_asked_for_is_told_with_its_value(self):
        answer, told = self.predicted(gradients(), {}, workers=4)
        # A ring's 6 messages of 250 kB and 25 us: both gradients are below the first bucket's MiB, and go together.
        self.assertAlmostEqual(answer.steps_per_second * (0.030 + 6 * (0.00025 + 25e-6)) / 4, 1, delta=1e-6)
        self.assertEqual(
            {field: each.value for field, each in told.items()},
            {
                "scenario.all_reduce.algorithm": "ring",
                "scenario.all_reduce.latency_seconds": "25us",
                "scenario.all_reduce.buckets": "1 MiB, then 25 MiB",
            },
        )
        self.assertEqual(answer.scenario.all_reduce.latency_seconds, 25e-6)
        self.assertEqual((answer.scenario.all_reduce.buckets.first_bytes, answer.scenario.all_reduce.buckets.cap_bytes), (1 << 20, 25 << 20))
        self.assertTrue(all(each.message.endswith(".") for each in told.values()))
        # What is in force may be asked for, and then nothing is assumed.
        again, told = self.predicted(gradients(), {"all_reduce": {"algorithm": "RING", "latency_seconds": 25e-6, "buckets": {"cap_bytes": 25 << 20}}}, workers=4)
        self.assertEqual((again.steps_per_second, told), (answer.steps_per_second, {}))
        free, told = self.predicted(gradients(), {"all_reduce": {"algorithm": "RING", "latency_seconds": 0, "unfused": {}}}, workers=4)
        self.assertAlmostEqual(free.steps_per_second * (0.030 + 6 * 0.00025) / 4, 1, delta=1e-6)
        self.assertTrue(free.scenario.all_reduce.HasField("unfused"))
        self.assertEqual(told, {})
        self.assertEqual(self.predicted(gradients(), {}, workers=1)[1], {})
        by_hand, told = self.predicted(gradients(framework=""), {}, workers=4)
        self.assertAlmostEqual(by_hand.steps_per_second * (0.030 + 6 * 0.00025 + 12 * 25e-6) / 4, 1, delta=1e-6)
        self.assertNotIn("scenario.all_reduce.buckets", told)
        self.assertEqual(told["scenario.all_reduce.unfused"].value, "gradients one by one")

    def test_gradients_are_not_unfused_and_fused_at_once(self):
        for job in ({"unfused": {}, "buckets": {}}, {"horovod": {}, "groups": {}}, {"buckets": {}, "byte_scheduler": {}}):
            with self.subTest(job=job), self.assertRaisesRegex(json_format.ParseError, "fusion"):
                from_json(scenario_pb2.Scenario(), {"workers": 2, "all_reduce": job})

    def test_links_inside_a_node_are_not_those_between_nodes(self):
        field = "scenario.all_reduce.intra_node_bandwidth_bytes_per_second"
        for method in ("PredictThroughput", "RecommendWorkers", "OptimizeCommunication", "CompareModels", "DiagnoseJob"):
            with self.subTest(method=method):
                workers = {} if method in ("RecommendWorkers", "CompareModels") else {"workers": 8}
                violations = self.refused(method, gradients(), {**workers, "all_reduce": {"workers_per_node": 8}})
                self.assertIn("cluster preset", violations[field])
        job = {"workers_per_node": 8, "intra_node_bandwidth_bytes_per_second": 1e11, "latency_seconds": 0}
        answer, told = self.predicted(gradients(), {"all_reduce": job}, workers=8)
        self.assertEqual(told["scenario.all_reduce.intra_node_latency_seconds"].value, "3.4us")
        self.assertAlmostEqual(answer.steps_per_second * (0.030 + 14 * (125000 / 1e11 + 3.4e-6)) / 8, 1, delta=1e-6)
        # One worker meets nobody.
        self.predicted(gradients(), {"all_reduce": {"workers_per_node": 8}}, workers=1)

    def test_a_real_recording_is_predicted_in_its_order_and_one_made_of_lone_transfers_in_the_graphs(self):
        with open(os.path.join(TOP, "tests", "data", "testbed", "measured.json"), encoding="utf-8") as file:
            measured = json.load(file)
        for name in ("alexnet_64", "vgg11_128", "resnet50_16"):
            with self.subTest(name=name):
                answer, told = self.predicted(recorded(name), {}, workers=1)
                self.assertEqual(answer.scenario.parameter_servers.transfer_order, scenario_pb2.ParameterServers.RECORDED)
                self.assertNotIn("scenario.parameter_servers.transfer_order", told)
                self.assertAlmostEqual(answer.steps_per_second / measured[name]["points"][0]["mean"], 1, delta=0.06)
        answer, told = self.predicted(two_downloads(), {})
        self.assertEqual(answer.scenario.parameter_servers.transfer_order, scenario_pb2.ParameterServers.GRAPH)
        self.assertEqual(told["scenario.parameter_servers.transfer_order"].value, "graph order")


if __name__ == "__main__":
    unittest.main()
