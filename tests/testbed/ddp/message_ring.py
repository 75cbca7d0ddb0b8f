"""gloo's all-reduce as messages on shared links, and its constants fitted to a benchmark of all-reduces.

The rules are those of core/network/message_link.h, written again: all workers do the same at the same time, so one link stands for all;
a message is issued when the one two before it has arrived and been added, and the gathering begins when the last addition has ended.
"""

import itertools
import math
import statistics
from dataclasses import dataclass

_MOST_MESSAGE_BYTES = 1 << 20
_LEAST_MESSAGES_A_CHUNK = 2
# ProcessGroupGloo's threads, each of which carries one all-reduce at a time.
CONCURRENT = 2
# Below, a message fits into what an idle link sends at once and into the sockets' buffers, so it takes less than its bytes.
LEAST_FITTED_BYTES = 200_000


@dataclass(frozen=True)
class Constants:
    latency: float = 0.0  # seconds a message
    addition: float = 0.0  # seconds a byte
    share: float = 1.0  # of the links' payload rate

    def __str__(self):
        return f"{1e6 * self.latency:.0f} us a message, {1e9 * self.addition:.2f} ns a byte, {self.share:.4f} of the rate"


def all_reduce_ends(sizes, workers, bytes_per_second, constants=Constants()):
    """When each of several all-reduces that are asked for together ends, in seconds; sizes in bytes, in the order in which they begin."""
    rings, waiting = [], list(sizes)

    def begin(at):
        size = waiting.pop(0)
        chunk = math.ceil(size / workers)
        parts = max(_LEAST_MESSAGES_A_CHUNK, math.ceil(chunk / _MOST_MESSAGE_BYTES))
        rings.append({"bytes": chunk / parts, "half": parts * (workers - 1), "sent": 0, "issues": [at, at], "added": at, "end": None})

    for _ in range(min(CONCURRENT, len(sizes))):
        begin(0.0)
    free = 0.0
    while any(ring["end"] is None for ring in rings):
        ring = min((ring for ring in rings if ring["end"] is None), key=lambda ring: ring["issues"][0])
        free = max(free, ring["issues"][0]) + ring["bytes"] / (constants.share * bytes_per_second)
        done = free + constants.latency
        ring["sent"] += 1
        if ring["sent"] <= ring["half"]:
            done = ring["added"] = max(done, ring["added"]) + constants.addition * ring["bytes"]
        if ring["sent"] == 2 * ring["half"]:
            ring["end"] = done
            if waiting:
                begin(done)
        ring["issues"] = [done, done] if ring["sent"] == ring["half"] else [ring["issues"][1], done]
    return [ring["end"] for ring in rings]


def fit(measured, workers, bytes_per_second):
    """The Constants with the least mean absolute relative error over [(bytes, seconds)] of all-reduces alone, which one that was held up
    does not move; a search among neighbours, in steps that are halved. Returns them and that error."""
    points = [(size, seconds) for size, seconds in measured if size >= LEAST_FITTED_BYTES]

    def error(values):
        found = Constants(*values)
        return statistics.fmean(abs(all_reduce_ends([size], workers, bytes_per_second, found)[0] / seconds - 1) for size, seconds in points)

    values, steps, bounds = (50e-6, 1e-9, 0.99), (100e-6, 4e-9, 0.02), ((0.0, 1e-3), (0.0, 50e-9), (0.9, 1.0))
    least = error(values)
    while steps[0] > 1e-6:
        around = [
            tuple(min(max(value + sign * step, lower), upper) for value, sign, step, (lower, upper) in zip(values, signs, steps, bounds))
            for signs in itertools.product((-1, 0, 1), repeat=3)
        ]
        best = min(around, key=error)
        if error(best) < least:
            values, least = best, error(best)
        else:
            steps = tuple(step / 2 for step in steps)
    return Constants(*values), least
