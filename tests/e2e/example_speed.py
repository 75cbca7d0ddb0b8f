"""The speed of the scheduler's loop in each language: 100 jobs at once, again and again, against one server.

Prints a table: the languages take turns, so that what else the machine does hits all alike. Needs what `./dev build` and `./dev test tests/e2e` make.

Usage: /usr/bin/python3 tests/e2e/example_speed.py [--jobs N] [--rounds N] [--turns N]
"""

import argparse
import os
import statistics
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build", "dev")
for variable, path in (("STEPCASTD", "server/app/stepcastd"), ("STEPCAST_EXAMPLE", "tests/e2e/stepcast_example_scheduler"), ("STEPCAST_STUBS", "tests/e2e/stubs")):
    os.environ.setdefault(variable, os.path.join(BUILD, path))

from contract import recommendation_pb2, store  # noqa: E402
from loops import commands, run_loop  # noqa: E402
from sample import message, small  # noqa: E402
from stepcastd import PATIENCE_SECONDS, Server  # noqa: E402


def make_known(server, request):
    """Asks until the server answers from memory, so that the time is the clients'. What a time budget cuts short is not kept."""
    server.predictions.RecommendWorkers(request, timeout=PATIENCE_SECONDS)
    request.options.time_budget.seconds = 1
    for _ in range(20):
        if server.predictions.RecommendWorkers(request, timeout=PATIENCE_SECONDS).simulation.cached:
            return
    raise RuntimeError(f"{request.profile} was never answered from memory")


def measure(options, server, jobs):
    """language -> (milliseconds of every round, milliseconds of every call), without each turn's first round, which connects."""
    for job in jobs:
        make_known(server, recommendation_pb2.RecommendWorkersRequest(profile=f"profiles/{job}"))
    seen = {language: ([], []) for language in commands()}
    for _ in range(options.turns):
        for language, command in commands().items():
            answers, rounds = run_loop(command, server.address, 0, options.rounds + 1, jobs)
            seen[language][0].extend(rounds[1:])
            for each in answers[1:]:
                failed = [match[0] for match in each if match[5]]
                if failed:
                    raise RuntimeError(f"{language}: {failed[0]}")
                seen[language][1].extend(float(match[4]) for match in each)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100, help="asked about at once; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=50, help="of each turn; default: %(default)s")
    parser.add_argument("--turns", type=int, default=3, help="of each language; default: %(default)s")
    options = parser.parse_args()
    server = Server()
    try:
        jobs = [f"job-{index}" for index in range(options.jobs)]
        # The same under every name: what is measured is how fast answers that the server knows are fetched.
        for job in jobs:
            server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small()), profile_id=job))
        print(f"{options.jobs} jobs at once, {options.turns} x {options.rounds} rounds, one machine of {os.cpu_count()} processors")
        print("client    calls/s   call p50   call p99  round p50  round p99")
        for language, (rounds, calls) in measure(options, server, jobs).items():
            figures = [*(statistics.quantiles(calls, n=100)[at] for at in (49, 98)), *(statistics.quantiles(rounds, n=100)[at] for at in (49, 98))]
            print(f"{language:8}  {1e3 * len(calls) / sum(rounds):7.0f}  " + "  ".join(f"{figure:6.1f} ms" for figure in figures))
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
