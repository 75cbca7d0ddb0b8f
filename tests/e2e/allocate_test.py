"""A cluster shared between jobs, through the real server."""

import itertools
import unittest

from contract import allocation_pb2, details_within, grpc, scenario_pb2, store
from sample import message, recorded, small
from patience import PASSING_SECONDS
from stepcastd import ServerTest

TOTAL_UTILITY, MAX_MIN_FAIR, MIN_MAKESPAN = range(1, 4)


def computing(milliseconds):
    """A job that scales with any number of workers: all computation."""
    length = milliseconds * 1_000_000
    return small(operations=[{"name": "compute", "resource": "WORKER"}], steps=[{"start_ns": [0], "end_ns": [length]}])


def job(name, profile, **fields):
    return allocation_pb2.AllocationJob(id=name, inline_profile=message(profile), **fields)


class AllocateTest(ServerTest):
    options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=100, replications=1)

    def allocate(self, *jobs, workers, servers=None, **request):
        capacity = allocation_pb2.ClusterCapacity(workers=workers, parameter_servers=servers)
        return self.server.predictions.AllocateWorkers(
            allocation_pb2.AllocateWorkersRequest(jobs=jobs, capacity=capacity, options=self.options, **request)
        )

    def test_the_total_utility_is_that_of_trying_all_ways(self):
        reply = self.allocate(job("a", recorded()), job("b", small(), weight=1.5), job("c", computing(5), gang=3), workers=9)
        curves = [{point.workers: point.examples_per_second for point in each.curve} for each in reply.allocations]
        weights = [1, 1.5, 1]
        # The curve of a job with a gang has no single worker, but a job that only computes is as many times as fast as it has workers.
        ones = [curves[0][1], curves[1][1], curves[2][3] / 3]
        best = max(
            sum(weight * curve[count] / one for weight, curve, count, one in zip(weights, curves, counts, ones))
            for counts in itertools.product(*curves)
            if sum(counts) <= 9
        )
        self.assertAlmostEqual(reply.total_utility, best, places=6)
        self.assertAlmostEqual(sum(each.utility for each in reply.allocations), best, places=6)
        self.assertEqual(sum(each.workers for each in reply.allocations), reply.workers)
        self.assertLessEqual(reply.workers, 9)
        self.assertEqual(reply.allocations[2].workers % 3, 0)
        for each, curve in zip(reply.allocations, curves):
            self.assertEqual(each.examples_per_second, curve[each.workers])
            self.assertRegex(each.profile_digest, "^[0-9a-f]{64}$")

    def test_one_more_worker_is_what_the_larger_cluster_would_give(self):
        jobs = [job("a", recorded()), job("b", small())]
        now, then = (self.allocate(*jobs, workers=workers) for workers in (5, 6))
        self.assertAlmostEqual(now.one_more_worker.utility_gain, then.total_utility - now.total_utility, places=9)
        changed = {each.id: each.workers for each in now.one_more_worker.changes}
        for before, after in zip(now.allocations, then.allocations):
            self.assertEqual(changed.get(before.id, before.workers), after.workers)

    def test_a_fair_share_follows_the_weight(self):
        reply = self.allocate(job("a", computing(5)), job("b", computing(9), weight=2), workers=9, objective=MAX_MIN_FAIR)
        self.assertEqual([each.workers for each in reply.allocations], [3, 6])
        self.assertAlmostEqual(reply.objective_value, 3, places=6)

    def test_the_makespan_follows_the_remaining_examples_and_the_rescale(self):
        # 8 examples in 5 ms a worker: 1600 a second.
        jobs = [job("a", computing(5), remaining_examples=64_000), job("b", computing(5), remaining_examples=32_000)]
        reply = self.allocate(*jobs, workers=6, objective=MIN_MAKESPAN)
        self.assertEqual([each.workers for each in reply.allocations], [4, 2])
        self.assertAlmostEqual(reply.objective_value, 10, places=3)
        self.assertAlmostEqual(reply.allocations[0].duration.ToTimedelta().total_seconds(), 10, places=3)
        jobs[0].current.workers, jobs[0].current.rescale_seconds = 3, 100
        self.assertEqual([each.workers for each in self.allocate(*jobs, workers=6, objective=MIN_MAKESPAN).allocations][0], 3)

    def test_a_bad_job_has_its_own_error_and_the_others_are_served(self):
        jobs = [
            job("bad", small(), weight=-1, gang=0),
            allocation_pb2.AllocationJob(id="gone", profile="profiles/nobody"),
            allocation_pb2.AllocationJob(id="empty"),
            job("broken", small(batch_size=0)),
            job("good", computing(5)),
        ]
        reply = self.allocate(*jobs, workers=4)
        bad, gone, empty, broken = (details_within(each.error) for each in reply.allocations[:4])
        self.assertEqual((bad.code, bad.reason, bad.domain), (grpc.StatusCode.INVALID_ARGUMENT, "JOB_INVALID", "stepcast"))
        self.assertEqual(set(bad.violations), {"weight", "gang"})
        self.assertEqual((gone.code, gone.reason, gone.resource), (grpc.StatusCode.NOT_FOUND, "PROFILE_NOT_FOUND", "profiles/nobody"))
        self.assertEqual(set(empty.violations), {"profile"})
        self.assertEqual(set(broken.violations), {"inline_profile.batch_size"})
        self.assertEqual([each.workers for each in reply.allocations], [0, 0, 0, 0, 4])
        self.assertFalse(reply.allocations[4].HasField("error"))

    def test_a_capacity_that_is_too_small_is_named_with_the_amount(self):
        reply = self.allocate(job("a", small(), min_workers=3), job("b", small(), gang=4), workers=6, servers=1)
        self.assertIn("capacity.workers: the jobs' minimums need 7, which is 1 more than the 6 there are", reply.infeasible_reason)
        self.assertIn("capacity.parameter_servers: the jobs' minimums need 2, which is 1 more than the 1 there are", reply.infeasible_reason)
        self.assertEqual((reply.workers, [each.workers for each in reply.allocations]), (0, [0, 0]))

    def test_a_stored_profile_and_servers_to_choose_from(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()))).name
        request = allocation_pb2.AllocationJob(id="a", profile=name, max_workers=4, max_parameter_servers=2)
        reply = self.allocate(request, workers=4, servers=2)
        self.assertEqual([(point.parameter_servers, point.workers) for point in reply.allocations[0].curve], list(itertools.product((1, 2), range(1, 5))))
        self.assertEqual((reply.allocations[0].workers, reply.allocations[0].parameter_servers), (4, 2))
        self.assertEqual(self.server.metric("stepcast_predictions_total", method="AllocateWorkers", code="OK"), 1)

    def test_many_counts_are_interpolated(self):
        reply = self.allocate(job("a", computing(5), max_workers=40), workers=37)
        self.assertEqual(reply.allocations[0].workers, 37)
        self.assertTrue(reply.allocations[0].interpolated)
        self.assertAlmostEqual(reply.allocations[0].speedup, 37, places=5)

    def test_a_passed_deadline_ends_it(self):
        request = allocation_pb2.AllocateWorkersRequest(
            jobs=[job("a", recorded())],
            capacity=allocation_pb2.ClusterCapacity(workers=16),
            options=scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=1_000_000),
        )
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.predictions.AllocateWorkers(request, timeout=PASSING_SECONDS)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


if __name__ == "__main__":
    unittest.main()
