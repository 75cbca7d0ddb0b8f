"""The golden cases, made by a reference that shares nothing with this project, through the server."""

import unittest

from contract import order_pb2, prediction, scenario_pb2, store
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
    def test_all_parameter_server_cases_to_a_millionth(self):
        cases = golden("parameter_server")
        self.assertEqual(len(cases), 80)
        for index, case in enumerate(cases):
            given = case["scenario"]
            name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(case["profile"]))).name
            reply = self.server.predictions.PredictThroughput(
                prediction.PredictThroughputRequest(
                    profile=name,
                    scenarios=[scenario_of(case)],
                    options=scenario_pb2.SimulationOptions(steps_per_worker=given["steps_per_worker"], warmup_steps=given["warmup_steps"]),
                )
            )
            with self.subTest(case=index):
                got = reply.predictions[0]
                self.assertAlmostEqual(got.steps_per_second / case["steps_per_second"], 1, delta=1e-6)
                self.assertAlmostEqual(got.examples_per_second / case["examples_per_second"], 1, delta=1e-6)

    def test_all_transfer_order_cases(self):
        cases = golden("transfer_order")
        self.assertEqual(len(cases), 40)
        for index, case in enumerate(cases):
            reply = self.server.predictions.OptimizeOrder(
                order_pb2.OptimizeOrderRequest(
                    inline_profile=profile_of(case["operations"]),
                    methods=[order_pb2.TAC],
                    options=scenario_pb2.SimulationOptions(steps_per_worker=10, replications=1),
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
