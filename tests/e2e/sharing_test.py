"""Equal calls are computed once, and an answer is never one of another question."""

import threading
import unittest

from contract import allocation_pb2, comparison_pb2, grpc, json_format, order_pb2, prediction, recommendation_pb2, scenario_pb2, store
from limits_test import huge
from sample import message, recorded, small
from stepcastd import ServerTest, eventually

OPTIONS = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=200, warmup_steps=10, replications=2, seed=7)


def without_statistics(reply):
    """What an answer says, but for what computing it took."""
    copy = type(reply)()
    copy.CopyFrom(reply)
    copy.ClearField("simulation")
    return copy


class SharingTest(ServerTest):
    flags = ("--threads", "1")

    def computed(self, method="PredictThroughput"):
        return self.server.metric("stepcast_predictions_total", method=method, code="OK")

    def shared(self, source, method="PredictThroughput"):
        return self.server.metric("stepcast_shared_answers_total", **{"method": method, "from": source})

    def create(self, profile):
        return self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(profile))).name

    def predict(self, **request):
        return self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(**{"options": OPTIONS, "worker_counts": [1, 4], **request}))

    def test_an_equal_call_is_answered_from_the_cache(self):
        name = self.create(recorded())
        first = self.predict(profile=name)
        second = self.predict(profile=name)
        self.assertEqual((first.simulation.cached, second.simulation.cached), (False, True))
        self.assertEqual(without_statistics(first), without_statistics(second))
        self.assertEqual((self.computed(), self.shared("cache")), (1, 1))

    def test_a_profile_that_is_sent_is_the_one_that_is_stored(self):
        name = self.create(recorded())
        self.predict(profile=name)
        self.assertTrue(self.predict(inline_profile=message(recorded())).simulation.cached)
        renamed = recorded()
        renamed["display_name"] = "another name"
        self.assertTrue(self.predict(inline_profile=message(renamed)).simulation.cached)

    def test_calls_under_way_at_once_are_computed_once(self):
        name = self.create(recorded())
        options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=4000, replications=10)
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(self.predict(profile=name, options=options, worker_counts=range(1, 9)))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(replies), 8)
        self.assertEqual(self.computed(), 1)
        self.assertEqual(self.shared("flight") + self.shared("cache"), 7)
        self.assertEqual(sum(reply.simulation.cached for reply in replies), 7)
        self.assertEqual(len({without_statistics(reply).SerializeToString(deterministic=True) for reply in replies}), 1)

    def test_one_that_gives_up_leaves_the_others_their_answer(self):
        predict = self.server.predictions.PredictThroughput
        jobs = lambda name: self.server.metric(name, pool="simulation")
        begun = lambda: self.server.metric("grpc_server_started_total", grpc_method="PredictThroughput")
        # Takes hours, and the only thread: what is asked meanwhile is under way until it is cancelled.
        endless = predict.future(huge())
        eventually(lambda: jobs("stepcast_jobs_running") == 1, "the thread is taken")
        request = prediction.PredictThroughputRequest(profile=self.create(recorded()), options=OPTIONS, worker_counts=range(1, 9))
        hasty = predict.future(request)
        eventually(lambda: jobs("stepcast_queue_length") == 1, "the first one waits")
        patient = predict.future(request)
        eventually(lambda: begun() == 3, "the second one is under way, too")
        hasty.cancel()
        endless.cancel()
        self.assertEqual(len(patient.result().predictions), 8)
        self.assertEqual(self.computed(), 1)

    def test_another_profile_under_the_same_name_is_another_question(self):
        create = lambda profile: self.server.profiles.CreateProfile(store.CreateProfileRequest(profile_id="job", profile=message(profile)))
        create(small())
        before = self.predict(profile="profiles/job")
        self.server.profiles.DeleteProfile(store.DeleteProfileRequest(name="profiles/job"))
        create(small(batch_size=16))
        after = self.predict(profile="profiles/job")
        self.assertFalse(after.simulation.cached)
        self.assertAlmostEqual(after.predictions[0].examples_per_second, 2 * before.predictions[0].examples_per_second, places=6)

    def test_every_field_of_a_request_makes_another_question(self):
        name = self.create(recorded())
        asked = [
            {},
            {"worker_counts": [1, 5]},
            {"scenario": {"bandwidth_bytes_per_second": 2e8}},
            {"scenario": {"parameter_servers": {"transfer_order": "RANDOM"}}},
            {"options": {**json_format.MessageToDict(OPTIONS), "seed": "8"}},
            {"options": {**json_format.MessageToDict(OPTIONS), "stepsPerWorker": 201}},
            {"options": {**json_format.MessageToDict(OPTIONS), "replications": 3}},
            {"options": {**json_format.MessageToDict(OPTIONS), "confidenceLevel": 0.9}},
        ]
        for changes in asked:
            request = json_format.ParseDict({"profile": name, "worker_counts": [1, 4], "options": json_format.MessageToDict(OPTIONS), **changes}, prediction.PredictThroughputRequest())
            self.assertFalse(self.server.predictions.PredictThroughput(request).simulation.cached, changes)
            self.assertTrue(self.server.predictions.PredictThroughput(request).simulation.cached, changes)

    def test_other_methods_share_too(self):
        name = self.create(small())
        constraints = recommendation_pb2.Constraints(max_workers=4)
        recommend = lambda: self.server.predictions.RecommendWorkers(recommendation_pb2.RecommendWorkersRequest(profile=name, options=OPTIONS, constraints=constraints))
        order = lambda: self.server.predictions.OptimizeOrder(order_pb2.OptimizeOrderRequest(profile=name, options=OPTIONS))
        for method, ask in (("RecommendWorkers", recommend), ("OptimizeOrder", order)):
            first, second = ask(), ask()
            self.assertEqual((first.simulation.cached, second.simulation.cached), (False, True), method)
            self.assertEqual(without_statistics(first), without_statistics(second))
            self.assertEqual((self.computed(method), self.shared("cache", method)), (1, 1))

    def test_errors_are_not_kept(self):
        with self.assertRaises(grpc.RpcError):
            self.predict(profile="profiles/job")
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile_id="job", profile=message(small())))
        self.assertEqual(len(self.predict(profile="profiles/job").predictions), 2)

    def test_runs_are_used_again_by_other_questions(self):
        name = self.create(recorded())
        self.predict(profile=name, worker_counts=[1, 2, 3, 4])
        hits = self.server.metric("stepcast_cache_lookups_total", cache="runs", result="hit")
        misses = self.server.metric("stepcast_cache_lookups_total", cache="runs", result="miss")
        alone = self.predict(profile=name, worker_counts=[4])
        self.assertFalse(alone.simulation.cached)
        self.assertGreater(self.server.metric("stepcast_cache_lookups_total", cache="runs", result="hit"), hits)
        self.assertEqual(self.server.metric("stepcast_cache_lookups_total", cache="runs", result="miss"), misses)

    def test_a_stored_profile_is_decoded_once(self):
        name = self.create(recorded())
        lookups = lambda result: self.server.metric("stepcast_cache_lookups_total", cache="decoded_profiles", result=result)
        before = lookups("hit"), lookups("miss")
        for workers in (1, 2, 3):
            self.assertFalse(self.predict(profile=name, worker_counts=[workers]).simulation.cached)
        self.assertEqual((lookups("hit") - before[0], lookups("miss") - before[1]), (2, 1))

    def test_an_allocation_a_recommendation_and_a_comparison_share_their_runs(self):
        name = self.create(recorded())
        self.server.predictions.AllocateWorkers(
            allocation_pb2.AllocateWorkersRequest(
                jobs=[{"id": "a", "profile": name}, {"id": "b", "profile": name}], capacity={"workers": 8}, options=OPTIONS
            )
        )
        misses = self.server.metric("stepcast_cache_lookups_total", cache="runs", result="miss")
        self.server.predictions.CompareModels(comparison_pb2.CompareModelsRequest(profile=name, worker_counts=[2, 4], options=OPTIONS))
        self.predict(profile=name, worker_counts=[3])
        self.assertEqual(self.server.metric("stepcast_cache_lookups_total", cache="runs", result="miss"), misses)


class NoCacheTest(ServerTest):
    flags = ["--max-answer-cache-bytes", "0", "--max-run-cache-bytes", "0", "--max-profile-cache-bytes", "0"]

    def test_without_room_everything_is_computed_again_and_says_the_same(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()))).name
        request = prediction.PredictThroughputRequest(profile=name, options=OPTIONS, worker_counts=[1, 4])
        first, second = (self.server.predictions.PredictThroughput(request) for _ in range(2))
        self.assertFalse(first.simulation.cached or second.simulation.cached)
        self.assertEqual(without_statistics(first), without_statistics(second))
        self.assertEqual(self.server.metric("stepcast_cache_entries"), 0)


if __name__ == "__main__":
    unittest.main()
