"""Whether this machine can run the testbed, and whether it was quiet enough for what it measured to mean anything."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import network

# A step of one worker varies by some per cent of itself; what is slower than this was held up by something else.
MOST_P95_OVER_MEDIAN = 1.3


def missing():
    """What is not there, in words; empty where nothing is."""
    tools = [tool for tool in ("ip", "tc", "chrt", "sysctl", "tcpdump") if shutil.which(tool) is None]
    if tools:
        return f"the programs {', '.join(tools)}"
    return network.missing()


@contextlib.contextmanager
def awake():
    """Keeps every processor from sleeping, at the least priority there is: a virtual one takes some 0.1 ms to wake, at every message."""
    spinners = [subprocess.Popen(["chrt", "-i", "0", sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


class Steal:
    """What a virtual machine's host takes of its time, from when this is made."""

    def __init__(self):
        self._began = self._ticks()

    def share(self):
        spent = [now - then for now, then in zip(self._ticks(), self._began)]
        return spent[7] / max(1, sum(spent))

    @staticmethod
    def _ticks():
        # User, nice, system, idle, waiting for discs, interrupts, soft ones, stolen.
        return [int(ticks) for ticks in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]


class Quiet:
    """Collects the signs of a noisy machine."""

    def __init__(self):
        self.p95_over_median = 0.0
        self.tcp_timeouts = 0

    def note_one_worker(self, run):
        seconds = run.step_seconds()
        self.p95_over_median = max(self.p95_over_median, seconds[int(0.95 * len(seconds))] / seconds[len(seconds) // 2])

    def note_timeouts(self, count):
        self.tcp_timeouts += count

    def verdict(self):
        """`measured`, or `noisy machine, skipped because ...`."""
        reasons = []
        if self.p95_over_median > MOST_P95_OVER_MEDIAN:
            reasons.append(f"the 95th percentile of one worker's steps was {self.p95_over_median:.2f} times their median, over {MOST_P95_OVER_MEDIAN}")
        if self.tcp_timeouts > 0:
            reasons.append(f"{self.tcp_timeouts} TCP timeouts occurred")
        return f"noisy machine, skipped because {' and '.join(reasons)}" if reasons else "measured"

    def as_json(self):
        return {
            "verdict": self.verdict(),
            "one_worker_p95_over_median": round(self.p95_over_median, 4),
            "tcp_timeouts": self.tcp_timeouts,
            "load_average": float(pathlib.Path("/proc/loadavg").read_text().split()[0]),
        }
