"""Waits for servers and other processes: the one place where tests in Python look at a clock.

Each wait ends by what it waits for. PATIENCE_SECONDS only turns a hang into a failure, so it is longer than any machine takes, however busy; no verdict may
hang on how long something took.
"""

import os
import threading
import time

PATIENCE_SECONDS = int(os.environ.get("STEPCAST_PATIENCE_SECONDS", "300"))
# A deadline that passes: for calls whose work takes far longer on any machine, begun or not.
PASSING_SECONDS = 0.5


def eventually(condition, what, pause=0.005):
    """Returns once `condition()` holds; a hang is an AssertionError with `what`: a text, or a function that makes one."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what if isinstance(what, str) else what()}")
        threading.Event().wait(pause)


def growing_seconds(first):
    """Each is twice the one before: deadlines, one of which leaves even the busiest machine the time to begin."""
    seconds = first
    while seconds < PATIENCE_SECONDS:
        yield seconds
        seconds *= 2
    raise AssertionError(f"not begun within {seconds / 2} s")
