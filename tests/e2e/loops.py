"""The scheduler's loop of client/examples in each language, run, and what it printed."""

import os
import re
import subprocess

from sample import TOP
from stepcastd import PATIENCE_SECONDS

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(TOP, "client", "examples")
PACKAGES = os.path.join(HERE, "node_modules")
ANSWER = re.compile(r"([a-z0-9-]+): (?:(\d+) workers, ([\d.]+) examples/s, ([\d.]+) ms|([A-Z_]+))")
ROUND = re.compile(r"round: ([\d.e+]+) ms")


def commands():
    """language -> what runs it, those that this machine has."""
    known = {"C++": [os.environ["STEPCAST_EXAMPLE"]], "Python": ["/usr/bin/python3", "-B", os.path.join(EXAMPLES, "scheduler.py")]}
    if os.path.isdir(os.path.join(PACKAGES, "@grpc", "grpc-js")):
        known["Node"] = ["node", os.path.join(EXAMPLES, "scheduler.js")]
    return known


def run_loop(command, address, seconds, rounds, jobs):
    """(answers, milliseconds): for every round a list of matches of ANSWER, and how long each round took."""
    done = subprocess.run(
        [*command, address, str(seconds), str(rounds), *jobs],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * PATIENCE_SECONDS, check=False,
        env={**os.environ, "NODE_PATH": PACKAGES, "PYTHONPATH": os.environ["STEPCAST_STUBS"]},
    )
    if done.returncode or done.stderr:
        raise RuntimeError(f"{command}: status {done.returncode}: {done.stderr}")
    answers, milliseconds = [[]], []
    for line in done.stdout.splitlines():
        if match := ROUND.fullmatch(line):
            milliseconds.append(float(match[1]))
            answers.append([])
        elif match := ANSWER.fullmatch(line):
            answers[-1].append(match)
        else:
            raise RuntimeError(f"{command} printed {line!r}")
    return answers[:-1], milliseconds
