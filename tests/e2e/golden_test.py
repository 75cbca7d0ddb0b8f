"""The golden cases, made by a reference that shares nothing with this project, through the server."""

import unittest

from contract import from_json, order_pb2, prediction, scenario_pb2, store
from sample import golden, message
from stepcastd import ServerTest

# One byte a nanosecond: a transfer's size is its time.
BYTES_PER_SECOND = 1e9


def scenario_of(case):
    given = case["scenario"]
    scenario = scenario_pb2.Scenario(workers=given["workers"], start_offsets_ns=given["start_offsets_ns"])
    servers = scenario.parameter_servers
    if given["window_bytes"] is None:
        servers.whole_stream.SetInParent()
    else:
        servers.window.bytes = given["window_bytes"]
    if given["transfer_priorities"] is not None:
        servers.transfer_order = scenario_pb2.ParameterServers.EXPLICIT
        servers.transfer_priorities.update(given["transfer_priorities"])
    return scenario


def collectives_of(case):
    given = case["scenario"]
    same = (
        "algorithm latency_seconds reduction_seconds_per_byte workers_per_node launch_seconds intra_node_bandwidth_bytes_per_second intra_node_latency_seconds"
    )
    job = {field: given[field] for field in same.split()}
    if given["bucket_bytes"] is not None:
        job["buckets"] = {"first_bytes": given["first_bucket_bytes"], "cap_bytes": given["bucket_bytes"]}
    same = "workers bandwidth_bytes_per_second start_offsets_ns worker_groups"
    return from_json(scenario_pb2.Scenario(), {"all_reduce": job, **{field: given[field] for field in same.split()}})


def profile_of(operations):
    """A profile of one step whose operations take the times of a case of transfer orders."""
    wire = []
    for operation in operations:
        wire.append({"name": operation["name"], "resource": operation["resource"], "waiting_for": operation["waiting_for"]})
        if operation["resource"] == "DOWNLINK":
            wire[-1]["size_bytes"] = operation["time_ns"]
    times = [operation["time_ns"] for operation in operations]
    return message(
        {
            "batch_size": 1,
            "platform": {"bandwidth_bytes_per_second": BYTES_PER_SECOND},
            "operations": wire,
            "steps": [{"start_ns": [0] * len(times), "end_ns": times}],
        }
    )


class GoldenTest(ServerTest):
    def compare(self, case, scenario, steps):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(case["profile"]))).name
        options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=steps["steps_per_worker"], warmup_steps=steps["warmup_steps"])
        request = prediction.PredictThroughputRequest(profile=name, scenarios=[scenario], options=options)
        [got] = self.server.predictions.PredictThroughput(request).predictions
        self.assertAlmostEqual(got.steps_per_second / case["steps_per_second"], 1, delta=1e-6)
        examples = case.get("examples_per_second", case["steps_per_second"] * case["profile"]["batch_size"])
        self.assertAlmostEqual(got.examples_per_second / examples, 1, delta=1e-6)
        return got

    def test_all_parameter_server_cases_to_a_millionth(self):
        cases = golden("parameter_server")
        self.assertEqual(len(cases), 80)
        for index, case in enumerate(cases):
            with self.subTest(case=index):
                self.compare(case, scenario_of(case), case["scenario"])

    def test_all_all_reduce_cases_to_a_millionth(self):
        cases = golden("all_reduce")
        self.assertEqual(len(cases), 60)
        for index, case in enumerate(cases):
            with self.subTest(case=index):
                got = self.compare(case, collectives_of(case), case)
                self.assertEqual(got.scenario.WhichOneof("communication"), "all_reduce")

    def test_all_transfer_order_cases(self):
        cases = golden("transfer_order")
        self.assertEqual(len(cases), 40)
        for index, case in enumerate(cases):
            reply = self.server.predictions.OptimizeOrder(
                order_pb2.OptimizeOrderRequest(
                    inline_profile=profile_of(case["operations"]),
                    methods=[order_pb2.TAC],
                    options=scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=10, replications=1),
                )
            )
            with self.subTest(case=index):
                tac = reply.orders[0]
                self.assertEqual([transfer.name for transfer in tac.transfers], [case["operations"][at]["name"] for at in case["tac_order"]])
                self.assertEqual(tac.makespan_ns, case["tac_makespan_ns"])
                self.assertAlmostEqual(tac.scheduling_efficiency, case["tac_scheduling_efficiency"], delta=1e-9)
                self.assertEqual((reply.upper_makespan_ns, reply.lower_makespan_ns), (case["upper_makespan_ns"], case["lower_makespan_ns"]))


if __name__ == "__main__":
    unittest.main()
