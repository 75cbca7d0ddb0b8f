"""client/examples against a real server: the same answers in every language, and what comes of a job that cannot be answered."""

import unittest

from contract import recommendation_pb2, store
from loops import commands, run_loop
from sample import message, small
from stepcastd import PATIENCE_SECONDS, ServerTest


class ExamplesTest(ServerTest):
    def store(self, name, **changes):
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small(**changes)), profile_id=name))

    def test_there_is_one_for_each_language(self):
        if "Node" not in commands():
            self.skipTest("npm has not installed gRPC for Node: ./dev test does")
        self.assertEqual(list(commands()), ["C++", "Python", "Node"])

    def test_every_language_prints_the_same_answers_round_after_round(self):
        jobs = [f"job-{batch}" for batch in (8, 16, 32)]
        for job in jobs:
            self.store(job, batch_size=int(job.split("-")[1]))
        # Without a time budget. After this the server knows the whole answer, which the examples would be given bit by bit.
        expected = []
        for job in jobs:
            request = recommendation_pb2.RecommendWorkersRequest(profile=f"profiles/{job}")
            reply = self.server.predictions.RecommendWorkers(request, timeout=PATIENCE_SECONDS)
            expected.append((job, str(reply.workers), f"{reply.prediction.examples_per_second:.6f}"))
        for language, command in commands().items():
            # The examples wait for two seconds, which a busy machine may not give a process.
            for _ in range(20):
                answers = run_loop(command, self.server.address, 0.1, 3, jobs)[0]
                failed = [match[0] for each in answers for match in each if match[5]]
                if not any(line.endswith("DEADLINE_EXCEEDED") for line in failed):
                    break
            self.assertEqual(failed, [], language)
            self.assertTrue(all(float(match[4]) > 0 for each in answers for match in each))
            self.assertEqual([[(match[1], match[2], match[3]) for match in each] for each in answers], [expected] * 3, language)
        # Twice the batch, twice the examples.
        self.assertAlmostEqual(float(expected[1][2]) / float(expected[0][2]), 2, places=5)

    def test_a_job_that_is_not_known_does_not_keep_the_others_from_their_answers(self):
        self.store("known")
        self.store("other")
        for language, command in commands().items():
            ((first, unknown, last),), _ = run_loop(command, self.server.address, 0, 1, ["known", "unknown", "other"])
            self.assertEqual((first[1], unknown[0], last[1]), ("known", "unknown: NOT_FOUND", "other"), language)

    def test_a_server_that_does_not_answer_ends_the_round(self):
        self.store("known")
        self.server.process.send_signal(19)
        self.addCleanup(self.server.process.send_signal, 18)
        for language, command in commands().items():
            ((answer,),), _ = run_loop(command, self.server.address, 0, 1, ["known"])
            self.assertIn(answer[5], ("DEADLINE_EXCEEDED", "UNAVAILABLE"), language)


if __name__ == "__main__":
    unittest.main()
