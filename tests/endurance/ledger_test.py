"""The ledger finds every kind of broken promise, and nothing where all were kept."""

import unittest

from e2e import job_service_pb2, operations_pb2, prediction
from ledger import Ledger

NAME = "operations/o-1"
RUNNING, DONE = operations_pb2.Operation(name=NAME), operations_pb2.Operation(name=NAME, done=True)
OTHER_END = operations_pb2.Operation(name=NAME, done=True)
OTHER_END.response.value = b"other"


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        self.ledger.stored("profiles/a", "digest")
        self.ledger.stored("profiles/b", "digest")
        self.ledger.removed("profiles/b")
        self.ledger.started(NAME, job_service_pb2.StartJobRequest(request_id="1"))

    def expect(self, *parts):
        self.assertEqual(len(self.ledger.violations), len(parts), self.ledger.violations)
        for violation, part in zip(self.ledger.violations, parts):
            self.assertIn(part, violation)

    def test_kept_promises_are_no_violation(self):
        self.ledger.observed(NAME, RUNNING, "one")
        self.assertEqual(self.ledger.open_operations(), [NAME])
        self.ledger.observed(NAME, DONE, "one")
        self.assertEqual(self.ledger.open_operations(), [])
        self.ledger.check_operations({NAME: DONE}, "other")
        self.ledger.check_profiles({"profiles/a": "digest"}, "one")
        for _ in range(2):
            self.ledger.answered(prediction.PredictThroughputRequest(profile="a"), prediction.PredictThroughputResponse(profile_digest="digest"))
        self.expect()

    def test_a_lost_profile(self):
        self.ledger.check_profiles({}, "one")
        self.expect("profiles/a was acknowledged, and is lost")

    def test_a_changed_profile(self):
        self.ledger.check_profiles({"profiles/a": "other"}, "one")
        self.expect("profiles/a was acknowledged with digest digest, and has other")

    def test_a_deletion_undone_and_a_profile_of_nobody(self):
        self.ledger.check_profiles({"profiles/a": "digest", "profiles/b": "digest", "profiles/c": "digest"}, "one")
        self.expect("profiles/b is there on one, but its deletion was acknowledged", "profiles/c is there on one, but nobody stored it")

    def test_a_lost_operation(self):
        self.ledger.check_operations({}, "one")
        self.expect(f"{NAME} was acknowledged, and is lost")

    def test_an_operation_without_an_end(self):
        self.ledger.check_operations({NAME: RUNNING}, "one")
        self.expect(f"{NAME} has no end")

    def test_an_operation_of_nobody(self):
        self.ledger.check_operations({NAME: DONE, "operations/o-2": DONE}, "one")
        self.expect("operations/o-2 is there on one, but no start")

    def test_an_end_that_changes_or_is_taken_back(self):
        self.ledger.observed(NAME, DONE, "one")
        self.ledger.observed(NAME, OTHER_END, "other")
        self.ledger.observed(NAME, RUNNING, "other")
        self.expect(f"{NAME} had ended, and is another on other", f"{NAME} had ended, and is another on other")

    def test_two_requests_that_are_one_operation(self):
        self.ledger.started(NAME, job_service_pb2.StartJobRequest(request_id="2"))
        self.expect(f"{NAME} was started twice")

    def test_another_answer_to_the_same_request(self):
        for digest in ("first", "second"):
            self.ledger.answered(prediction.PredictThroughputRequest(profile="a"), prediction.PredictThroughputResponse(profile_digest=digest))
        self.expect("another answer than the first")


if __name__ == "__main__":
    unittest.main()
