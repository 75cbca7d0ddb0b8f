"""Long jobs that several replicas of the real server compute together: the same bytes as one, whatever becomes of a replica."""

import unittest
import uuid

from contract import allocation_pb2, recommendation_pb2, scenario_pb2
from operations_test import comparable
from postgres import Postgres
from sample import message, recorded
from stepcastd import PATIENCE_SECONDS, Server, eventually

from google.longrunning import operations_pb2, operations_pb2_grpc
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc

POSTGRES = None
# One that dies is replaced soon.
LEASE = ("--operation-lease-seconds", "1")


def setUpModule():
    global POSTGRES
    POSTGRES = Postgres()
    unittest.addModuleCleanup(POSTGRES.close)


def cluster(jobs, **options):
    """A cluster of jobs that differ in their batch, so that none is simulated for another."""
    request = allocation_pb2.AllocateWorkersRequest(
        capacity=allocation_pb2.ClusterCapacity(workers=8 * jobs), options=scenario_pb2.SimulationOptions(**options)
    )
    for i in range(jobs):
        profile = recorded()
        profile["batch_size"] = 64 + i
        job = request.jobs.add(id=f"job-{i}", inline_profile=message(profile))
        job.max_workers = 6
    return request


class SharedJobTest(unittest.TestCase):
    def setUp(self):
        self.conninfo = POSTGRES.new_database()
        self.replicas = []
        self.addCleanup(lambda: [replica.close() for replica in self.replicas])

    def add(self, count):
        for _ in range(count):
            name = f"replica-{len(self.replicas)}"
            replica = Server("--store", "postgres", "--postgres", self.conninfo, "--threads", "1", "--replica-id", name, *LEASE)
            replica.replica_id = name
            self.replicas.append(replica)

    def start(self, **computation):
        jobs = job_service_pb2_grpc.JobServiceStub(self.replicas[0].channel)
        return jobs.StartJob(job_service_pb2.StartJobRequest(request_id=str(uuid.uuid4()), **computation), timeout=PATIENCE_SECONDS).name

    def get(self, name):
        operations = operations_pb2_grpc.OperationsStub(self.replicas[0].channel)
        return operations.GetOperation(operations_pb2.GetOperationRequest(name=name), timeout=PATIENCE_SECONDS)

    def metadata(self, name):
        metadata = job_service_pb2.JobMetadata()
        self.assertTrue(self.get(name).metadata.Unpack(metadata))
        return metadata

    def answer(self, name, reply):
        """What it comes to, as bytes, without what tells one computation from another."""
        eventually(lambda: self.get(name).done, "the job is done")
        operation = self.get(name)
        self.assertEqual(operation.WhichOneof("result"), "response", operation)
        self.assertTrue(operation.response.Unpack(reply))
        return comparable(reply).SerializeToString(deterministic=True)

    def helped(self):
        return sum(replica.metric("stepcast_operation_attempts_ended_total", outcome="helped") for replica in self.replicas)

    def shards(self):
        return sum(self.replicas[0].metric("stepcast_operation_shards", state=state) for state in ("waiting", "taken"))

    def test_one_and_three_replicas_come_to_the_same_bytes(self):
        question = cluster(12, steps_per_worker=1500, replications=4)
        self.add(1)
        alone = self.answer(self.start(allocate_workers=question), allocation_pb2.AllocateWorkersResponse())
        self.assertEqual(self.helped(), 0)
        self.add(2)
        name = self.start(allocate_workers=question)
        together = self.answer(name, allocation_pb2.AllocateWorkersResponse())
        self.assertEqual(together, alone)
        eventually(lambda: self.helped() > 0, "another replica has helped")
        metadata = self.metadata(name)
        self.assertEqual(metadata.attempts, 1)
        self.assertGreater(metadata.expected_operations, 0)
        # What was of use while it ran is gone with its end.
        self.assertEqual(POSTGRES.run(self.conninfo.split("dbname=")[1], "SELECT count(*) FROM stepcast_shards").strip(), "0")

    def test_a_replica_that_is_killed_costs_nothing_but_time(self):
        question = recommendation_pb2.RecommendWorkersRequest(
            inline_profile=message(recorded()), options=scenario_pb2.SimulationOptions(steps_per_worker=3000, replications=5)
        )
        question.constraints.max_workers = 12
        self.add(1)
        alone = self.answer(self.start(recommend_workers=question), recommendation_pb2.RecommendWorkersResponse())
        self.add(2)
        name = self.start(recommend_workers=question)
        eventually(lambda: self.shards() > 0, "the job is shared")
        owner = self.metadata(name).replica
        dead = next(replica for replica in self.replicas[1:] if not owner.startswith(replica.replica_id + "-"))
        dead.kill()
        self.replicas.remove(dead)
        self.assertEqual(self.answer(name, recommendation_pb2.RecommendWorkersResponse()), alone)


if __name__ == "__main__":
    unittest.main()
