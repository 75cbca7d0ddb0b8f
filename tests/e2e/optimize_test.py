"""The strategy for a job of all-reduces, or with parameter servers, from the real server."""

import json
import os
import subprocess
import tempfile
import unittest

from contract import details_of, from_json, grpc, prediction, store, strategy_pb2
from google.longrunning import operations_pb2, operations_pb2_grpc
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc
from patience import PASSING_SECONDS
from stepcastd import PATIENCE_SECONDS, ServerTest

PASS = strategy_pb2.JobStrategy


def training(layers=6, buckets=26214400, batch=8, forward=5, backward=10):
    """Layers of 5 ms forward and 10 ms backward (or else), each with a gradient of 2 MB that takes 4 ms between two workers, and 1 ms of optimizer."""
    operations, starts, ends = [], [], []
    now = 0

    def compute(name, length):
        nonlocal now
        before = next((i for i in reversed(range(len(operations))) if operations[i]["resource"] == "WORKER"), None)
        operations.append({"name": name, "resource": "WORKER", "waiting_for": [] if before is None else [before]})
        starts.append(now)
        now += length
        ends.append(now)

    for layer in range(layers):
        compute(f"forward/{layer}", forward)
    for layer in reversed(range(layers)):
        compute(f"backward/{layer}", backward)
        operations.append(
            {"name": f"all_reduce/{layer}", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 2000000, "waiting_for": [len(operations) - 1]}
        )
        starts.append(now)
        ends.append(now)
    compute("optimizer", 1)
    operations[-1]["waiting_for"] = [i for i, operation in enumerate(operations) if operation["resource"] == "COLLECTIVE"]
    milliseconds = lambda values: [value * 1000000 for value in values]
    return {
        "display_name": "training",
        "batch_size": batch,
        "platform": {"bandwidth_bytes_per_second": 5e8},
        "operations": operations,
        "steps": [{"start_ns": milliseconds(starts), "end_ns": milliseconds(ends)}],
        "buckets": {"rule": {"cap_bytes": buckets}},
    }


def served(layers=4):
    """Layers of 1 ms forward and 2 ms backward with a parameter of 1 MB each, but for the last one's of 16 MB, and updates of 0.1 ms."""
    operations, starts, ends = [], [], []
    now = 0

    def add(name, length, **operation):
        nonlocal now
        operations.append({"name": name, **operation})
        starts.append(now)
        now += length
        ends.append(now)
        return len(operations) - 1

    size = lambda layer: 16000000 if layer == layers - 1 else 1000000
    downloads = [add(f"recv/{i}", 1000, resource="DOWNLINK", size_bytes=size(i), parameter=f"v{i}") for i in range(layers)]
    before = None
    for layer in range(layers):
        before = add(f"forward/{layer}", 1000000, resource="WORKER", waiting_for=[downloads[layer]] + ([] if before is None else [before]))
    for layer in reversed(range(layers)):
        before = add(f"backward/{layer}", 2000000, resource="WORKER", waiting_for=[before])
        upload = add(f"send/{layer}", 1000, resource="UPLINK", size_bytes=size(layer), parameter=f"v{layer}", waiting_for=[before])
        add(f"update/{layer}", 100000, resource="PARAMETER_SERVER", parameter=f"v{layer}", waiting_for=[upload])
    return {
        "display_name": "served",
        "batch_size": 8,
        "platform": {"bandwidth_bytes_per_second": 1e9},
        "operations": operations,
        "steps": [{"start_ns": starts, "end_ns": ends}],
    }


class OptimizeTest(ServerTest):
    def request(self, **request):
        asked = {
            "inline_profile": training(),
            "scenario": {"workers": 2, "all_reduce": {"latency_seconds": 1e-5}},
            "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 60, "replications": 2},
            **request,
        }
        return from_json(strategy_pb2.OptimizeJobRequest(), asked)

    def optimized(self, **request):
        return self.server.predictions.OptimizeJob(self.request(**request))

    def test_gradients_that_wait_for_the_last_are_sent_when_they_are_ready(self):
        reply = self.optimized()
        # As recorded the first gradient by itself, and then 20 ms of bytes from 90 ms on.
        self.assertAlmostEqual(reply.as_recorded.step_time.mean.ToNanoseconds() * 1e-9, 0.090 + 0.020 + 2e-5 + 0.001, places=8)
        # Each is sent before the next is ready, so only the last one is exposed.
        found = reply.prediction.step_time.mean.ToNanoseconds() * 1e-9
        self.assertAlmostEqual(found, 0.090 + 0.004 + 2e-5 + 0.001, places=8)
        self.assertAlmostEqual(reply.gain, 0.11102 / 0.09502 - 1, places=5)
        self.assertFalse(reply.no_difference)
        self.assertEqual(sum((list(group.operations) for group in reply.strategy.tensors), []), [f"all_reduce/{i}" for i in (5, 4, 3, 2, 1, 0)])
        self.assertEqual(list(reply.strategy.tensors[-1].operations), ["all_reduce/0"])
        self.assertEqual(list(reply.strategy.fused_operations), [])
        self.assertEqual(reply.strategy.memory_pass, PASS.NONE)
        self.assertAlmostEqual(reply.lower_bound_seconds, 0.090 + 0.004 + 2e-5, places=8)
        self.assertEqual({row.name for row in reply.compared}, {"AS_RECORDED", "DDP_BUCKETS", "HOROVOD", "HOROVOD_64MB_5MS", "HOROVOD_128MB_1MS", "MG_WFBP", "NO_FUSION", "FOUND"})
        self.assertLessEqual(found, min(row.step_seconds for row in reply.compared) + 1e-9)
        self.assertTrue(reply.reason and reply.cost_source)
        self.assertGreater(reply.search.replays, 0)
        self.assertFalse(reply.HasField("memory"))

    # dPRO, 7.1: what it is compared with. A cycle of 5 ms begins later than one of 1 ms, and who fuses everything hides nothing.
    def test_defaults_of_others_stand_beside_it_and_an_assumed_share_is_said_to_be(self):
        reply = self.optimized(fused_share=0.8)
        rows = {row.name: row for row in reply.compared}
        self.assertGreater(rows["HOROVOD_64MB_5MS"].step_seconds, rows["HOROVOD_128MB_1MS"].step_seconds)
        self.assertGreaterEqual(rows["HOROVOD_128MB_1MS"].step_seconds, rows["HOROVOD"].step_seconds - 1e-9)
        # Forward and backward as one, 0.8 of all but the last 10 ms; then all gradients; then the optimizer.
        self.assertAlmostEqual(rows["XLA_FUSE_ALL"].step_seconds, 0.8 * 0.080 + 0.010 + 0.024 + 2e-5 + 0.001, places=7)
        self.assertTrue(reply.rests_on_fused_share and rows["FOUND"].rests_on_fused_share and rows["XLA_FUSE_ALL"].rests_on_fused_share)
        self.assertFalse(rows["HOROVOD"].rests_on_fused_share or rows["NO_FUSION"].rests_on_fused_share)
        self.assertIn("it rests on the assumed share of 0.8 (fused_share), which nobody measured; without it ", reply.reason)
        self.assertFalse(self.optimized().rests_on_fused_share)
        self.assertNotIn("XLA_FUSE_ALL", {row.name for row in self.optimized().compared})

    def test_a_measured_cost_is_used(self):
        names = ["forward/1", "forward/2", "forward/3"]
        reply = self.optimized(fused_costs=[{"operations": names, "seconds": 0.006}, {"operations": ["forward/4", "forward/5"], "seconds": 0.02}])
        self.assertEqual([list(group.operations) for group in reply.strategy.fused_operations], [names])
        self.assertFalse(reply.strategy.fused_operations[0].is_estimate)
        self.assertAlmostEqual(reply.prediction.step_time.mean.ToNanoseconds() * 1e-9, 0.081 + 0.004 + 2e-5 + 0.001, places=8)
        self.assertFalse(reply.HasField("lower_bound_seconds"))
        self.assertTrue(reply.no_bound_because)

    def test_the_strategy_is_a_profile_that_anybody_can_predict(self):
        """The groups of the reply, as the scenario's, make the step that was promised."""
        reply = self.optimized()
        groups = [{"operations": list(group.operations)} for group in reply.strategy.tensors]
        asked = self.request(scenario={"workers": 2, "all_reduce": {"latency_seconds": 1e-5, "groups": {"groups": groups}}})
        predicted = self.server.predictions.PredictThroughput(
            prediction.PredictThroughputRequest(inline_profile=asked.inline_profile, scenarios=[asked.scenario], options=asked.options)
        )
        self.assertEqual(predicted.predictions[0].examples_per_second, reply.prediction.examples_per_second)

    def test_memory_is_brought_within_a_budget_or_refused(self):
        outputs = [{"operation": f"forward/{i}", "bytes": 10000000} for i in range(6)]
        whole = self.optimized(memory={"kept_outputs": outputs})
        # 12 MB of parameters in four copies; six outputs and two gradients of outputs.
        self.assertEqual(whole.memory.before_bytes, 48e6 + 80e6)
        self.assertEqual(whole.strategy.memory_pass, PASS.NONE)
        saved = self.optimized(memory={"kept_outputs": outputs, "budget_bytes": 110000000, "half_batch_share": 0.9})
        self.assertEqual(saved.strategy.memory_pass, PASS.RECOMPUTATION)
        self.assertLessEqual(saved.memory.after_bytes, 110e6)
        self.assertEqual(list(saved.strategy.recomputed), ["forward/0", "forward/1"])
        self.assertLess(saved.gain, 0.2)
        self.assertTrue(saved.memory.assumptions)
        halved = self.optimized(memory={"kept_outputs": outputs, "budget_bytes": 110000000, "half_batch_share": 0.5})
        self.assertEqual(halved.strategy.memory_pass, PASS.GRADIENT_ACCUMULATION)
        # Every layer has a gradient, so none of them is cheap.
        self.assertIn("nothing cheap", saved.memory.tried[0].why_not)
        self.assertEqual(saved.memory.tried[1].recomputes, "2 segments")
        for budget in (0, 48000000):
            with self.assertRaises(grpc.RpcError) as raised:
                self.optimized(memory={"kept_outputs": outputs, "budget_bytes": budget})
            self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertIn(f"memory.budget_bytes is {budget}", raised.exception.details())

    def halves(self, **memory):
        """The seconds of a step in halves, which a budget leaves as the only way, and what they rest on."""
        outputs = [{"operation": f"forward/{i}", "bytes": 10000000} for i in range(6)]
        reply = self.optimized(memory={"kept_outputs": outputs, "budget_bytes": 93000000, **memory})
        self.assertEqual(reply.strategy.memory_pass, PASS.GRADIENT_ACCUMULATION)
        return reply.prediction.step_time.mean.ToNanoseconds() * 1e-9, reply.memory.assumptions[-1]

    def test_half_a_batch_takes_what_is_known_of_it(self):
        """Of 90 ms computation twice its half, then the last gradient's 4 ms and the optimizer's 1."""
        rest = 0.004 + 2e-5 + 0.001
        step, told = self.halves()
        self.assertAlmostEqual(step, 2 * 0.57 * 0.090 + rest, places=7)
        self.assertIn("0.57 of the time of the whole one, each time, as dPRO's Table 4", told)
        step, told = self.halves(half_batch_share=0.5)
        self.assertAlmostEqual(step, 0.090 + rest, places=7)
        # A quarter of the batch takes 3 of 5 ms, and 5 of 10: half takes 11/15 and 2/3.
        quarter = training(batch=2, forward=3, backward=5)
        expected = 2 * (0.030 * 11 / 15 + 0.060 * 2 / 3) + rest
        step, told = self.halves(second_inline_profile=quarter)
        self.assertAlmostEqual(step, expected, places=7)
        self.assertIn("with 4 examples is drawn from recordings with 8 and 2", told)
        name = self.server.profiles.CreateProfile(from_json(store.CreateProfileRequest(), {"profile": quarter})).name
        self.assertEqual(self.halves(second_profile=name), (step, told))
        # Another recording under that name counts at once.
        self.server.profiles.UpdateProfile(from_json(store.UpdateProfileRequest(), {"profile": {"name": name, **training(batch=4, forward=3, backward=6)}}))
        self.assertAlmostEqual(self.halves(second_profile=name)[0], 2 * 0.6 * 0.090 + rest, places=7)

    def test_a_bad_second_recording_is_named_by_its_field(self):
        nameless = training(batch=4)
        nameless["operations"][0]["name"] = ""
        stranger = training(batch=4)
        for operation in stranger["operations"]:
            operation["name"] += " of another job"
        for memory, field, value in (
            ({"second_inline_profile": training(batch=4), "half_batch_share": 0.6}, "memory.half_batch_share", "which?"),
            ({"second_inline_profile": training()}, "memory.second_profile", "its batch is 8 as well"),
            ({"second_inline_profile": stranger}, "memory.second_profile", "another job"),
            ({"second_inline_profile": nameless}, "memory.second_inline_profile.operations[0].name", "needs a name"),
            ({"second_profile": "nobody"}, "memory.second_profile", "nobody"),
        ):
            with self.assertRaises(grpc.RpcError) as raised:
                self.optimized(memory=memory)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, memory)
            self.assertIn(field, raised.exception.details())
            self.assertIn(value, raised.exception.details())
        with self.assertRaises(grpc.RpcError) as raised:
            self.optimized(memory={"second_profile": "profiles/nobody"})
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
        with self.assertRaises(grpc.RpcError) as raised:
            self.optimized(memory={"second_inline_profile": training(batch=4)}, scenario={"workers": 2, "all_reduce": {}, "change": {"compute_speed_factor": 2}})
        self.assertIn("memory.second_profile", details_of(raised.exception).violations)

    def test_what_is_cheap_is_computed_again_between_kept_outputs(self):
        header = from_json(store.ImportProfileRequest(), {"header": {"model_zoo": {"model": "resnet18", "communication": "ALL_REDUCE", "batch_size": 64, "platform": {"bandwidth_bytes_per_second": 1e9}}, "profile_id": "cheap"}})
        self.server.profiles.ImportProfile(iter([header]), timeout=PATIENCE_SECONDS)

        def asked(**memory):
            request = self.request(memory=memory)
            request.profile = "profiles/cheap"
            return self.server.predictions.OptimizeJob(request)

        before = asked().memory.before_bytes
        saved = asked(budget_bytes=int(0.8 * before))
        self.assertEqual(saved.strategy.memory_pass, PASS.RECOMPUTATION)
        self.assertLessEqual(saved.memory.after_bytes, 0.8 * before)
        again = list(saved.strategy.recomputed)
        self.assertTrue(again)
        for name in again:
            self.assertRegex(name, r"^forward/.*(bn\d|relu\d?|maxpool|avgpool)$")
        cheap, segments, halves = saved.memory.tried
        self.assertEqual(cheap.recomputes, f"{len(again)} cheap outputs")
        self.assertLess(cheap.step_seconds, segments.step_seconds)
        self.assertLess(segments.step_seconds, halves.step_seconds)
        self.assertTrue([text for text in saved.memory.assumptions if "arithmetic alone" in text])

    def test_what_a_recording_keeps_is_known_of_its_import(self):
        """Of a real recording, whose bytes autograd's own hooks saw."""
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "saved_tensors")
        with open(os.path.join(folder, "residual.json.gz"), "rb") as file:
            content = file.read()
        with open(os.path.join(folder, "saved.json"), encoding="utf-8") as file:
            saved = json.load(file)["residual"]
        options = {"batch_size": 2, "platform": {"bandwidth_bytes_per_second": 1e8}}
        header = from_json(store.ImportProfileRequest(), {"header": {"pytorch": options, "profile_id": "residual"}})
        imported = self.server.profiles.ImportProfile(iter([header, store.ImportProfileRequest(chunk=content)]), timeout=PATIENCE_SECONDS)
        self.assertTrue([note for note in imported.notes if note.startswith("Found: the forward pass keeps")])
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/residual"))
        kept = {operation.name: operation.kept_bytes for operation in stored.operations if operation.kept_bytes}
        # Of each part of the forward pass its own.
        self.assertEqual(list(kept)[0], "forward/0/convolution")
        self.assertTrue(all(name.startswith("forward/") for name in kept), kept)
        all_kept = sum(kept.values())
        self.assertAlmostEqual(all_kept / saved, 1, delta=0.003)
        parameters = sum(operation.size_bytes for operation in stored.operations)

        def asked(**memory):
            request = self.request(memory=memory)
            request.profile = "profiles/residual"
            return request

        whole = self.server.predictions.OptimizeJob(asked(parameter_copies=2))
        self.assertEqual((whole.memory.parameter_bytes, whole.memory.before_bytes), (2 * parameters, 2 * parameters + all_kept))
        self.assertTrue([text for text in whole.memory.assumptions if "autograd" in text], whole.memory.assumptions)
        # Its parts are known, so they can be computed again, from what the one before them hands on.
        saved = self.server.predictions.OptimizeJob(asked(parameter_copies=2, budget_bytes=int(whole.memory.before_bytes - 1)))
        self.assertEqual(saved.strategy.memory_pass, PASS.RECOMPUTATION)
        self.assertEqual(list(saved.strategy.recomputed), ["forward/1/native_batch_norm", "forward/2/max_pool2d_with_indices"])
        self.assertLess(saved.memory.after_bytes, whole.memory.before_bytes)
        halved = self.server.predictions.OptimizeJob(asked(parameter_copies=2, budget_bytes=int(2 * parameters + 0.55 * all_kept)))
        self.assertEqual(halved.strategy.memory_pass, PASS.GRADIENT_ACCUMULATION)
        self.assertEqual(halved.memory.after_bytes, 2 * parameters + sum((each + 1) // 2 for each in kept.values()))
        for again in halved.memory.tried[:2]:
            self.assertRegex(again.why_not, "^needs ")
        # Of a profile that does not say it, a budget is refused.
        with self.assertRaises(grpc.RpcError) as raised:
            self.optimized(memory={"budget_bytes": 100})
        self.assertEqual(details_of(raised.exception).reason, "MEMORY_UNKNOWN")
        said = training()
        said["operations"][0]["kept_bytes"] = 7000000
        self.assertEqual(self.optimized(inline_profile=said).memory.before_bytes, 48e6 + 14e6)

    def test_a_checkpointed_recording_keeps_less(self):
        """By autograd's hooks 353,796 bytes with checkpointing, 747,012 without."""
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "cases", "activation_checkpoint")
        for name, kept in (("with", 353796), ("without", 747012)):
            with open(os.path.join(folder, f"{name}.json.gz"), "rb") as file:
                content = file.read()
            options = {"batch_size": 64, "platform": {"bandwidth_bytes_per_second": 1e8}}
            header = from_json(store.ImportProfileRequest(), {"header": {"pytorch": options, "profile_id": f"checkpointed-{name}"}})
            self.server.profiles.ImportProfile(iter([header, store.ImportProfileRequest(chunk=content)]), timeout=PATIENCE_SECONDS)
            request = self.request()
            request.profile = f"profiles/checkpointed-{name}"
            memory = self.server.predictions.OptimizeJob(request).memory
            self.assertAlmostEqual((memory.before_bytes - memory.parameter_bytes) / kept, 1, delta=0.01)

    def test_shortcuts_can_be_done_without(self):
        for without in ("coarsened_view", "partial_replay", "symmetry"):
            reply = self.optimized(shortcuts={without: False})
            self.assertFalse(getattr(reply.search.shortcuts, without))
            self.assertAlmostEqual(reply.prediction.step_time.mean.ToNanoseconds() * 1e-9, 0.09502, places=8)

    def test_an_equal_call_is_answered_from_the_cache_and_counted(self):
        first, second = self.optimized(fused_share=0.75), self.optimized(fused_share=0.75)
        self.assertEqual((first.simulation.cached, second.simulation.cached), (False, True))
        self.assertEqual(first.strategy, second.strategy)
        self.assertEqual(first.profile_digest, second.profile_digest)
        self.assertGreaterEqual(self.server.metric("stepcast_predictions_total", method="OptimizeJob", communication="all_reduce", code="OK"), 1)

    def test_a_job_has_the_reply_of_the_call(self):
        name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=self.request().inline_profile)).name
        asked = self.request()
        asked.profile = name
        jobs = job_service_pb2_grpc.JobServiceStub(self.server.channel)
        job = jobs.StartJob(job_service_pb2.StartJobRequest(optimize_job=asked))
        waited = operations_pb2_grpc.OperationsStub(self.server.channel).WaitOperation(
            operations_pb2.WaitOperationRequest(name=job.name), timeout=PATIENCE_SECONDS
        )
        self.assertTrue(waited.done)
        reply = strategy_pb2.OptimizeJobResponse()
        self.assertTrue(waited.response.Unpack(reply), waited)
        called = self.server.predictions.OptimizeJob(asked)
        self.assertEqual((reply.strategy, reply.prediction, reply.reason), (called.strategy, called.prediction, called.reason))

    def test_a_passed_deadline_ends_it(self):
        request = self.request(options={"step_variation": "AS_RECORDED", "steps_per_worker": 1000000, "replications": 5}, scenario={"workers": 64, "all_reduce": {}})
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.predictions.OptimizeJob(request, timeout=PASSING_SECONDS)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_a_spent_budget_leaves_an_answer_or_says_so(self):
        for budget in ("0.001s", "0.05s", "0.3s"):
            try:
                reply = self.optimized(options={"step_variation": "AS_RECORDED", "steps_per_worker": 20000, "replications": 2}, time_budget=budget)
                self.assertTrue(reply.reason)
            except grpc.RpcError as error:
                self.assertEqual(details_of(error).reason, "TIME_BUDGET_SPENT")


class OptimizeServersTest(ServerTest):
    def optimized(self, profile=None, **request):
        asked = {
            "inline_profile": profile or served(),
            "scenario": {"workers": 3, "parameter_servers": {"servers": 4, "synchronization": "SYNCHRONOUS"}},
            "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 40, "replications": 2},
            **request,
        }
        return self.server.predictions.OptimizeJob(from_json(strategy_pb2.OptimizeJobRequest(), asked))

    def test_a_large_tensor_is_cut_over_the_servers(self):
        reply = self.optimized()
        # As recorded one server sends 16 MB to three workers and takes as much of them.
        self.assertGreater(reply.as_recorded.step_time.mean.ToNanoseconds() * 1e-9, 2 * 0.048)
        self.assertGreater(reply.gain, 1)
        self.assertFalse(reply.no_difference)
        self.assertEqual({row.name for row in reply.compared}, {"AS_RECORDED", "BYTEPS", "FOUND"})
        self.assertEqual(sorted(sum((list(group.operations) for group in reply.strategy.tensors), [])), [f"send/{i}" for i in range(4)])
        large = next(group for group in reply.strategy.tensors if "send/3" in group.operations)
        self.assertGreaterEqual(large.partitions, 4)
        self.assertFalse(reply.HasField("lower_bound_seconds"))
        self.assertIn("parameter servers", reply.no_bound_because)
        self.assertGreaterEqual(self.server.metric("stepcast_predictions_total", method="OptimizeJob", communication="parameter_servers", code="OK"), 1)

    def test_a_job_of_all_reduces_is_judged_on_servers(self):
        for how in ({"synchronization": "SUMMED"}, {"synchronization": "SYNCHRONOUS"}, {}):
            with self.subTest(how=how):
                scenario = {"workers": 3, "parameter_servers": {"servers": 4, **how}, "bandwidth_bytes_per_second": 1e9}
                job = training()
                for each in job["operations"]:
                    each.update({"parameter": each["name"]} if "collective" in each else {})
                reply = self.optimized(profile=job, scenario=scenario)
                asked = {"inline_profile": job, "scenario": scenario, "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 40, "replications": 2}}
                [predicted] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), asked)).predictions
                self.assertEqual(reply.as_recorded.steps_per_second, predicted.steps_per_second)
                self.assertIn("BYTEPS", {row.name for row in reply.compared})
                gradients = {each["name"] for each in job["operations"] if each.get("collective") == "ALL_REDUCE"}
                self.assertLessEqual({name for group in reply.strategy.tensors for name in group.operations}, gradients)
                self.assertIn("parameter servers", reply.no_bound_because)
                # Also where the strategy is one setting, BytePS's, whose order is its own.
                by_layer = len(reply.prediction.scenario.parameter_servers.transfer_priorities) > 0
                self.assertTrue(reply.no_difference or by_layer == ("first layers need first" in reply.reason), reply.reason)

    def test_where_nothing_makes_a_difference_the_job_stays_as_it_is(self):
        reply = self.optimized(scenario={"workers": 1, "parameter_servers": {"servers": 1}, "bandwidth_bytes_per_second": 1e15})
        self.assertTrue(reply.no_difference)
        self.assertEqual(len(reply.strategy.tensors), 0)
        self.assertEqual(reply.prediction, reply.as_recorded)

    def test_faults_are_named(self):
        nameless = served()
        for operation in nameless["operations"]:
            if operation["name"] == "send/2":
                del operation["parameter"]
        for asked, field, value in (
            ({"profile": nameless, "scenario": {"workers": 3}}, "profile", "send/2"),
            ({"scenario": {"workers": 3, "all_reduce": {}}}, "scenario.all_reduce", "parameter servers"),
            ({"shortcuts": {"partial_replay": False}}, "shortcuts.partial_replay", "must be on"),
            ({"max_partitions": 17}, "max_partitions", "17"),
            ({"scenario": {"workers": 3, "parameter_servers": {"servers": -2}}}, "scenario.parameter_servers.servers", "-2"),
        ):
            with self.assertRaises(grpc.RpcError) as raised:
                self.optimized(**asked)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, asked)
            self.assertIn(field, raised.exception.details())
            self.assertIn(value, raised.exception.details())


class OptimizeCommandTest(ServerTest):
    def test_the_command_writes_the_strategy_locally_and_with_a_server(self):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "job.json"), os.path.join(folder, "strategy.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(training(), file)
            told = []
            for where in (["--local"], ["--server", self.server.address]):
                command = [os.environ["STEPCAST"], "optimize", path, *where, "--workers", "2", "--latency", "10us", "--as-recorded", "--steps", "60", "--out", out]
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(out, encoding="utf-8") as file:
                    told.append((done.stdout, file.read()))
            self.assertEqual(told[0], told[1])
            self.assertRegex(told[0][0], r"^6 gradients in \d collectives gain \+16\.8 %")
            strategy = json.loads(told[0][1])
            self.assertEqual(sum((group["operations"] for group in strategy["tensors"]), []), [f"all_reduce/{i}" for i in (5, 4, 3, 2, 1, 0)])

    def test_a_second_recording_tells_the_command_what_half_a_batch_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, f"{name}.json") for name in ("job", "quarter", "kept")}
            outputs = [{"operation": f"forward/{i}", "bytes": 10000000} for i in range(6)]
            for name, content in (("job", training()), ("quarter", training(batch=2, forward=3, backward=5)), ("kept", {"memory": {"keptOutputs": outputs}})):
                with open(paths[name], "w", encoding="utf-8") as file:
                    json.dump(content, file)
            stored = self.server.profiles.CreateProfile(from_json(store.CreateProfileRequest(), {"profile": training(batch=2, forward=3, backward=5), "profile_id": "quarter"})).name

            def asked(*flags):
                command = [os.environ["STEPCAST"], "optimize", paths["job"], "--workers", "2", "--latency", "10us", "--as-recorded", "--steps", "60", "--costs", paths["kept"], "--memory-budget", "93MB", *flags]
                return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)

            local = asked("--local", "--half-batch-recording", paths["quarter"])
            self.assertEqual(local.returncode, 0, local.stderr)
            self.assertIn("assumed: half a batch, by operation: Computation with 4 examples", local.stdout)
            remote = asked("--server", self.server.address, "--half-batch-recording", stored)
            self.assertEqual((remote.returncode, remote.stdout), (0, local.stdout), remote.stderr)
            self.assertIn("half a batch takes 0.75 of the time", asked("--local", "--half-batch-share", "0.75").stdout)
            for flags, words in (
                (("--half-batch-recording", paths["job"]), "--half-batch-recording: its batch is 8 as well"),
                (("--half-batch-share", "0"), "--half-batch-share: 0 is not above 0"),
                (("--half-batch-share", "0.5", "--half-batch-recording", paths["quarter"]), "excludes"),
            ):
                refused = asked("--local", *flags)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(words, refused.stderr)


if __name__ == "__main__":
    unittest.main()
