"""Predictions of real pipelines from a trace of one process, through the command line, and the testbed's own parts."""

import json
import os
import pathlib
import statistics
import sys
import tempfile
import unittest

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "pp"), str(_HERE / "ddp"), str(_HERE / "runner")]

import chains  # noqa: E402
import machine  # noqa: E402
import pipelines  # noqa: E402
import predictions  # noqa: E402
import training  # noqa: E402
from pipelines import Constants, Point  # noqa: E402

DATA = _HERE.parent / "data" / "pp"
# Of ping-pongs on the machine of tests/data/pp.
CONSTANTS = Constants(transfer=350e-6, round=259e-6)


def points():
    for one in json.loads((DATA / "plain_and_measured.json").read_text())["measured"]:
        if not one["send_after_allreduce"]:
            yield Point(
                one["model"], one["stages"], one["replicas"], one["schedule"], one["p2p"], one["microbatches"], 0.11955 * one["rate"], one["mean"]
            ), one["boundaries"]


class ChainsTest(unittest.TestCase):
    def test_stages_are_those_that_were_measured(self):
        for point, boundaries in points():
            self.assertEqual(chains.chain(point.chain).boundaries(point.stages), boundaries)

    def test_a_micro_batch_takes_90_ms_and_stages_share_all_parameters(self):
        for name in pipelines.CHAINS:
            chain = chains.chain(name)
            self.assertAlmostEqual(chain.seconds, 0.09)
            for stages in (1, 2, 3):
                self.assertAlmostEqual(sum(chains.share_of(chain, stage, stages) for stage in range(stages)), 1)
        self.assertEqual(chains.chain("alexnet_p").shape_into(2), (32, 64, 13, 13))

    def test_an_unknown_chain_is_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "'vgg'"):
            chains.chain("vgg")


class ConstantsTest(unittest.TestCase):
    def test_are_what_messages_take_beyond_their_bytes(self):
        rate, workers = 1e8, 4
        bytes_seconds = pipelines.MESSAGE_BYTES / rate
        reduction = 2 * 3 * (pipelines.REDUCED_BYTES / 4 / rate + 200e-6)
        messages = [{"posted": [float(i) for i in range(9)], "arrived": [], "reductions": [0.9 * reduction] * 9}]
        messages += [{"posted": [], "arrived": [i + bytes_seconds + 350e-6 for i in range(9)], "reductions": [reduction] * 9}]
        messages += [{"posted": [], "arrived": [], "reductions": [reduction] * 9}] * 2
        found = pipelines.constants_of(messages, workers, rate)
        self.assertAlmostEqual(found.transfer, 350e-6)
        self.assertAlmostEqual(found.round, 200e-6)


class PredictionTest(unittest.TestCase):
    """Every fourth of the points that were measured, as the testbed asks for them."""

    def test_predictions_from_one_process_are_near_what_was_measured(self):
        stepcast = os.environ["STEPCAST"]
        with tempfile.TemporaryDirectory() as folder:
            profiles = {
                name: predictions.import_trace(stepcast, DATA / f"{name}-plain.json.gz", chains.chain(name).batch, 119_550_000, folder)
                for name in pipelines.CHAINS
            }
            asked = [point for point, _ in points()][::4]
            compared = pipelines.compare(stepcast, profiles, [(asked, CONSTANTS)])
        errors = [abs(predicted / point.measured - 1) for point, predicted in compared]
        simple = [abs(pipelines.bubble_formula(point) / point.measured - 1) for point, _ in compared]
        self.assertGreaterEqual(len(errors), 15)
        self.assertLess(statistics.fmean(errors), 0.025)
        self.assertLess(max(errors), 0.08)
        self.assertGreater(statistics.fmean(simple), 0.2)
        text = pipelines.table(compared)
        self.assertEqual(sum(line.startswith(("| alexnet_p", "| transformer_p")) for line in text.splitlines()), len(asked))


class LiveTest(unittest.TestCase):
    """A short run of real stages, where the machine can: whatever its speed, what is handed on is right."""

    def test_two_stages_hand_on_what_they_should_in_every_way_of_receiving(self):
        lack = training.missing()
        if lack:
            self.skipTest(f"this machine lacks {lack}")
        quiet = machine.Quiet()
        runs = [("1f1b", "eager", 3), ("1f1b", "fused", 3), ("1f1b", "paired", 3), ("gpipe", "late", 3)]
        found, constants = pipelines.measure(2, 1, quiet, names=("alexnet_p",), runs=runs, steps=pipelines.SETTLING_STEPS + 3, say=lambda *_, **__: None)
        self.assertEqual([(one.schedule, one.receives) for one in found], [run[:2] for run in runs])
        self.assertTrue(all(one.measured > 0 for one in found))
        self.assertGreaterEqual(constants.transfer, 0)


if __name__ == "__main__":
    unittest.main()
