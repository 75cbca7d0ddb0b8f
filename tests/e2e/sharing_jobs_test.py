"""Long jobs that several replicas of the real server compute together: the same bytes as one, whatever becomes of a replica."""

import contextlib
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


def helped(replica):
    return replica.metric("stepcast_operation_attempts_ended_total", outcome="helped")


class SharedJobTest(unittest.TestCase):
    def setUp(self):
        self.replicas = []
        self.addCleanup(lambda: [replica.close() for replica in self.replicas])
        self.conninfo = POSTGRES.new_database()
        for _ in range(3):
            self.replicas.append(self.replica(self.conninfo))

    def replica(self, conninfo):
        name = f"replica-{len(self.replicas)}"
        replica = Server("--store", "postgres", "--postgres", conninfo, "--threads", "1", "--replica-id", name, *LEASE)
        replica.replica_id = name
        return replica

    def start(self, replica, **computation):
        jobs = job_service_pb2_grpc.JobServiceStub(replica.channel)
        return jobs.StartJob(job_service_pb2.StartJobRequest(request_id=str(uuid.uuid4()), **computation), timeout=PATIENCE_SECONDS).name

    def start_shared(self, method, question):
        """A job that is seen shared: one is, where a machine takes long for it, so the question grows until this one does."""
        while True:
            name = self.start(self.replicas[0], **{method: question})
            while not self.get(self.replicas[0], name).done:
                if self.shards() > 0:
                    return name
            question.options.replications *= 2

    def get(self, replica, name):
        operations = operations_pb2_grpc.OperationsStub(replica.channel)
        return operations.GetOperation(operations_pb2.GetOperationRequest(name=name), timeout=PATIENCE_SECONDS)

    def metadata(self, replica, name):
        metadata = job_service_pb2.JobMetadata()
        self.assertTrue(self.get(replica, name).metadata.Unpack(metadata))
        return metadata

    def answer(self, replica, name, reply):
        """What it comes to, as bytes, without what tells one computation from another."""
        eventually(lambda: self.get(replica, name).done, "the job is done")
        operation = self.get(replica, name)
        self.assertEqual(operation.WhichOneof("result"), "response", operation)
        self.assertTrue(operation.response.Unpack(reply))
        return comparable(reply).SerializeToString(deterministic=True)

    def answer_of_one(self, method, question, reply):
        """What a replica that has its store for itself comes to."""
        with contextlib.closing(self.replica(POSTGRES.new_database())) as alone:
            answer = self.answer(alone, self.start(alone, **{method: question}), reply)
            self.assertEqual(helped(alone), 0)
        return answer

    def shards(self):
        return sum(self.replicas[0].metric("stepcast_operation_shards", state=state) for state in ("waiting", "taken"))

    def test_one_and_three_replicas_come_to_the_same_bytes(self):
        question = cluster(12, steps_per_worker=1500, replications=4)
        while True:
            name = self.start_shared("allocate_workers", question)
            together = self.answer(self.replicas[0], name, allocation_pb2.AllocateWorkersResponse())
            if sum(helped(replica) for replica in self.replicas) > 0:
                break
            question.options.replications *= 2
        metadata = self.metadata(self.replicas[0], name)
        self.assertEqual(metadata.attempts, 1)
        self.assertGreater(metadata.expected_operations, 0)
        # Shards are of use while it runs, and gone with its end.
        self.assertEqual(POSTGRES.run(self.conninfo.split("dbname=")[1], "SELECT count(*) FROM stepcast_shards").strip(), "0")
        self.assertEqual(together, self.answer_of_one("allocate_workers", question, allocation_pb2.AllocateWorkersResponse()))

    def test_a_replica_that_is_killed_costs_nothing_but_time(self):
        question = recommendation_pb2.RecommendWorkersRequest(
            inline_profile=message(recorded()), options=scenario_pb2.SimulationOptions(steps_per_worker=3000, replications=5)
        )
        question.constraints.max_workers = 12
        name = self.start_shared("recommend_workers", question)
        owner = self.metadata(self.replicas[0], name).replica
        dead = next(replica for replica in self.replicas[1:] if not owner.startswith(replica.replica_id + "-"))
        dead.kill()
        self.replicas.remove(dead)
        together = self.answer(self.replicas[0], name, recommendation_pb2.RecommendWorkersResponse())
        self.assertEqual(together, self.answer_of_one("recommend_workers", question, recommendation_pb2.RecommendWorkersResponse()))


if __name__ == "__main__":
    unittest.main()
