"""What stepcast predicts of a job of DistributedDataParallel from a trace of one worker, beside what was measured of it."""

import json
import pathlib
import statistics
import subprocess
from dataclasses import dataclass

from message_ring import CONCURRENT, Constants

# Beside the prediction: the same without what the benchmark of all-reduces says; an ideal ring, one all-reduce at a time; and a step that
# computes first and then communicates.
MODELS = ("predicted", "no constants", "ideal ring", "no overlap")


@dataclass(frozen=True)
class Point:
    model: str
    cap_mib: int
    bytes_per_second: float  # payload of each link
    workers: int
    measured: float  # steps/s of each worker
    standard_error: float
    constants: Constants = Constants()
    # COUNT:SPEED:RATE of workers that are alike, as --worker-group takes them; empty where all are.
    groups: tuple = ()
    note: str = ""
    runs: tuple = ()  # steps/s of each worker of single runs that nothing held up


# A prediction is compared with a measurement: its own chance is to be small beside that of twelve recorded steps.
STEPS = "1000"


def import_trace(stepcast, trace, batch, bytes_per_second, folder):
    """A profile of the trace, as a file in the folder."""
    path = pathlib.Path(folder) / f"{pathlib.Path(trace).name.removesuffix('.json.gz')}.profile.json"
    run(stepcast, "profile", "import", trace, "--format", "pytorch", "--batch-size", batch, "--bandwidth", f"{bytes_per_second}B/s", "--local", "--save", path)
    return path


def predict(stepcast, profile, point, algorithm="gloo", constants=None):
    """The reply's prediction of the point, as proto JSON."""
    constants = point.constants if constants is None else constants
    options = ["--latency", f"{constants.latency:.9f}s", "--reduction-seconds-per-byte", f"{constants.addition:.6e}"]
    if algorithm == "gloo":
        options += ["--concurrent", CONCURRENT]
    for group in point.groups:
        options += ["--worker-group", group]
    if not point.groups:
        options += ["--workers", point.workers]
    reply = run(
        stepcast, "predict", "--local", profile, "--algorithm", algorithm, "--bandwidth", f"{constants.share * point.bytes_per_second:.0f}B/s",
        "--bucket-cap", f"{point.cap_mib}MiB", "--steps", STEPS, "--output", "json", *options,
    )
    return json.loads(reply)["predictions"][0]


def compare(stepcast, profile, point, simpler=True):
    """The point beside what is predicted of it: steps/s of a worker, {model: predicted over measured less one}, and when each bucket is ready and
    ends, in seconds after the step began. simpler: also without constants, and with an ideal ring."""
    found = predict(stepcast, profile, point)
    without_overlap = found["collectives"]["noOverlapExamplesPerSecond"] / found["examplesPerSecond"]
    steps = {"predicted": found["stepsPerSecond"], "no overlap": without_overlap * found["stepsPerSecond"]}
    if simpler:
        steps["no constants"] = predict(stepcast, profile, point, constants=Constants())["stepsPerSecond"]
        steps["ideal ring"] = predict(stepcast, profile, point, algorithm="ring", constants=Constants())["stepsPerSecond"]
    return {
        "point": point,
        "predicted": found["stepsPerSecond"] / point.workers,
        "run_interval": tuple(found["runInterval"][end] / found["examplesPerSecond"] * found["stepsPerSecond"] / point.workers for end in ("lower", "upper")),
        "errors": {model: steps[model] / point.workers / point.measured - 1 for model in MODELS if model in steps},
        "buckets": [
            {"bytes": int(one["sizeBytes"]), "ready": one["readySeconds"], "end": one["endSeconds"]} for one in found["collectives"]["collectives"]
        ],
    }


def runs_inside(entries):
    """Of the single runs that were measured: how many, how many of them inside the interval of single runs, and half its width in the median."""
    inside, widths = [], []
    for one in entries:
        lower, upper = one["run_interval"]
        inside += [lower <= run <= upper for run in one["point"].runs]
        widths += [(upper - lower) / 2 / one["predicted"]] * len(one["point"].runs)
    return len(inside), sum(inside), statistics.median(widths)


def table(entries):
    """Markdown: a line a point, with the error of every model."""
    lines = [
        f"| model | cap MiB | MB/s | W | measured steps/s | predicted | {' | '.join('error' if model == 'predicted' else model for model in MODELS)} | |",
        f"|{'---|' * (7 + len(MODELS))}",
    ]
    for one in entries:
        point = one["point"]
        lines.append(
            f"| {point.model} | {point.cap_mib} | {point.bytes_per_second / 1e6:.2f} | {point.workers} | {point.measured:.3f} ± {point.standard_error:.3f} "
            f"| {one['predicted']:.3f} | {' | '.join(percent(one['errors'][model]) for model in MODELS)} | {point.note} |"
        )
    return "\n".join(lines)


def summary(entries):
    """Markdown: mean absolute error, mean error and worst of every model, by group of points."""
    groups = [("all", lambda point: True)]
    groups += [(f"W={workers}", lambda point, workers=workers: point.workers == workers) for workers in sorted({one["point"].workers for one in entries})]
    groups += [
        (f"cap {cap}, W>1", lambda point, cap=cap: point.cap_mib == cap and point.workers > 1)
        for cap in sorted({one["point"].cap_mib for one in entries}, reverse=True)
    ]
    models = entries[0]["errors"]
    lines = [f"| points | {' | '.join(models)} |", f"|{'---|' * (1 + len(models))}"]
    for name, belongs in groups:
        inside = [one for one in entries if belongs(one["point"])]
        if inside:
            lines.append(f"| {name} ({len(inside)}) | {' | '.join(_errors([one['errors'][model] for one in inside]) for model in models)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Advice:
    """The cap that `stepcast tune` says to set, of those that were measured, and what they made."""

    caps: tuple  # Points of one job, by ascending cap
    advised: Point  # of caps
    default: Point  # PyTorch's own 25 MiB
    predicted_gain: float  # over the default

    @property
    def best(self):
        return max(self.caps, key=lambda point: point.measured)

    @property
    def possible_gain(self):
        return self.best.measured / self.default.measured - 1

    @property
    def gain(self):
        return self.advised.measured / self.default.measured - 1

    @property
    def is_a_loss(self):
        """Slower than PyTorch's own by more than twice both standard errors."""
        return self.default.measured - self.advised.measured > 2 * (self.default.standard_error**2 + self.advised.standard_error**2) ** 0.5


def advise(stepcast, profile, caps):
    """What `stepcast tune` says of a job that was measured with each of these caps, PyTorch's own among them."""
    default = next(point for point in caps if point.cap_mib == 25)
    constants = default.constants
    options = [part for point in caps for part in ("--cap", f"{point.cap_mib}MiB")]
    reply = json.loads(
        run(
            stepcast, "tune", "--local", profile, "--workers", default.workers, "--bucket-cap", "25MiB", "--algorithm", "gloo", "--concurrent", CONCURRENT,
            "--latency", f"{constants.latency:.9f}s", "--reduction-seconds-per-byte", f"{constants.addition:.6e}",
            "--bandwidth", f"{constants.share * default.bytes_per_second:.0f}B/s", "--steps", STEPS,
            "--method", "as-recorded", "--method", "ddp-buckets", *options, "--output", "json",
        )
    )
    chosen = next(strategy for strategy in reply["strategies"] if strategy["method"] == reply["chosen"])
    setting = chosen.get("setting", "")
    cap = round(float(setting.removeprefix("bucket_cap_mb="))) if setting else 25
    return Advice(
        caps=tuple(sorted(caps, key=lambda point: point.cap_mib)), advised=next(point for point in caps if point.cap_mib == cap), default=default,
        predicted_gain=chosen.get("gain", 0.0),
    )


def advice_table(advices):
    """Markdown: a line a job: the advised cap, its gain over PyTorch's own as predicted and as measured, and the most there was to gain."""
    lines = ["| model | MB/s | W | caps MiB | advised | predicted gain | measured gain | best | its gain |", f"|{'---|' * 9}"]
    for one in advices:
        caps = ", ".join(str(point.cap_mib) for point in one.caps)
        lines.append(
            f"| {one.default.model} | {one.default.bytes_per_second / 1e6:.2f} | {one.default.workers} | {caps} | {one.advised.cap_mib} "
            f"| {percent(one.predicted_gain)} | {percent(one.gain)} | {one.best.cap_mib} | {percent(one.possible_gain)} |"
        )
    possible = sum(one.possible_gain for one in advices)
    reached = f"{100 * sum(one.gain for one in advices) / possible:.0f} %" if possible > 0 else "none was possible"
    return "\n".join([*lines, "", f"Of the possible gain the advice reached: {reached}."])


def bucket_table(entry, measured):
    """Markdown: when each bucket was ready and ended, measured and predicted."""
    point = entry["point"]
    lines = [
        f"| {point.model}, cap {point.cap_mib} MiB, W={point.workers}: bucket | MB | ready ms | predicted | end ms | predicted |",
        "|---|---|---|---|---|---|",
    ]
    for i, (one, found) in enumerate(zip(measured, entry["buckets"])):
        times = [f"{1e3 * times[what]:.1f}" for what in ("ready", "end") for times in (one, found)]
        lines.append(f"| {i} | {one['bytes'] / 1e6:.2f} | {' | '.join(times)} |")
    return "\n".join(lines)


def mean_absolute_error(entries, model="predicted"):
    return statistics.fmean(abs(one["errors"][model]) for one in entries)


def is_beyond(one, share=0.05):
    """An error beyond both the share and twice the measurement's standard error."""
    point = one["point"]
    return abs(one["errors"]["predicted"]) > max(share, 2 * point.standard_error / point.measured)


def misranked_caps(entries):
    """Pairs of bucket caps, on the same job otherwise, which the prediction ranks otherwise than a measured difference beyond twice both standard errors."""
    wrong = []
    for i, a in enumerate(entries):
        for b in entries[i + 1 :]:
            p, q = a["point"], b["point"]
            if (p.model, p.bytes_per_second, p.workers, p.groups) != (q.model, q.bytes_per_second, q.workers, q.groups):
                continue
            measured = p.measured - q.measured
            if abs(measured) > 2 * (p.standard_error**2 + q.standard_error**2) ** 0.5 and measured * (a["predicted"] - b["predicted"]) <= 0:
                wrong.append((p, q))
    return wrong


def _errors(errors):
    return f"{100 * statistics.fmean(map(abs, errors)):.2f} % (mean {percent(statistics.fmean(errors))}, worst {percent(max(errors, key=abs))})"


def percent(share, digits=1):
    """With its sign."""
    return f"{100 * share:+.{digits}f} %"


def run(*command):
    """What the command prints; RuntimeError, with what it says, where it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout
