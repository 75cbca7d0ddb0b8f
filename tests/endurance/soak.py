"""One server under all kinds of load for long: nothing unexpected comes, and neither memory nor descriptors grow.

Run it as `./dev endure soak`.
"""

import argparse
import math
import os
import random
import re
import sys
import time

import usage
from e2e import PATIENCE_SECONDS, Server, operations_pb2, operations_pb2_grpc, store
from expectation import Expectation
from soak_client import SoakClient

CLIENTS = 6
# Caches are small, so that they are soon full.
# Nor does a computation that will be cancelled take so long that others could not wait for it.
FLAGS = (
    *("--threads", "2", "--max-job-seconds", "60"),
    *("--max-answer-cache-bytes", "1000000", "--max-run-cache-bytes", "1000000", "--max-profile-cache-bytes", "1000000"),
)
# Of the address sanitizer: what is freed goes back soon, and less is noted of where it came from; else memory grows for long.
SANITIZER = "quarantine_size_mb=16:malloc_context_size=5"
REPORT = re.compile(r"^.*(?:ERROR: \w+Sanitizer|runtime error:|Assertion .* failed).*$", re.M)
ROWS_EVERY_SECONDS = 30
REST_SECONDS = 3


class Soak:
    """One run. `violations` is empty where all was as it should be."""

    def __init__(self, seconds, seed):
        self.seconds, self.seed = seconds, seed
        self.expectation = Expectation()
        os.environ["ASAN_OPTIONS"] = SANITIZER
        self.server = Server(*FLAGS)
        self.watch = usage.UsageWatch(self.server.process.pid)
        self.began = time.monotonic()
        self.rests, self.faults = [], []

    @property
    def violations(self):
        return self.faults + self.expectation.violations

    def run(self, show=print):
        self.watch.start()
        show("seconds   calls  resident MiB  descriptors  threads")
        try:
            for share in (0.2, 0.8):
                self._work(share * self.seconds, show)
                self.rests.append(self._rest())
                show(self._row(self.rests[-1]) + "  at rest")
        finally:
            self.watch.stop()
            self._end()
        self.faults += usage.violations(self.watch.samples, *self.rests)

    def _work(self, seconds, show):
        clients = [SoakClient(number, f"{self.seed} {len(self.rests)}", self.server, self.expectation) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.server.process.poll() is None:
            time.sleep(min(left, ROWS_EVERY_SECONDS))
            if self.watch.samples:
                show(self._row(self.watch.samples[-1]))
        for client in clients:
            client.over.set()
        for client in clients:
            client.join()

    def _rest(self):
        """What the server takes once nobody asks it for anything: what it is slow to close is closed."""
        least = usage.sample(self.server.process.pid)
        begin = time.monotonic()
        # At the end as long as it takes to close what is open: only what is never closed grew.
        most = self.rests[0].descriptors + usage.MAX_MORE_DESCRIPTORS if self.rests else math.inf
        while (waited := time.monotonic() - begin) < REST_SECONDS or (least.descriptors > most and waited < PATIENCE_SECONDS):
            time.sleep(usage.PAUSE_SECONDS)
            now = usage.sample(self.server.process.pid, time.monotonic() - self.began)
            least = min(least, now, key=lambda each: each.descriptors)
        for name, listed in (
            ("profile", self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles),
            ("operation", operations_pb2_grpc.OperationsStub(self.server.channel).ListOperations(operations_pb2.ListOperationsRequest()).operations),
        ):
            self.faults += [f"a {name} that nobody knows of: {each.name}" for each in listed]
        return least

    def _row(self, sample):
        seconds = time.monotonic() - self.began
        return f"{seconds:7.0f} {self.expectation.total():7} {sample.resident_bytes / 2**20:13.1f} {sample.descriptors:12} {sample.threads:8}"

    def _end(self):
        if self.server.process.poll() is not None:
            self.faults.append("the server ended by itself")
        # First, because an idle client answers the server's farewell only every five seconds.
        self.server.channel.close()
        self.server.terminate()
        status = self.server.wait()
        errors = self.server.errors()
        self.server.close()
        if status != 0:
            self.faults.append(f"exit status {status}: {errors[-3000:]}")
        self.faults += [f"the log has: {line}" for line in REPORT.findall(errors)]

    def report(self):
        """What happened, a line each."""
        for (name, code, reason), count in sorted(self.expectation.outcomes.items()):
            yield f"{name:30} {count:7} {code} {reason}".rstrip()
        if len(self.watch.samples) > 2:
            yield f"memory: {usage.growth(self.watch.samples):+.1%} from the middle third to the last"
        yield f"descriptors at rest: {', '.join(str(rest.descriptors) for rest in self.rests)}"
        yield from (f"VIOLATION: {violation}" for violation in self.violations)
        yield f"{self.seconds} s, seed {self.seed}: {self.expectation.total()} calls, {len(self.violations)} violations"


def main():
    parser = argparse.ArgumentParser(prog="./dev endure soak [--preset PRESET]", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600, help="of load; default: %(default)s")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000), help="of who asks what; default: any")
    options = parser.parse_args()
    soak = Soak(options.seconds, options.seed)
    soak.run(show=lambda line: print(line, flush=True))
    for line in soak.report():
        print(line, flush=True)
    return 1 if soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
