"""Recordings of several workers of one job: imported in one stream, kept, diagnosed and predicted, by Google's client and by the command line."""

import collections
import gzip
import json
import os
import pathlib
import subprocess
import tempfile

from contract import details_of, diagnosis_pb2, from_json, grpc, prediction, profile_pb2, scenario_pb2, store, trace_pb2
from rank_traces import chakra_ranks, rank_traces
from stepcastd import PATIENCE_SECONDS, ServerTest

import unittest

RANKS = pathlib.Path(__file__).resolve().parents[1] / "data/ddp_sweep/resnet50_s/ranks-w3"
TIME, CHANGE = diagnosis_pb2.PathTime, diagnosis_pb2.WhatIf
OPTIONS = store.PyTorchTraceOptions(model="toy", batch_size=8, platform=profile_pb2.Platform(bandwidth_bytes_per_second=1e9))
OFFSETS_NS = [0, 3_000_000_000, -1_500_000_000]
# A step of the job: the last rank goes forward for 20 ms and makes its first gradient in 4; all-reduces of 3 ms and 1 ms; the optimizer.
STEP = 0.029


def messages(traces, header=None, chunk_bytes=7919):
    yield store.ImportProfileRequest(header=header or store.ImportProfileRequest.Header(pytorch=OPTIONS))
    for number, trace in enumerate(traces):
        yield store.ImportProfileRequest(recording=store.ImportProfileRequest.Recording(name=f"part{number}.json"))
        for at in range(0, len(trace), chunk_bytes):
            yield store.ImportProfileRequest(chunk=trace[at : at + chunk_bytes])


def by_kind(times):
    return {time.kind: time.seconds for time in times}


class RecordingsTest(ServerTest):
    options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=200, replications=2)

    def import_all(self, traces, **header):
        return self.server.profiles.ImportProfile(messages(traces, store.ImportProfileRequest.Header(pytorch=OPTIONS, **header)), timeout=PATIENCE_SECONDS)

    def refused(self, stream):
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(stream, timeout=PATIENCE_SECONDS)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        return details_of(raised.exception)

    def diagnose(self, **request):
        asked = from_json(diagnosis_pb2.DiagnoseJobRequest(), request)
        asked.options.CopyFrom(self.options)
        return self.server.predictions.DiagnoseJob(asked)

    def test_clocks_and_replay_are_in_the_reply(self):
        # In whatever order they come, as they are or compressed.
        traces = rank_traces(offsets_ns=OFFSETS_NS)
        reply = self.import_all([traces[2], gzip.compress(traces[0]), traces[1]], profile_id="ranks")
        report = reply.recording
        self.assertEqual((report.steps, report.collectives), (5, 2))
        self.assertEqual([worker.name for worker in report.workers], ["rank 0", "rank 1", "rank 2"])
        for worker, offset in zip(report.workers, OFFSETS_NS):
            self.assertLessEqual(worker.least_clock_offset_ns, offset)
            self.assertGreaterEqual(worker.most_clock_offset_ns, offset)
            self.assertAlmostEqual(worker.clock_offset_ns, offset, delta=1e5)
            self.assertAlmostEqual(worker.recorded_step_seconds, STEP, delta=2e-5)
            self.assertAlmostEqual(worker.replayed_step_seconds, STEP, delta=2e-5)
            if worker.name == "rank 0":
                continue
            # These clocks do not drift, and no more is known than the orders allow.
            self.assertTrue(-0.0002 <= worker.least_clock_drift <= 0 <= worker.most_clock_drift <= 0.0002)
            if worker.HasField("clock_drift"):
                self.assertTrue(worker.least_clock_drift <= worker.clock_drift <= worker.most_clock_drift)
        self.assertAlmostEqual(report.recorded_step_seconds, STEP, delta=2e-5)
        self.assertAlmostEqual(report.replayed_step_seconds, STEP, delta=2e-5)
        # As read rank 1 begins 3 s before rank 0 and that 1.5 s before rank 2, for whom they wait once in five steps.
        self.assertAlmostEqual(report.unaligned_step_seconds, STEP + (4.5 + 1.5) / 3 / 5, delta=2e-5)
        # Two of three wait for 10 ms less what they did of the backward pass meanwhile: 2 ms of the second gradient.
        self.assertAlmostEqual(report.waiting_seconds, 2 / 3 * 0.008, delta=5e-5)
        self.assertAlmostEqual(report.between_steps_seconds, 0, delta=1e-6)
        self.assertAlmostEqual(report.unexplained_seconds, 0, delta=2e-5)

    def test_some_of_the_ranks_are_a_sample_of_the_job(self):
        traces = rank_traces(offsets_ns=OFFSETS_NS)
        for kept, waits, beyond in (([0, 2], 1 / 2 * 0.008, 0), ([0, 1], 0, 0)):
            reply = self.import_all([traces[rank] for rank in kept])
            report = reply.recording
            self.assertEqual((report.job_workers, [worker.name for worker in report.workers]), (3, [f"rank {rank}" for rank in kept]))
            second = report.workers[1]
            self.assertAlmostEqual(second.clock_offset_ns, OFFSETS_NS[kept[1]], delta=1e5)
            self.assertAlmostEqual(report.replayed_step_seconds, STEP, delta=2e-5)
            # Of ranks 0 and 1 both wait for the one that was not recorded, which looks like long collectives.
            self.assertAlmostEqual(report.waiting_seconds, waits, delta=5e-5)
            self.assertAlmostEqual(report.beyond_shortest_seconds, beyond, delta=5e-5)
            self.assertTrue(any(note.startswith("A sample: 2 of the job's 3 ranks.") for note in reply.notes), reply.notes)
            stored = self.server.profiles.GetProfile(store.GetProfileRequest(name=reply.profile.name))
            self.assertEqual(stored.recording.job_workers, 3)
            diagnosed = self.diagnose(profile=reply.profile.name)
            self.assertEqual(diagnosed.prediction.scenario.workers, 3)
            self.assertEqual(diagnosed.recording.report.job_workers, 3)
            [point] = {each.workers for each in diagnosed.prediction.scenario.all_reduce.measured}
            self.assertEqual(point, 3)
            if 2 in kept:
                self.assertEqual(diagnosed.recording.report.workers[diagnosed.recording.straggler].name, "rank 2")
        # A stored recording says how many there were, or is refused.
        stored.ClearField("name")
        for workers, said in ((1, "1 is not from the 2 that were recorded to 4096"), (5000, "5000 is not from"), (-3, "-3 is not from")):
            stored.recording.job_workers = workers
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=stored))
            self.assertIn(said, details_of(raised.exception).violations["profile.recording.job_workers"])

    def test_chakra_traces_of_all_ranks_are_one_recording_too(self):
        options = store.ChakraTraceOptions(model="toy", batch_size=8, platform=OPTIONS.platform)

        def imported(traces, **header):
            return messages(traces, store.ImportProfileRequest.Header(chakra=options, **header))

        report = self.server.profiles.ImportProfile(imported(chakra_ranks(offsets_ns=OFFSETS_NS), profile_id="chakra"), timeout=PATIENCE_SECONDS).recording
        self.assertEqual((report.steps, report.collectives), (1, 2))
        for worker, offset in zip(report.workers, OFFSETS_NS):
            self.assertLessEqual(worker.least_clock_offset_ns, offset)
            self.assertGreaterEqual(worker.most_clock_offset_ns, offset)
            self.assertAlmostEqual(worker.clock_offset_ns, offset, delta=1e5)
            # One step tells no drift.
            self.assertEqual(worker.clock_drift, 0)
            self.assertFalse(worker.HasField("least_clock_drift") or worker.HasField("most_clock_drift"))
        self.assertAlmostEqual(report.recorded_step_seconds, STEP, delta=1e-8)
        self.assertAlmostEqual(report.replayed_step_seconds, STEP, delta=1e-7)
        # As of PyTorch's traces, but that nothing is computed between the gradients: two of three wait for 10 ms less 2.
        self.assertAlmostEqual(report.waiting_seconds, 2 / 3 * 0.008, delta=5e-5)
        recorded = self.diagnose(profile="profiles/chakra").recording
        self.assertEqual(recorded.report.workers[recorded.straggler].name, "rank 2")
        self.assertAlmostEqual(recorded.workers[2].waited_for_seconds, 0.010, delta=5e-5)
        first = chakra_ranks()[0]
        for second, text in (
            (chakra_ranks(buckets=((750_000, 1_000_000), (250_001, 1_000_000)))[1], "collective 1 is an all_reduce of 1000004 bytes in rank 1's step and an all_reduce of 1000000 bytes in rank 0's step"),
            (chakra_ranks(buckets=((750_000, 1_000_000),))[1], "rank 1's step has 1 collectives, rank 0's step 2"),
            (first.replace(b"start_time_micros", b"begun"), "no node in it has a start_time_micros"),
            (first.replace(b"COMM_COLL_NODE", b"COMM_SEND_NODE"), "sends to or receives from one worker"),
            (b"", "the file is empty"),
        ):
            details = self.refused(imported([first, second]))
            self.assertEqual((details.reason, list(details.violations)[:1]), ("IMPORT_INVALID", ["recordings[1]"]), details)
            self.assertIn(text, details.violations["recordings[1]"])

    def test_what_is_stored_holds_all_workers_and_survives(self):
        name = self.import_all(rank_traces(offsets_ns=OFFSETS_NS)).profile.name
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name=name))
        self.assertEqual([worker.name for worker in profile.recording.workers], ["rank 0", "rank 1", "rank 2"])
        self.assertEqual([len(worker.steps) for worker in profile.recording.workers], [0, 5, 5])
        self.assertEqual([(each.kind, each.size_bytes) for each in profile.recording.collectives], [(profile_pb2.Operation.ALL_REDUCE, size) for size in (3_000_000, 1_000_000)])
        before = self.diagnose(profile=name)
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.profiles.GetProfile(store.GetProfileRequest(name=name)), profile)
        after = self.diagnose(profile=name)
        self.assertEqual(after.recording, before.recording)
        # Sent back it is the same profile; without its recording it is another.
        self.assertEqual(self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile)).name, name)
        profile.ClearField("recording")
        self.assertNotEqual(self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile)).name, name)

    def test_the_diagnosis_names_the_recorded_straggler(self):
        name = self.import_all(rank_traces(offsets_ns=OFFSETS_NS)).profile.name
        reply = self.diagnose(profile=name)
        recorded = reply.recording
        self.assertTrue(recorded.HasField("straggler"))
        self.assertEqual(recorded.report.workers[recorded.straggler].name, "rank 2")
        self.assertEqual((recorded.path_steps, len(recorded.workers)), (5, 3))
        self.assertAlmostEqual(recorded.path_seconds, STEP, delta=2e-5)
        self.assertAlmostEqual(sum(by_kind(recorded.path).values()), recorded.path_seconds)
        # From when the others have launched the first bucket until it does: 10 ms.
        self.assertAlmostEqual(recorded.workers[2].waited_for_seconds, 0.010, delta=5e-5)
        # Without a scenario it is the job that was recorded, its collectives as long as they were.
        self.assertEqual((reply.prediction.scenario.workers, reply.straggler, len(reply.workers)), (3, 2, 3))
        self.assertAlmostEqual(reply.prediction.step_time.mean.ToNanoseconds() * 1e-9, STEP, delta=2e-5)
        ratios = {answer.change: answer.ratio for answer in reply.what_ifs}
        for change, seconds in ((CHANGE.NO_STRAGGLERS, 0.019), (CHANGE.COMPUTATION_TWICE_AS_FAST, 0.0165), (CHANGE.LINKS_TWICE_AS_FAST, 0.0275)):
            # Scaling makes the mean computation of the slow one that of a fast one, and its first gradient comes a little earlier.
            self.assertAlmostEqual(ratios[change], STEP / seconds, delta=0.02 * STEP / seconds if change != CHANGE.NO_STRAGGLERS else 0.1 * STEP / seconds)
        # Without rank 2 a ring sends three quarters.
        self.assertAlmostEqual(ratios[CHANGE.ONE_WORKER_FEWER], (2 / (0.014 + 0.00225 + 0.00075 + 0.001)) / (3 / STEP), delta=0.005)
        left_out = ["NO_LATENCY", "SERVERS_TWICE_AS_FAST", "NO_HOST_WAIT", "DATA_LOADING_TWICE_AS_FAST", "NO_DATA_WAIT", "BEST_BUCKETS", "BEST_TRANSFER_ORDER"]
        self.assertEqual([CHANGE.Change.Name(out.change) for out in reply.left_out], left_out)

    def test_the_diagnosis_tells_what_collectives_cost_the_computation_beside_them(self):
        # Three real workers, each on a processor of its own: nothing, to a few per cent.
        traces = []
        for rank in range(3):
            with gzip.open(RANKS / f"rank{rank}.json.gz") as file:
                traces.append(file.read())
        recorded = self.diagnose(profile=self.import_all(traces).profile.name).recording
        self.assertTrue(recorded.HasField("overlap_slowdown"))
        found = recorded.overlap_slowdown
        self.assertAlmostEqual(found.slowdown, 1, delta=0.03)
        self.assertLess(found.interval.lower, found.slowdown)
        self.assertLess(found.slowdown, found.interval.upper)
        self.assertLess(found.interval.upper, 1.05)
        self.assertGreater(found.interval.lower, 0.95)
        self.assertEqual(found.interval.level, 0.95)
        self.assertGreater(found.operations, 20)
        self.assertGreater(min(found.runs_alone, found.runs_beside), 100)
        # In steps that are all alike no operation is at times beside a collective and at times alone.
        alike = self.diagnose(profile=self.import_all(rank_traces(offsets_ns=OFFSETS_NS)).profile.name)
        self.assertFalse(alike.recording.HasField("overlap_slowdown"))

    def test_what_collectives_cost_is_taken_out_of_the_times_and_put_back_by_predictions(self):
        def mean_step(name, bandwidth=None):
            asked = prediction.PredictThroughputRequest(profile=name, worker_counts=[3], options=self.options)
            if bandwidth:
                from_json(asked.scenario, {"bandwidth_bytes_per_second": bandwidth, "all_reduce": {"latency_seconds": 0}})
            return self.server.predictions.PredictThroughput(asked).predictions[0].step_time.mean.ToNanoseconds() * 1e-9

        # The last rank makes its second gradient beside the first all-reduce, in 2 ms: alone it would take 2 / 1.25 of them.
        asked_for = self.import_all(rank_traces(), overlap_slowdown=1.25)
        self.assertEqual(asked_for.profile.recording.overlap_slowdown, 0)  # a stored profile is answered without its content
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name=asked_for.profile.name))
        self.assertEqual(stored.recording.overlap_slowdown, 1.25)
        self.assertIn("1.25 times as long beside a collective, as asked for", "".join(asked_for.notes))
        self.assertAlmostEqual(self.diagnose(profile=stored.name).recording.report.replayed_step_seconds, STEP, delta=2e-5)
        self.assertAlmostEqual(mean_step(stored.name), STEP, delta=2e-5)
        as_they_are = self.import_all(rank_traces(), overlap_slowdown=1)
        self.assertEqual(list(as_they_are.notes), list(self.import_all(rank_traces()).notes))
        nothing_beside = 0.020 + 0.004 + 0.002 + 0.001
        self.assertAlmostEqual(mean_step(as_they_are.profile.name, 1e12), nothing_beside, delta=5e-5)
        self.assertAlmostEqual(mean_step(stored.name, 1e12), nothing_beside - 0.002 + 0.002 / 1.25, delta=5e-5)
        # Ranks that take turns at coming last tell it themselves.
        told = self.import_all(rank_traces(forward_ms=(10, 10, 10), steps=14, slowdown=1.1))
        self.assertIn("1.1 times as long beside a collective, as they tell", "".join(told.notes))
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name=told.profile.name))
        self.assertAlmostEqual(stored.recording.overlap_slowdown, 1.1, delta=0.002)
        # Who is slow in two steps that follow each other begins the second one 0.2 ms later.
        self.assertAlmostEqual(mean_step(told.profile.name, 1e12), 1.2 * 0.017 - 0.0002 * 2 / 3, delta=1e-4)
        found = self.diagnose(profile=told.profile.name).recording
        self.assertAlmostEqual(found.overlap_slowdown.slowdown, 1.1, delta=0.002)
        self.assertAlmostEqual(found.report.replayed_step_seconds, found.report.recorded_step_seconds, delta=2e-5)

    def test_what_computation_costs_collectives_is_taken_out_of_the_times_and_put_back_by_predictions(self):
        def mean_step(name, **all_reduce):
            asked = prediction.PredictThroughputRequest(profile=name, worker_counts=[3], options=self.options)
            if all_reduce:
                from_json(asked.scenario, {"all_reduce": all_reduce})
            return self.server.predictions.PredictThroughput(asked).predictions[0]

        # The first all-reduce, of 3 ms, has the last rank's second gradient beside it for 2 of them: alone it would take 1 + 2 / 1.25 ms.
        asked_for = self.import_all(rank_traces(), collective_slowdown=1.25, profile_id="asked-for")
        self.assertIn("a collective took 1.25 times as long while some worker computed, as asked for", "".join(asked_for.notes))
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name=asked_for.profile.name))
        self.assertEqual((stored.recording.collective_slowdown, stored.recording.overlap_slowdown), (1.25, 0))
        self.assertEqual(len(stored.recording.computing_ns), 5 * 2)
        for beside in stored.recording.computing_ns[0::2]:
            self.assertAlmostEqual(beside * 1e-9, 0.002, delta=2e-5)
        self.assertAlmostEqual(self.diagnose(profile=stored.name).recording.report.replayed_step_seconds, STEP, delta=2e-5)
        again = mean_step(stored.name)
        self.assertEqual(again.scenario.all_reduce.collective_slowdown, 1.25)
        self.assertAlmostEqual(again.step_time.mean.ToNanoseconds() * 1e-9, STEP, delta=2e-5)
        # A ring of three sends 4/3 of the 3 MB and 1 MB at 1 GB/s, 4 ms and 1.333: in the 2 ms beside it the first one gets 1.6 of its 4 done.
        for all_reduce, first in (({"algorithm": "RING"}, 0.0044), ({"collective_slowdown": 1}, 0.004), ({"collective_slowdown": 2}, 0.005)):
            with self.subTest(**all_reduce):
                mean = mean_step(stored.name, latency_seconds=0, **all_reduce).step_time.mean.ToNanoseconds() * 1e-9
                self.assertAlmostEqual(mean, 0.024 + first + 0.004 / 3 + 0.001, delta=3e-5)
        # Steps with more and with less beside the first one tell it themselves.
        told = self.import_all(rank_traces(steps=18, contention=1.5), profile_id="told")
        self.assertIn("a collective took 1.5 times as long while some worker computed, as they tell", "".join(told.notes))
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name=told.profile.name))
        self.assertAlmostEqual(stored.recording.collective_slowdown, 1.5, delta=0.01)
        found = self.diagnose(profile=told.profile.name).recording
        self.assertAlmostEqual(found.collective_slowdown.slowdown, 1.5, delta=0.01)
        self.assertLessEqual(found.collective_slowdown.interval.lower, found.collective_slowdown.slowdown)
        self.assertGreaterEqual(found.collective_slowdown.interval.upper, found.collective_slowdown.slowdown)
        self.assertGreater(found.collective_slowdown.interval.lower, 1.4)
        self.assertEqual((found.collective_slowdown.collectives, found.collective_slowdown.runs), (2, 2 * 16))
        self.assertAlmostEqual(found.report.replayed_step_seconds, found.report.recorded_step_seconds, delta=2e-5)
        # Steps that are all alike do not.
        alike = self.import_all(rank_traces(steps=18), profile_id="alike")
        self.assertNotIn("a collective took", "".join(alike.notes))
        self.assertFalse(self.diagnose(profile=alike.profile.name).recording.HasField("collective_slowdown"))

    def test_a_slowdown_that_cannot_be_is_refused(self):
        for traces, slowdown in ((rank_traces(), 0.5), (rank_traces(), 101), (rank_traces(), float("nan")), (rank_traces()[:1], 1.5)):
            for field in ("overlap_slowdown", "collective_slowdown"):
                details = self.refused(messages(traces, store.ImportProfileRequest.Header(pytorch=OPTIONS, **{field: slowdown})))
                self.assertEqual(list(details.violations), [f"header.{field}"])
                self.assertIn(f"{slowdown:g} ", details.violations[f"header.{field}"])

    def test_the_trace_of_the_recording_shows_its_critical_path(self):
        name = self.import_all(rank_traces(offsets_ns=OFFSETS_NS)).profile.name
        asked = trace_pb2.GenerateTraceRequest(profile=name, recording=True, critical_path=True)
        events = json.loads(b"".join(reply.chunk for reply in self.server.predictions.GenerateTrace(asked)))["traceEvents"]
        segments = [event for event in events if event["ph"] == "X" and event["cat"] == "path"]
        sums = collections.Counter()
        at = 0
        for segment in segments:
            begin, length = round(segment["ts"] * 1e6), round(segment["dur"] * 1e6)
            self.assertEqual(begin, at)
            at += length
            sums[segment["args"]["kind"]] += length * 1e-12
        steps = [event for event in events if event["ph"] == "X" and event["cat"] == "step"]
        self.assertEqual(at, max(round(step["ts"] * 1e6) + round(step["dur"] * 1e6) for step in steps))
        self.assertEqual(len(steps), 3 * 5)
        # The same path as that of the diagnosis.
        recorded = self.diagnose(profile=name).recording
        expected = {TIME.Kind.Name(kind): seconds * 5 for kind, seconds in by_kind(recorded.path).items()}
        self.assertEqual(set(sums), set(expected))
        for kind, seconds in expected.items():
            self.assertAlmostEqual(sums[kind], seconds, delta=1e-8)
        self.assertEqual({segment["args"]["worker"] for segment in segments if segment["args"]["kind"] == "WAITING"}, {2})
        asked.scenario.workers = 3
        with self.assertRaises(grpc.RpcError) as raised:
            list(self.server.predictions.GenerateTrace(asked))
        self.assertEqual(list(details_of(raised.exception).violations), ["scenario"])

    def test_predictions_use_each_workers_steps(self):
        name = self.import_all(rank_traces()).profile.name

        def step(workers, **scenario):
            asked = prediction.PredictThroughputRequest(profile=name, worker_counts=[workers], options=self.options)
            from_json(asked.scenario, scenario)
            return self.server.predictions.PredictThroughput(asked).predictions[0].step_time.mean.ToNanoseconds() * 1e-9

        self.assertAlmostEqual(step(3), STEP, delta=2e-5)
        # The first two only; then the fourth is as the first.
        self.assertAlmostEqual(step(2), 0.014 + 0.00225 + 0.00075 + 0.001, delta=5e-5)
        self.assertAlmostEqual(step(6), 0.024 + 0.004 * (10 / 6) / (4 / 3) + 0.001, delta=5e-5)
        # Of a bandwidth it is a ring's time: 4/3 of 3 MB and 1 MB at 1 GB/s.
        self.assertAlmostEqual(step(3, bandwidth_bytes_per_second=1e9, all_reduce={"latency_seconds": 0}), 0.024 + 0.004 + 0.004 / 3 + 0.001, delta=5e-5)

    def test_ranks_that_do_not_fit_are_refused_with_the_first_difference(self):
        traces = rank_traces()
        for parts, field, text in (
            ([traces[0].replace(b'"world_size": 3', b'"world_size": 9'), *traces[1:]], "recordings[1]", "rank 1 is one of 3 workers, and rank 0 one of 9"),
            ([each.replace(b'"world_size": 3', b'"world_size": 5000') for each in traces], "recordings[0]", "a job of 5000 workers, above the limit of 4096"),
            ([traces[0], traces[1], traces[1]], "recordings[2]", "rank 1 is in recordings[1], too"),
            ([traces[0], traces[1], rank_traces(steps=2)[2]], "recordings[2]", ""),
            ([traces[0], b"{", traces[2]], "recordings[1]", ""),
            ([traces[0], b"\x1f\x8b\x08broken", traces[2]], "recordings[1]", "gzip"),
            ([traces[0], b"", traces[2]], "recordings[1]", ""),
        ):
            details = self.refused(messages(parts))
            self.assertEqual(details.reason, "IMPORT_INVALID", details)
            self.assertEqual(list(details.violations)[:1], [field], details)
            self.assertIn(text, details.violations[field])
        self.assertEqual(len(self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles), 0)

    def test_clocks_that_contradict_are_refused_with_the_messages(self):
        details = self.refused(messages(rank_traces(jumps_ns=[0, -100_000_000, 0])))
        self.assertEqual((details.reason, list(details.violations)), ("CLOCKS_CONTRADICT", ["recordings"]))
        self.assertRegex(details.violations["recordings"], r"all_reduce/\d of step \d+: rank \d started it at \d+\.\d{9} s, rank \d ended it at \d+\.\d{9} s")
        self.assertGreater(int(details.metadata["excess_ns"]), 50_000_000)

    def test_a_stream_that_cannot_be_is_refused_with_its_field(self):
        traces = rank_traces()
        header = store.ImportProfileRequest.Header
        platform = profile_pb2.Platform(bandwidth_bytes_per_second=1e9)
        slowed = store.PyTorchTraceOptions(model="toy", batch_size=8, platform=platform, step_seconds=0.1)
        horovod = header(horovod=store.HorovodTimelineOptions(model="toy", batch_size=8, platform=platform))
        chakra = header(chakra=store.ChakraTraceOptions(model="toy", batch_size=8, platform=platform, steps=3))
        begin = store.ImportProfileRequest(recording=store.ImportProfileRequest.Recording(name="rank1.json"))
        long_name = store.ImportProfileRequest(recording=store.ImportProfileRequest.Recording(name="x" * 257))
        late = [store.ImportProfileRequest(header=header(pytorch=OPTIONS)), store.ImportProfileRequest(chunk=traces[0]), begin]
        for stream, field in (
            (messages(traces, header(pytorch=slowed)), "header.pytorch.step_seconds"),
            (messages(traces, horovod), "recording"),
            (messages(chakra_ranks(), chakra), "header.chakra.steps"),
            (iter(late), "recording"),
            (iter([late[0], long_name]), "recording.name"),
            (iter([late[0]] + [begin] * 129), "recording"),
            (iter([late[0], begin, store.ImportProfileRequest(graph_chunk=b"x")]), "graph_chunk"),
        ):
            self.assertEqual(list(self.refused(stream).violations)[:1], [field])
        # One that is announced is one as always.
        self.assertFalse(self.server.profiles.ImportProfile(messages(traces[:1])).HasField("recording"))

    def test_a_recording_that_cannot_be_is_refused_with_its_path(self):
        name = self.import_all(rank_traces()).profile.name
        sound = self.server.profiles.GetProfile(store.GetProfileRequest(name=name))

        def violations(change):
            profile = profile_pb2.Profile()
            profile.CopyFrom(sound)
            change(profile)
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile))
            return list(details_of(raised.exception).violations)

        at = "profile.recording"
        cases = {
            f"{at}.workers": lambda p: p.recording.ClearField("workers"),
            f"{at}.workers[1].name": lambda p: p.recording.workers[1].MergeFrom(profile_pb2.WorkerRecording(name="rank 0")),
            f"{at}.workers[1].steps": lambda p: p.recording.workers[1].steps.pop(),
            f"{at}.workers[2].steps[0].end_ns": lambda p: p.recording.workers[2].steps[0].end_ns.pop(),
            f"{at}.workers[0].steps": lambda p: p.recording.workers[0].steps.add(),
            f"{at}.workers[2].run_ends_ns": lambda p: p.recording.workers[2].run_ends_ns.pop(),
            f"{at}.workers[1].step_begins_ns": lambda p: p.recording.workers[1].step_begins_ns.pop(),
            f"{at}.workers[1].step_ends_ns[2]": lambda p: p.recording.workers[1].step_ends_ns.__setitem__(2, 0),
            f"{at}.workers[1].runs[3]": lambda p: p.recording.workers[1].run_starts_ns.__setitem__(3, 1 << 62),
            f"{at}.collectives[0].kind": lambda p: p.recording.collectives[0].ClearField("kind"),
            f"{at}.collectives[1].size_bytes": lambda p: p.recording.collectives[1].__setattr__("size_bytes", -1),
            f"{at}.collectives": lambda p: p.recording.ClearField("collectives"),
        }
        for path, change in cases.items():
            with self.subTest(path):
                self.assertIn(path, violations(change))
        for scenario, field in (({"all_reduce": {"fidelity": "EXPANDED"}}, "scenario.all_reduce.fidelity"), ({"parameter_servers": {}}, "scenario.parameter_servers")):
            with self.assertRaises(grpc.RpcError) as raised:
                self.diagnose(profile=name, scenario=scenario)
            self.assertIn(field, details_of(raised.exception).violations)

    def test_the_command_line_says_the_same_with_a_server_and_without(self):
        with tempfile.TemporaryDirectory(prefix="stepcast-ranks-") as folder:
            paths = [os.path.join(folder, f"rank{number}.json.gz") for number in range(3)]
            for path, trace in zip(paths, rank_traces(offsets_ns=OFFSETS_NS)):
                with gzip.open(path, "wb") as file:
                    file.write(trace)
            ask = ("--batch-size", "8", "--bandwidth", "1GB/s", "--model", "toy")
            saved = os.path.join(folder, "job.json")
            local = self.run_program("profile", "import", *paths, *ask, "--save", saved, server=False)
            there = self.run_program("profile", "import", *paths, *ask, "--id", "ranks")
            for line in ("matched: 2 collectives in each of 5 steps of 3 workers", "replay: a step takes 29.0", "of it workers wait for others: 5.3"):
                self.assertIn(line, local)
                self.assertIn(line, there)
            self.assertRegex(local, r"rank 1 +\+3\.\d+ s +-[\d.]+ .?s \.\. \+[\d.]+ .?s")
            few = ("--steps", "100", "--replications", "2")
            of_file = self.run_program("diagnose", saved, *few, server=False)
            self.assertEqual(of_file, self.run_program("diagnose", "ranks", *few))
            self.assertIn("the others wait for rank 2 for", of_file)
            with open(saved, encoding="utf-8") as file:
                self.assertEqual(len(json.load(file)["recording"]["workers"]), 3)
            wrong = os.path.join(folder, "layers.txt")
            with open(wrong, "w", encoding="utf-8") as file:
                file.write("node1 -- Conv -- forward\n")
            self.assertIn("looks like measured layers", self.run_program("profile", "import", paths[0], wrong, *ask, status=2))
            sample = self.run_program("profile", "import", *paths[:2], *ask, "--save", os.path.join(folder, "two.json"), server=False)
            self.assertRegex(sample, r"recorded on +2 of 3 workers")
            self.assertIn("matched: 2 collectives in each of 5 steps of 2 of the job's 3 workers", sample)
            self.assertIn("a sample: how long they wait for workers that were not recorded is not known; collectives took ", sample)

    def test_a_sample_of_real_ranks_finds_the_straggler_that_is_in_it(self):
        """Three workers on PyTorch, of which rank 1 was made 1.5 times slower."""
        folder = RANKS.parent / "ranks-straggler-w3"
        waits, collectives = {}, {}
        with tempfile.TemporaryDirectory(prefix="stepcast-ranks-") as scratch:
            for kept in ((0, 1, 2), (0, 1), (0, 2)):
                saved = os.path.join(scratch, f"{kept}.json")
                traces = [str(folder / f"rank{rank}.json.gz") for rank in kept]
                self.run_program("profile", "import", *traces, "--batch-size", "32", "--bandwidth", "119.55MB/s", "--save", saved, server=False)
                text = self.run_program("diagnose", saved, "--steps", "50", "--replications", "2", "--output", "json", server=False)
                diagnosed = json.loads(text)
                recorded = diagnosed["recording"]
                self.assertEqual(recorded["report"]["jobWorkers"], 3)
                self.assertAlmostEqual(recorded["report"]["replayedStepSeconds"] / recorded["report"]["recordedStepSeconds"], 1, delta=0.01)
                ranks = [worker["name"] for worker in recorded["report"]["workers"]]
                waits[kept] = {rank: worker.get("waitedForSeconds", 0) for rank, worker in zip(ranks, recorded["workers"])}
                points = diagnosed["prediction"]["scenario"]["allReduce"]["measured"]
                self.assertEqual({point["workers"] for point in points}, {3})
                collectives[kept] = sum(point["seconds"] for point in points)
        self.assertGreater(waits[0, 1, 2]["rank 1"], 0.1)
        self.assertAlmostEqual(waits[0, 1]["rank 1"] / waits[0, 1, 2]["rank 1"], 1, delta=0.1)
        self.assertAlmostEqual(collectives[0, 1] / collectives[0, 1, 2], 1, delta=0.02)
        # Without it the wait is in the collectives.
        self.assertLess(max(waits[0, 2].values()), 0.2 * waits[0, 1, 2]["rank 1"])
        self.assertGreater(collectives[0, 2] - collectives[0, 1, 2], 0.5 * waits[0, 1, 2]["rank 1"])

    def run_program(self, *arguments, server=True, status=0):
        environment = {name: value for name, value in os.environ.items() if name != "STEPCAST_SERVER"}
        if server:
            environment["STEPCAST_SERVER"] = self.server.address
        done = subprocess.run(
            [os.environ["STEPCAST"], *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stderr


if __name__ == "__main__":
    unittest.main()
