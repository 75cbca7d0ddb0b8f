"""A parsing overhead and a link fitted to measurements, as a client that nobody here wrote asks for them."""

import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import unittest

from contract import calibration_pb2, prediction
from google.protobuf import json_format
from sample import message, small
from stepcastd import ServerTest

SECONDS_PER_BYTE, SECONDS = 2.5e-10, 40e-6


def measured(seed, count=300, outliers=0.15):
    """Tensors of 256 bytes to 64 MiB; a share of them took up to 30 times as long, the others 5 % more or less."""
    generator = random.Random(seed)
    request = calibration_pb2.FitParsingOverheadRequest()
    for _ in range(count):
        size = int(256 * 2 ** (18 * generator.random()))
        seconds = (SECONDS_PER_BYTE * size + SECONDS) * generator.gauss(1, 0.05)
        if generator.random() < outliers:
            seconds *= generator.uniform(3, 30)
        request.measurements.add(size_bytes=size, seconds=seconds)
    return request


class CalibrationTest(ServerTest):
    def test_the_line_is_found_among_outliers(self):
        for seed in range(5):
            with self.subTest(seed=seed):
                reply = self.server.predictions.FitParsingOverhead(measured(seed))
                self.assertAlmostEqual(reply.seconds_per_byte / SECONDS_PER_BYTE, 1, delta=0.05)
                self.assertAlmostEqual(reply.seconds / SECONDS, 1, delta=0.05)
                self.assertLess(reply.seconds_per_byte_interval.lower, reply.seconds_per_byte)
                self.assertGreater(reply.seconds_per_byte_interval.upper, reply.seconds_per_byte)
                self.assertEqual(reply.seconds_interval.level, 0.95)
                self.assertAlmostEqual(reply.relative_residual, 0.04, delta=0.02)
                self.assertGreater(reply.outliers, 20)
                self.assertGreater(abs(reply.least_squares.seconds_per_byte / SECONDS_PER_BYTE - 1), 0.3)
                self.assertTrue(reply.engine_version)

    def test_equal_requests_have_equal_answers(self):
        first, second = (self.server.predictions.FitParsingOverhead(measured(7)) for _ in range(2))
        self.assertEqual(first, second)

    def test_an_exact_line_is_itself_at_any_level(self):
        request = calibration_pb2.FitParsingOverheadRequest(confidence_level=0.5)
        for size in (0, 1000, 5000):
            request.measurements.add(size_bytes=size, seconds=1e-9 * size + 1e-6)
        reply = self.server.predictions.FitParsingOverhead(request)
        self.assertAlmostEqual(reply.seconds_per_byte * 1e9, 1)
        self.assertAlmostEqual(reply.seconds * 1e6, 1)
        self.assertEqual(reply.outliers, 0)
        self.assertEqual(reply.seconds_interval.level, 0.5)


REAL = os.path.join(os.path.dirname(__file__), "..", "data", "ddp", "allreduce.json")


def ring_seconds(kind, workers, size, link):
    """What the contract says of RING, written here once more."""
    latency, bandwidth, addition = link
    rounds = (workers - 1) * (2 if kind == "ALL_REDUCE" else 1)
    added = 0 if kind == "ALL_GATHER" else (workers - 1) / workers * size * addition
    return rounds * (latency + size / (workers * bandwidth)) + added


def benchmark(seed, link, kinds=("ALL_REDUCE", "ALL_GATHER"), outliers=0.15):
    """1 KiB to 64 MiB among 2, 4 and 8 workers, 2 % more or less; a share took up to 30 times as long."""
    generator = random.Random(seed)
    rows = []
    for workers in (2, 4, 8):
        for kind in kinds:
            for at in range(16):
                size = 1024 << at
                seconds = ring_seconds(kind, workers, size, link) * generator.gauss(1, 0.02)
                if generator.random() < outliers:
                    seconds *= generator.uniform(3, 30)
                rows.append({"kind": kind, "workers": workers, "size_bytes": size, "seconds": seconds})
    return rows


def asked(rows, **fields):
    request = calibration_pb2.FitCollectivesRequest(**fields)
    for row in rows:
        request.measurements.add(**row)
    return request


class CollectivesTest(ServerTest):
    LINK = (20e-6, 1.2e9, 4e-10)

    def near(self, value, truth, interval, share):
        self.assertAlmostEqual(value / truth, 1, delta=share)
        self.assertLess(interval.lower, value)
        self.assertGreater(interval.upper, value)
        self.assertEqual(interval.level, 0.95)

    def test_the_link_is_found_among_outliers(self):
        for seed in range(5):
            with self.subTest(seed=seed):
                reply = self.server.predictions.FitCollectives(asked(benchmark(seed, self.LINK)))
                self.near(reply.latency_seconds, self.LINK[0], reply.latency_interval, 0.03)
                self.near(reply.bandwidth_bytes_per_second, self.LINK[1], reply.bandwidth_interval, 0.03)
                self.near(reply.reduction_seconds_per_byte, self.LINK[2], reply.reduction_interval, 0.2)
                self.assertAlmostEqual(reply.relative_residual, 0.015, delta=0.01)
                self.assertGreater(reply.outliers, 5)
                self.assertEqual([row.workers for row in reply.by_workers], [2, 4, 8])
                self.assertEqual(sum(row.outliers for row in reply.by_workers), reply.outliers)
                self.assertEqual(sum(row.measurements for row in reply.by_workers), 96)
                self.assertFalse(reply.warnings)
                self.assertTrue(reply.engine_version)

    def test_equal_requests_have_equal_answers(self):
        first, second = (self.server.predictions.FitCollectives(asked(benchmark(7, self.LINK))) for _ in range(2))
        self.assertEqual(first, second)

    def test_what_all_reduces_do_not_tell_is_nothing_and_is_named(self):
        reply = self.server.predictions.FitCollectives(asked(benchmark(1, self.LINK, kinds=("ALL_REDUCE",), outliers=0), confidence_level=0.5))
        self.assertEqual(reply.reduction_seconds_per_byte, 0)
        self.assertFalse(reply.HasField("reduction_interval"))
        self.assertEqual(reply.bandwidth_interval.level, 0.5)
        reasons = calibration_pb2.FitCollectivesResponse.Warning
        self.assertEqual([warning.reason for warning in reply.warnings], [reasons.REDUCTION_NOT_TOLD])
        self.assertAlmostEqual(1e9 / reply.bandwidth_bytes_per_second, 1e9 / self.LINK[1] + 1e9 * self.LINK[2] / 2, delta=0.02)

    def test_the_scenario_that_comes_back_is_one_to_ask_about(self):
        reply = self.server.predictions.FitCollectives(asked(benchmark(2, self.LINK)))
        profile = small()
        for operation in profile["operations"]:
            if operation["resource"] in ("DOWNLINK", "UPLINK", "PARAMETER_SERVER"):
                operation.setdefault("parameter", "weights")
        question = prediction.PredictThroughputRequest(inline_profile=message(profile), worker_counts=[4], scenario=reply.scenario)
        resolved = self.server.predictions.PredictThroughput(question).predictions[0].scenario
        self.assertEqual(resolved.bandwidth_bytes_per_second, reply.bandwidth_bytes_per_second)
        self.assertEqual(resolved.all_reduce.latency_seconds, reply.latency_seconds)
        self.assertEqual(resolved.all_reduce.reduction_seconds_per_byte, reply.reduction_seconds_per_byte)

    def test_real_all_reduces_of_gloo_tell_the_rate_of_their_links(self):
        with open(REAL, encoding="utf-8") as file:
            real = [row for row in json.load(file) if row["at_once"] == 1 and row["bytes"] >= 1 << 18]
        for rate, payload in ((1_000_000_000, 119.55e6), (500_000_000, 59.78e6)):
            rows = [{"kind": "ALL_REDUCE", "workers": row["workers"], "size_bytes": row["bytes"], "seconds": row["median"]} for row in real if row["rate"] == rate]
            for algorithm in ("RING", "GLOO"):
                with self.subTest(rate=rate, algorithm=algorithm):
                    reply = self.server.predictions.FitCollectives(asked(rows, algorithm=algorithm))
                    self.assertAlmostEqual(reply.bandwidth_bytes_per_second / payload, 1, delta=0.06)
                    self.assertLess(reply.relative_residual, 0.04)
                    self.assertLess(statistics.mean(abs(row.bias) for row in reply.by_workers), 0.06)

    def test_points_that_follow_no_line_come_back_as_they_are(self):
        rows = benchmark(4, self.LINK, outliers=0)
        for row in rows:
            # As where a library takes another protocol from some size on, and again another.
            row["seconds"] *= 5 if 1 << 14 < row["size_bytes"] < 1 << 22 else 1
        reply = self.server.predictions.FitCollectives(asked(rows))
        reasons = calibration_pb2.FitCollectivesResponse.Warning
        self.assertIn(reasons.POINTS_FOLLOW_NO_LINE, [warning.reason for warning in reply.warnings])
        job = reply.scenario.all_reduce
        self.assertEqual(job.algorithm, job.MEASURED)
        self.assertFalse(job.HasField("latency_seconds"))
        key = lambda each: (each.kind, each.workers, each.size_bytes)
        self.assertEqual(sorted(map(key, job.measured)), sorted(set(map(key, asked(rows).measurements))))
        with tempfile.TemporaryDirectory(prefix="stepcast-fit-") as folder:
            path, profile = os.path.join(folder, "benchmark.json"), os.path.join(folder, "layers.csv")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(rows, file)
            fitted = subprocess.run([os.environ["STEPCAST"], "profile", "fit-collectives", path], capture_output=True, text=True, check=False)
            self.assertEqual(fitted.returncode, 0, fitted.stderr)
            self.assertIn("use it with --measured FILE", fitted.stdout)
            with open(profile, "w", encoding="utf-8") as file:
                file.write("name,forward_ms,backward_ms,parameter_bytes\na,1,2,1000000\n")
            saved = os.path.join(folder, "layers.json")
            imported = subprocess.run([os.environ["STEPCAST"], "profile", "import", profile, "--batch-size", "4", "--bandwidth", "1Gbit/s", "--save", saved], capture_output=True, text=True, check=False)
            self.assertEqual(imported.returncode, 0, imported.stderr)
            command = [os.environ["STEPCAST"], "predict", saved, "--workers", "4", "--measured"]
            done = subprocess.run([*command, path, "--output", "json"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["predictions"][0]["scenario"]["allReduce"]["algorithm"], "MEASURED")
            refused = subprocess.run([*command, profile], capture_output=True, text=True, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("layers.csv", refused.stderr)

    def test_the_command_line_says_the_same_with_and_without_a_server(self):
        rows = benchmark(3, self.LINK)
        with tempfile.TemporaryDirectory(prefix="stepcast-fit-") as folder:
            path = os.path.join(folder, "benchmark.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(rows, file)
            replies = []
            for where in (["--local"], ["--server", self.server.address]):
                command = [os.environ["STEPCAST"], "profile", "fit-collectives", path, "--output", "json", *where]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                replies.append(json.loads(done.stdout))
        self.assertEqual(replies[0], replies[1])
        reply = self.server.predictions.FitCollectives(asked(sorted(rows, key=lambda row: (row["kind"] != "ALL_REDUCE", row["workers"], row["size_bytes"]))))
        self.assertEqual(json_format.ParseDict(replies[0], calibration_pb2.FitCollectivesResponse()), reply)


GAMMA4 = 0.6
RATES = {True: (8e9, 5e9, 0.02), False: (1e10, 5e9, 0.02)}  # beside computation, and alone


def rate(overlapped, threads):
    """What the contract says of a worker's transfers, written here once more."""
    gamma1, gamma2, gamma3 = RATES[overlapped]
    return gamma1 - gamma2 * math.exp(-gamma3 * threads**GAMMA4)


def contended(seed, noise=0.01, outliers=0.1):
    """All-reduces of 8 MB among 4 workers, 30 us a hop, and computation that 100 threads slow by 1 %."""
    generator = random.Random(seed)
    request = calibration_pb2.FitContentionRequest(workers=4, latency_seconds=30e-6)
    odd = lambda: generator.uniform(3, 9) if generator.random() < outliers else generator.gauss(1, noise)
    for threads in (128, 256, 512, 1024, 2048) * 12:
        for overlapped in (True, False):
            seconds = (2 * 3 * 30e-6 + 1.5 * 8e6 / rate(overlapped, threads)) * odd()
            request.transfers.add(threads=threads, size_bytes=8000000, seconds=seconds, overlapped=overlapped)
        request.slowdowns.add(threads=threads, slowdown=generator.gauss(1, noise / 5) / (1 - 1e-4 * threads))
        request.slowdowns.add(threads=0, slowdown=generator.gauss(1, noise / 5))
    return request


class ContentionTest(ServerTest):
    def test_the_rates_are_found_among_outliers(self):
        for seed in range(5):
            with self.subTest(seed=seed):
                reply = self.server.predictions.FitContention(contended(seed))
                self.assertAlmostEqual(reply.contention.alpha1, 1, delta=0.005)
                self.assertAlmostEqual(reply.contention.alpha2, 1e-4, delta=5e-6)
                for overlapped, fitted in ((True, reply.contention.overlapped), (False, reply.contention.alone)):
                    for threads in (128, 512, 2048):
                        found = fitted.gamma1 - fitted.gamma2 * math.exp(-fitted.gamma3 * threads**reply.contention.gamma4)
                        self.assertAlmostEqual(found / rate(overlapped, threads), 1, delta=0.02)
                self.assertLessEqual(reply.alpha2_interval.lower, reply.contention.alpha2)
                self.assertGreaterEqual(reply.alpha2_interval.upper, reply.contention.alpha2)
                self.assertEqual(reply.unusable_because, "")
                self.assertTrue(reply.assumptions.transfer_not_faster)
                self.assertTrue(reply.engine_version)
        self.assertEqual(self.server.predictions.FitContention(contended(3)), self.server.predictions.FitContention(contended(3)))

    def test_assumptions_that_fail_are_named_and_so_are_constants_of_no_job(self):
        request = contended(1, noise=0, outliers=0)
        for transfer in request.transfers:
            transfer.overlapped = not transfer.overlapped
        reply = self.server.predictions.FitContention(request)
        self.assertFalse(reply.assumptions.transfer_not_faster)
        self.assertIn("128 threads", reply.assumptions.guarantee_void_because)
        request = contended(1, noise=0, outliers=0)
        del request.slowdowns[:]
        for threads, speed in ((0, 1), (128, 0.9), (256, 0.8)):  # below nothing from 1,280 threads on
            request.slowdowns.add(threads=threads, slowdown=1 / speed)
        reply = self.server.predictions.FitContention(request)
        self.assertIn("contention.alpha2", reply.unusable_because)
        self.assertFalse(reply.HasField("assumptions"))

    def test_what_a_file_of_measurements_gives_is_what_tune_takes(self):
        asked = contended(2, noise=0, outliers=0)
        lines = ["kind,threads,size_bytes,seconds"]
        lines += [f"{'overlapped' if t.overlapped else 'alone'},{t.threads},{t.size_bytes},{t.seconds!r}" for t in asked.transfers]
        lines += [f"computation,{s.threads},,{0.25 * s.slowdown!r}" for s in asked.slowdowns]
        with tempfile.TemporaryDirectory(prefix="stepcast-fit-") as folder:
            table, saved, job = (os.path.join(folder, name) for name in ("overlapped.csv", "contention.json", "job.json"))
            with open(table, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            replies = []
            for where in (["--local"], ["--server", self.server.address]):
                command = [os.environ["STEPCAST"], "profile", "fit-contention", table, "--workers", "4", "--latency", "30us", "--save", saved, "--output", "json", *where]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                replies.append(json_format.Parse(done.stdout, calibration_pb2.FitContentionResponse()))
            self.assertEqual(replies[0], replies[1])
            self.assertAlmostEqual(replies[0].contention.alpha2, 1e-4, delta=1e-9)
            with open(saved, encoding="utf-8") as file:
                self.assertEqual(json.load(file), json.loads(json_format.MessageToJson(replies[0].contention)))
            zoo = [os.environ["STEPCAST"], "profile", "zoo", "resnet18_cifar", "--all-reduce", "--bandwidth", "10Gbit/s", "--save", job]
            self.assertEqual(subprocess.run(zoo, capture_output=True, check=False).returncode, 0)
            tune = [os.environ["STEPCAST"], "tune", job, "--workers", "4", "--contention", saved, "--method", "libra", "--steps", "40", "--output", "json"]
            done = subprocess.run(tune, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["strategies"][0]["method"], "LIBRA")


if __name__ == "__main__":
    unittest.main()
