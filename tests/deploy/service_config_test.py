"""The service configuration for clients: gRPC takes it, and with it a client outlives any one of several servers."""

import collections
import glob
import json
import os
import re
import sys
import threading
import unittest

from deployment import ROOT, text

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from contract import grpc, prediction, prediction_grpc, scenario_pb2, store, store_grpc  # noqa: E402
from sample import message, recorded, small  # noqa: E402
from stepcastd import PATIENCE_SECONDS, Server, eventually  # noqa: E402

CONFIG = text("deploy/client/service_config.json")
# Methods that change something: made twice, they may end otherwise.
WRITING = {
    *("CreateProfile", "UpdateProfile", "UploadProfile", "ImportProfile", "DeleteProfile"),
    *("StartJob", "CancelOperation", "DeleteOperation", "SetLogLevel"),
}
# About a second of simulation.
LONG = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=15000, replications=1)


class ContractTest(unittest.TestCase):
    def test_what_only_reads_is_called_again_and_nothing_else(self):
        methods = {}
        for file in (*glob.glob(os.path.join(ROOT, "proto/stepcast/v1/*_service.proto")), "proto/google/longrunning/operations.proto"):
            contract = text(file)
            service = f"{re.search(r'^package ([a-z0-9.]+);', contract, re.M)[1]}.{re.search(r'^service (.+?) ', contract, re.M)[1]}"
            methods[service] = {f"{service}/{method}" for method in re.findall(r"^  rpc (\w+)", contract, re.M)}
        again = set()
        for name in (name for config in json.loads(CONFIG)["methodConfig"] for name in config["name"]):
            again |= {f"{name['service']}/{name['method']}"} if "method" in name else methods[name["service"]]
        self.assertEqual(again, {method for each in methods.values() for method in each if method.rpartition("/")[2] not in WRITING})

    def test_grpc_makes_as_many_attempts_as_are_asked_for(self):
        # It takes more than five for five.
        self.assertEqual([config["retryPolicy"]["maxAttempts"] for config in json.loads(CONFIG)["methodConfig"]], [5])

    def test_only_what_says_later_is_called_again(self):
        # CANCELLED, where the caller did not cancel, is gRPC's own word for a call that reached a server in the moment of its shutdown.
        # RESOURCE_EXHAUSTED may be a request that is too large, today and tomorrow; which, is in the details, where gRPC does not look.
        for config in json.loads(CONFIG)["methodConfig"]:
            self.assertEqual(config["retryPolicy"]["retryableStatusCodes"], ["UNAVAILABLE", "CANCELLED"])


class TwoServersTest(unittest.TestCase):
    def setUp(self):
        self.servers = [Server("--store", "memory", "--drain-delay", "600") for _ in range(2)]
        for server in self.servers:
            self.addCleanup(self.end, server)
        addresses = ",".join(server.address for server in self.servers)
        channel = grpc.insecure_channel(f"ipv4:{addresses}", options=[("grpc.service_config", CONFIG)])
        self.addCleanup(channel.close)
        self.client = prediction_grpc.PredictionServiceStub(channel)

    def end(self, server):
        # One that is asked to stop would wait for its delay.
        if server.process.poll() is None:
            server.kill()
        server.close()

    def predict(self, profile, **options):
        request = prediction.PredictThroughputRequest(inline_profile=message(profile), worker_counts=[16], **options)
        return self.client.PredictThroughput.future(request, timeout=PATIENCE_SECONDS)

    def answered(self, server):
        return server.metric("grpc_server_handled_total", grpc_method="PredictThroughput", grpc_code="OK")

    def spread(self):
        """Calls until both have answered one: from then on they take turns."""

        def both():
            self.predict(small()).result()
            return all(self.answered(server) > 0 for server in self.servers)

        eventually(both, "both servers are called")

    def test_calls_of_a_server_that_dies_are_answered_by_the_other(self):
        self.spread()
        calls = [self.predict(recorded(), options=LONG) for _ in range(2)]
        dying, other = self.servers
        eventually(lambda: dying.metric("stepcast_jobs_running", pool="simulation") == 1, "one call runs on each")
        dying.kill()
        first, second = (call.result().predictions for call in calls)
        self.assertEqual(first, second)

    def test_a_server_that_is_about_to_stop_is_called_no_more(self):
        self.spread()
        leaving, _ = self.servers
        leaving.terminate()

        def passed_over():
            before = self.answered(leaving)
            for _ in range(4):
                self.predict(small()).result()
            return self.answered(leaving) == before

        eventually(passed_over, "its health is heeded")


class SuddenStopTest(unittest.TestCase):
    """Servers without a drain delay: calls go on coming to one that shuts down."""

    callers = 8
    stops = 5

    def test_calls_that_reach_a_server_in_the_moment_of_its_shutdown_are_answered_by_the_other(self):
        other = Server("--store", "memory")
        self.addCleanup(other.close)
        for _ in range(self.stops):
            leaving = Server("--store", "memory")
            self.addCleanup(leaving.close)
            errors, counts, over = [], collections.Counter(), threading.Event()
            callers = [threading.Thread(target=self.ask, args=(number, (leaving, other), over, counts, errors)) for number in range(self.callers)]
            for caller in callers:
                caller.start()
            eventually(lambda: errors or len(counts) == self.callers, "all callers are served")
            leaving.terminate()
            leaving.wait()
            over.set()
            for caller in callers:
                caller.join()
            self.assertEqual(errors, [])

    def ask(self, number, servers, over, counts, errors):
        addresses = ",".join(server.address for server in servers)
        channel = grpc.insecure_channel(f"ipv4:{addresses}", options=[("grpc.service_config", CONFIG), ("grpc.use_local_subchannel_pool", 1)])
        profiles = store_grpc.ProfileServiceStub(channel)
        while not over.is_set():
            try:
                profiles.ListProfiles(store.ListProfilesRequest(), timeout=PATIENCE_SECONDS)
                counts[number] += 1
            except grpc.RpcError as error:
                errors.append(f"{error.code().name}: {error.details()}")
        channel.close()


if __name__ == "__main__":
    unittest.main()
