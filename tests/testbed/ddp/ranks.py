"""Recordings of all ranks of a job, on clocks set apart on purpose: what stepcast makes of them beside what is known and what was measured.

As a program, `ranks.py FOLDER --stepcast PROGRAM` prints the tables of a folder that `./dev testbed --ddp --record-to` made.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "runner"))

import predictions  # noqa: E402
import recordings  # noqa: E402
from network import payload_bytes_per_second  # noqa: E402


@dataclass(frozen=True)
class Recording:
    """One entry of ranks.json and the profile that was made of its traces."""

    entry: dict
    profile: pathlib.Path
    report: dict  # RecordingReport as proto JSON

    @property
    def workers(self):
        return self.entry["workers"]

    @property
    def straggler(self):
        """Rank of the worker that was made slower, or None."""
        slowdowns = self.entry["slowdowns"]
        return slowdowns.index(max(slowdowns)) if max(slowdowns) > 1 else None

    @property
    def name(self):
        return f"{self.entry['model']} W={self.workers}" + ("" if self.straggler is None else f", rank {self.straggler} slower")

    def replay_errors(self):
        """Aligned, and with the clocks as they were read: replayed over recorded step less one."""
        recorded = self.report["recordedStepSeconds"]
        return self.report["replayedStepSeconds"] / recorded - 1, self.report["unalignedStepSeconds"] / recorded - 1

    def clock_errors(self):
        """By rank: seconds that the offset found is from the one that was pretended, and whether that one is within the bounds found."""
        found = []
        for worker, (offset, _) in zip(self.report["workers"], self.entry["clocks"]):
            ns = [int(worker.get(field, 0)) for field in ("clockOffsetNs", "leastClockOffsetNs", "mostClockOffsetNs")]
            # What drifts in the seconds that a recording takes is far below the bounds.
            found.append((ns[0] / 1e9 + offset, ns[1] / 1e9 - 1e-3 <= -offset <= ns[2] / 1e9 + 1e-3))
        return found


@dataclass(frozen=True)
class Change:
    """A change that was tried for real: throughput after over before less one."""

    name: str
    predicted: float
    measured: float
    standard_error: float

    @property
    def has_the_right_sign(self):
        """Wherever the measured change is beyond twice its standard error."""
        return abs(self.measured) <= 2 * self.standard_error or self.measured * self.predicted > 0


def read(folder, stepcast, work):
    """The folder's recordings, their profiles in `work`."""
    found = []
    for path in sorted(pathlib.Path(folder).glob("*/ranks.json")):
        for number, entry in enumerate(json.loads(path.read_text())):
            profile = pathlib.Path(work) / f"ranks-{entry['model']}-{number}.json"
            traces = [pathlib.Path(folder) / trace for trace in entry["traces"]]
            reply = predictions.run(
                stepcast, "profile", "import", *traces, "--format", "pytorch", "--batch-size", entry["batch"], "--bandwidth",
                f"{payload_bytes_per_second(entry['rate'])}B/s", "--local", "--save", profile, "--output", "json",
            )
            found.append(Recording(entry, profile, json.loads(reply)["recording"]))
    return found


def diagnose(stepcast, recording):
    """The reply's JSON, of the recording as it is."""
    return json.loads(predictions.run(stepcast, "diagnose", "--local", recording.profile, "--output", "json"))


def changes(folder, stepcast, found):
    """[Change]: the straggler removed, other buckets, a slower link, each predicted from a recording of all ranks."""
    fitted = recordings.constants(folder)
    usual = [point for _, point in recordings.points(folder, fitted) if not point.note]
    tried = []
    for one in found:
        entry = one.entry
        before = _Measured(entry["mean"], entry["standard_error"])
        if one.straggler is not None:
            (same,) = [other.entry for other in found if other.workers == one.workers and other.straggler is None]
            change = next(what for what in diagnose(stepcast, one)["whatIfs"] if what["change"] == "NO_STRAGGLERS")
            tried.append(_change(f"{one.name}: as fast as the others", change["ratio"] - 1, before, _Measured(same["mean"], same["standard_error"])))
            continue
        jobs = {(point.cap_mib, point.bytes_per_second): point for point in usual if (point.model, point.workers) == (entry["model"], one.workers)}
        own = jobs[entry["bucket_cap_mb"], payload_bytes_per_second(entry["rate"])]
        base = predictions.predict(stepcast, one.profile, own)["stepsPerSecond"]
        for (cap, rate), point in sorted(jobs.items()):
            if point is own:
                continue
            name = f"buckets of {cap} MiB" if rate == own.bytes_per_second else f"links of {rate / 1e6:.2f} MB/s"
            if cap != own.cap_mib and rate != own.bytes_per_second:
                continue
            after = _Measured(point.measured, point.standard_error)
            predicted = predictions.predict(stepcast, one.profile, point)["stepsPerSecond"] / base - 1
            tried.append(_change(f"{one.name}: {name}", predicted, _Measured(own.measured, own.standard_error), after))
    return tried


@dataclass(frozen=True)
class _Measured:
    mean: float
    standard_error: float


def _change(name, predicted, before, after):
    ratio = after.mean / before.mean
    error = ratio * ((before.standard_error / before.mean) ** 2 + (after.standard_error / after.mean) ** 2) ** 0.5
    return Change(name, predicted, ratio - 1, error)


def waited_for(stepcast, recording):
    """Rank of the worker that the others waited for as recorded, as the diagnosis has it, or None."""
    return diagnose(stepcast, recording)["recording"].get("straggler")


def replay_table(found, stepcast):
    """Markdown: clocks and replay of every recording, and whom the diagnosis names."""
    columns = ("recording", "steps", "clocks found within", "pretended ones inside the bounds", "recorded step", "replayed", "with the clocks as they were read", "waited for")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for one in found:
        aligned, unaligned = one.replay_errors()
        errors = one.clock_errors()[1:]
        named = waited_for(stepcast, one)
        lines.append(
            f"| {one.name} | {one.report['steps']} | {1e3 * max(abs(error) for error, _ in errors):.2f} ms | {sum(inside for _, inside in errors)} of {len(errors)} "
            f"| {1e3 * one.report['recordedStepSeconds']:.1f} ms | {predictions.percent(aligned, 2)} | {predictions.percent(unaligned)} "
            f"| {'nobody' if named is None else f'rank {named}'} |"
        )
    return "\n".join(lines)


def change_table(tried):
    """Markdown: a line a change."""
    lines = ["| change | predicted | measured | off by | |", "|---|---|---|---|---|"]
    for one in tried:
        lines.append(
            f"| {one.name} | {predictions.percent(one.predicted)} | {predictions.percent(one.measured)} ± {100 * one.standard_error:.1f} "
            f"| {predictions.percent((1 + one.predicted) / (1 + one.measured) - 1)} | {'' if one.has_the_right_sign else 'wrong sign'} |"
        )
    off = statistics.fmean(abs((1 + one.predicted) / (1 + one.measured) - 1) for one in tried)
    return "\n".join([*lines, "", f"Off by {100 * off:.1f} % on average; {sum(one.has_the_right_sign for one in tried)} of {len(tried)} with the right sign."])


def report(folder, stepcast):
    """Markdown: replay and changes; empty where the folder has no recording of all ranks."""
    with tempfile.TemporaryDirectory(prefix="stepcast-ranks-") as work:
        found = read(folder, stepcast, work)
        return f"{replay_table(found, stepcast)}\n\n{change_table(changes(folder, stepcast, found))}" if found else ""


def main():
    parser = argparse.ArgumentParser(prog="ranks.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--stepcast", required=True)
    options = parser.parse_args()
    print(report(options.folder, options.stepcast))
    return 0


if __name__ == "__main__":
    sys.exit(main())
