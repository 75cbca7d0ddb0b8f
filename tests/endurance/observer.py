"""Asks one replica after the other, each by itself, and enters what it says in the ledger."""

import random
import threading

from caller import DEADLINE_SECONDS, LATER
from e2e import grpc, operations_pb2, operations_pb2_grpc, store, store_grpc

PAUSE_SECONDS = 0.05


class Observer(threading.Thread):
    """During the run it asks about operations at random, done or not."""

    def __init__(self, fleet, ledger, seed):
        super().__init__(name="observer")
        self.fleet, self.ledger, self.random = fleet, ledger, random.Random(f"observer {seed}")
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(PAUSE_SECONDS):
            with self.ledger.lock:
                names = list(self.ledger.requests)
            if names:
                at = self.random.randrange(len(self.fleet.channels))
                self._look(at, self.random.choice(names))

    def stop(self):
        self.over.set()
        self.join()

    def look_for_ends(self):
        """Asks for every operation that has not ended, once."""
        for at, name in enumerate(self.ledger.open_operations()):
            self._look(at % len(self.fleet.channels), name)

    def check_everything(self):
        """Holds all that every replica lists against the ledger."""
        for at, channel in enumerate(self.fleet.channels):
            where = f"replica {at}"
            self.ledger.check_profiles({profile.name: profile.digest for profile in _profiles(channel)}, where)
            self.ledger.check_operations({operation.name: operation for operation in _operations(channel)}, where)

    def _look(self, at, name):
        operations = operations_pb2_grpc.OperationsStub(self.fleet.channels[at])
        try:
            operation = operations.GetOperation(operations_pb2.GetOperationRequest(name=name), timeout=DEADLINE_SECONDS)
        except grpc.RpcError as error:
            # A stopping gRPC cancels what comes in that moment, and says no reason.
            if error.code() not in LATER and error.code() != grpc.StatusCode.CANCELLED:
                self.ledger.broken(f"{name} on replica {at}: {error.code().name}: {error.details()}")
            return
        self.ledger.observed(name, operation, f"replica {at}")


def _profiles(channel):
    profiles, token = store_grpc.ProfileServiceStub(channel), ""
    while True:
        page = profiles.ListProfiles(store.ListProfilesRequest(page_size=1000, page_token=token), timeout=DEADLINE_SECONDS, wait_for_ready=True)
        yield from page.profiles
        token = page.next_page_token
        if not token:
            return


def _operations(channel):
    operations, token = operations_pb2_grpc.OperationsStub(channel), ""
    while True:
        request = operations_pb2.ListOperationsRequest(name="operations", page_size=1000, page_token=token)
        page = operations.ListOperations(request, timeout=DEADLINE_SECONDS, wait_for_ready=True)
        yield from page.operations
        token = page.next_page_token
        if not token:
            return
