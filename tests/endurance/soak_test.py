"""Fifteen seconds of all kinds of load: each call has its outcome, nothing stays open, and the server stops when told to."""

import unittest

from soak import Soak

SECONDS = 15
SEED = 20261122


class SoakTest(unittest.TestCase):
    def test_every_call_has_its_outcome_and_nothing_stays_open(self):
        soak = Soak(SECONDS, SEED)
        soak.run()
        report = "\n".join(soak.report())
        print(report)
        self.assertEqual(soak.violations, [], report)
        self.assertGreater(soak.expectation.total(), 0)


if __name__ == "__main__":
    unittest.main()
