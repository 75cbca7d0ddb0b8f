"""How links are shared, how streams take turns, and which part of a job is predicted: each is answered, with the number that follows from it."""

import unittest

from contract import from_json, prediction
from sample import small
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
        request = {"inline_profile": profile, "scenario": scenario, "options": options or {"steps_per_worker": 50}}
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer

    def assert_steps(self, answer, steps_per_second):
        self.assertAlmostEqual(answer.steps_per_second / steps_per_second, 1, delta=1e-6)

    def test_a_link_that_serves_first_come_sets_workers_apart_where_equal_shares_keep_them_in_step(self):
        # Two workers: 20 ms down, 20 of computation, 20 up and 2 of update, both at once; or one 10 ms behind the other, and neither waits again.
        together = {"steps_per_worker": 50, "start": "SIMULTANEOUS"}
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
        self.assert_steps(self.predicted(small(), servers, {"horizon": "STEADY_STATE", "steps_per_worker": 50}, workers=2), 2 / 0.042)

    def test_the_first_seconds_of_a_job_count_what_ends_in_them(self):
        # Within 100 ms equal shares end a step of each worker, first come two of each.
        options = {"horizon": "FIRST_SECONDS", "horizon_seconds": 0.1}
        for sharing, steps in (("equal", 2), ("first_come", 4)):
            answer = self.predicted(small(), {sharing: {}}, options, workers=2)
            self.assert_steps(answer, steps / 0.1)
            self.assertFalse(answer.steady_state)


if __name__ == "__main__":
    unittest.main()
