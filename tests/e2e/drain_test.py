"""SIGTERM: health turns NOT_SERVING, calls in flight are answered, the server exits with 0."""

import unittest

from contract import health_pb2, prediction, scenario_pb2
from sample import message, recorded
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

# About a second of simulation: long enough to be under way when the signal comes, whatever the machine does.
LONG_STEPS = 15000


class DrainTest(ServerTest):
    flags = ("--drain-timeout", str(PATIENCE_SECONDS))

    def test_a_call_in_flight_is_answered_while_health_says_not_serving(self):
        call = self.server.predictions.PredictThroughput.future(
            prediction.PredictThroughputRequest(
                inline_profile=message(recorded()),
                worker_counts=[16],
                options=scenario_pb2.SimulationOptions(steps_per_worker=LONG_STEPS, replications=1),
            ),
            timeout=PATIENCE_SECONDS,
        )
        watch = self.server.health.Watch(health_pb2.HealthCheckRequest(service=""), timeout=PATIENCE_SECONDS)
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
        eventually(lambda: self.server.metric("stepcast_jobs_running", pool="simulation") == 1, "the simulation runs")
        self.assertFalse(call.done())
        self.server.terminate()
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
        self.assertFalse(call.done())
        self.assertGreater(call.result().predictions[0].steps_per_second, 0)
        self.assertEqual(self.server.wait(), 0, self.server.errors())

    def test_an_idle_server_leaves_with_status_0(self):
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0, self.server.errors())


if __name__ == "__main__":
    unittest.main()
