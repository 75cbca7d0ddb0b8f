"""What grows is found, what wavers is not."""

import os
import subprocess
import unittest

from usage import Sample, UsageWatch, growth, sample, violations

SECONDS = 300


def samples(bytes_at):
    return [Sample(second, bytes_at(second), 20, 10) for second in range(SECONDS)]


REST = Sample(0, 0, 20, 10)


class UsageTest(unittest.TestCase):
    def test_memory_that_fills_at_first_and_wavers_later_is_flat(self):
        run = samples(lambda second: 1000 * min(second, 60) + second % 7)
        self.assertLess(abs(growth(run)), 0.01)
        self.assertEqual(violations(run, REST, REST), [])

    def test_memory_that_goes_on_growing_is_found(self):
        self.assertIn("memory", *violations(samples(lambda second: 1000 + 10 * second), REST, REST))

    def test_a_short_run_says_nothing_about_memory(self):
        self.assertEqual(violations(samples(lambda second: 1000 + 10 * second)[:100], REST, REST), [])

    def test_descriptors_that_stay_open_are_found(self):
        flat = samples(lambda second: 1000)
        self.assertEqual(violations(flat, REST, Sample(0, 0, 24, 10)), [])
        self.assertIn("25 descriptors", *violations(flat, REST, Sample(0, 0, 25, 10)))

    def test_a_process_is_read_as_it_is(self):
        before = sample(os.getpid())
        with open("/dev/null", encoding="utf-8"):
            self.assertEqual(sample(os.getpid()).descriptors, before.descriptors + 1)
        self.assertGreater(before.resident_bytes, 1 << 20)
        self.assertGreaterEqual(before.threads, 1)

    def test_watching_ends_with_the_process(self):
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        watch = UsageWatch(process.pid)
        watch.start()
        process.communicate()
        watch.join(60)
        self.assertFalse(watch.is_alive())


if __name__ == "__main__":
    unittest.main()
