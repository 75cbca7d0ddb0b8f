"""Calls with the outcome they must have, counted, and those that had another."""

import collections
import threading

from e2e import details_of, grpc

OK = grpc.StatusCode.OK
MAX_PAUSE_SECONDS = 1


class Expectation:
    """Any number of threads may share one. `outcomes` counts by name, code and reason; `violations` names what was not expected.

    Whom a full queue sends away comes again: with huge computations about, a queue is full because of what is expected of them.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.outcomes, self.violations = collections.Counter(), []

    def expect(self, name, call, *expected):
        """The reply of `call()`, or None; `expected` are pairs of codes and reasons, (OK, "") where there are none."""
        while True:
            reply, code, reason, details = None, OK, "", None
            try:
                reply = call()
            except grpc.RpcError as error:
                details = details_of(error)
                code, reason = details.code, details.reason
            with self.lock:
                self.outcomes[name, code.name, reason] += 1
            if (code, reason) in (expected or ((OK, ""),)):
                return reply
            if reason != "QUEUE_FULL":
                self.violate(f"{name}: {code.name} {reason}, not {' or '.join(f'{each.name} {why}' for each, why in expected) or 'OK'}: {details}")
                return None
            threading.Event().wait(min(details.retry_delay_seconds, MAX_PAUSE_SECONDS))

    def violate(self, what):
        with self.lock:
            self.violations.append(what)

    def total(self):
        with self.lock:
            return sum(self.outcomes.values())
