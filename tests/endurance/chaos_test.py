"""Twenty seconds of chaos, and ten kills of a server on SQLite: replicas and database come and go, and every promise is kept."""

import unittest

from chaos import METHODS, Chaos

SECONDS = 20
SEED = 20261121
KILLS = 10


class ChaosTest(unittest.TestCase):
    def test_nothing_acknowledged_is_lost_and_nothing_ends_twice(self):
        chaos = self.check(Chaos(SECONDS, SEED))
        self.assertGreater(chaos.fleet.kills + chaos.fleet.terminations, 0)
        self.assertEqual(chaos.fleet.outages, 1)

    def test_kill_nine_of_the_embedded_store_loses_nothing_acknowledged(self):
        chaos = self.check(Chaos(None, SEED, kills=KILLS, store="sqlite"))
        self.assertEqual((chaos.fleet.kills, chaos.fleet.terminations, chaos.fleet.outages), (KILLS, 0, 0))

    def check(self, chaos):
        """Runs it, and holds it against its promises, and against idleness."""
        chaos.run()
        report = "\n".join(chaos.report())
        print(report)
        self.assertEqual(chaos.violations, [], report)
        for method in METHODS:
            self.assertGreater(chaos.caller.calls[method], 0, method)
        self.assertEqual(len(chaos.ledger.ends), chaos.caller.calls["StartJob"])
        self.assertEqual(chaos.compared, chaos.caller.calls["StartJob"])
        return chaos


if __name__ == "__main__":
    unittest.main()
