"""What a process takes, over time, and whether that stays what it is."""

import dataclasses
import os
import statistics
import threading
import time

PAUSE_SECONDS = 0.5
MAX_GROWTH = 0.10
MAX_MORE_DESCRIPTORS = 4
# Before that, what is kept for speed still fills.
MIN_SECONDS_TO_JUDGE_MEMORY = 120


@dataclasses.dataclass
class Sample:
    seconds: float
    resident_bytes: int
    descriptors: int
    threads: int


def sample(pid, seconds=0.0):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        fields = dict(line.split(":", 1) for line in status)
    return Sample(seconds, 1024 * int(fields["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"]))


def growth(samples):
    """Of memory, from the middle third of a run to its last: 0.1 is a tenth."""
    third = (samples[-1].seconds - samples[0].seconds) / 3
    middle, last = ([each.resident_bytes for each in samples if begin <= each.seconds - samples[0].seconds <= begin + third] for begin in (third, 2 * third))
    return statistics.mean(last) / statistics.mean(middle) - 1


def violations(samples, early, late):
    """Sentences about what grew; `early` and `late` are samples at rest."""
    found = []
    if samples[-1].seconds - samples[0].seconds >= MIN_SECONDS_TO_JUDGE_MEMORY and growth(samples) > MAX_GROWTH:
        found.append(f"memory of the last third is {growth(samples):.1%} above that of the middle third")
    if late.descriptors > early.descriptors + MAX_MORE_DESCRIPTORS:
        found.append(f"{late.descriptors} descriptors at rest at the end, {early.descriptors} after the first fifth")
    return found


class UsageWatch(threading.Thread):
    """Samples a process until it is stopped, or the process is gone."""

    def __init__(self, pid):
        super().__init__(name="usage")
        self.pid, self.samples, self.over = pid, [], threading.Event()

    def run(self):
        began = time.monotonic()
        try:
            while not self.over.wait(PAUSE_SECONDS):
                self.samples.append(sample(self.pid, time.monotonic() - began))
        except (FileNotFoundError, ProcessLookupError, KeyError):
            pass  # whoever started it finds out why

    def stop(self):
        self.over.set()
        self.join()
