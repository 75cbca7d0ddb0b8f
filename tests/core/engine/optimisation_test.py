"""The engine computes the same to the last bit, whichever engine runs, on however many threads, and however much the compiler optimises."""

import os
import re
import subprocess
import unittest

LEVELS = ("here", "O2")
LINE = re.compile(r"(\w+) threads (\d+) jobs (\d+) digest ([0-9a-f]{16})")


def lines_of(level):
    """What the program of a level of optimisation prints: (engine, threads, jobs on it, digest) for each of its lines."""
    output = subprocess.run([f"{os.environ['PHASE_DIGEST']}_{level}"], capture_output=True, check=True, text=True).stdout
    return [LINE.fullmatch(line).groups() for line in output.splitlines()]


class OptimisationTest(unittest.TestCase):
    def test_one_digest_for_all_levels_engines_and_threads(self):
        lines = {level: lines_of(level) for level in LEVELS}
        kinds = [(engine, threads) for threads in ("1", "8") for engine in ("plain", "worker_loop", "memoised")]
        for level in LEVELS:
            self.assertEqual([line[:2] for line in lines[level]], kinds)
            # Or the comparison says less than it claims.
            for engine, _, jobs, _ in lines[level]:
                self.assertGreaterEqual(int(jobs), 300 if engine == "memoised" else 1000, level)
        self.assertEqual(len({digest for level in LEVELS for *_, digest in lines[level]}), 1, lines)


if __name__ == "__main__":
    unittest.main()
