"""One of the clients that go on working while replicas and database go and come back."""

import random
import threading
import uuid

from caller import CallFailed
from e2e import allocation_pb2, comparable, duration_pb2, grpc, job_service_pb2, job_service_pb2_grpc, message, operations_pb2, operations_pb2_grpc
from e2e import SERVICE_CONFIG, order_pb2, prediction, prediction_grpc, recommendation_pb2, recorded, scenario_pb2, small, store, store_grpc

WAIT_SECONDS = 20
# Some hundredths of a second to a second of simulation, so that servers are killed in the middle of it, too.
STEPS = (200, 1000, 5000)
SEEDS = 4
# A client deletes one first where it has so many: runs of an hour stay within the store's limits.
MAX_MINE = 200
KEPT = "profiles/kept"


def job_computation(generator):
    """(field of StartJobRequest, request): each kind there is, few enough different ones to ask the unary methods for them, too."""
    options = scenario_pb2.SimulationOptions(steps_per_worker=generator.choice(STEPS), replications=1, seed=generator.randrange(SEEDS))
    kind = generator.choice(("predict_throughput",) * 5 + ("recommend_workers", "optimize_order", "allocate_workers"))
    if kind == "predict_throughput":
        return kind, prediction.PredictThroughputRequest(profile=KEPT, worker_counts=[8], options=options)
    if kind == "recommend_workers":
        request = recommendation_pb2.RecommendWorkersRequest(inline_profile=message(small()))
        request.constraints.max_workers = generator.randrange(2, 5)
        return kind, request
    if kind == "optimize_order":
        return kind, order_pb2.OptimizeOrderRequest(inline_profile=message(small(batch_size=generator.randrange(1, 4))))
    request = allocation_pb2.AllocateWorkersRequest(capacity=allocation_pb2.ClusterCapacity(workers=generator.randrange(2, 5)))
    for job_id in ("a", "b"):
        request.jobs.add(id=job_id, inline_profile=message(small()))
    return kind, request


class ChaosClient(threading.Thread):
    """Stores, reads, predicts, deletes, starts operations and waits for them, and keeps the ledger of what it was promised."""

    def __init__(self, number, seed, fleet, caller, ledger):
        super().__init__(name=f"client {number}")
        self.number, self.caller, self.ledger = number, caller, ledger
        self.random = random.Random(f"client {number} {seed}")
        self.channel = fleet.new_channel(SERVICE_CONFIG)
        self.profiles, self.predictions = store_grpc.ProfileServiceStub(self.channel), prediction_grpc.PredictionServiceStub(self.channel)
        self.jobs, self.operations = job_service_pb2_grpc.JobServiceStub(self.channel), operations_pb2_grpc.OperationsStub(self.channel)
        self.mine, self.created = {}, 0  # what it stored and has not deleted, by name
        self.over = threading.Event()

    def run(self):
        steps = [self.create] * 8 + [self.read] * 12 + [self.predict] * 12 + [self.delete] * 4 + [self.work] * 3
        while not self.over.is_set():
            step = self.random.choice(steps)
            try:
                step()
            except CallFailed as error:
                self.ledger.broken(f"{self.name}: {error}")
            except Exception as error:  # pylint: disable=broad-except
                self.ledger.broken(f"{self.name}: {step.__name__}: {error!r}")
                raise

    def stop(self):
        """Ends it after what it does now."""
        self.over.set()

    def keep(self):
        """Stores what everybody predicts from, and nobody deletes."""
        profile = message(recorded())
        reply, _ = self.caller.call("CreateProfile", self.profiles.CreateProfile, store.CreateProfileRequest(profile_id=KEPT.partition("/")[2], profile=profile))
        self.ledger.stored(reply.name, reply.digest)

    def create(self):
        if len(self.mine) >= MAX_MINE:
            self.delete()
        self.created += 1
        profile = message(small(batch_size=1 + self.random.randrange(1000), display_name=f"client {self.number}"))
        request = store.CreateProfileRequest(profile_id=f"c{self.number}-{self.created}", profile=profile, request_id=self.new_id())
        reply, _ = self.caller.call("CreateProfile", self.profiles.CreateProfile, request)
        self.ledger.stored(reply.name, reply.digest)
        self.mine[reply.name] = (reply.digest, profile)

    def read(self):
        if not self.mine:
            return
        name, (digest, profile) = self.random.choice(sorted(self.mine.items(), key=lambda item: item[0]))
        reply, _ = self.caller.call("GetProfile", self.profiles.GetProfile, store.GetProfileRequest(name=name))
        if (reply.digest, reply.batch_size, list(reply.operations)) != (digest, profile.batch_size, list(profile.operations)):
            self.ledger.broken(f"{name} was read with other content than was stored:\n{profile}\n{reply}")

    def predict(self):
        name = self.random.choice([KEPT, *sorted(self.mine)])
        options = scenario_pb2.SimulationOptions(steps_per_worker=200, replications=1, seed=self.random.randrange(SEEDS))
        request = prediction.PredictThroughputRequest(profile=name, worker_counts=[1, 2], options=options)
        reply, _ = self.caller.call("PredictThroughput", self.predictions.PredictThroughput, request)
        self.ledger.answered(request, comparable(reply))

    def delete(self):
        if not self.mine:
            return
        name = self.random.choice(sorted(self.mine))
        request = store.DeleteProfileRequest(name=name)
        reply, attempts = self.caller.call("DeleteProfile", self.profiles.DeleteProfile, request, also={grpc.StatusCode.NOT_FOUND})
        # An attempt whose answer was lost may have deleted it. gRPC itself repeats no deletion.
        if reply == grpc.StatusCode.NOT_FOUND and attempts == 1:
            self.ledger.broken(f"{name} was acknowledged, and is not found by its first deletion")
        del self.mine[name]
        self.ledger.removed(name)

    def work(self):
        kind, computation = job_computation(self.random)
        request = job_service_pb2.StartJobRequest(request_id=self.new_id(), **{kind: computation})
        started, _ = self.caller.call("StartJob", self.jobs.StartJob, request)
        self.ledger.started(started.name, request)
        # The others are left alone, as by a client that comes back for them tomorrow.
        if self.random.random() < 0.5:
            self.wait(started.name)

    def wait(self, name):
        request = operations_pb2.WaitOperationRequest(name=name, timeout=duration_pb2.Duration(seconds=WAIT_SECONDS))
        while not self.over.is_set():
            operation, _ = self.caller.call("WaitOperation", self.operations.WaitOperation, request)
            self.ledger.observed(name, operation, "WaitOperation")
            if operation.done:
                return

    def new_id(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))
