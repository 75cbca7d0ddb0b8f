"""Tests name a clock only where README.md in this folder says so, and a tree whose tests do not keep to that is found out."""

import os
import tempfile
import unittest

from clock_rules import Places, clock_faults, clock_lines

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

TABLE = """
```clocks
file               | lines | why
tests/wait.h       | 2     | the wait
tests/bench/       |       | speed
```
"""

KEEPS_THE_TABLE = {
    "tests/wait.h": "auto a = steady_clock::now();\nsleep_for(b);\n",
    "tests/bench/row.cc": "absl::Now();\n",
    "tests/core/a_test.cc": "EXPECT_EQ(step.time(), 3);  // its makespan\nasleep(1); Eventually(done);\n",
    "tests/e2e/a_test.py": "eventually(lambda: done, 'it is done')\ncall(timeout=PATIENCE_SECONDS)\nself.assertLess(reply.step_seconds, 3)\n",
    "tests/e2e/node_modules/x/x.js": "setTimeout(f, 3);\n",
    "core/engine/run.cc": "steady_clock::now();\n",
}

BAD = {
    "a.cc": (
        "std::chrono::steady_clock::now();", "using Clock = std::chrono::system_clock;", "high_resolution_clock::now();", "absl::Now();", "absl::SleepFor(a);",
        "std::this_thread::sleep_for(a);", "std::this_thread::sleep_until(a);", "usleep(3);", "sleep(3);", "nanosleep(&a, &b);", "clock_gettime(CLOCK_MONOTONIC, &a);",
        "std::clock();", "clock();", "time(nullptr);", "#include <ctime>", "gettimeofday(&a, b);", "getrusage(a, &b);", "const RealClock clock;", "future.wait_for(a);",
        "changed.wait_until(lock, a);", "semaphore.try_acquire_for(a);", "done.WaitForNotificationWithTimeout(a);", "EXPECT_LT(reply.engine_seconds(), 3);", "ASSERT_LE(elapsed, a);",
    ),
    "a.py": (
        "import time", "import os, time", "from time import sleep as rest", "    import time as t", "begin = perf_counter()", "datetime.datetime.now()", "import timeit",
        "import asyncio", "threading.Timer(3, f)", "threading.Event().wait(0.1)", "thread.join(3)", "thread.join(timeout=3)", "call(request, timeout=30)", "__import__(name)",
        "self.assertLess(reply.simulation.engine_seconds, 6)", "self.assertLessEqual(elapsed, 6)", "self.assertLess(took, LIMIT_MS)",
    ),
    "a.mjs": ("Date.now();", "new Date();", "performance.now();", "setTimeout(f, 3);", "await page.waitForTimeout(3);"),
    "a.sh": ("sleep 3", "true; sleep 0.1", "echo $SECONDS"),
}


def faults_of(changes, table=TABLE):
    with tempfile.TemporaryDirectory() as top:
        for path, text in {**KEEPS_THE_TABLE, **changes}.items():
            os.makedirs(os.path.join(top, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write(text)
        return clock_faults(top, Places(table))


class ClocksTest(unittest.TestCase):
    def test_tests_name_no_clock_but_where_the_table_says(self):
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
            places = Places(readme.read())
        self.assertGreater(len(list(clock_lines(TOP))), 50)
        found = clock_faults(TOP, places)
        self.assertFalse(found, "\n" + "\n".join(found))


class BadClocksTest(unittest.TestCase):
    def test_a_tree_that_keeps_the_table_has_no_faults(self):
        self.assertEqual(faults_of({}), [])

    def test_a_clock_elsewhere_is_found_in_any_language(self):
        for name, lines in BAD.items():
            for line in lines:
                with self.subTest(line):
                    (found,) = faults_of({f"tests/core/{name}": f"\n{line}\n"})
                    self.assertRegex(found, rf"^tests/core/{name}:2: `.+`: no verdict of a test hangs on a clock")

    def test_one_line_more_than_the_table_allows_is_found(self):
        (found,) = faults_of({"tests/wait.h": KEEPS_THE_TABLE["tests/wait.h"] + "sleep_for(c);\n"})
        self.assertEqual(found, "tests/wait.h:3: `sleep_for`: the table allows 2 lines of tests/wait.h")

    def test_a_row_that_allows_more_than_there_is_is_found(self):
        self.assertEqual(faults_of({"tests/wait.h": "sleep_for(b);\n"}), ["the table allows 2 in tests/wait.h, which has 1: make it less"])
        self.assertEqual(faults_of({"tests/bench/row.cc": ""}), ["the table allows clocks in tests/bench/, which has 0: make it less"])

    def test_a_row_without_a_reason_is_found(self):
        self.assertEqual(faults_of({}, TABLE.replace("speed", "     ")), ["the table has no reason for tests/bench/"])


if __name__ == "__main__":
    unittest.main()
