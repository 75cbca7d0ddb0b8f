"""Twenty seconds of chaos: replicas and database come and go, and every promise is kept."""

import unittest

from chaos import METHODS, Chaos

SECONDS = 20
SEED = 20261121


class ChaosTest(unittest.TestCase):
    def test_nothing_acknowledged_is_lost_and_nothing_ends_twice(self):
        chaos = Chaos(SECONDS, SEED)
        chaos.run()
        report = "\n".join(chaos.report())
        print(report)
        self.assertEqual(chaos.violations, [], report)
        # That it was no idle run.
        self.assertGreater(chaos.fleet.kills + chaos.fleet.terminations, 0)
        self.assertEqual(chaos.fleet.outages, 1)
        for method in METHODS:
            self.assertGreater(chaos.caller.calls[method], 0, method)
        self.assertEqual(len(chaos.ledger.ends), chaos.caller.calls["StartJob"])
        self.assertEqual(chaos.compared, chaos.caller.calls["StartJob"])


if __name__ == "__main__":
    unittest.main()
