"""Layouts over devices, and what measured runs say of other numbers of them, from the real server."""

import json
import os
import subprocess
import tempfile
import unittest

from contract import details_of, from_json, grpc, layout_pb2, pipeline_pb2, prediction
from pipeline_test import layers
from sample import message
from stepcastd import PATIENCE_SECONDS, ServerTest

# MLPerf Training's result logs (Apache-2.0): GPT-3 175B, v3.1, on H100, and Llama 3.1 405B, v5.0, on GB200; both 8 stages, of 12 and 8 chunks.
GPT3 = [(512, 128, 11.05199), (768, 128, 11.07508), (4096, 16, 1.60865), (6144, 16, 1.61527), (8192, 16, 1.61915), (10240, 8, 0.92552), (10752, 8, 0.92957)]
LLAMA = [(256, 112, 19.1441), (512, 112, 19.47471), (512, 112, 19.31441), (1024, 48, 8.44834), (1536, 48, 8.50455), (2048, 40, 7.1636), (2496, 32, 5.82622)]


def runs(measured, chunks):
    return [{"devices": n, "pipeline": {"stages": 8, "chunks": chunks, "micro_batches": m}, "step_seconds": seconds} for n, m, seconds in measured]


def with_memory(profile, bytes_kept):
    for operation in profile["operations"]:
        if operation.get("pass") == "FORWARD":
            operation["kept_bytes"] = bytes_kept
    return profile


class FitRunsTest(ServerTest):
    def fit(self, request):
        return self.server.predictions.FitRuns(from_json(layout_pb2.FitRunsRequest(), request), timeout=PATIENCE_SECONDS)

    def test_two_small_jobs_tell_the_large_ones(self):
        for measured, chunks, fitted in ((GPT3, 12, [512, 4096]), (LLAMA, 8, [256, 1024])):
            reply = self.fit({"runs": runs(measured, chunks)})
            self.assertEqual([n for (n, _, _), run in zip(measured, reply.runs) if run.fitted], fitted)
            others = sorted(abs(run.relative_error) for run in reply.runs if not run.fitted)
            self.assertLessEqual(others[(len(others) - 1) // 2], 0.01)
            self.assertLessEqual(others[-1], 0.02)
            linear = [run.linear_relative_error for run in reply.runs]
            self.assertLess(min(linear), -0.05)
            for (_, _, seconds), run in zip(measured, reply.runs):
                self.assertLess(run.step_interval.lower, seconds)
                self.assertGreater(run.step_interval.upper, seconds)
            self.assertLess(reply.seconds_per_micro_batch_interval.lower, reply.seconds_per_micro_batch)
            self.assertGreater(reply.rest_seconds_interval.upper, reply.rest_seconds)

    def test_a_run_that_was_not_measured_is_predicted(self):
        asked = runs(GPT3[:3], 12)
        asked.append({"devices": 10752, "pipeline": {"stages": 8, "chunks": 12, "micro_batches": 8}})
        run = self.fit({"runs": asked, "basis": "ALL_RUNS"}).runs[3]
        self.assertLess(abs(run.step_seconds / 0.92957 - 1), 0.02)
        self.assertFalse(run.HasField("relative_error"))

    def test_bad_runs_are_refused_by_name(self):
        good = runs(GPT3, 12)
        for change, field, says in (
            ({"runs": good[:1]}, "runs", "1 given"),
            ({"runs": [{**run, "step_seconds": None} for run in good]}, "runs", "none has step_seconds"),
            ({"runs": [{**good[0], "devices": 0}, *good[1:]]}, "runs[0].devices", "0 is not"),
            ({"runs": [{**good[0], "step_seconds": -1}, *good[1:]]}, "runs[0].step_seconds", "-1"),
            ({"runs": [{**good[0], "step_seconds": "NaN"}, *good[1:]]}, "runs[0].step_seconds", "nan"),
            ({"runs": [*good, {**good[0], "pipeline": {"stages": 0, "micro_batches": 8}}]}, "runs[7].pipeline.stages", "0 is not"),
            ({"runs": [*good, {**good[0], "pipeline": {"stages": 8, "micro_batches": 0}}]}, "runs[7].pipeline.micro_batches", "0"),
            ({"runs": good, "confidence_level": 2}, "confidence_level", "2"),
            ({"runs": good, "basis": 9}, "basis", "9"),
            ({"runs": runs([(64, 8, 2.0), (128, 16, 1.0)], 1)}, "runs[1].step_seconds", "contradict runs[0]"),
        ):
            with self.subTest(field=field):
                with self.assertRaises(grpc.RpcError) as raised:
                    self.fit(change)
                details = details_of(raised.exception)
                self.assertEqual((details.code.name, details.reason), ("INVALID_ARGUMENT", "REQUEST_INVALID"))
                self.assertIn(says, details.violations[field])

    def test_no_step_is_below_zero(self):
        reply = self.fit({"runs": [*runs([(8, 8, 1.0), (16, 80, 12)], 1), {"devices": 8, "pipeline": {"stages": 8, "micro_batches": 1}}]})
        self.assertEqual([warning.reason for warning in reply.warnings], [prediction.Warning.REST_BELOW_ZERO])
        self.assertEqual(reply.rest_seconds, 0)
        self.assertGreater(reply.runs[2].step_seconds, 0)

    def test_fits_of_several_jobs_are_named_in_json(self):
        lines = ["job,devices,stages,micro_batches,step_seconds", "good,64,8,8,1.0", "good,128,8,16,1.6", "bad,64,8,8,2.0", "bad,128,8,16,1.0"]

        def fit(rows):
            command = [os.environ["STEPCAST"], "layout", "fit", "-", "--output", "json"]
            done = subprocess.run(command, input="\n".join(rows), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        good, bad = fit(lines)
        self.assertEqual((good["job"], bad["job"]), ("good", "bad"))
        self.assertEqual(good["fit"], fit(lines[:3]))
        self.assertEqual(bad["error"]["violations"][0]["field"], "runs[1].step_seconds")

    def test_the_command_line_fits_a_table(self):
        lines = ["benchmark,gpus,pp,vp,grad_acc,step_s_median"]
        lines += [f"gpt3,{n},8,12,{m},{seconds}" for n, m, seconds in GPT3] + [f"llama,{n},8,8,{m}.0,{seconds}" for n, m, seconds in LLAMA]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "runs.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            done = subprocess.run([os.environ["STEPCAST"], "layout", "fit", path], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("others: 5"), 2)
            self.assertNotIn("assumed: no rest", done.stdout)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join([lines[0], lines[1], "gpt3,1024,16,12,32,"]))
            done = subprocess.run([os.environ["STEPCAST"], "layout", "fit", path], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertIn("assumed: no rest", done.stdout, done.stderr)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join([lines[0], "", lines[1], "gpt3,7,2,12,32,1", "gpt3,16,8,12,16,1.1"]))
            done = subprocess.run([os.environ["STEPCAST"], "layout", "fit", path], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("line 4, devices: 7 are no whole pipelines of 2 stages", done.stderr)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join([lines[0], "gpt3,8,8,8,9,1.0", "gpt3,8,8,8,17,1.8"]))
            done = subprocess.run([os.environ["STEPCAST"], "layout", "fit", path], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertIn(" rest ", done.stdout, done.stderr)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join([lines[0], "gpt3,512,8,12,many,1"]))
            done = subprocess.run([os.environ["STEPCAST"], "layout", "fit", path], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("line 2: micro_batches", done.stderr)


class RecommendLayoutTest(ServerTest):
    def ask(self, profile, request):
        asked = from_json(layout_pb2.RecommendLayoutRequest(inline_profile=message(profile)), request)
        return self.server.predictions.RecommendLayout(asked, timeout=PATIENCE_SECONDS)

    def test_layouts_that_fit_are_ranked_and_the_others_refused(self):
        # 16 layers that keep 1 GB of a micro-batch each, and 4 x 0.5 GB of parameters and what is kept with them.
        profile = with_memory(layers(16, gradient_bytes=[500000000] * 16), 1000000000)
        everything = self.ask(profile, {"devices": 16, "micro_batches": 16, "scenario": {"bandwidth_bytes_per_second": 25e9}})
        self.assertEqual(everything.refused_count, len([r for r in everything.refused]))
        request = {"devices": 16, "micro_batches": 16, "memory_bytes": 24000000000, "scenario": {"bandwidth_bytes_per_second": 25e9}}
        reply = self.ask(profile, request)
        self.assertGreater(len(reply.layouts), 1)
        rates = [layout.prediction.examples_per_second for layout in reply.layouts]
        self.assertEqual(rates, sorted(rates, reverse=True))
        for layout in reply.layouts:
            self.assertEqual(layout.workers * layout.pipeline.stages, 16)
            self.assertEqual(layout.prediction.devices, 16)
            self.assertLessEqual(layout.memory_bytes, 24000000000)
            # One forward in flight of 16 layers alone is 16 GB, and 4 x 8 GB of parameters beside it.
            self.assertGreater(layout.pipeline.stages, 1)
            interval = layout.prediction.confidence_interval
            self.assertLess(interval.lower, layout.prediction.examples_per_second)
            self.assertGreater(interval.upper, layout.prediction.examples_per_second)
        self.assertLess(abs(sum(layout.probability_best for layout in reply.layouts) - 1), 0.01)
        memory = [refused for refused in reply.refused if refused.reason.startswith("memory_bytes")]
        self.assertIn(1, [refused.pipeline.stages for refused in memory])
        self.assertTrue(all("24000000000" in refused.reason for refused in memory))
        # The best of what fits is what PredictThroughput says of it.
        again = self.server.predictions.PredictThroughput(
            prediction.PredictThroughputRequest(inline_profile=message(profile), scenario=reply.layouts[0].prediction.scenario, options=reply.options),
            timeout=PATIENCE_SECONDS,
        )
        self.assertEqual(again.predictions[0].examples_per_second, rates[0])

    def test_layouts_that_deadlock_are_refused_and_unknown_memory_is_a_bound(self):
        request = {"devices": 4, "micro_batches": 8, "scenario": {"pipeline": {"receives": "FUSED"}}}
        reply = self.ask(layers(8), request)
        self.assertEqual({layout.pipeline.schedule for layout in reply.layouts}, {pipeline_pb2.Pipeline.ONE_F_ONE_B})
        self.assertTrue(reply.refused)
        for refused in reply.refused:
            self.assertTrue(refused.reason.startswith("PIPELINE_DEADLOCK: "), refused.reason)
        self.assertEqual([warning.reason for warning in reply.warnings], [prediction.Warning.KEPT_BYTES_NOT_KNOWN])
        self.assertTrue(all(layout.memory_bytes > 0 for layout in reply.layouts))
        self.assertFalse(self.ask(with_memory(layers(8), 1000), request).warnings)

    def test_pruning_loses_no_best_one(self):
        profile = layers(8)
        scenario = {"bandwidth_bytes_per_second": 1e9}
        few = self.ask(profile, {"devices": 8, "micro_batches": 16, "max_layouts": 1, "scenario": scenario})
        all_of_them = self.ask(profile, {"devices": 8, "micro_batches": 16, "max_layouts": 100, "scenario": scenario})
        self.assertEqual(few.layouts[0].pipeline, all_of_them.layouts[0].pipeline)
        self.assertGreater(few.pruned_count, all_of_them.pruned_count - 1)

    def test_examples_of_a_step_are_shared(self):
        reply = self.ask(layers(8), {"devices": 8, "examples_per_step": 3 * 24})
        for layout in reply.layouts:
            self.assertEqual(layout.workers * layout.pipeline.micro_batches, 24)
        self.assertTrue(all(24 % layout.workers == 0 for layout in reply.layouts))

    def test_bad_requests_are_refused_by_name(self):
        known = with_memory(layers(6), 1000000000)
        for profile, request, field, says in (
            (layers(6), {"micro_batches": 8}, "devices", "0 is not"),
            (layers(6), {"devices": 8}, "micro_batches", "required"),
            (layers(6), {"devices": 8, "micro_batches": 0}, "micro_batches", "0"),
            (layers(6), {"devices": 8, "examples_per_step": 7}, "examples_per_step", "multiple of the 3"),
            (known, {"devices": 6, "micro_batches": 8, "memory_bytes": 1000}, "memory_bytes", "fits no layout"),
            (layers(6), {"devices": 6, "micro_batches": 8, "memory_bytes": 1000}, "memory_bytes", "needs at least"),
            (known, {"devices": 6, "micro_batches": 8, "memory_bytes": -1}, "memory_bytes", "-1"),
            (known, {"devices": 6, "micro_batches": 8, "scenario": {"all_reduce": {"sharding": "FULL"}}}, "scenario.all_reduce.sharding", "FULL"),
            ({**layers(6), "devices_per_worker": 4}, {"devices": 6, "micro_batches": 8}, "devices", "6 is not divisible by the 4"),
            (layers(6), {"devices": 6, "micro_batches": 8, "scenario": {"workers": 2}}, "scenario.workers", "chooses"),
            (layers(6), {"devices": 6, "micro_batches": 8, "scenario": {"pipeline": {"stages": 2}}}, "scenario.pipeline.stages", "chooses"),
            (layers(6), {"devices": 6, "micro_batches": 8, "max_layouts": 1000}, "max_layouts", "1000"),
            (layers(6), {"devices": 6, "micro_batches": 8, "schedules": [77]}, "schedules[0]", "77"),
            (layers(6), {"devices": 6, "micro_batches": 8, "schedules": ["ZERO_BUBBLE_1"]}, "devices", "BACKWARD_WEIGHT"),
        ):
            with self.subTest(field=field, says=says):
                with self.assertRaises(grpc.RpcError) as raised:
                    self.ask(profile, request)
                details = details_of(raised.exception)
                self.assertEqual((details.code.name, details.reason), ("INVALID_ARGUMENT", "REQUEST_INVALID"), details.message)
                self.assertIn(field, details.violations)
                self.assertIn(says, details.violations[field])

    def test_the_command_line_prints_layouts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(with_memory(layers(8), 1000000000), file)
            done = subprocess.run(
                [os.environ["STEPCAST"], "layout", path, "--devices", "8", "--memory", "9GB", "--micro-batches", "16", "--bandwidth", "10Gbit/s"],
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            for text in ("1f1b", "interleaved", "refused", "by memory_bytes"):
                self.assertIn(text, done.stdout)


if __name__ == "__main__":
    unittest.main()
