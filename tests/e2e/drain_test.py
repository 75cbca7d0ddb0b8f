"""SIGTERM: health turns NOT_SERVING, calls in flight are answered, the server exits with 0."""

import unittest

from contract import health_pb2, scenario_pb2, trace_pb2
from sample import message, small
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

# Some forty megabytes of trace: more than is ever sent to who does not read, so that it is under way until it is read.
LONG_STEPS = 70_000


class DrainTest(ServerTest):
    flags = ("--drain-timeout", str(PATIENCE_SECONDS))

    def test_a_call_in_flight_is_answered_while_health_says_not_serving(self):
        options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=LONG_STEPS)
        request = trace_pb2.GenerateTraceRequest(inline_profile=message(small()), options=options)
        call = self.server.predictions.GenerateTrace(request, timeout=PATIENCE_SECONDS)
        first = next(call).chunk
        watch = self.server.health.Watch(health_pb2.HealthCheckRequest(service=""), timeout=PATIENCE_SECONDS)
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
        eventually(lambda: self.server.metric("stepcast_jobs_running", pool="simulation") == 1, "the simulation runs")
        self.server.terminate()
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
        self.assertEqual(self.server.metric("stepcast_jobs_running", pool="simulation"), 1)
        rest = [reply.chunk for reply in call]
        self.assertGreater(len(rest), 300)
        self.assertEqual((first[:1], rest[-1][-4:]), (b"{", b"\n]}\n"))
        self.assertEqual(self.server.wait(), 0, self.server.errors())

    def test_an_idle_server_leaves_with_status_0(self):
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0, self.server.errors())


if __name__ == "__main__":
    unittest.main()
