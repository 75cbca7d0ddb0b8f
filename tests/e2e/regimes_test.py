"""What an answer says of how workers start: both regimes of a job that has two, where single runs fall, and what a profile made of one step assumes."""

import unittest

from contract import prediction, recommendation_pb2, scenario_pb2, store
from stepcastd import ServerTest

TEN_GBITS = 1.25e9
Options = scenario_pb2.SimulationOptions
Start = scenario_pb2.SimulationOptions.Start


class RegimesTest(ServerTest):
    def zoo(self, **options):
        options = store.ModelZooOptions(model="resnet50", platform={"bandwidth_bytes_per_second": TEN_GBITS}, **options)
        return self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header=store.ImportProfileRequest.Header(model_zoo=options))]))

    def predict(self, profile, counts, **options):
        request = prediction.PredictThroughputRequest(profile=profile.name, worker_counts=counts, options=Options(**{"step_variation": Options.AS_RECORDED, "steps_per_worker": 300, **options}))
        return self.server.predictions.PredictThroughput(request)

    def test_a_profile_made_of_no_recording_has_one_step_and_says_that_nothing_shows_how_steps_vary(self):
        exact = self.zoo()
        self.assertEqual(len(exact.notes), 1)
        self.assertIn("one step. Nothing shows how steps vary", exact.notes[0])
        made = self.zoo(step_time_variation=0.05, common_time_variation=0.04)
        self.assertIn("Made: 20 steps in which the time of each computation varies by 5 % by itself and that of all of a worker's by 4 %", made.notes[0])
        self.assertEqual(len(self.server.profiles.GetProfile(store.GetProfileRequest(name=exact.profile.name)).steps), 1)
        self.assertEqual(len(self.server.profiles.GetProfile(store.GetProfileRequest(name=made.profile.name)).steps), 20)

    def test_a_default_answer_is_not_the_lockstep_of_workers_that_start_together(self):
        reply = self.predict(self.zoo().profile, [1, 16], step_variation=Options.MODELLED)
        self.assertEqual(reply.options.start, Start.STAGGERED)
        one, sixteen = reply.predictions
        self.assertGreater(sixteen.examples_per_second, 1.5 * one.examples_per_second)

    def test_both_regimes_are_in_one_reply_with_how_many_runs_fell_in_each(self):
        exact = self.zoo(step_time_variation=0).profile
        lockstep = self.predict(exact, [8], start=Start.SIMULTANEOUS).predictions[0]
        answer = self.predict(exact, [8]).predictions[0]
        self.assertEqual([len(one.regimes) for one in (lockstep, answer)], [2, 2])
        for one in (lockstep, answer):
            fast, slow = one.regimes
            self.assertGreater(fast.examples_per_second, 1.5 * slow.examples_per_second)
            self.assertEqual(fast.replications + slow.replications, one.replications)
            self.assertFalse(one.steady_state)
            # A rate that nobody measured is said beside it.
            warnings = {warning.reason: warning.message for warning in one.warnings}
            self.assertEqual(set(warnings), {prediction.Warning.TWO_REGIMES, prediction.Warning.LINK_RATE_NOT_MEASURED})
            self.assertIn("two regimes", warnings[prediction.Warning.TWO_REGIMES])
        # Those that start together stay together, those that start at random do not.
        self.assertEqual((lockstep.regimes[0].replications, lockstep.regimes[1].replications), (0, 1))
        self.assertEqual(lockstep.regimes[0].other_start_replications, 3)
        self.assertEqual((answer.regimes[0].replications, answer.regimes[1].other_start_replications), (answer.replications, 1))

    def test_a_recommendation_does_not_rest_on_the_slower_regime_alone(self):
        exact = self.zoo(step_time_variation=0).profile
        request = recommendation_pb2.RecommendWorkersRequest(
            profile=exact.name,
            options=Options(step_variation="AS_RECORDED", steps_per_worker=300, start=Start.SIMULTANEOUS),
            constraints={"max_workers": 8},
            objective=recommendation_pb2.RecommendWorkersRequest.MAX_THROUGHPUT,
        )
        reply = self.server.predictions.RecommendWorkers(request)
        # In lockstep two workers and more make the same, so the fewest would be it.
        self.assertGreater(reply.workers, 2)
        self.assertIn("two regimes", reply.reason)

    def test_single_runs_fall_where_the_reply_says(self):
        profile = self.zoo().profile
        answer = self.predict(profile, [4], step_variation=Options.MODELLED).predictions[0]
        self.assertEqual(answer.run_interval.level, answer.confidence_interval.level)
        self.assertLess(answer.run_interval.lower, answer.confidence_interval.lower)
        self.assertGreater(answer.run_interval.upper, answer.confidence_interval.upper)
        seeds = range(100, 120)
        runs = [self.predict(profile, [4], seed=seed, replications=1, step_variation=Options.MODELLED).predictions[0].examples_per_second for seed in seeds]
        inside = sum(answer.run_interval.lower <= run <= answer.run_interval.upper for run in runs)
        self.assertGreaterEqual(inside, 17, f"{runs} in {answer.run_interval}")

    def test_a_horizon_that_begins_with_the_job_starts_it_together(self):
        reply = self.predict_first_steps()
        self.assertEqual(reply.options.start, Start.SIMULTANEOUS)
        self.assertEqual(len(reply.predictions[0].regimes), 0)

    def predict_first_steps(self):
        options = Options(horizon=Options.FIRST_STEPS, horizon_steps=5)
        return self.server.predictions.PredictThroughput(
            prediction.PredictThroughputRequest(profile=self.zoo().profile.name, worker_counts=[4], options=options)
        )


if __name__ == "__main__":
    unittest.main()
