"""Holds predictions against real pipelines on this machine: records the whole model on one process, trains it in stages and replicas, predicts, compares.

Run it as `./dev testbed --pipeline`.
"""

import json
import pathlib
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("pp", "ddp", "runner")]

import chains  # noqa: E402
import machine  # noqa: E402
import network  # noqa: E402
import predictions  # noqa: E402
import training  # noqa: E402

CHAINS = ("alexnet_p", "transformer_p")
# Stages and replicas.
SHAPES = ((2, 1), (2, 2), (3, 1), (3, 2))
# Schedule, receives and micro-batches.
RUNS = (("gpipe", "eager", 4), ("gpipe", "eager", 8), ("1f1b", "eager", 4), ("1f1b", "eager", 8), ("1f1b", "fused", 8), ("gpipe", "late", 8))
RATE = 1_000_000_000
CAP_MIB = 5
RECORDED_STEPS = 36
SETTLING_STEPS, COUNTED_STEPS = 4, 12
MESSAGE_BYTES, REDUCED_BYTES, MESSAGE_REPEATS = 1 << 20, 1 << 16, 9
# A prediction is compared with a measurement: its own chance is to be small beside that of twelve steps.
STEPS = "300"


@dataclass(frozen=True)
class Point:
    chain: str
    stages: int
    replicas: int
    schedule: str
    receives: str
    micro_batches: int
    bytes_per_second: float  # payload of each link
    measured: float  # steps/s of each replica
    standard_error: float = 0.0

    @property
    def name(self):
        return f"{self.chain} {self.schedule} {self.receives} M={self.micro_batches} P={self.stages} D={self.replicas}"


@dataclass(frozen=True)
class Constants:
    """Of messages alone, never of training: seconds of a transfer beyond its bytes, and of a round of a ring."""

    transfer: float
    round: float


def constants_of(messages, workers, bytes_per_second):
    """messages: the answers of all workers to a job `messages`."""
    took = [arrived - posted for posted, arrived in zip(messages[0]["posted"], messages[1]["arrived"])]
    slowest = [max(seconds) for seconds in zip(*(answer["reductions"] for answer in messages))]
    rounds = 2 * (workers - 1)
    wire = REDUCED_BYTES / workers / bytes_per_second
    return Constants(
        max(0.0, statistics.median(took) - MESSAGE_BYTES / bytes_per_second),
        max(0.0, statistics.median(slowest) / rounds - wire),
    )


def cuts(profile, chain, stages):
    """Names of the first forward operation of each stage but the first, as the profile calls them."""
    forward = [one["name"] for one in json.loads(pathlib.Path(profile).read_text())["operations"] if one.get("pass") == "FORWARD"]
    return [forward[layer] for layer in chains.chain(chain).boundaries(stages)[1:-1]]


def predict(stepcast, profile, point, constants):
    """Steps/s of each replica, predicted from the recording of one process."""
    rate = f"{point.bytes_per_second:.0f}B/s"
    layout = {
        "stages": point.stages, "micro-batches": point.micro_batches, "schedule": point.schedule, "receives": point.receives, "transport": "gloo",
        "links": "device", "reduction": "buckets", "bandwidth": rate, "latency": f"{1e6 * constants.transfer:.0f}us",
        "cuts": ",".join(cuts(profile, point.chain, point.stages)),
    }
    reply = predictions.run(
        stepcast, "predict", "--local", profile, "--pipeline", ",".join(f"{key}={value}" for key, value in layout.items()), "--workers", point.replicas,
        "--bandwidth", rate, "--algorithm", "ring", "--latency", f"{1e6 * constants.round:.0f}us", "--bucket-cap-mb", CAP_MIB, "--steps", STEPS, "--output", "json",
    )
    return json.loads(reply)["predictions"][0]["stepsPerSecond"] / point.replicas


def bubble_formula(point):
    """Steps/s by (M + P - 1) / P (F + B) and the optimizer: no transfers, no reductions, equal stages."""
    chain = chains.chain(point.chain)
    return point.stages / ((point.micro_batches + point.stages - 1) * chain.seconds + chain.optimizer_seconds)


def launch(stages, replicas):
    """The network and its workers, both for a `with` statement."""
    ring = network.Ring(stages * replicas, RATE)
    program = pathlib.Path(__file__).with_name("stage.py")
    return ring, lambda: training.Workers(ring, stages * replicas, program, ("--stages", str(stages)))


def record(folder, names=CHAINS, steps=RECORDED_STEPS):
    """{chain: trace} of the whole model on one process, and the workers' steps by chain."""
    traces = {name: pathlib.Path(folder) / f"{name}-plain.json.gz" for name in names}
    ring, start = launch(1, 1)
    with ring, start() as running:
        steps_of = {name: running.do({"kind": "record", "chain": name, "steps": steps, "seed": 100, "trace": str(trace)})[0] for name, trace in traces.items()}
    return traces, steps_of


def measure(stages, replicas, quiet, names=CHAINS, runs=RUNS, steps=SETTLING_STEPS + COUNTED_STEPS, say=print):
    """[Point] of all runs, and the Constants of messages alone."""
    rate = network.payload_bytes_per_second(RATE)
    points = []
    ring, start = launch(stages, replicas)
    with ring, start() as running:
        messages = running.do({"kind": "messages", "bytes": MESSAGE_BYTES, "reduced_bytes": REDUCED_BYTES, "repeats": MESSAGE_REPEATS})
        constants = constants_of(messages, stages * replicas, rate)
        for name in names:
            for schedule, receives, micro_batches in runs:
                job = {"kind": "train", "chain": name, "schedule": schedule, "receives": receives, "micro_batches": micro_batches, "cap_mib": CAP_MIB}
                answers = running.do({**job, "steps": steps, "seed": 1})
                if not all(answer["right"] for answer in answers):
                    raise RuntimeError(f"{job}: an activation or a gradient is not what its neighbour handed on")
                found = training.Throughput.of(answers)
                points.append(Point(name, stages, replicas, schedule, receives, micro_batches, rate, found.steps_per_second, found.standard_error))
                say(f"{points[-1].name}: {found.steps_per_second:.3f} ± {found.standard_error:.3f} steps/s", flush=True)
        quiet.note_timeouts(ring.tcp_timeouts())
    return points, constants


def compare(stepcast, profiles, measured):
    """[(Point, predicted steps/s)]; measured: [([Point], Constants)]."""
    return [(point, predict(stepcast, profiles[point.chain], point, constants)) for points, constants in measured for point in points]


def table(compared):
    """Markdown: a line a point, and the mean absolute errors beside those of the bubble formula."""
    lines = ["| job | measured, steps/s | predicted | error | bubble formula |", "|---|---|---|---|---|"]
    groups = {}
    for point, predicted in compared:
        error, simple = predicted / point.measured - 1, bubble_formula(point) / point.measured - 1
        groups.setdefault(point.receives, []).append((error, simple))
        measured = f"{point.measured:.3f} ± {point.standard_error:.3f}"
        lines.append(f"| {point.name} | {measured} | {predicted:.3f} | {predictions.percent(error)} | {predictions.percent(simple)} |")
    lines += ["", "| receives | points | predicted: mean absolute error | worst | bubble formula | worst |", "|---|---|---|---|---|---|"]
    for receives, errors in groups.items():
        cells = [cell for column in zip(*errors) for cell in (f"{100 * statistics.fmean(map(abs, column)):.2f} %", predictions.percent(max(column, key=abs)))]
        lines.append(f"| {receives} | {len(errors)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def run(folder, stepcast, quiet):
    with machine.awake():
        traces, steps_of = record(folder)
        for answer in steps_of.values():
            quiet.note_one_worker(training.Steps(answer["steps"]))
        measured = [measure(stages, replicas, quiet) for stages, replicas in SHAPES]
    text = json.dumps([{**asdict(point), "constants": asdict(constants)} for points, constants in measured for point in points], indent=1)
    (folder / "measured.json").write_text(text + "\n")
    rate = network.payload_bytes_per_second(RATE)
    with tempfile.TemporaryDirectory(prefix="stepcast-pp-") as work:
        profiles = {name: predictions.import_trace(stepcast, trace, chains.chain(name).batch, rate, work) for name, trace in traces.items()}
        compared = compare(stepcast, profiles, measured)
    return table(compared), lambda: [predicted / point.measured - 1 for point, predicted in compared]


def main():
    return training.command(
        "--pipeline", "PyTorch pipelines over gloo: each model is recorded on one process, trained in stages and replicas, predicted and compared.",
        "tests/testbed/pipelines.md", "pipelines", run,
    )


if __name__ == "__main__":
    sys.exit(main())
