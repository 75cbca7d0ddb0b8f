"""Holds predictions against a real gRPC parameter server on this machine: records one worker, measures many, predicts, compares.

Run it as `./dev testbed`, which builds the programs it is given.
"""

import argparse
import json
import pathlib
import signal
import statistics
import sys
import tempfile
import time

import machine
import model_errors
import network
import recording
import report
from job import MODELS
from measuring import RECORDED_STEPS, SETTLING_STEPS, SWITCHING_STEPS, Laboratory
from points import KINDS, LARGE, MOST_RESTARTS, PRECISION, points
from prediction import downloads_in_order, predict

_README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
_BEGIN, _END = "<!-- what the last ./dev testbed --report measured -->\n", "<!-- end of it -->\n"


def main():
    options = _options()
    lack = machine.missing()
    if lack:
        verdict = f"skipped: this machine lacks {lack}"
        print(f"testbed: {verdict}")
        if options.json:
            options.json.write_text(json.dumps({"machine": {"verdict": verdict}, "points": []}) + "\n")
        return 0
    # Namespaces and processes go when a `with` block ends, which a signal alone does not see to.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    network.remove_stale()
    with machine.awake():
        return _measure(options)


def _measure(options):
    began = time.monotonic()
    quiet = machine.Quiet()
    laboratory = Laboratory(options.node, quiet)
    with tempfile.TemporaryDirectory(prefix="stepcast-testbed-") as folder:
        profiles, explained = _record(laboratory, options, pathlib.Path(folder))
        large = _record_switching(laboratory, options, pathlib.Path(folder))
        explained.append({key: large[key] for key in ("model", "steps")})
    if options.record_only:
        return _finish(quiet, options, [], explained)
    if quiet.verdict() != "measured":
        return _finish(quiet, options, [], explained)
    entries, raw = [], []
    for point in points(options.models, options.restarts, options.most_restarts, options.kinds or KINDS):
        profile, window_bytes = (large["profile"], large["window_bytes"]) if point.scale > 1 else (profiles[point.model], 0)
        order = () if point.download_order == "random" else downloads_in_order(options.predictor, profile, point.transfer_order)
        measurement = laboratory.measure(point, order)
        raw.append(report.raw(point, measurement, window_bytes))
        if options.raw:
            options.raw.write_text("[\n" + ",\n".join(json.dumps(one) for one in raw) + "\n]\n")
        entries.append(_compare(options.predictor, profile, point, measurement, window_bytes))
        one = entries[-1]
        print(
            f"{point.model} W={point.workers} {point.kind}: measured {one['measured']:.2f} ± {one['measured_standard_error']:.2f} steps/s, "
            f"predicted {one['predicted']:.2f} ± {one['predicted_standard_error']:.2f} ({100 * one['relative_error']:+.1f} %, "
            f"{100 * one['equal_shares_relative_error']:+.1f} % with equal shares), {one['restarts_inside']} of {one['restarts']} restarts inside "
            f"{one['run_interval'][0]:.2f} to {one['run_interval'][1]:.2f}",
            flush=True,
        )
    print(f"testbed: {time.monotonic() - began:.0f} s")
    return _finish(quiet, options, entries, explained)


def _options():
    parser = argparse.ArgumentParser(prog="./dev testbed", description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every point, and what the machine check says, to this file")
    parser.add_argument("--raw", type=pathlib.Path, metavar="FILE", help="write what was measured of every point with several workers to this file")
    parser.add_argument("--report", action="store_true", help="write the tables into tests/testbed/README.md")
    parser.add_argument("--record-to", type=pathlib.Path, metavar="FOLDER", help="keep the one-worker profiles, as FOLDER/MODEL.profile.json")
    parser.add_argument("--record-only", action="store_true", help="measure nothing else")
    parser.add_argument("--model", action="append", dest="models", choices=MODELS, help="only this one; may be repeated")
    parser.add_argument(
        "--restarts", type=int, metavar="N", help="at least so many of every point with several workers, 2 or more (default: 10 with 2 to 4 workers, else 4)"
    )
    parser.add_argument(
        "--most-restarts", type=int, default=MOST_RESTARTS, metavar="N",
        help=f"at most so many, until the standard error is below {100 * PRECISION:.0f} %% (default {MOST_RESTARTS})",
    )
    parser.add_argument("--kind", action="append", dest="kinds", choices=KINDS, help="only points of this kind; may be repeated")
    for program in ("node", "predictor", "recorder", "stepcast"):
        parser.add_argument(f"--{program}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.models = options.models or list(MODELS)
    if options.restarts is not None and options.restarts < 2:
        parser.error(f"--restarts {options.restarts}: a standard error needs at least 2")
    return options


def _record(laboratory, options, folder):
    profiles, explained = {}, []
    for model in options.models:
        job, run = laboratory.record(model)
        profiles[model] = recording.profile_of(run, job, network.payload_bytes_per_second(1e9), SETTLING_STEPS, RECORDED_STEPS)
        explained.append(_explain(model, options.stepcast, profiles[model], folder))
        differences = recording.import_differences(options.recorder, options.stepcast, profiles[model], folder)
        print(f"{model} as TensorFlow records it, imported: {'the same' if not differences else f'{len(differences)} differences, {differences[:3]}'}")
        if options.record_to:
            options.record_to.mkdir(parents=True, exist_ok=True)
            (options.record_to / f"{model}.profile.json").write_text(json.dumps(profiles[model]) + "\n")
    return profiles, explained


def _record_switching(laboratory, options, folder):
    """Step by step, how well the window found in the end times of large tensors agrees with the one that the packets show."""
    job, run, seen = laboratory.record_switching(folder)
    profile = recording.profile_of(run, job, network.payload_bytes_per_second(1e9), SETTLING_STEPS, SWITCHING_STEPS)
    found = []
    for step in profile["steps"]:
        down = recording.check(options.stepcast, profile | {"steps": [step]}, folder)["recording"]["links"][0]
        nearest = next(one for one in down["disciplines"] if one["discipline"] == down["nearest"])
        found.append({"window": int(down["windowBytes"]) if down["windowIdentified"] else None, "median_end_time_error": nearest["endTimeError"]["median"]})
    steps = [one | {"window_of_packets": packets_say} for one, packets_say in zip(found, seen)]
    both = [one for one in steps if one["window"] and one["window_of_packets"]]
    near = [one for one in both if abs(one["window"] / one["window_of_packets"] - 1) <= 0.2]
    switching = [one["median_end_time_error"] for one in steps if one["window_of_packets"]]
    print(
        f"{job.model}, 8 times as large: streams were stopped in {len(switching)} of {len(steps)} steps, after a window found in the end times of {len(both)}, "
        f"within a fifth of what the packets show in {len(near)}; median error of download ends there "
        f"{100 * statistics.median(switching or [0]):.2f} %"
    )
    print("  found and seen, MB: " + ", ".join(f"{one['window'] / 1e6:.2f} and {one['window_of_packets'] / 1e6:.2f}" for one in both))
    windows = [one["window"] for one in steps if one["window"]] or [one["window_of_packets"] for one in steps if one["window_of_packets"]]
    window_bytes = round(statistics.median(windows or [0]))
    if options.record_to:
        options.record_to.mkdir(parents=True, exist_ok=True)
        (options.record_to / f"{job.model}_large.profile.json").write_text(json.dumps(profile) + "\n")
    return {"model": f"{job.model}, {LARGE}", "steps": steps, "profile": profile, "window_bytes": window_bytes}


def _explain(title, stepcast, profile, folder):
    """The median error of recorded download ends under the discipline that explains them best."""
    down = recording.check(stepcast, profile, folder)["recording"]["links"][0]
    nearest = next(one for one in down["disciplines"] if one["discipline"] == down["nearest"])
    explained = {
        "model": title,
        "nearest": down["nearest"],
        "end_time_error": nearest["endTimeError"],
        "end_time_error_with_start": down["nearestWithStart"],
        "bandwidth_bytes_per_second": down["bandwidthBytesPerSecond"],
        "start_seconds": down["startSeconds"],
    }
    print(
        f"{title}: download ends explained best by {down['nearest']}, median error {100 * nearest['endTimeError']['median']:.2f} % "
        f"({100 * down['nearestWithStart']['median']:.2f} % with the start), {down['bandwidthBytesPerSecond'] / 1e6:.1f} MB/s, start {1e6 * down['startSeconds']:.0f} us"
    )
    return explained


def _compare(predictor, profile, point, measurement, window_bytes):
    asked = {
        "start_offsets_ns": measurement.start_offsets_ns, "window": point.window, "servers": point.servers, "order": point.transfer_order,
        "window_bytes": window_bytes,
    }
    prediction = predict(predictor, profile, sharing=point.link_sharing, baselines=point.kind in ("as recorded", "started together"), **asked)
    equal_shares = predict(predictor, profile, sharing="EQUAL", **asked)
    return report.entry(point, measurement, prediction, equal_shares)


def _finish(quiet, options, entries, explained):
    verdict = quiet.verdict()
    print(f"testbed: {verdict}")
    if entries:
        print(report.table(entries))
        print()
        print(report.summary(entries))
    if options.json:
        options.json.write_text(json.dumps({"machine": quiet.as_json(), "points": entries, "recordings": explained}, indent=1) + "\n")
    if options.report and entries:
        if verdict != "measured":
            print("testbed: the report is left as it was")
            return 0
        # Who asks knows no starts: the steady state's error is theirs.
        grid = [one["steady"].get("staggered", one)["relative_error"] for one in entries if one["kind"] == "as recorded"]
        if grid:
            model_errors.write("parameter servers", grid, f"./dev testbed: {len(grid)} jobs over gRPC, asked without their starts")
        text = _README.read_text()
        before, rest = text.split(_BEGIN)
        after = rest.split(_END)[1]
        _README.write_text(f"{before}{_BEGIN}\n{report.summary(entries)}\n\n{report.table(entries)}\n\n{_END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
