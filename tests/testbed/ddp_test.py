"""Predictions of real DistributedDataParallel from a trace of one worker, through the command line, and the testbed's own parts."""

import json
import os
import pathlib
import statistics
import sys
import unittest

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "ddp"), str(_HERE / "runner")]

import message_ring  # noqa: E402
import predictions  # noqa: E402
import recordings  # noqa: E402
from message_ring import Constants, all_reduce_ends  # noqa: E402
from network import payload_bytes_per_second  # noqa: E402

DATA = _HERE.parent / "data" / "ddp"


class MessageRingTest(unittest.TestCase):
    def test_a_ring_that_waits_for_nothing_takes_what_its_bytes_take(self):
        for workers in (2, 3, 4, 6):
            for size in (1_000_000, 25_000_000):
                (end,) = all_reduce_ends([size], workers, 1e8)
                self.assertAlmostEqual(end, 2 * (workers - 1) / workers * size / 1e8, delta=1e-4 * end)

    def test_two_at_once_end_as_they_were_measured(self):
        for one in json.loads((DATA / "allreduce.json").read_text()):
            if one["at_once"] == 2 and one["bytes"] == 4_194_304:
                measured = [statistics.median(ends) for ends in zip(*one["ends_s"])]
                predicted = all_reduce_ends([one["bytes"]] * 2, one["workers"], payload_bytes_per_second(one["rate"]))
                for end, found in zip(measured, predicted):
                    self.assertAlmostEqual(found / end, 1, delta=0.035, msg=f"W={one['workers']} at {one['rate']}")

    def test_a_third_waits_for_the_first_to_end(self):
        pair = all_reduce_ends([1_000_000] * 2, 4, 1e8)
        three = all_reduce_ends([1_000_000] * 3, 4, 1e8)
        self.assertEqual(three[0], pair[0])
        self.assertGreater(three[2], three[1])
        self.assertAlmostEqual(three[2], 3 * 1.5 * 0.01, delta=1e-3)

    def test_a_fit_finds_what_all_reduces_of_known_constants_take_and_is_not_moved_by_one_that_was_held_up(self):
        sizes = (4, 262_144, 1_048_576, 4_194_304, 16_777_216)
        for workers in (2, 3, 6):
            for known in (Constants(), Constants(200e-6, 0.0, 0.98), Constants(100e-6, 5e-9, 0.95)):
                measured = [(size, all_reduce_ends([size], workers, 1e8, known)[0]) for size in sizes]
                found, error = message_ring.fit(measured, workers, 1e8)
                self.assertLess(error, 0.01, f"{known} W={workers}: {found}")
                held_up = measured[:2] + [(measured[2][0], 1.5 * measured[2][1])] + measured[3:]
                found, _ = message_ring.fit(held_up, workers, 1e8)
                for size, seconds in measured[3:]:
                    self.assertAlmostEqual(all_reduce_ends([size], workers, 1e8, found)[0] / seconds, 1, delta=0.02, msg=f"{known} W={workers}: {found}")


class RecordedTest(unittest.TestCase):
    """Every point of tests/data/ddp, predicted from one trace a model and the benchmark of all-reduces."""

    @classmethod
    def setUpClass(cls):
        entries, _ = recordings.compare(DATA, os.environ["STEPCAST"], simpler=False)
        cls.usual = [one for one in entries if not one["point"].note]
        cls.special = {one["point"].note: one for one in entries if one["point"].note}

    def test_predictions_are_within_what_they_were_measured_to_be(self):
        self.assertEqual(len(self.usual), 30)
        told = predictions.summary(self.usual)
        self.assertLess(predictions.mean_absolute_error(self.usual), 0.025, told)
        self.assertEqual([one["point"] for one in self.usual if predictions.is_beyond(one)], [], told)
        for workers in (1, 2, 3, 4, 6):
            group = [one for one in self.usual if one["point"].workers == workers]
            self.assertLess(predictions.mean_absolute_error(group), 0.025, told)

    def test_without_overlap_they_would_not_be(self):
        several = [one for one in self.usual if one["point"].workers > 1]
        self.assertGreater(predictions.mean_absolute_error(several, "no overlap"), 0.1)
        self.assertTrue(all(one["errors"]["no overlap"] < one["errors"]["predicted"] for one in several))

    def test_a_slow_link_and_a_slow_worker_are_predicted(self):
        for note in ("one link of half the rate", "one worker 1.5 times slower", "gradient_as_bucket_view"):
            self.assertLess(abs(self.special[note]["errors"]["predicted"]), 0.025, note)

    def test_buckets_that_communicate_before_the_backward_pass_ends_are_ranked_above_buckets_that_do_not(self):
        # Buckets of 1 MiB at W >= 3 are over-predicted by 3 to 4 %, which is what those of 5 MiB are faster by: not held here.
        held = [one for one in self.usual if one["point"].cap_mib > 1]
        self.assertEqual(predictions.misranked_caps(held), [])
        pairs = {one["point"].workers for one in held if one["point"].model == "resnet50_s" and one["point"].cap_mib == 25}
        self.assertEqual(pairs, {1, 2, 3, 4, 6})


if __name__ == "__main__":
    unittest.main()
