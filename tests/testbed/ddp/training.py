"""Holds predictions against real DistributedDataParallel on this machine: records one worker, measures several, predicts, compares.

Run it as `./dev testbed --ddp`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "runner"))

import machine  # noqa: E402
import model_errors  # noqa: E402
import network  # noqa: E402
import networks  # noqa: E402
import ranks  # noqa: E402
import recordings  # noqa: E402

_README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
_WORKER = pathlib.Path(__file__).with_name("worker.py")
_GIGABIT = 1_000_000_000
# (network, bucket cap in MiB, bits/s).
CONFIGURATIONS = (
    ("alexnet_s", 25, _GIGABIT),
    ("alexnet_s", 5, _GIGABIT),
    ("alexnet_s", 1, _GIGABIT),
    ("alexnet_s", 5, _GIGABIT // 2),
    ("resnet50_s", 25, _GIGABIT),
    ("resnet50_s", 5, _GIGABIT),
    ("resnet50_s", 1, _GIGABIT),
    ("resnet50_s", 25, _GIGABIT // 2),
    ("bert_s", 25, _GIGABIT),
    ("bert_s", 5, _GIGABIT),
    ("bert_s", 1, _GIGABIT),
)
WORKERS = (1, 2, 3, 4, 6)
RECORDED = (("alexnet_s", 25), ("resnet50_s", 5), ("bert_s", 25))
RECORDED_STEPS = 30
# The steps of a run that count, after those in which buckets and connections settle.
SETTLING_STEPS, COUNTED_STEPS = 4, 10
# Recorded by all workers: as the others are, and with a worker that is slower.
RANKS, RANKS_WORKERS, RANKS_STEPS = ("resnet50_s", 25, _GIGABIT), (2, 3, 4), 17
STRAGGLER, STRAGGLER_SLOWDOWN = 1, 1.5
# What the workers' clocks pretend: offset in seconds and drift.
CLOCKS = ((0.0, 0.0), (3.2, 20e-6), (-7.5, -15e-6), (0.9, 5e-6))
# Also with a log of every bucket's all-reduce.
LOGGED, LOGGED_WORKERS = ("resnet50_s", 5, _GIGABIT), (2, 4)
ALL_REDUCE_BYTES, ALL_REDUCE_REPEATS = (262_144, 1_048_576, 4_194_304, 16_777_216), 5
# Of the machine's time taken by its host; above, the median step is what is compared.
MOST_STEAL = 0.02
# No job takes as long; a worker that hangs ends the run.
_MOST_SECONDS = 100


def missing():
    """What this machine lacks, in words; empty where nothing."""
    lack = machine.missing()
    if lack:
        return lack
    found = subprocess.run([sys.executable, "-c", "import torch.distributed as d; assert d.is_gloo_available()"], capture_output=True, text=True, check=False)
    return "" if found.returncode == 0 else f"PyTorch with gloo (python3-torch): {found.stderr.strip().splitlines()[-1]}"


class Workers:
    """Processes of a program, one a namespace; they end with the `with` block."""

    def __init__(self, ring, count, program=_WORKER, options=()):
        self._stack = contextlib.ExitStack()
        self._processes = []
        self.count = count
        with self._stack:
            for rank in range(count):
                errors = self._stack.enter_context(tempfile.TemporaryFile("w+"))
                # Real-time, or other work on the machine would be part of the measurement.
                process = subprocess.Popen(
                    ["ip", "netns", "exec", ring.namespace(rank), "chrt", "-f", "20", sys.executable, "-B", program, "--rank", str(rank),
                     "--workers", str(count), "--address", ring.address(0), *options],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                )
                self._stack.callback(_stop, process)
                self._processes.append((process, errors))
            self._lines("ready")
            self._stack = self._stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # All at once, since each leaves only with the others.
        for process, _ in self._processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        self._stack.close()

    def do(self, job):
        """The answers of all, by rank."""
        for process, _ in self._processes:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        return [json.loads(line) for line in self._lines(job)]

    def _lines(self, job):
        hung = threading.Timer(_MOST_SECONDS, lambda: [process.kill() for process, _ in self._processes])
        hung.start()
        try:
            lines = [process.stdout.readline() for process, _ in self._processes]
        finally:
            hung.cancel()
        for rank, (line, (process, errors)) in enumerate(zip(lines, self._processes)):
            if not line:
                process.kill()
                process.wait()
                errors.seek(0)
                raise RuntimeError(f"worker {rank} of {self.count} ended at {job}: {errors.read()[-2000:]}")
        return lines


def _stop(process):
    # Without more jobs it leaves by itself.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


@dataclass(frozen=True)
class Throughput:
    steps_per_second: float
    standard_error: float
    median_step_seconds: float

    @staticmethod
    def of(answers):
        """Of workers that step together, so of each; the first steps do not count."""
        ends = [[step["end"] for step in answer["steps"]][SETTLING_STEPS - 1 :] for answer in answers]
        seconds = [statistics.fmean(later) - statistics.fmean(earlier) for earlier, later in zip(zip(*ends), list(zip(*ends))[1:])]
        mean = statistics.fmean(seconds)
        return Throughput(1 / mean, statistics.stdev(seconds) / len(seconds) ** 0.5 / mean**2, statistics.median(seconds))


def measure(folder, quiet, say=print):
    """Fills the folder as recordings.py reads it."""
    measured, all_reduces, buckets, by_all = {}, [], [], []
    for workers in WORKERS:
        with network.Ring(workers) as ring, Workers(ring, workers) as running:
            for name, cap, rate in CONFIGURATIONS:
                ring.set_rate(rate)
                stolen = machine.Steal()
                answers = running.do({"kind": "train", "network": name, "cap_mib": cap, "steps": SETTLING_STEPS + COUNTED_STEPS, "seed": 1})
                point = _entry(name, cap, rate, workers, answers, stolen.share())
                measured.setdefault(name, []).append(point)
                say(f"{name} W={workers}, buckets of {cap} MiB, {rate / 1e9:g} Gbit/s: {point['mean']:.3f} ± {point['standard_error']:.3f} steps/s", flush=True)
                if workers == 1:
                    quiet.note_one_worker(Steps(answers[0]["steps"]))
            if workers == 1:
                for name, cap in RECORDED:
                    _record(running, pathlib.Path(folder), name, cap)
                continue
            if workers in RANKS_WORKERS:
                ring.set_rate(RANKS[2])
                by_all += [_record_ranks(running, pathlib.Path(folder), straggler) for straggler in (False, True)]
            for rate in sorted({rate for _, _, rate in CONFIGURATIONS}):
                ring.set_rate(rate)
                all_reduces += _all_reduces(running, rate)
            if workers in LOGGED_WORKERS:
                ring.set_rate(LOGGED[2])
                buckets.append(_logged(running))
            quiet.note_timeouts(ring.tcp_timeouts())
    for name, points in measured.items():
        (pathlib.Path(folder) / name / "measured.json").write_text(json.dumps(points, indent=1) + "\n")
    (pathlib.Path(folder) / "allreduce.json").write_text(json.dumps(all_reduces, indent=1) + "\n")
    (pathlib.Path(folder) / RANKS[0] / "ranks.json").write_text(json.dumps(by_all, indent=1) + "\n")
    (pathlib.Path(folder) / LOGGED[0] / "buckets.json").write_text(json.dumps(buckets, indent=1) + "\n")


@dataclass(frozen=True)
class Steps:
    steps: list

    def step_seconds(self):
        return sorted(step["end"] - step["begin"] for step in self.steps[SETTLING_STEPS:])


def _entry(name, cap, rate, workers, answers, stolen):
    if not all(answer["gradients_are_means"] for answer in answers):
        raise RuntimeError(f"{name} with {workers} workers: gradients are not the workers' means")
    found = Throughput.of(answers)
    return {
        "model": name, "batch": networks.network(name).batch, "bucket_cap_mb": cap, "rate": rate, "workers": workers,
        "mean": round(found.steps_per_second, 4), "standard_error": round(found.standard_error, 4),
        "one_over_median_step": round(1 / found.median_step_seconds, 4), "noisy": stolen > MOST_STEAL, "steal_share": round(stolen, 4),
    }


def _record(running, folder, name, cap):
    (folder / name).mkdir(parents=True, exist_ok=True)
    trace = folder / name / f"{name}-{cap}.json.gz"
    running.do({"kind": "train", "network": name, "cap_mib": cap, "steps": RECORDED_STEPS, "seed": 100, "traces": [str(trace)]})


def _record_ranks(running, folder, straggler):
    """The traces of all workers, on clocks set apart, and what the same steps took by the host's clock."""
    name, cap, rate = RANKS
    place = pathlib.Path(name) / f"ranks-{'straggler-' if straggler else ''}w{running.count}"
    (folder / place).mkdir(parents=True, exist_ok=True)
    traces = [str(place / f"rank{rank}.json.gz") for rank in range(running.count)]
    slowdowns = [STRAGGLER_SLOWDOWN if straggler and rank == STRAGGLER else 1.0 for rank in range(running.count)]
    job = {"kind": "train", "network": name, "cap_mib": cap, "seed": 3, "slowdowns": slowdowns}
    answers = running.do(
        {**job, "steps": RANKS_STEPS, "traces": [str(folder / trace) for trace in traces], "clocks": CLOCKS[: running.count]}
    )
    unrecorded = Throughput.of(running.do({**job, "steps": SETTLING_STEPS + COUNTED_STEPS}))
    return {
        "model": name, "batch": networks.network(name).batch, "bucket_cap_mb": cap, "rate": rate, "workers": running.count, "slowdowns": slowdowns,
        "clocks": CLOCKS[: running.count], "traces": traces, "mean": round(unrecorded.steps_per_second, 4),
        "standard_error": round(unrecorded.standard_error, 4), "ends": [[step["end"] for step in answer["steps"]] for answer in answers],
    }


def _all_reduces(running, rate):
    answers = running.do({"kind": "all_reduces", "sizes": ALL_REDUCE_BYTES, "repeats": ALL_REDUCE_REPEATS})
    for size, *repeats in zip(ALL_REDUCE_BYTES, *(answer["seconds"] for answer in answers)):
        slowest = [max(seconds) for seconds in zip(*repeats)]
        yield {"workers": running.count, "rate": rate, "at_once": 1, "bytes": size, "seconds": slowest, "median": statistics.median(slowest)}


def _logged(running):
    """Medians over steps of when each bucket was ready on the last worker and reduced, in seconds after the last worker began the step."""
    name, cap, rate = LOGGED
    job = {"kind": "train", "network": name, "cap_mib": cap, "steps": SETTLING_STEPS + COUNTED_STEPS, "seed": 2, "log_buckets": True}
    counted = [answer["steps"][SETTLING_STEPS:] for answer in running.do(job)]
    found = []
    for i, bucket in enumerate(counted[0][0]["buckets"]):
        times = {
            what: [max(one["buckets"][i][what] for one in step) - max(one["begin"] for one in step) for step in zip(*counted)] for what in ("ready", "end")
        }
        found.append({"bytes": bucket["bytes"], **{what: round(statistics.median(seconds), 5) for what, seconds in times.items()}})
    return {"model": name, "bucket_cap_mb": cap, "rate": rate, "workers": running.count, "buckets": found}


def command(flag, description, keeps, kind, run):
    """`./dev testbed FLAG`, whose tables lie between FLAG's marks of the README. run(folder, stepcast, quiet) measures into the folder, and returns the
    tables and a function that has the relative errors of the predictions, for the kind of job's model error."""
    parser = argparse.ArgumentParser(prog=f"./dev testbed {flag}", description=description)
    parser.add_argument("--record-to", type=pathlib.Path, metavar="FOLDER", help=f"keep traces and what was measured, as {keeps} has them")
    parser.add_argument("--report", action="store_true", help="write the tables into tests/testbed/README.md")
    parser.add_argument("--stepcast", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    lack = missing()
    if lack:
        print(f"testbed: skipped: this machine lacks {lack}")
        return 0
    # Namespaces and processes go when a `with` block ends, which a signal alone does not see to.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    network.remove_stale()
    began = time.monotonic()
    load = os.getloadavg()[0]
    quiet = machine.Quiet()
    with tempfile.TemporaryDirectory(prefix="stepcast-testbed-") as work:
        folder = options.record_to or pathlib.Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        report, errors = run(folder, options.stepcast, quiet)
        print(f"\n{report}\n\ntestbed: {quiet.verdict()}; a load of {load:.1f} before it began, in {time.monotonic() - began:.0f} s")
        if not options.report:
            return 0
        if quiet.verdict() != "measured":
            print("testbed: the report is left as it was")
            return 0
        model_errors.write(kind, errors(), f"./dev testbed {flag}: {description.split(':')[0]}")
    begin, end = f"<!-- what the last ./dev testbed {flag} --report measured -->\n", f"<!-- end of {flag} -->\n"
    before, rest = _README.read_text().split(begin)
    _README.write_text(f"{before}{begin}\n{report}\n\n{end}{rest.split(end)[1]}")
    return 0


def run(folder, stepcast, quiet):
    with machine.awake():
        measure(folder, quiet)

    def errors():
        return [one["errors"]["predicted"] for one in recordings.compare(folder, stepcast, simpler=False)[0] if not one["point"].note]

    return recordings.report(folder, stepcast) + "\n\n" + ranks.report(folder, stepcast), errors


def main():
    return command(
        "--ddp", "PyTorch DistributedDataParallel over gloo: one worker is recorded, several are measured, predicted and compared.", "tests/data/ddp", "all-reduce", run
    )


if __name__ == "__main__":
    sys.exit(main())
