"""Single runs of real jobs against the interval in which an answer without options says that they fall, through the command line."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "ddp"), str(_HERE / "runner")]

from network import payload_bytes_per_second  # noqa: E402
import predictions  # noqa: E402

DATA = _HERE.parent / "data"
STEPCAST = os.environ["STEPCAST"]


def predicted(profile, *arguments):
    done = subprocess.run([STEPCAST, "predict", profile, *arguments, "--output", "json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["predictions"]


class Runs:
    """Examples/s of real runs, and the answers that they are held against."""

    def __init__(self):
        self.inside, self.half_widths = [], []

    def add(self, answer, runs):
        lower, upper = answer["runInterval"]["lower"], answer["runInterval"]["upper"]
        self.inside += [lower <= run <= upper for run in runs]
        self.half_widths.append((upper - lower) / 2 / answer["examplesPerSecond"])

    def share(self):
        return statistics.fmean(self.inside)

    def __str__(self):
        return f"{sum(self.inside)} of {len(self.inside)} runs inside, half-width {statistics.median(self.half_widths):.3f} in the median"


def of_servers():
    found = Runs()
    for model, measured in json.loads((DATA / "testbed" / "measured.json").read_text()).items():
        profile = DATA / "testbed" / f"{model}.profile.json"
        batch = int(json.loads(profile.read_text())["batch_size"])
        counts = ",".join(str(point["workers"]) for point in measured["points"])
        for point, answer in zip(measured["points"], predicted(profile, "--workers", counts)):
            found.add(answer, [batch * restart["steps_per_second"] for restart in point["restarts"]])
    return found


def of_all_reduce(folder):
    """Jobs whose own bucket cap was recorded: the usual answer for them asks for nothing but the transport."""
    found = Runs()
    for path in sorted((DATA / "ddp").glob("*/measured.json")):
        for one in json.loads(path.read_text()):
            trace = path.with_name(f"{one['model']}-{one['bucket_cap_mb']}.json.gz")
            if trace.exists():
                profile = predictions.import_trace(STEPCAST, trace, one["batch"], payload_bytes_per_second(one["rate"]), folder)
                [answer] = predicted(profile, "--workers", str(one["workers"]), "--algorithm", "gloo", "--concurrent", "2")
                found.add(answer, [one["examples_per_second"] * restart["steps_per_second"] / one["mean"] for restart in one["restarts"]])
    return found


class RealRunsTest(unittest.TestCase):
    """A share of 0.95 is what is said. The model error is measured on the same jobs, of which a few are noisy."""

    def test_most_real_runs_fall_where_an_answer_says(self):
        servers = of_servers()
        with tempfile.TemporaryDirectory(prefix="stepcast-real-") as folder:
            all_reduce = of_all_reduce(folder)
        told = f"servers: {servers}; all-reduce: {all_reduce}"
        print(told)
        self.assertEqual((len(servers.inside), len(all_reduce.inside)), (66, 45))
        self.assertGreaterEqual(statistics.fmean(servers.inside + all_reduce.inside), 0.85, told)
        self.assertGreaterEqual(servers.share(), 0.8, told)
        self.assertGreaterEqual(all_reduce.share(), 0.8, told)
        self.assertLessEqual(statistics.median(servers.half_widths), 0.15, told)
        self.assertLessEqual(statistics.median(all_reduce.half_widths), 0.15, told)
