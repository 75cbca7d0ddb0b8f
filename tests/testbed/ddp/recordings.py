"""A folder of recordings made before: traces of one worker, throughput of several, a benchmark of all-reduces (tests/data/ddp/README.md).

As a program, `recordings.py FOLDER --stepcast PROGRAM` prints predicted beside measured throughput of every point in it.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "runner"))

import message_ring  # noqa: E402
import predictions  # noqa: E402
from network import payload_bytes_per_second  # noqa: E402

# Constants for more workers than the benchmark knows are those of the most that it does.
_SPECIAL = {
    "slowlink-w4": "one link of half the rate",
    "straggler-w4": "one worker 1.5 times slower",
    "bucketview-w4": "gradient_as_bucket_view",
    "eight-w8": "constants of W=6",
}


def constants(folder):
    """{(rate in bits/s, workers): (Constants, error of the fit)} from the folder's benchmark; each size's seconds are the median of its series."""
    entries = json.loads((pathlib.Path(folder) / "allreduce.json").read_text())
    measured = {}
    for one in entries:
        if one["at_once"] == 1:
            measured.setdefault((one["rate"], one["workers"]), {}).setdefault(one["bytes"], []).append(one["median"])
    return {
        (rate, workers): message_ring.fit(
            [(size, statistics.median(seconds)) for size, seconds in sizes.items()], workers, payload_bytes_per_second(rate)
        )
        for (rate, workers), sizes in sorted(measured.items())
    }


def points(folder, fitted):
    """[(batch, Point)] of everything measured in the folder."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("*/measured.json")):
        measured = json.loads(path.read_text())
        for one in measured:
            found.append((one["batch"], _point(one, _throughput(one), one["standard_error"], one["rate"], fitted)))
        special = path.with_name("special.json")
        for one in json.loads(special.read_text()) if special.exists() else []:
            batch = next(other["batch"] for other in measured if other["model"] == one["model"])
            found.append((batch, _point(one, one["measured"], 0.0, 1_000_000_000, fitted, _groups(one["run"]), _SPECIAL[one["run"]])))
    return found


def _throughput(one):
    # A mean over steps that the machine's host held up says little of the job.
    return one["one_over_median_step"] if one["noisy"] else one["mean"]


def _point(one, measured, standard_error, rate, fitted, groups=(), note=""):
    known = [workers for at, workers in fitted if at == rate]
    nearest = min(known, key=lambda workers: abs(workers - one["workers"]))
    return predictions.Point(
        model=one["model"], cap_mib=one["bucket_cap_mb"], bytes_per_second=payload_bytes_per_second(rate), workers=one["workers"], measured=measured,
        standard_error=standard_error, constants=fitted[rate, nearest][0], groups=groups, note=note,
        runs=tuple(run["steps_per_second"] for run in one.get("restarts", ()) if run["right"] and not run["noisy"]),
    )


def _groups(run):
    return {"slowlink-w4": ("3", f"1:1:{payload_bytes_per_second(5e8):.0f}B/s"), "straggler-w4": ("3", f"1:{1 / 1.5:.6f}")}.get(run, ())


def trace_of(folder, point):
    """The trace with the point's cap, or else one with another: buckets of any cap follow from the order of the gradients."""
    own = pathlib.Path(folder) / point.model / f"{point.model}-{point.cap_mib}.json.gz"
    return own if own.exists() else next(path for path in sorted(own.parent.iterdir()) if re.fullmatch(rf"{point.model}-\d+\.json\.gz", path.name))


def compare(folder, stepcast, simpler=True):
    """Every point of the folder beside its prediction (predictions.compare), and the constants that were fitted."""
    fitted = constants(folder)
    with tempfile.TemporaryDirectory(prefix="stepcast-ddp-") as work:
        profiles, entries = {}, []
        for batch, point in points(folder, fitted):
            trace = trace_of(folder, point)
            if trace not in profiles:
                profiles[trace] = predictions.import_trace(stepcast, trace, batch, payload_bytes_per_second(1e9), work)
            entries.append(predictions.compare(stepcast, profiles[trace], point, simpler))
    return entries, fitted


def advices(folder, stepcast):
    """What `stepcast tune` says of every job of several workers that was measured with several caps."""
    jobs = {}
    for batch, point in points(folder, constants(folder)):
        if not point.note and point.workers > 1:
            jobs.setdefault((batch, point.model, point.bytes_per_second, point.workers), []).append(point)
    found = []
    with tempfile.TemporaryDirectory(prefix="stepcast-ddp-") as work:
        for (batch, *_), caps in sorted(jobs.items()):
            if len(caps) > 1 and any(point.cap_mib == 25 for point in caps):
                profile = predictions.import_trace(stepcast, trace_of(folder, caps[0]), batch, payload_bytes_per_second(1e9), work)
                found.append(predictions.advise(stepcast, profile, caps))
    return found


def report(folder, stepcast):
    """Markdown: errors by group, every point, constants, and when buckets ended."""
    entries, fitted = compare(folder, stepcast)
    usual = [one for one in entries if not one["point"].note]
    special = [one for one in entries if one["point"].note]
    parts = [predictions.summary(usual), predictions.table(usual)] + ([predictions.table(special)] if special else [])
    parts += [
        "\n".join(
            ["| Gbit/s | W | fitted to all-reduces alone | error of the fit |", "|---|---|---|---|"]
            + [f"| {rate / 1e9:g} | {workers} | {found} | {100 * error:.1f} % |" for (rate, workers), (found, error) in fitted.items()]
        )
    ]
    if any(one["point"].runs for one in usual):
        runs, inside, half_width = predictions.runs_inside(usual)
        parts.append(f"Single runs inside the interval that 95 % of them should be in: {inside} of {runs}; half its width is {100 * half_width:.1f} % in the median.")
    beyond = [one["point"] for one in usual if predictions.is_beyond(one)]
    said = ", ".join(f"{point.model} cap {point.cap_mib} W={point.workers}" for point in beyond)
    parts.append(f"Beyond 5 % and twice the standard error: {said or 'none'}.")
    for p, q in predictions.misranked_caps(usual):
        parts.append(f"Ranked otherwise than measured: {p.model} W={p.workers} at {p.bytes_per_second / 1e6:.2f} MB/s, buckets of {p.cap_mib} and {q.cap_mib} MiB.")
    parts.append(predictions.advice_table(advices(folder, stepcast)))
    parts += [predictions.bucket_table(one, measured) for one, measured in buckets(folder, usual)]
    return "\n\n".join(parts)


def buckets(folder, entries):
    """[(entry, its buckets as measured)] where the folder has any: bytes, and seconds after the step's begin at which each was ready and ended."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("*/buckets.json")):
        for one in json.loads(path.read_text()):
            job = (one["model"], one["bucket_cap_mb"], payload_bytes_per_second(one["rate"]), one["workers"])
            found += [(entry, one["buckets"]) for entry in entries if _job(entry["point"]) == job]
    return found


def _job(point):
    return point.model, point.cap_mib, point.bytes_per_second, point.workers


def main():
    parser = argparse.ArgumentParser(prog="recordings.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--stepcast", required=True)
    options = parser.parse_args()
    print(report(options.folder, options.stepcast))
    return 0


if __name__ == "__main__":
    sys.exit(main())
