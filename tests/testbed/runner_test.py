"""The testbed's own parts: what it reads in packets, how it judges the machine and the errors, and one real run where the machine allows it."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "runner"))

import machine  # noqa: E402
import measuring  # noqa: E402
import model_errors  # noqa: E402
import network  # noqa: E402
import nodes  # noqa: E402
import packets  # noqa: E402
import prediction  # noqa: E402
import recording  # noqa: E402
import report  # noqa: E402
from job import MODELS, Job  # noqa: E402
from network import Network, payload_bytes_per_second  # noqa: E402
from points import KINDS, Point, points  # noqa: E402


def frame(stream, length, kind=0):
    return length.to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + bytes(length)


def packet(sequence, payload, flags=0x10):
    tcp = struct.pack(">HHIIBBHHH", 5000, 40000, sequence, 0, 5 << 4, flags, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, 1, 2)
    return bytes(14) + ip + tcp


def capture(packets_sent):
    records = [struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in packets_sent]
    return bytes(24) + b"".join(records)


class PacketsTest(unittest.TestCase):
    def sent(self, packets_sent):
        with tempfile.NamedTemporaryFile() as file:
            file.write(capture(packets_sent))
            file.flush()
            return packets.sent_bytes(file.name)

    def test_segments_in_any_order_and_twice_are_the_bytes_once(self):
        start = 0xFFFFFFF0
        whole = bytes(range(60))
        parts = [packet(start, b"", flags=0x12)]
        parts += [packet((start + 1 + at) & 0xFFFFFFFF, whole[at:end]) for at, end in ((20, 60), (0, 20), (10, 30))]
        self.assertEqual(self.sent(parts), whole)

    def test_nothing_is_read_behind_a_missing_packet(self):
        parts = [packet(9, b"", flags=0x12), packet(10, b"abc"), packet(14, b"e")]
        self.assertEqual(self.sent(parts), b"abc")

    def test_a_first_service_ends_where_another_streams_bytes_come(self):
        sent = b"".join([frame(1, 5), frame(1, 3, kind=8), frame(1, 5), frame(3, 7), frame(1, 2), frame(3, 1), frame(5, 4)])
        frames = packets.data_frames(sent)
        self.assertEqual(frames, [(1, 5), (1, 5), (3, 7), (1, 2), (3, 1), (5, 4)])
        # The fifth stream was sent whole, which says nothing of a window.
        self.assertEqual(packets.first_services(frames), [10, 7])


class JobTest(unittest.TestCase):
    def test_several_servers_share_the_bytes_as_the_scenario_says(self):
        job = Job("alexnet_64", servers=2)
        loads = [0, 0]
        for i in job.transfers("DOWNLINK"):
            operation = job.operations[i]
            self.assertEqual(operation["parameter_server"], loads.index(min(loads)))
            loads[operation["parameter_server"]] += operation["size_bytes"]
        for operation in job.operations:
            if operation["resource"] in ("UPLINK", "PARAMETER_SERVER"):
                download = next(one for one in job.operations if one["resource"] == "DOWNLINK" and one["parameter"] == operation["parameter"])
                self.assertEqual(operation["parameter_server"], download["parameter_server"])

    def test_the_grid_holds_every_model_at_every_number_of_workers(self):
        grid = {(point.model, point.workers) for point in points() if point.kind == "as recorded"}
        self.assertEqual(grid, {(model, workers) for model in MODELS for workers in (1, 2, 3, 4, 6, 8)})
        kinds = {point.kind for point in points()}
        self.assertEqual(kinds, set(KINDS))
        self.assertEqual({point.kind for point in points(kinds=["2 servers"])}, {"2 servers"})

    def test_points_that_scatter_get_ten_restarts_and_more_until_the_mean_is_known(self):
        self.assertTrue(all(point.restarts >= 10 for point in points() if 2 <= point.workers <= 4))
        self.assertTrue(all(point.most_restarts > point.restarts for point in points() if point.workers > 1))
        self.assertEqual({(point.restarts, point.most_restarts) for point in points(restarts=3, most_restarts=1) if point.workers > 1}, {(3, 3)})
        self.assertTrue(measuring.is_precise([10.0, 10.1, 9.9]))
        self.assertFalse(measuring.is_precise([8.0, 12.0, 10.0]))


class JudgementTest(unittest.TestCase):
    def entry(self, **changes):
        one = {"relative_error": 0.1, "measured": 10.0, "measured_standard_error": 0.3, "predicted_standard_error": 0.4}
        return one | changes

    def test_an_error_counts_beyond_twice_both_standard_errors(self):
        self.assertAlmostEqual(report.beyond_errors(self.entry()), 0.0)
        self.assertAlmostEqual(report.beyond_errors(self.entry(relative_error=-0.25)), 0.15)

    def test_a_report_has_every_point_and_how_many_restarts_were_where_they_should_be(self):
        measurement = measuring.Measurement([20.0, 22.0, 30.0], [[0, 1]] * 3, 1.1)
        reply = {"predicted": [[21.0, 22.0]], "run_interval": {"lower": 19.0, "upper": 25.0}, "steady": {"staggered": 24.0, "simultaneous": 12.0}}
        predicted = prediction.Prediction(reply)
        entries = [report.entry(Point("alexnet_64", 2, together=together), measurement, predicted, predicted) for together in (False, True)]
        self.assertEqual(entries[0]["restarts_inside"], 2)
        self.assertAlmostEqual(entries[0]["steady"]["simultaneous"]["relative_error"], -0.5)
        header, rule, *rows = report.table(entries).splitlines()
        self.assertEqual({line.count("|") for line in (header, rule, *rows)}, {header.count("|")})
        self.assertIn("| 19.00 to 25.00 | 2 of 3 | +0.0 % | -50.0 % |", rows[0])
        self.assertIn("4 of 6 with several workers", report.summary(entries))

    def test_a_machine_is_noisy_where_steps_scatter_or_timeouts_occur(self):
        quiet = machine.Quiet()
        self.assertEqual(quiet.verdict(), "measured")
        quiet.note_timeouts(2)
        self.assertIn("noisy machine, skipped because 2 TCP timeouts", quiet.verdict())
        quiet = machine.Quiet()
        steps = [{"begin_ns": 0, "end_ns": 10**9}] * 20 + [{"begin_ns": 0, "end_ns": 2 * 10**9}] * 3
        quiet.note_one_worker(nodes.Run(0, [{"worker": 0, "steps": steps}]))
        self.assertIn("2.00 times their median", quiet.verdict())

    def test_rates_are_counted_from_a_workers_first_end_inside_to_its_last(self):
        steps = [{"begin_ns": 0, "end_ns": int(1e9 * at)} for at in (0.5, 1.0, 1.5, 2.1)]
        run = nodes.Run(0, [{"worker": 0, "steps": steps}])
        self.assertAlmostEqual(run.steps_per_second((0.6, 2.2))[0], 2 / 1.1)
        with self.assertRaises(RuntimeError):
            run.steps_per_second((0.6, 1.2))


class ModelErrorsTest(unittest.TestCase):
    def test_the_row_of_a_kind_is_replaced_and_the_others_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model_errors.inc"
            file.write_text(model_errors.FILE.read_text())
            before = file.read_text().splitlines()
            model_errors.write("all-reduce", [0.01, -0.05], "a test", file)
            after = file.read_text().splitlines()
            self.assertEqual([row for row in after if "all-reduce" not in row], [row for row in before if "all-reduce" not in row])
            [row] = [row for row in after if "all-reduce" in row]
            self.assertTrue(row.startswith('{"all-reduce", 0.030, "a test, 2'), row)


class RealRunTest(unittest.TestCase):
    """Not a measurement: that everything works together and that nothing is left behind."""

    @classmethod
    def setUpClass(cls):
        lack = machine.missing()
        if lack:
            raise unittest.SkipTest(f"this machine lacks {lack}")

    def test_two_workers_and_two_servers_train_and_leave_nothing_behind(self):
        job = Job("alexnet_64", servers=2)
        node = os.environ["STEPCAST_TESTBED_NODE"]
        with Network(2, 2) as star:
            namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
            self.assertIn(star.worker_namespace(1), namespaces)
            run = nodes.run(node, star, job, start_offsets_ns=[0, 10_000_000], seconds=30, seed=1, most_steps=3)
            names = [star.server_namespace(0), star.worker_namespace(0)]
        self.assertEqual([len(steps) for steps in run.steps], [3, 3])
        for step in run.steps[0]:
            for i, operation in enumerate(job.operations):
                self.assertGreaterEqual(step["start_ns"][i], step["begin_ns"])
                self.assertGreaterEqual(step["done_ns"][i], step["start_ns"][i])
                for before in operation["waiting_for"]:
                    self.assertLessEqual(step["done_ns"][before], step["start_ns"][i], operation["name"])
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        for name in names:
            self.assertNotIn(name, left)

    def test_a_run_that_fails_leaves_nothing_behind(self):
        job = Job("alexnet_64")
        with self.assertRaises(RuntimeError), Network(1, 1) as star:
            name = star.worker_namespace(0)
            nodes.run("/bin/false", star, job, start_offsets_ns=[0], seconds=1, seed=1)
        self.assertNotIn(name, subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout)

    def test_what_a_killed_run_left_behind_is_removed(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        subprocess.run(["ip", "netns", "add", f"sct{dead.pid}-w0"], check=True)
        subprocess.run(["ip", "netns", "add", f"sct{os.getpid()}-w9"], check=True)
        network.remove_stale()
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        subprocess.run(["ip", "netns", "del", f"sct{os.getpid()}-w9"], check=True)
        self.assertNotIn(f"sct{dead.pid}-", left)
        self.assertIn(f"sct{os.getpid()}-w9", left)

    def test_what_it_records_is_a_profile_that_can_be_predicted_from(self):
        job = Job("alexnet_64")
        with Network(1, 1) as star:
            run = nodes.run(os.environ["STEPCAST_TESTBED_NODE"], star, job, start_offsets_ns=[0], seconds=30, seed=1, most_steps=6)
        profile = recording.profile_of(run, job, payload_bytes_per_second(1e9), skipped=2, steps=4)
        found = prediction.predict(os.environ["STEPCAST_TESTBED_PREDICTOR"], profile, start_offsets_ns=[[0, 20_000_000]], window=[0.2, 2.0], baselines=True)
        self.assertGreater(found.mean, 0)
        self.assertEqual(set(found.baselines), set(report.BASELINES))
        self.assertEqual(set(found.steady), set(report.STARTS))
        self.assertTrue(found.run_interval[0] <= found.mean <= found.run_interval[1])


if __name__ == "__main__":
    unittest.main()
