"""Makes calls the way a careful client does: what may be repeated is repeated until it succeeds."""

import collections
import random
import re
import threading
import time

from e2e import PATIENCE_SECONDS, details_of, grpc

DEADLINE_SECONDS = 2 * PATIENCE_SECONDS
# For one call with all its repetitions.
MAX_SECONDS = 4 * PATIENCE_SECONDS
MAX_PAUSE_SECONDS = 1
LATER = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED}


class CallFailed(Exception):
    """A call ended as none should, or never."""


class Caller:
    """Any number of threads may share one.

    `errors` counts what gRPC, having made its own repetitions, returned, by method, code and reason; `calls` the calls that succeeded by method, and
    `repeated` how many of those took more than one attempt.
    """

    def __init__(self):
        self.lock, self.given_up = threading.Lock(), threading.Event()
        self.errors, self.calls, self.repeated = collections.Counter(), collections.Counter(), collections.Counter()

    def call(self, method, stub, request, also=frozenset()):
        """(reply, attempts), where the reply is the code if that is in `also`."""
        give_up = time.monotonic() + MAX_SECONDS
        attempts = 0
        while True:
            attempts += 1
            try:
                reply = stub(request, timeout=DEADLINE_SECONDS)
            except grpc.RpcError as error:
                if error.code() in also:
                    reply = error.code()
                else:
                    self._fail_or_pause(method, error, give_up, attempts)
                    continue
            with self.lock:
                self.calls[method] += 1
                self.repeated[method] += attempts > 1
            return reply, attempts

    def total(self):
        """Calls that succeeded."""
        with self.lock:
            return self.calls.total()

    def give_up(self):
        """What fails now is not repeated any more."""
        self.given_up.set()

    def _fail_or_pause(self, method, error, give_up, attempts):
        details = details_of(error)
        # gRPC's own errors have no reason, and name addresses and times.
        reason = details.reason or "gRPC: " + re.sub(r"[\d.:]+", "*", details.message or "")[:60]
        with self.lock:
            self.errors[method, error.code().name, reason] += 1
        if error.code() not in LATER or time.monotonic() > give_up or self.given_up.is_set():
            raise CallFailed(f"{method}, attempt {attempts}: {error.code().name} {reason}: {details.message}")
        pause = details.retry_delay_seconds or 0.05 * 2 ** min(attempts, 5)
        self.given_up.wait(random.SystemRandom().uniform(0.5, 1) * min(pause, MAX_PAUSE_SECONDS))
