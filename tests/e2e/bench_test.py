"""`stepcast bench` against the real server: its counts are the server's own, and its exit status can be relied on."""

import json
import os
import subprocess
import unittest

from contract import store
from sample import message, recorded
from stepcastd import PATIENCE_SECONDS, Server, ServerTest, eventually

# However busy the machine is, no call is late.
SHORT = ["--duration", "200ms", "--warmup", "50ms", "--steps", "60", "--deadline", f"{PATIENCE_SECONDS}s"]


def bench(address, *flags):
    """The finished process of `stepcast bench`; its output is JSON."""
    command = [os.environ["STEPCAST"], "--server", address, "bench", "--output", "json", *flags]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def all_calls(report, code="OK"):
    return sum(int(step["allCodes"].get(code, 0)) for step in report["steps"])


class BenchTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.profile = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()), profile_id="job")).name

    def report(self, *flags):
        done = bench(self.server.address, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def handled(self, method, code="OK"):
        return self.server.metric_after_calls("grpc_server_handled_total", grpc_method=method, grpc_code=code)

    def test_a_closed_loop_counts_what_the_server_counts(self):
        report = self.report(self.profile, "--concurrency", "1,8", *SHORT)
        self.assertEqual([step["concurrency"] for step in report["steps"]], [1, 8])
        self.assertEqual(all_calls(report) + int(report["checkCalls"]), self.handled("PredictThroughput"))
        for step in report["steps"]:
            self.assertEqual(int(step["calls"]), int(step["latencyMs"]["count"]))
            self.assertAlmostEqual(step["goodput"], int(step["calls"]) / report["durationSeconds"])
            latencies = [step["latencyMs"][name] for name in ("p50", "p90", "p95", "p99", "p99.9", "max")]
            self.assertEqual(latencies, sorted(latencies))

    def test_an_open_loop_makes_every_call_of_its_schedule(self):
        report = self.report(self.profile, "--rate", "100,200", "--connections", "3", *SHORT)
        self.assertEqual([int(step["calls"]) for step in report["steps"]], [20, 40])
        self.assertEqual(all_calls(report), 25 + 50)
        self.assertEqual(all_calls(report) + int(report["checkCalls"]), self.handled("PredictThroughput"))

    def test_mixed_calls_every_method(self):
        report = self.report(self.profile, "--method", "mixed", "--rate", "100", "--connections", "2", "--order", "random", *SHORT)
        self.assertEqual(report["checkCalls"], "3")
        methods = ("PredictThroughput", "RecommendWorkers", "OptimizeOrder")
        self.assertEqual([self.handled(method) for method in methods], [21 + 1, 2 + 1, 2 + 1])
        self.assertEqual(all_calls(report), 25)

    def test_different_questions_are_computed_and_equal_ones_are_not(self):
        computed = lambda: self.server.metric("stepcast_predictions_total", method="PredictThroughput", code="OK")
        cheap = ["--rate", "100", "--replications", "1", *SHORT]
        self.report(self.profile, *cheap)
        self.assertEqual(computed(), 1)
        self.report(self.profile, *cheap, "--vary", "1000", "--seed", "500")
        self.assertEqual(computed(), 1 + 25)

    def test_a_target_that_is_missed_is_status_1_and_said(self):
        flags = [self.profile, "--concurrency", "1", *SHORT]
        # Long enough for a call to begin and end on a machine that does much else.
        done = bench(self.server.address, *flags[:3], "--duration", "3s", "--max-p99-ms", "60000", "--min-goodput", "0.001")
        self.assertEqual(done.returncode, 0, done.stderr)
        for target in (["--max-p99-ms", "0.000001"], ["--min-goodput", "100000000"]):
            done = bench(self.server.address, *flags, *target)
            self.assertEqual(done.returncode, 1, target)
            self.assertIn("missed: 1 at once: ", done.stderr)
            self.assertEqual(len(json.loads(done.stdout)["missed"]), 1)

    def test_wrong_usage_is_status_2(self):
        for flags in (
            [],
            ["--method", "ping", self.profile],
            ["--method", "nothing", self.profile],
            ["--concurrency", "0", self.profile],
            ["--concurrency", "1", "--rate", "1", self.profile],
            ["--rate", "-1", self.profile],
            ["--duration", "0", self.profile],
            ["--duration", "2h", self.profile],
            ["--vary", "0", self.profile],
            ["--connections", "65", self.profile],
            ["--deadline", "soon", self.profile],
            ["--local", self.profile],
            ["--max-p99-ms", "-1", self.profile],
            ["no such profile"],
        ):
            self.assertEqual(bench(self.server.address, *flags).returncode, 2, flags)
        self.assertEqual(self.handled("PredictThroughput"), 0)

    def test_a_profile_that_is_not_there_is_status_1_and_said(self):
        done = bench(self.server.address, "profiles/nobody", *SHORT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("PROFILE_NOT_FOUND", done.stderr)


class BusyTest(ServerTest):
    flags = ["--threads", "1", "--queue-max", "0"]

    def test_calls_that_are_refused_are_counted_by_code(self):
        self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()), profile_id="job"))
        # Cheap, or a slow machine answers none of them in time.
        cheap = ["--steps", "60", "--replications", "1"]
        done = bench(self.server.address, "job", *cheap, "--concurrency", "64", "--vary", "1000000", "--duration", "300ms", "--warmup", "0")
        self.assertNotEqual(done.stdout, "", done.stderr)
        report = json.loads(done.stdout)
        handled = lambda code: self.server.metric_after_calls("grpc_server_handled_total", grpc_method="PredictThroughput", grpc_code=code)
        self.assertGreater(handled("ResourceExhausted"), 0)
        self.assertEqual(all_calls(report, "RESOURCE_EXHAUSTED"), handled("ResourceExhausted"))
        self.assertEqual(all_calls(report) + int(report["checkCalls"]), handled("OK"))
        self.assertEqual(int(report["steps"][0]["refusalMs"]["count"]), int(report["steps"][0]["codes"]["RESOURCE_EXHAUSTED"]))


class ServerGoneTest(unittest.TestCase):
    def test_a_server_that_dies_under_load_is_unavailable_and_no_hang(self):
        server = Server()
        self.addCleanup(server.close)
        server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()), profile_id="job"))
        command = [os.environ["STEPCAST"], "--server", server.address, "bench", "job", "--output", "json", "--concurrency", "8", "--duration", "1h", "--steps", "60"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        eventually(lambda: server.metric("grpc_server_handled_total", grpc_method="PredictThroughput", grpc_code="OK") >= 100, "a hundred calls are answered")
        server.kill()
        out, errors = process.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the server is gone", errors)
        report = json.loads(out)
        self.assertTrue(report["steps"][0]["serverGone"])
        self.assertGreaterEqual(all_calls(report, "UNAVAILABLE"), 1000)
        self.assertGreaterEqual(all_calls(report), 99)

    def test_no_server_at_all_is_status_1(self):
        server = Server()
        address = server.address
        server.close()
        done = bench(address, "job", *SHORT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNAVAILABLE", done.stderr)


if __name__ == "__main__":
    unittest.main()
