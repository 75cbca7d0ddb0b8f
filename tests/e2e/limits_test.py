"""What bounds a call: its deadline, and the queue."""

import unittest

from contract import details_of, grpc, prediction, recommendation_pb2, scenario_pb2
from patience import growing_seconds
from sample import message, recorded
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually


def huge(seed=1):
    """A request whose simulation takes hours; with another seed it is not equal."""
    return prediction.PredictThroughputRequest(
        inline_profile=message(recorded()),
        worker_counts=[512],
        options=scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=10_000_000, replications=1000, seed=seed),
    )


class DeadlineTest(ServerTest):
    def running(self):
        return self.server.metric("stepcast_jobs_running", pool="simulation")

    def test_a_deadline_stops_the_simulation(self):
        for seconds in growing_seconds(0.2):
            # A call that is expected to take too long would not begin.
            request = huge()
            request.options.time_budget.FromMilliseconds(int(3000 * seconds))
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.predictions.PredictThroughput(request, timeout=seconds)
            details = details_of(raised.exception)
            self.assertEqual(details.code, grpc.StatusCode.DEADLINE_EXCEEDED)
            # Without a reason where the client's own clock was the first, or the simulation had not begun.
            if details.reason == "DEADLINE_EXCEEDED" and int(details.metadata["simulated_operations"]) > 0:
                break
            self.assertIn(details.reason, ("", "DEADLINE_EXCEEDED", "DEADLINE_UNREACHABLE"))
        eventually(lambda: self.running() == 0, "no simulation runs")

    def test_a_cancelled_call_stops_its_simulation(self):
        call = self.server.predictions.RecommendWorkers.future(
            recommendation_pb2.RecommendWorkersRequest(inline_profile=huge().inline_profile, options=huge().options), timeout=10 * PATIENCE_SECONDS
        )
        eventually(lambda: self.running() == 1, "the simulation runs")
        call.cancel()
        eventually(lambda: self.running() == 0, "no simulation runs")


class FullQueueTest(ServerTest):
    flags = ("--threads", "1", "--queue-max", "1")

    def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(self):
        calls = []
        self.addCleanup(lambda: [call.cancel() for call in calls])
        for at in range(2):
            calls.append(self.server.predictions.PredictThroughput.future(huge(seed=at)))
            waiting = ("stepcast_jobs_running", "stepcast_queue_length")[at]
            eventually(lambda waiting=waiting: self.server.metric(waiting, pool="simulation") == 1, f"{waiting} is 1")
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.predictions.PredictThroughput(huge(seed=2))
        # At once: the others take hours, and one of them still waits for the other.
        self.assertEqual([call.done() for call in calls], [False, False])
        self.assertEqual(self.server.metric("stepcast_queue_length", pool="simulation"), 1)
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL"))
        self.assertGreater(details.retry_delay_seconds, 0)
        self.assertTrue(details.quota_subjects)


if __name__ == "__main__":
    unittest.main()
