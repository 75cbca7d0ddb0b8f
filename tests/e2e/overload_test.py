"""What happens when more is asked than can be done: refusals that come at once and help, and answers that do not wait."""

import os
import tempfile
import unittest

from contract import admin_grpc, admin_pb2, details_of, grpc, prediction, scenario_pb2, store
from limits_test import huge
from sample import message, recorded, small
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

# Far less than the ten minutes that any one computation may take, as which what takes hours counts; a refusal comes long before.
DEADLINE_SECONDS = 60
OPTIONS = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=200, warmup_steps=10, replications=2, seed=7)


class OneThreadTest(ServerTest):
    flags = ("--threads", "1", "--queue-max", "2")

    def ask(self, request, **options):
        return self.server.predictions.PredictThroughput(request, **options)

    def start(self, seed):
        """A simulation that goes on until it is cancelled."""
        call = self.server.predictions.PredictThroughput.future(huge(seed), timeout=PATIENCE_SECONDS * 100_000)
        self.addCleanup(call.cancel)
        return call

    def jobs(self, state):
        name = {"running": "stepcast_jobs_running", "waiting": "stepcast_queue_length"}[state]
        return self.server.metric(name, pool="simulation")

    def occupy(self, waiting=0):
        """The one thread, and so many places in the queue."""
        calls = [self.start(seed=1)]
        eventually(lambda: self.jobs("running") == 1, "one runs")
        for seed in range(2, 2 + waiting):
            calls.append(self.start(seed))
        eventually(lambda: self.jobs("waiting") == waiting, "the others wait")
        return calls

    def refused(self, request, **options):
        with self.assertRaises(grpc.RpcError) as raised:
            self.ask(request, **options)
        return details_of(raised.exception)

    def rejections(self, reason):
        return self.server.metric("stepcast_rejections_total", reason=reason)


class OverloadTest(OneThreadTest):
    def test_what_cannot_be_done_in_time_is_refused_before_it_begins(self):
        details = self.refused(huge(), timeout=DEADLINE_SECONDS)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_UNREACHABLE"))
        self.assertGreater(float(details.metadata["expected_seconds"]), DEADLINE_SECONDS)
        self.assertEqual(self.server.metric("stepcast_job_seconds_count", pool="simulation"), 0)
        self.assertEqual(self.rejections("DEADLINE_UNREACHABLE"), 1)

    def test_a_deadline_that_the_wait_will_break_is_refused_with_when_to_come_again(self):
        self.occupy()
        details = self.refused(prediction.PredictThroughputRequest(inline_profile=message(recorded()), options=OPTIONS), timeout=DEADLINE_SECONDS)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "DEADLINE_UNREACHABLE"))
        self.assertGreater(details.retry_delay_seconds, 0)
        self.assertGreater(float(details.metadata["expected_wait_seconds"]), DEADLINE_SECONDS)

    def test_a_full_queue_names_its_limit_and_when_to_come_again(self):
        self.occupy(waiting=2)
        details = self.refused(huge(seed=9))
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL"))
        self.assertIn(details.quota_subjects, (["queue_max"], ["queue_max_seconds"]))
        self.assertGreater(details.retry_delay_seconds, 0)
        self.assertEqual(self.rejections("QUEUE_FULL"), 1)

    def test_a_place_that_nobody_waits_in_any_more_is_given_to_the_next(self):
        calls = self.occupy(waiting=2)
        for call in calls[1:]:
            call.cancel()
        last = None

        def is_taken():
            nonlocal last
            last = self.start(seed=9) if last is None or last.done() else last
            return not last.done() and self.server.metric("stepcast_jobs_dropped_total", pool="simulation") == 2

        eventually(is_taken, "the next one is taken, in place of both")
        self.assertEqual(self.jobs("running"), 1)

    def test_a_known_answer_waits_for_nothing(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()))).name
        request = prediction.PredictThroughputRequest(profile=name, worker_counts=[1, 2], options=OPTIONS)
        first = self.ask(request)
        self.occupy(waiting=2)
        for _ in range(20):
            self.assertTrue(self.ask(request, timeout=PATIENCE_SECONDS).simulation.cached)
        self.assertEqual(self.ask(request).predictions, first.predictions)
        self.assertGreaterEqual(self.server.metric("stepcast_cache_lookups_total", cache="requests", result="hit"), 19)

    def test_in_a_full_queue_every_new_question_is_refused_and_one_under_way_is_joined(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()))).name
        (running,) = self.occupy()
        endless = prediction.PredictThroughputRequest(profile=name, options=scenario_pb2.SimulationOptions(steps_per_worker=10_000_000, replications=1000, seed=5))
        waiting = [self.server.predictions.PredictThroughput.future(endless, timeout=PATIENCE_SECONDS * 100_000) for _ in range(3)]
        waiting.append(self.start(seed=3))
        for call in waiting:
            self.addCleanup(call.cancel)
        flights = lambda: self.server.metric("stepcast_shared_answers_total", method="PredictThroughput", **{"from": "flight"})
        eventually(lambda: self.jobs("waiting") == 2 and flights() == 2, "one question waits for three")
        for seed in range(40):
            asked = prediction.PredictThroughputRequest(profile=name, options=scenario_pb2.SimulationOptions(steps_per_worker=1000, seed=seed + 10))
            self.assertEqual(self.refused(asked).reason, "QUEUE_FULL", seed)
        self.assertEqual(self.rejections("QUEUE_FULL"), 40)
        waiting.append(self.server.predictions.PredictThroughput.future(endless, timeout=PATIENCE_SECONDS * 100_000))
        eventually(lambda: flights() == 3, "one more joins it")
        self.assertFalse(any(call.done() for call in (running, *waiting)))

    def test_an_answer_known_by_its_bytes_goes_with_its_profile(self):
        create = lambda profile: self.server.profiles.CreateProfile(store.CreateProfileRequest(profile_id="job", profile=message(profile)))
        request = prediction.PredictThroughputRequest(profile="profiles/job", options=OPTIONS)
        create(small())
        before = [self.ask(request) for _ in range(3)][-1]
        self.assertEqual(self.server.metric("stepcast_cache_lookups_total", cache="requests", result="hit"), 2)
        self.server.profiles.DeleteProfile(store.DeleteProfileRequest(name="profiles/job"))
        self.assertEqual(self.refused(request).code, grpc.StatusCode.NOT_FOUND)
        create(small(batch_size=16))
        after = self.ask(request)
        self.assertFalse(after.simulation.cached)
        self.assertAlmostEqual(after.predictions[0].examples_per_second, 2 * before.predictions[0].examples_per_second, places=6)


class SharedTurnTest(OneThreadTest):
    """A question of several clients waits in the name of each: one's place is neither lost nor late for another's sake."""

    CLIENTS = {"anna": "writer", "bert": "writer", "carl": "writer", "dora": "admin"}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepcast-turns-")
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "tokens.yaml")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"- {{name: {name}, role: {role}, token: a-token-for-{name}}}\n" for name, role in self.CLIENTS.items())
        self.flags = (*OneThreadTest.flags, "--tokens", path)
        super().setUp()

    @staticmethod
    def metadata(client):
        return [("authorization", f"Bearer a-token-for-{client}")]

    def ask_as(self, client, seed):
        call = self.server.predictions.PredictThroughput.future(huge(seed), timeout=PATIENCE_SECONDS * 100_000, metadata=self.metadata(client))
        self.addCleanup(call.cancel)
        return call

    def waiting(self):
        """The clients of what waits, sorted."""
        running = admin_grpc.AdminServiceStub(self.server.channel).ListRunning(admin_pb2.ListRunningRequest(), metadata=self.metadata("dora")).running
        return sorted(each.client for each in running if each.state == admin_pb2.ListRunningResponse.Running.WAITING)

    def test_each_client_of_a_question_has_a_place_for_it(self):
        calls = [self.ask_as("anna", seed=1)]
        eventually(lambda: self.jobs("running") == 1, "one runs")
        for seed in (2, 3):
            calls.append(self.ask_as("anna", seed))
            eventually(lambda seed=seed: self.waiting() == ["anna"] * (seed - 1), "it waits")
        # The queue is full: anna's newest, the same question, makes room, and goes on in bert's name.
        calls.append(self.ask_as("bert", seed=3))
        eventually(lambda: self.waiting() == ["anna", "bert"], "bert has a place of his own")
        refused = self.ask_as("carl", seed=4)
        self.assertEqual(details_of(refused.exception()).reason, "QUEUE_FULL")
        self.assertFalse(any(call.done() for call in calls))
        # Whoever is gone leaves his place, and the question goes on for the other.
        calls.pop().cancel()
        eventually(lambda: self.waiting() == ["anna", "bert"], "anna waits for it still")
        calls.pop().cancel()
        eventually(lambda: self.waiting() == ["anna"], "nobody waits for it")


if __name__ == "__main__":
    unittest.main()
