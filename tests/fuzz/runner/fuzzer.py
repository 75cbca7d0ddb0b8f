"""One run of one target under libFuzzer."""

import dataclasses
import pathlib
import re
import subprocess

from corpus import environment

_DICTIONARIES = pathlib.Path(__file__).resolve().parents[1] / "dictionaries"


@dataclasses.dataclass
class Verdict:
    text: str
    findings: list


def fuzz(corpus, seconds, work):
    """Fuzzes for so many seconds, or until something is found. The log is LOG in `work`, what was found beside it."""
    found = work.resolve() / "findings" / corpus.target
    found.mkdir(parents=True, exist_ok=True)
    log = work / f"{corpus.target}.log"
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={found}/", "-print_final_stats=1"]
    dictionary = _DICTIONARIES / f"{corpus.target}.dict"
    if dictionary.exists():
        options.append(f"-dict={dictionary}")
    before = set(found.iterdir())
    with log.open("w", encoding="utf-8", errors="replace") as output:
        status = subprocess.run(corpus.command(*options, corpus.folder), env=environment(), stderr=output, stdout=output, check=False).returncode
    findings = sorted(set(found.iterdir()) - before)
    text = log.read_text(encoding="utf-8", errors="replace")
    if status != 0 and not findings:
        findings = [log]
    return Verdict(f"{corpus.target}: {_told(text)}" + "".join(f"; FOUND {path}" for path in findings), findings)


def _told(log):
    def last(pattern):
        found = re.findall(pattern, log)
        return found[-1] if found else "?"

    return (f"{last('number_of_executed_units: ([0-9]+)')} runs, {last('average_exec_per_sec: +([0-9]+)')} a second, cov {last(' cov: ([0-9]+)')},"
            f" ft {last(' ft: ([0-9]+)')}, {last(' corp: ([0-9]+)')} inputs, {last('peak_rss_mb: +([0-9]+)')} MB")
