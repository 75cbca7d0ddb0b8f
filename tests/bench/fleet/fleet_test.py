"""The model of a fleet: held to what queues are known to do, and to calls that are drawn one by one."""

import itertools
import math
import random
import unittest

import model
from model import Costs, Fleet, Load

COSTS = Costs(hit=50e-6, miss=0.05, spread=0.5)


def erlang_c(servers, offered):
    """The probability of waiting (Erlang, 1917), servers busy for `offered` of them together."""
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return servers * blocked / (servers - offered * (1 - blocked))


class QueueTest(unittest.TestCase):
    def test_random_arrivals_wait_as_erlang_says(self):
        for servers, busy in ((1, 0.5), (2, 0.7), (8, 0.8)):
            draw = random.Random(servers)
            rate = busy * servers
            arrivals = list(itertools.accumulate(draw.expovariate(rate) for _ in range(200_000)))
            times = [draw.expovariate(1) for _ in arrivals]
            took = sum(model.waits(arrivals, iter(times), servers)) / len(arrivals)
            expected = 1 + erlang_c(servers, rate) / (servers - rate)
            self.assertAlmostEqual(took / expected, 1, delta=0.05, msg=(servers, busy))

    def test_service_has_the_mean_and_the_spread_that_were_measured(self):
        for spread in (0.2, 1.5):
            costs = Costs(hit=0, miss=0.1, spread=spread)
            times = list(itertools.islice(model.service_times(costs, random.Random(3)), 200_000))
            mean = sum(times) / len(times)
            self.assertAlmostEqual(mean, 0.1, delta=0.002)
            self.assertAlmostEqual(math.sqrt(sum((t - mean) ** 2 for t in times) / len(times)) / mean, spread, delta=0.1 * spread)

    def test_questions_that_come_at_once_queue(self):
        costs = Costs(hit=0, miss=1, spread=0)
        took = model.simulate(Load(schedulers=1, jobs=4, every=100, life=100), costs, Fleet(replicas=1, processors=2), seconds=1000)
        self.assertEqual(took[: len(took) // 2], [1.0] * (len(took) // 2))
        self.assertEqual(took[len(took) // 2 :], [2.0] * (len(took) - len(took) // 2))


class DemandTest(unittest.TestCase):
    def test_a_question_is_computed_by_every_replica_that_meets_it(self):
        # Drawn call by call: 40 jobs asked 20 times each before they change.
        for replicas in (1, 2, 5, 50):
            draw = random.Random(replicas)
            load = Load(schedulers=1, jobs=40, every=30, life=600)
            computed = 0
            for _ in range(40 * 200):
                computed += len({draw.randrange(replicas) for _ in range(20)})
            self.assertAlmostEqual(model.computed_share(load, replicas), computed / (40 * 200 * 20), delta=0.01, msg=replicas)

    def test_a_job_that_asks_the_same_replica_is_computed_once_a_life(self):
        load = Load(schedulers=1, every=30, life=600, sticks=True)
        self.assertEqual([model.computed_share(load, replicas) for replicas in (1, 7, 1000)], [1 / 20] * 3)
        self.assertLess(model.least_replicas(Load(schedulers=1000, sticks=True), COSTS), model.least_replicas(Load(schedulers=1000), COSTS) / 5)

    def test_questions_that_change_faster_than_they_are_asked_are_all_computed(self):
        self.assertEqual(model.computed_share(Load(schedulers=1, every=30, life=1), 1), 1)

    def test_the_least_fleet_is_enough_and_one_replica_less_is_not(self):
        for schedulers in (1, 10, 100, 1000):
            load = Load(schedulers=schedulers)
            least = model.least_replicas(load, COSTS)
            self.assertLessEqual(model.demand(load, COSTS, least), 0.6 * 2 * least)
            if least > 1:
                self.assertGreater(model.demand(load, COSTS, least - 1), 0.6 * 2 * (least - 1))

    def test_there_may_be_no_fleet_that_is_enough(self):
        self.assertIsNone(model.least_replicas(Load(schedulers=1), Costs(hit=1e9, miss=1e9, spread=0)))

    def test_a_shared_job_takes_its_lead_and_a_share_of_the_rest(self):
        self.assertEqual(model.shared_job(9, 1), (9, 9))
        self.assertEqual(model.shared_job(9, 4), (3, 12))
        self.assertEqual(model.shared_job(0.5, 4), (0.5, 0.5))

    def test_nothing_has_no_percentile(self):
        self.assertIsNone(model.percentile([], 0.99))
        self.assertEqual(model.percentile([1, 2, 3, 4], 0.5), 2)
        self.assertEqual(model.percentile([1, 2, 3, 4], 0.99), 4)


if __name__ == "__main__":
    unittest.main()
