"""The service configuration for clients: gRPC takes it, and with it a client outlives any one of several servers."""

import json
import os
import re
import sys
import unittest

from deployment import text

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from contract import grpc, prediction, prediction_grpc, scenario_pb2  # noqa: E402
from sample import message, recorded, small  # noqa: E402
from stepcastd import PATIENCE_SECONDS, Server, eventually  # noqa: E402

CONFIG = text("deploy/client/service_config.json")
# Those of the methods there that change something: made twice, they may end otherwise.
WRITING = {"CreateProfile", "UploadProfile", "ImportProfile", "DeleteProfile"}
# About a second of simulation.
LONG = scenario_pb2.SimulationOptions(steps_per_worker=15000, replications=1)


class ContractTest(unittest.TestCase):
    def test_what_is_called_again_is_in_the_contract_and_only_reads(self):
        methods = {}
        for file in ("profile_service", "prediction_service"):
            contract = text(f"proto/stepcast/v1/{file}.proto")
            service = re.search(r"^service (\w+)", contract, re.M)[1]
            methods[f"stepcast.v1.{service}"] = set(re.findall(r"^  rpc (\w+)", contract, re.M))
        for config in json.loads(CONFIG)["methodConfig"]:
            for name in config["name"]:
                named = {name["method"]} if "method" in name else methods[name["service"]]
                self.assertLessEqual(named, methods[name["service"]])
                self.assertFalse(named & WRITING)

    def test_only_what_says_later_is_called_again(self):
        # RESOURCE_EXHAUSTED may be a request that is too large, today and tomorrow; which, is in the details, where gRPC does not look.
        for config in json.loads(CONFIG)["methodConfig"]:
            self.assertEqual(config["retryPolicy"]["retryableStatusCodes"], ["UNAVAILABLE"])


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


if __name__ == "__main__":
    unittest.main()
