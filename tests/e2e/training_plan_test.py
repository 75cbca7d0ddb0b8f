"""Time and money of a training, with and without failures, asked by grpcio and by the command line."""

import json
import math
import os
import subprocess
import tempfile
import unittest

from contract import details_of, from_json, grpc, prediction, recommendation_pb2
from stepcastd import ServerTest

MILLISECOND = 1000000


def training():
    """A step of 40 ms of one computation, of 32 examples, and an all-reduce of 1 kB."""
    operations = [
        {"name": "compute", "resource": "WORKER"},
        {"name": "gradient", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 1000, "waiting_for": [0]},
    ]
    end = 40 * MILLISECOND
    return {"batch_size": 32, "platform": {"bandwidth_bytes_per_second": 1e9}, "operations": operations, "steps": [{"start_ns": [0, end], "end_ns": [end, end]}]}


FAILURES = {"worker_mean_time_between": "3600000s", "checkpoint_time": "60s", "restart_time": "300s"}


def hours(duration):
    return (duration.seconds + duration.nanos / 1e9) / 3600


class TrainingPlanTest(ServerTest):
    def forecast(self, plan, workers=1):
        request = {"inline_profile": training(), "worker_counts": [workers], "options": {"step_variation": "AS_RECORDED"}, "plan": plan}
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer, answer.forecast

    def test_a_training_takes_its_examples_over_the_throughput_and_costs_its_machines(self):
        answer, forecast = self.forecast({"examples": 2880000, "worker_hour": 2.5, "currency_code": "USD"})
        self.assertAlmostEqual(hours(forecast.duration), 2880000 / (32 / 0.040) / 3600, places=6)  # an hour
        self.assertAlmostEqual(forecast.cost, 2.5, places=5)
        self.assertEqual(forecast.currency_code, "USD")
        self.assertAlmostEqual(hours(forecast.shortest), 2880000 / answer.run_interval.upper / 3600, places=6)
        self.assertFalse(forecast.HasField("expected_duration"))

    def test_failures_lengthen_it_as_dalys_formula_says(self):
        _, plain = self.forecast({"examples": 10**11, "worker_hour": 1}, workers=64)
        _, forecast = self.forecast({"examples": 10**11, "worker_hour": 1, "failures": FAILURES}, workers=64)
        between, write, restart = 3600000 / 64, 60, 300
        ratio = write / (2 * between)
        interval = math.sqrt(2 * write * between) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - write
        work = 3600 * hours(plain.duration)
        checkpoints = math.ceil(work / interval) - 1  # none follows the last interval
        attempted = [between * math.exp(restart / between) * math.expm1(length / between) for length in (interval + write, work - checkpoints * interval)]
        expected = (checkpoints * attempted[0] + attempted[1]) / 3600
        self.assertAlmostEqual(hours(forecast.checkpoint_interval), interval / 3600, places=6)
        self.assertAlmostEqual(hours(forecast.expected_duration) / expected, 1, places=6)
        self.assertAlmostEqual(forecast.expected_failures, expected * 3600 / between, delta=1e-3)
        self.assertAlmostEqual(forecast.expected_cost, 64 * hours(forecast.expected_duration), delta=1e-2)

    def test_without_a_plan_nothing_is_told(self):
        answer, _ = self.forecast(None)
        self.assertFalse(answer.HasField("forecast"))

    def test_bad_plans_are_refused_by_field(self):
        cases = {
            "plan.examples": {},
            "plan.worker_hour": {"examples": 1, "worker_hour": -1},
            "plan.node_hour": {"examples": 1, "node_hour": "NaN"},
            "plan.currency_code": {"examples": 1, "currency_code": "X" * 17},
            "plan.failures.worker_mean_time_between": {"examples": 1, "failures": {"checkpoint_time": "1s"}},
            "plan.failures.checkpoint_time": {"examples": 1, "failures": {"worker_mean_time_between": "1s"}},
            "plan.failures.restart_time": {"examples": 1, "failures": {**FAILURES, "restart_time": "-1s"}},
            "plan.failures.checkpoint_interval": {"examples": 1, "failures": {**FAILURES, "checkpoint_interval": "0s"}},
        }
        for field, plan in cases.items():
            with self.subTest(field=field), self.assertRaises(grpc.RpcError) as caught:
                self.forecast(plan)
            self.assertIn(field, details_of(caught.exception).violations)

    def test_recommendations_keep_deadlines_with_failures(self):
        request = {
            "inline_profile": training(), "objective": "MIN_TIME", "options": {"step_variation": "AS_RECORDED"},
            "constraints": {"max_workers": 2, "min_workers": 2, "examples": 10**10},
        }
        ask = lambda: self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), request))  # noqa: E731
        plain = hours(ask().duration)
        request["failures"] = {"worker_mean_time_between": "36000s", "checkpoint_time": "60s"}
        failing = ask()
        self.assertGreater(hours(failing.duration), 1.05 * plain)
        # What they are and what they cost is told, as of a prediction.
        forecast = failing.prediction.forecast
        self.assertAlmostEqual(hours(forecast.duration), plain, delta=1e-6 * plain)
        self.assertAlmostEqual(hours(forecast.expected_duration), hours(failing.duration), delta=1e-6 * plain)
        self.assertAlmostEqual(forecast.expected_failures, hours(failing.duration) * 2 / 10, delta=1e-3)
        self.assertIn("what failures take included", failing.reason)
        self.assertTrue(forecast.HasField("checkpoint_interval"))
        request["constraints"]["deadline"] = f"{round(3600 * 1.02 * plain)}s"
        self.assertIn("deadline", ask().infeasible_reason)
        del request["failures"]
        self.assertEqual(ask().infeasible_reason, "")

    def test_the_command_line_prints_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.json")
            with open(path, "w") as file:
                json.dump(training(), file)
            flags = ["--workers", "1,2", "--epochs", "10", "--dataset", "288000", "--worker-hour", "2.5", "--currency", "EUR", "--worker-mtbf", "1000h", "--checkpoint-time", "60s"]
            done = subprocess.run([os.environ["STEPCAST"], "predict", path, "--as-recorded", *flags], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("training takes", done.stdout)
            self.assertIn("2.500 EUR", done.stdout)
            self.assertIn("checkpoint every", done.stdout)
            done = subprocess.run([os.environ["STEPCAST"], "predict", path, "--worker-hour", "2"], capture_output=True, text=True)
            self.assertIn("--examples", done.stderr)


if __name__ == "__main__":
    unittest.main()
