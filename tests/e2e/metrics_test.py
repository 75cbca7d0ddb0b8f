"""What a Prometheus server would scrape."""

import subprocess
import unittest

from contract import grpc, prediction, store
from sample import message, small
from stepcastd import ServerTest, samples

METHODS = {
    "stepcast.v1.ProfileService": {
        "CreateProfile": "unary",
        "UpdateProfile": "unary",
        "UploadProfile": "client_stream",
        "ImportProfile": "client_stream",
        "GetProfile": "unary",
        "ListProfiles": "unary",
        "DeleteProfile": "unary",
    },
    "stepcast.v1.PredictionService": {
        "PredictThroughput": "unary",
        "RecommendWorkers": "unary",
        "OptimizeOrder": "unary",
        "AllocateWorkers": "unary",
        "CompareModels": "unary",
        "DiagnoseJob": "unary",
        "OptimizeJob": "unary",
        "GenerateTrace": "server_stream",
        "FitParsingOverhead": "unary",
        "FitCollectives": "unary",
        "FitContention": "unary",
        "RecommendLayout": "unary",
        "FitRuns": "unary",
    },
    "stepcast.v1.JobService": {"StartJob": "unary"},
    "google.longrunning.Operations": {
        "ListOperations": "unary",
        "GetOperation": "unary",
        "DeleteOperation": "unary",
        "CancelOperation": "unary",
        "WaitOperation": "unary",
    },
    "grpc.health.v1.Health": {"Check": "unary", "Watch": "server_stream"},
}


class MetricsTest(ServerTest):
    def scrape(self):
        status, text = self.server.http("/metrics")
        self.assertEqual(status, 200)
        return text

    def test_promtool_finds_nothing_to_complain_of(self):
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small())))
        done = subprocess.run(["promtool", "check", "metrics"], input=self.scrape(), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_every_method_has_its_series_at_zero_before_the_first_call(self):
        started = {
            (labels["grpc_service"], labels["grpc_method"], labels["grpc_type"]): value
            for name, labels, value in samples(self.scrape())
            if name == "grpc_server_started_total"
        }
        for service, methods in METHODS.items():
            for method, kind in methods.items():
                self.assertEqual(started.get((service, method, kind)), "0", (service, method, kind))

    def test_calls_are_counted_under_their_code(self):
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small())))
        with self.assertRaises(grpc.RpcError):
            self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/nobody"))
        self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(inline_profile=message(small())))
        handled = {"grpc_service": "stepcast.v1.ProfileService"}
        self.assertEqual(self.server.metric_after_calls("grpc_server_handled_total", **handled, grpc_method="CreateProfile", grpc_code="OK"), 1)
        self.assertEqual(self.server.metric_after_calls("grpc_server_handled_total", **handled, grpc_method="GetProfile", grpc_code="NotFound"), 1)
        self.assertEqual(self.server.metric_after_calls("grpc_server_handling_seconds_count", grpc_method="PredictThroughput"), 1)
        self.assertGreater(self.server.metric("stepcast_simulated_operations_total"), 0)

    def test_a_method_that_a_client_invents_adds_no_series(self):
        before = len(list(samples(self.scrape())))
        for invented in ("/stepcast.v1.ProfileService/Nothing", "/a.b.C/D", "/x/" + "y" * 1000):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.channel.unary_unary(invented)(b"")
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        text = self.scrape()
        self.assertNotIn("Nothing", text)
        self.assertNotIn("yyy", text)
        # At most one series of each kind for all of them together.
        self.assertLess(len(list(samples(text))) - before, 30)


if __name__ == "__main__":
    unittest.main()
