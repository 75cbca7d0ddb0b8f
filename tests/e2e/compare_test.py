"""Simpler models beside the simulation, through the real server."""

import unittest

from contract import comparison_pb2, grpc, prediction, scenario_pb2, store
from sample import message, recorded, small
from patience import PASSING_SECONDS
from stepcastd import ServerTest

QUEUEING, CYNTHIA, CYNTHIA_HALVED, COARSE_TENSORS, POLLUX, NO_OVERLAP, PALEO = range(1, 8)
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


class CompareTest(ServerTest):
    options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=200, replications=2)

    def compare(self, profile, **request):
        return self.server.predictions.CompareModels(comparison_pb2.CompareModelsRequest(inline_profile=message(profile), options=self.options, **request))

    def test_the_models_of_a_chain_follow_by_hand(self):
        # Down 10 ms, compute 20 ms, up 10 ms, update 2 ms; 8 examples a step.
        reply = self.compare(small(), worker_counts=[1, 4])
        inputs = reply.inputs
        self.assertAlmostEqual(inputs.downlink_phase_seconds, 0.010)
        self.assertAlmostEqual(inputs.worker_phase_seconds, 0.020)
        self.assertAlmostEqual(inputs.uplink_phase_seconds, 0.010)
        self.assertAlmostEqual(inputs.parameter_server_phase_seconds, 0.002)
        self.assertAlmostEqual(inputs.computation_seconds, 0.020)
        self.assertAlmostEqual(inputs.transfer_seconds, 0.010)
        self.assertAlmostEqual(inputs.network_utilization, 0.5)
        self.assertAlmostEqual(inputs.halved_network_utilization, 1 / 3)
        one, four = ({model.model: model.examples_per_second for model in each.models} for each in reply.comparisons)
        self.assertAlmostEqual(one[QUEUEING], 8 / 0.042)
        self.assertAlmostEqual(one[CYNTHIA], 8 / 0.040)
        self.assertAlmostEqual(one[CYNTHIA_HALVED], 8 / 0.030)
        self.assertAlmostEqual(one[COARSE_TENSORS], 8 / 0.042)
        self.assertAlmostEqual(four[CYNTHIA], 32 / (0.020 * 4 * 0.5 + 0.020))
        self.assertAlmostEqual(four[CYNTHIA_HALVED], 32 / (0.020 * 4 / 3 + 0.010))
        self.assertAlmostEqual(four[COARSE_TENSORS], 32 / (4 * 0.020 + 0.022))
        # Never more than either direction of the link carries.
        self.assertLess(four[QUEUEING], 8 / 0.010)

    def test_the_simulation_is_that_of_a_prediction(self):
        reply = self.compare(recorded(), worker_counts=[3, 2])
        asked = prediction.PredictThroughputRequest(inline_profile=message(recorded()), worker_counts=[3, 2], options=self.options)
        predicted = self.server.predictions.PredictThroughput(asked)
        self.assertEqual([each.workers for each in reply.comparisons], [3, 2])
        self.assertEqual([each.prediction for each in reply.comparisons], list(predicted.predictions))
        self.assertEqual(reply.profile_digest, predicted.profile_digest)
        for each in reply.comparisons:
            self.assertEqual([model.model for model in each.models], [QUEUEING, CYNTHIA, CYNTHIA_HALVED, COARSE_TENSORS])
            ours = each.prediction.examples_per_second
            for model in each.models:
                self.assertAlmostEqual(model.relative_difference, (model.examples_per_second - ours) / ours)
                interval = each.prediction.confidence_interval
                self.assertEqual(model.within_interval, interval.lower <= model.examples_per_second <= interval.upper)

    def test_a_model_says_why_it_says_nothing(self):
        reply = self.compare(small(), worker_counts=[2], scenario={"parameter_servers": {"synchronization": scenario_pb2.ParameterServers.SYNCHRONOUS}})
        silent = [model for model in reply.comparisons[0].models if model.unavailable_reason]
        self.assertEqual([model.model for model in silent], [QUEUEING, CYNTHIA, CYNTHIA_HALVED])
        self.assertEqual({model.examples_per_second for model in silent}, {0})

    def test_the_models_of_collectives_follow_by_hand(self):
        reply = self.compare(ALL_REDUCE, worker_counts=[4], scenario={"all_reduce": {"latency_seconds": 0}})
        (four,) = reply.comparisons
        # Six rounds of a quarter, 2.5 ms each, after all computation.
        self.assertAlmostEqual(four.prediction.examples_per_second, 32 / 0.045)
        steps = {model.model: 32 / model.examples_per_second for model in four.models}
        self.assertEqual(list(steps), [COARSE_TENSORS, POLLUX, NO_OVERLAP, PALEO])
        self.assertAlmostEqual(steps[COARSE_TENSORS], 0.040)
        for model in (POLLUX, NO_OVERLAP, PALEO):
            self.assertAlmostEqual(steps[model], 0.045)
        self.assertFalse(reply.HasField("inputs"))
        inputs = reply.collective_inputs
        self.assertEqual((inputs.size_bytes, inputs.pollux_exponent, inputs.pollux_seconds_per_worker), (1_000_000, 1, 0))
        self.assertAlmostEqual(inputs.computation_seconds, 0.030)
        self.assertAlmostEqual(inputs.pollux_seconds, 0.015)

    def test_a_stored_profile_at_the_default_counts_is_counted_in_the_metrics(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small()))).name
        reply = self.server.predictions.CompareModels(comparison_pb2.CompareModelsRequest(profile=name, options=self.options))
        self.assertEqual([each.workers for each in reply.comparisons], list(range(1, 9)))
        self.assertEqual(self.server.metric("stepcast_predictions_total", method="CompareModels", code="OK"), 1)

    def test_a_passed_deadline_ends_it(self):
        request = comparison_pb2.CompareModelsRequest(
            inline_profile=message(recorded()), worker_counts=[256], options=scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=1_000_000)
        )
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.predictions.CompareModels(request, timeout=PASSING_SECONDS)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


if __name__ == "__main__":
    unittest.main()
