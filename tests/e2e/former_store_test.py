"""Stores written before the contract's one break: the server of today lists them, predicts from them, and ends the operations it finds in them."""

import os
import sqlite3
import unittest

from contract import allocation_pb2, comparison_pb2, details_within, from_json, grpc, order_pb2, prediction, prediction_request, recommendation_pb2, store
from postgres import Postgres
from sample import TOP, small
from stepcastd import PATIENCE_SECONDS, Server

from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf import unknown_fields
from stepcast.v1 import job_service_pb2, scenario_pb2

State = job_service_pb2.JobMetadata
Servers = scenario_pb2.ParameterServers
Warning = prediction.Warning

# Those of tests/data/former_store, by how long ago they ended.
KEEP = ("--operation-retention-seconds", "1000000000")

# The scenario that had every field of the former contract, as it is said today.
EVERY = {
    "workers": 3,
    "parameter_servers": {
        "servers": 1,
        "parsing_overhead": {"seconds_per_byte": 2e-9, "seconds": 1e-5},
        "synchronization": "SYNCHRONOUS",
        "round_robin": {"window_bytes": 300000, "quantum_bytes": 200000},
        "turns": {"bytes": 70000},
        "transfer_order": "EXPLICIT",
        "transfer_priorities": {"pull a": 1, "pull b": 0},
    },
}


def dump(name):
    with open(os.path.join(TOP, "tests", "data", "former_store", f"{name}.sql"), encoding="utf-8") as file:
        return file.read()


class SqliteServer(Server):
    """On a data directory that it finds."""

    def start(self):
        data = os.path.join(self.folder, "data")
        if not os.path.exists(data):
            os.mkdir(data, 0o700)
            database = sqlite3.connect(os.path.join(data, "profiles.sqlite3"))
            database.executescript(dump("sqlite"))
            database.close()
        super().start()


def comparable(reply):
    """A reply without what tells one computation of it from another."""
    copy = type(reply)()
    copy.CopyFrom(reply)
    copy.simulation.ClearField("engine_seconds")
    return copy


def parts(message):
    """The message and every message in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for each in value if field.label == field.LABEL_REPEATED else [value]:
            yield from parts(each)


class FormerStore:
    """What must hold of either store. A test has `self.server`, which computes no operation until `restart` lets it."""

    def restart(self, running):
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0, self.server.errors())
        self.server.process.stdout.close()
        self.server.channel.close()
        self.server.flags = (*self.server.flags[:-1], str(running))
        self.server.start()

    def operations(self):
        """All, by their place in the store."""
        stub = operations_pb2_grpc.OperationsStub(self.server.channel)
        listed = list(stub.ListOperations(operations_pb2.ListOperationsRequest(page_size=100), timeout=PATIENCE_SECONDS).operations)
        for operation in listed:
            alone = stub.GetOperation(operations_pb2.GetOperationRequest(name=operation.name), timeout=PATIENCE_SECONDS)
            self.assertEqual(alone.SerializeToString(deterministic=True), operation.SerializeToString(deterministic=True))
        return listed

    def wait(self, name):
        stub = operations_pb2_grpc.OperationsStub(self.server.channel)
        return stub.WaitOperation(operations_pb2.WaitOperationRequest(name=name), timeout=PATIENCE_SECONDS)

    def state(self, operation):
        metadata = job_service_pb2.JobMetadata()
        self.assertTrue(operation.metadata.Unpack(metadata))
        return metadata.method, metadata.state

    def reply(self, operation, reply):
        self.assertTrue(operation.response.Unpack(reply), operation)
        for part in parts(reply):
            self.assertEqual([field.field_number for field in unknown_fields.UnknownFieldSet(part)], [], type(part))
        return reply

    def predict(self, **request):
        return self.server.predictions.PredictThroughput(from_json(prediction_request("PredictThroughput"), request), timeout=PATIENCE_SECONDS)

    def test_profiles_are_listed_read_and_predicted_from(self):
        listed = self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles
        self.assertEqual([profile.name for profile in listed], ["profiles/small", "profiles/windowed"])
        self.assertEqual(dict(listed[1].labels), {"team": "vision"})
        whole = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/windowed", view=store.FULL))
        self.assertEqual((len(whole.operations), whole.platform.window_bytes), (6, 65536))
        stored = self.predict(profile="profiles/small", worker_counts=[1, 2])
        self.assertEqual(stored.predictions, self.predict(inline_profile=small(), worker_counts=[1, 2]).predictions)
        [windowed] = self.predict(profile="profiles/windowed").predictions
        self.assertEqual(windowed.scenario.parameter_servers.window.bytes, 65536)

    def test_operations_are_read_in_every_state(self):
        self.assertEqual(
            [self.state(operation) for operation in self.operations()],
            [
                ("PredictThroughput", State.SUCCEEDED),
                ("RecommendWorkers", State.SUCCEEDED),
                ("OptimizeOrder", State.SUCCEEDED),
                ("AllocateWorkers", State.SUCCEEDED),
                ("CompareModels", State.SUCCEEDED),
                ("PredictThroughput", State.FAILED),
                ("PredictThroughput", State.RUNNING),
                ("PredictThroughput", State.JOB_CANCELLED),
                ("PredictThroughput", State.QUEUED),
                ("RecommendWorkers", State.QUEUED),
            ],
        )

    def test_replies_are_of_todays_contract(self):
        predicted, recommended, ordered, allocated, compared, failed, _, cancelled, _, _ = self.operations()
        first, whole, default = self.reply(predicted, prediction.PredictThroughputResponse()).predictions
        self.assertEqual(first.scenario, from_json(scenario_pb2.Scenario(), {**EVERY, "bandwidth_bytes_per_second": 1e8}))
        self.assertEqual([one.reason for one in first.warnings], [Warning.NOTHING_RANDOM])
        self.assertTrue(first.warnings[0].message.startswith("nothing is random here (one recorded step"))
        self.assertEqual([one.reason for one in whole.warnings], [Warning.NOT_STEADY])
        self.assertTrue(whole.warnings[0].message.startswith("the start still shows: "))
        self.assertEqual(whole.scenario.parameter_servers.WhichOneof("multiplexing"), "whole_stream")
        self.assertEqual(default.scenario.parameter_servers.window.bytes, 65536)
        self.assertEqual(default.scenario.parameter_servers.WhichOneof("link_sharing"), "equal")
        self.assertGreater(default.examples_per_second, 0)
        reply = self.reply(recommended, recommendation_pb2.RecommendWorkersResponse())
        self.assertEqual({row.scenario.parameter_servers.synchronization for row in [reply.prediction, *reply.frontier]}, {Servers.SYNCHRONOUS})
        self.assertEqual({one.reason for row in reply.frontier for one in row.warnings}, {Warning.NOTHING_RANDOM})
        self.assertEqual(self.reply(ordered, order_pb2.OptimizeOrderResponse()).orders[0].method, order_pb2.TAC)
        self.assertEqual(self.reply(allocated, allocation_pb2.AllocateWorkersResponse()).allocations[0].workers, 3)
        [comparison] = self.reply(compared, comparison_pb2.CompareModelsResponse()).comparisons
        self.assertEqual([one.reason for one in comparison.prediction.warnings], [Warning.NOT_STEADY])
        self.assertEqual(details_within(failed.error).reason, "SIMULATION_TOO_SHORT")
        self.assertEqual(details_within(cancelled.error).code, grpc.StatusCode.CANCELLED)

    def test_what_was_queued_or_running_is_computed_as_it_was_asked_for(self):
        names = [operation.name for operation in self.operations()]
        self.restart(running=1)
        queued = self.reply(self.wait(names[8]), prediction.PredictThroughputResponse())
        every, windowed = queued.predictions
        self.assertEqual(every.scenario, from_json(scenario_pb2.Scenario(), {**EVERY, "bandwidth_bytes_per_second": 1e8}))
        self.assertEqual(windowed.scenario.parameter_servers.synchronization, Servers.SYNCHRONOUS)
        self.assertEqual(windowed.scenario.parameter_servers.window.bytes, 500000)
        asked = [EVERY, {"workers": 2, "parameter_servers": {"synchronization": "SYNCHRONOUS", "window": {"bytes": 500000}}}]
        expected = self.predict(profile="profiles/windowed", scenarios=asked, options={"steps_per_worker": 60})
        self.assertEqual(comparable(queued), comparable(expected))
        # They are of use: without them the answer is another.
        for left_out in ({}, {"synchronization": "SYNCHRONOUS"}, {"window": {"bytes": 500000}}):
            scenario = {"workers": 2, "parameter_servers": left_out}
            [other] = self.predict(profile="profiles/windowed", scenarios=[scenario], options={"steps_per_worker": 60}).predictions
            self.assertNotAlmostEqual(other.steps_per_second / windowed.steps_per_second, 1, delta=1e-3, msg=left_out)
        recommended = self.reply(self.wait(names[9]), recommendation_pb2.RecommendWorkersResponse())
        of_row = recommended.prediction.scenario.parameter_servers
        self.assertEqual((of_row.synchronization, of_row.WhichOneof("multiplexing"), of_row.WhichOneof("link_sharing")), (Servers.SYNCHRONOUS, "whole_stream", "first_come"))
        running = self.wait(names[6])
        [row] = self.reply(running, prediction.PredictThroughputResponse()).predictions
        self.assertEqual((row.scenario.workers, row.scenario.parameter_servers.synchronization, row.replications), (64, Servers.SYNCHRONOUS, 4))
        self.assertEqual({self.state(operation)[1] for operation in self.operations()}, {State.SUCCEEDED, State.FAILED, State.JOB_CANCELLED})


class SqliteTest(FormerStore, unittest.TestCase):
    def setUp(self):
        self.server = SqliteServer(*KEEP, "--max-running-operations", "0")
        self.addCleanup(lambda: self.assertEqual(self.server.close(), 0))


class PostgresTest(FormerStore, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.close)

    def setUp(self):
        conninfo = self.postgres.new_database()
        self.postgres.run(conninfo.rsplit("=", 1)[1], dump("postgres"))
        self.server = Server("--store", "postgres", "--postgres", conninfo, *KEEP, "--max-running-operations", "0")
        self.addCleanup(lambda: self.assertEqual(self.server.close(), 0))


if __name__ == "__main__":
    unittest.main()
