"""Recordings of TensorFlow and PyTorch, imported by Google's Python client: what the server makes of them, and of broken ones."""

import gzip
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from contract import details_of, diagnosis_pb2, from_json, grpc, prediction, profile_pb2, store, strategy_pb2, tuning_pb2
from stepcastd import PATIENCE_SECONDS, ServerTest

from tensorflow import graph_pb2, run_metadata_pb2

WORKER = "/job:worker/replica:0/task:0/device:CPU:0"
SERVER = "/job:ps/replica:0/task:0/device:CPU:0"
PLATFORM = profile_pb2.Platform(bandwidth_bytes_per_second=1e8)
OPTIONS = store.RunMetadataOptions(model="m", batch_size=32, platform=PLATFORM)
SEED = 20261121
PYTORCH = pathlib.Path(__file__).resolve().parents[1] / "data/pytorch/alexnet_s-25.json.gz"
PIPELINES = pathlib.Path(__file__).resolve().parents[1] / "data/pp"
CASES = pathlib.Path(__file__).resolve().parents[1] / "data/cases"

# The nodes of one layer on its device: name, op, inputs.
PARTS = {
    SERVER: [("w", "VariableV2", []), ("w/_S1", "_Send", ["w"]), ("w/_R2", "_Recv", []), ("update", "ApplyGradientDescent", ["w", "w/_R2"])],
    WORKER: [("w/_R1", "_Recv", []), ("forward", "MatMul", ["w/_R1"]), ("backward", "MatMul", ["forward"]), ("w/_S2", "_Send", ["backward"])],
}
TENSORS = {"1": ("edge_1_w", SERVER, WORKER), "2": ("edge_2_backward", WORKER, SERVER)}


def a_node(graph, device, name, op, inputs):
    node = graph.node.add(name=name.encode(), op=op.encode(), device=device.encode(), input=[each.encode() for each in inputs])
    if op in ("_Send", "_Recv"):
        for key, text in zip(("tensor_name", "send_device", "recv_device"), TENSORS[name[-1]]):
            node.attr.add(key=key.encode()).value.s = text.encode()


def a_row(rows, name, label, start, length, size=None):
    row = rows.node_stats.add(node_name=name.encode(), timeline_label=label.encode(), all_start_micros=start, op_end_rel_micros=length, all_end_rel_micros=length)
    if size is not None:
        row.output.add().tensor_description.allocation_description.requested_bytes = size


def recording(steps=3, graphs=True, start=1_600_000_000_000_000, forward_us=20000, ahead_us=None):
    """Steps of 60 ms and more: 10 ms down, 20 and 20 ms of the worker, 10 ms up, an update.

    With a server's clock that is said to be ahead of the worker's, the server's read of the variable was recorded, too.
    """
    metadata = run_metadata_pb2.RunMetadata()
    for step in range(steps):
        at, stats = start + step * 1_000_000, metadata.step_stats.add()
        worker, server = stats.dev_stats.add(device=WORKER.encode()), stats.dev_stats.add(device=SERVER.encode())
        if ahead_us is not None:
            a_row(server, "w", "w = VariableV2()", at + ahead_us, 5)
        a_row(worker, "RecvTensor", f"[1.0MB] [838.9Mb/s] edge_1_w from {SERVER} to {WORKER}", at, 10000, 1000000)
        a_row(worker, "forward", "forward = MatMul(w/_R1)", at + 10000, forward_us + step)
        at += forward_us - 20000
        a_row(worker, "backward", "backward = MatMul(forward)", at + 31000, 20000)
        at += ahead_us or 0
        a_row(server, "RecvTensor", f"[1.0MB] [838.9Mb/s] edge_2_backward from {WORKER} to {SERVER}", at + 51000, 10000, 1000000)
        a_row(server, "update", "update = ApplyGradientDescent(w, w/_R2)", at + 61000, 500)
    if graphs:
        for device, nodes in PARTS.items():
            graph = metadata.partition_graphs.add()
            for name, op, inputs in nodes:
                a_node(graph, device, name, op, inputs)
    return metadata.SerializeToString()


def whole_graph():
    graph = graph_pb2.GraphDef()
    for device, name, op, inputs in (
        (SERVER, "w", "VariableV2", []),
        (WORKER, "forward", "MatMul", ["w"]),
        (WORKER, "backward", "MatMul", ["forward"]),
        (SERVER, "update", "ApplyGradientDescent", ["w", "backward"]),
    ):
        a_node(graph, device, name, op, inputs)
    return graph.SerializeToString()


def messages(content, graph=b"", chunk_bytes=7919, **header):
    yield store.ImportProfileRequest(header=store.ImportProfileRequest.Header(**header))
    for at in range(0, len(graph), chunk_bytes):
        yield store.ImportProfileRequest(graph_chunk=graph[at : at + chunk_bytes])
    for at in range(0, len(content), chunk_bytes):
        yield store.ImportProfileRequest(chunk=content[at : at + chunk_bytes])


def workers(clocks_us=(0, 3_000_000, -1_000_000), forward_us=(20000, 20000, 40000), graphs=True):
    """A recording of each of several workers, by task: what a worker's clock shows is the server's time and so much more."""
    parts = []
    for task, (clock, forward) in enumerate(zip(clocks_us, forward_us)):
        part = recording(start=1_600_000_000_000_000 + clock + 1000 * task, forward_us=forward, ahead_us=-clock, graphs=graphs)
        parts.append(part.replace(b"/job:worker/replica:0/task:0", b"/job:worker/replica:0/task:%d" % task))
    return parts


def messages_of(parts, graph=b"", names=None, **header):
    options = {} if "pytorch" in header else {"run_metadata": OPTIONS}
    yield store.ImportProfileRequest(header=store.ImportProfileRequest.Header(**options, **header))
    if graph:
        yield store.ImportProfileRequest(graph_chunk=graph)
    for number, part in enumerate(parts):
        name = names[number] if names else f"part.{number}"
        yield store.ImportProfileRequest(recording=store.ImportProfileRequest.Recording(name=name))
        yield store.ImportProfileRequest(chunk=part)


def stage(rank, steps=4, micro_batches=3):
    """A trace of one of two stages under GPipe, which passes on 6 floats: forward 10 and 20 ms, backward 30 and 40, a gradient of 5 floats, optimizer 1 ms."""
    events = []

    def add(name, begin, length, shape=None, category="cpu_op"):
        arguments = {"Input Dims": [shape], "Input type": ["float"]} if shape else {}
        events.append({"ph": "X", "cat": category, "name": name, "ts": 1000 * begin, "dur": 1000 * length, "args": arguments})

    forward, backward = ((10, 30), (20, 40))[rank]
    engine = "autograd::engine::evaluate_function: "
    for step in range(steps):
        at = 1000 * step
        add(f"ProfilerStep#{step}", at, 1000, category="user_annotation")
        for k in range(micro_batches):
            add("c10d::recv_", at + 0.1 * k, 0.05)
            add("gloo:recv", at + 0.1 * k, 400, [2, 3], "user_annotation")
            begin = at + 100 + 30 * k
            add("DistributedDataParallel.forward", begin, forward, category="user_annotation")
            if rank == 0:
                add("gloo:send", begin + forward, 300, [2, 3], "user_annotation")
            begin = at + 500 + 60 * k
            add(engine + "LinearBackward0", begin, backward - 2)
            add(engine + "torch::autograd::AccumulateGrad", begin + backward - 2, 2)
            add("torch::autograd::AccumulateGrad", begin + backward - 1, 1, [5])
            if rank == 1:
                add("gloo:send", begin + backward, 300, [2, 3], "user_annotation")
        add("Optimizer.step#SGD.step", at + 900, 1, category="user_annotation")
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}).encode()


class PipelineRanksTest(ServerTest):
    def imported(self, parts, **header):
        pytorch = store.PyTorchTraceOptions(batch_size=4, platform=PLATFORM)
        return self.server.profiles.ImportProfile(messages_of(parts, pytorch=pytorch, **header), timeout=PATIENCE_SECONDS)

    def test_ranks_of_a_replica_are_a_pipeline_with_the_times_of_each(self):
        made = self.imported([stage(1), stage(0)], profile_id="stages")
        self.assertFalse(made.HasField("recording"))
        self.assertIn("Found a pipeline of 2 stages, one a rank, and 2 steps of 3 micro-batches", made.notes[0])
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/stages"))
        self.assertEqual([each.name for each in profile.operations if each.size_bytes], ["gradient/1/0", "gradient/0/0"])
        self.assertEqual(len(profile.steps), 6)
        pipeline = {"stages": 2, "micro_batches": 6, "schedule": "GPIPE", "bandwidth_bytes_per_second": 1e14, "latency_seconds": 0}
        request = {"profile": "profiles/stages", "worker_counts": [1], "scenario": {"pipeline": pipeline}, "options": {"step_variation": "AS_RECORDED"}}
        asked = from_json(prediction.PredictThroughputRequest(), request)
        [answer] = self.server.predictions.PredictThroughput(asked).predictions
        # Six forwards of the slower stage behind the first of the other, and likewise back; at the end the first stage's optimizer.
        self.assertAlmostEqual(4 * 6 / answer.examples_per_second, 0.010 + 6 * 0.020 + 6 * 0.040 + 0.030 + 0.001, places=4)

    def test_ranks_that_make_no_replica_are_refused_by_name(self):
        for parts, header, field, said in (
            ([stage(0), stage(0)], {}, "recordings[1]", "its rank is another's, too"),
            ([stage(0), stage(1, micro_batches=2)], {}, "recordings[1]", "2 micro-batches a step, and rank 0 3"),
            ([stage(1)] * 2, {}, "recordings[1]", "another's"),
            ([stage(0), stage(1).replace(b"DistributedDataParallel.forward", b"forward")], {}, "recordings[1]", "DistributedDataParallel"),
            ([stage(0), stage(1).replace(b"[2, 3]", b"[2, 4]")], {}, "recordings[0]", "receives 3 of 24 bytes a step, and its neighbours send it 3 of 32 bytes"),
            ([stage(0), stage(1)], {"overlap_slowdown": 1.5}, "header.overlap_slowdown", "of a pipeline's stages"),
        ):
            with self.subTest(said=said), self.assertRaises(grpc.RpcError) as raised:
                self.imported(parts, **header)
            details = details_of(raised.exception)
            self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn(said, details.violations[field])
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(messages(stage(0), pytorch=store.PyTorchTraceOptions(batch_size=4, platform=PLATFORM)))
        self.assertIn("all ranks of one replica of a pipeline", details_of(raised.exception).violations["recording"])


class ImportRecordingTest(ServerTest):
    flags = ("--max-import-bytes", str(8 << 20))

    def run_metadata(self, content, graph=b"", options=OPTIONS, **header):
        return self.server.profiles.ImportProfile(messages(content, graph, run_metadata=options, **header), timeout=PATIENCE_SECONDS)

    def refused(self, content, graph=b"", options=OPTIONS):
        with self.assertRaises(grpc.RpcError) as raised:
            self.run_metadata(content, graph, options)
        return details_of(raised.exception)

    def test_a_recording_becomes_a_profile_that_can_be_predicted(self):
        imported = self.run_metadata(recording(), profile_id="rec")
        self.assertEqual((imported.profile.name, imported.profile.framework, imported.profile.step_count), ("profiles/rec", "tensorflow", 3))
        self.assertTrue(any(note.startswith("Found 3 steps") for note in imported.notes), imported.notes)
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/rec"))
        named = {each.name: each for each in profile.operations}
        self.assertEqual(sorted(named), ["backward", "forward", "recv/w", "send/backward", "update"])
        self.assertEqual((named["recv/w"].size_bytes, named["recv/w"].parameter, named["send/backward"].parameter), (1000000, "w", "w"))
        waits = {each.name: [profile.operations[before].name for before in each.waiting_for] for each in profile.operations}
        self.assertEqual(waits, {"recv/w": [], "forward": ["recv/w"], "backward": ["forward"], "send/backward": ["backward"], "update": ["send/backward"]})
        # One worker does one thing after the other: 10 ms down, 40 ms and a little, 10 ms up, half a millisecond.
        reply = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile="profiles/rec"))
        self.assertAlmostEqual(reply.predictions[0].steps_per_second, 1 / 0.0605, delta=0.01)

    def test_a_graph_before_the_recording_does_instead_of_partition_graphs(self):
        with_parts = self.run_metadata(recording(), validate_only=True).profile
        with_graph = self.run_metadata(recording(graphs=False), whole_graph(), validate_only=True).profile
        self.assertEqual(list(with_graph.operations), list(with_parts.operations))
        self.assertEqual(list(with_graph.steps), list(with_parts.steps))

    def test_recordings_of_several_workers_are_one_with_clocks_on_one_time(self):
        parts = workers()
        reply = self.server.profiles.ImportProfile(messages_of(parts[::-1], profile_id="workers"), timeout=PATIENCE_SECONDS)
        report = reply.recording
        self.assertEqual((report.steps, report.collectives), (3, 0))
        self.assertEqual([worker.name for worker in report.workers], ["rank 0", "rank 1", "rank 2"])
        self.assertEqual([server.name for server in report.servers], ["server 0"])
        # A transfer takes 10 ms in both directions, so offsets are exact, give or take as much.
        for node, offset in zip([*report.workers[1:], *report.servers], (-3_000_000_000, 1_000_000_000, 0)):
            self.assertAlmostEqual(node.clock_offset_ns, offset, delta=1e6)
            self.assertLess(node.least_clock_offset_ns, offset)
            self.assertGreater(node.most_clock_offset_ns, offset)
            self.assertLess(node.most_clock_offset_ns - node.least_clock_offset_ns, 50e6)
        # Of recorded steps a second apart.
        self.assertAlmostEqual(report.between_steps_seconds, 2 / 3 * (1 - (2 * 0.0615 + 0.0815) / 3), delta=2e-3)
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/workers"))
        self.assertEqual([len(worker.steps) for worker in stored.recording.workers], [0, 3, 3])
        self.assertEqual([len(worker.server_shifts_ns) for worker in stored.recording.workers], [3, 3, 3])
        diagnosed = self.server.predictions.DiagnoseJob(diagnosis_pb2.DiagnoseJobRequest(profile="profiles/workers"))
        self.assertEqual(diagnosed.recording.report, report)
        self.assertEqual((diagnosed.prediction.scenario.workers, len(diagnosed.recording.workers)), (3, 3))
        # Each repeats its own steps; on links that are nearly free what each does alone adds up.
        asked = prediction.PredictThroughputRequest(profile="profiles/workers", worker_counts=[3])
        asked.scenario.bandwidth_bytes_per_second = 1e14
        alone = [1 / 0.0405, 1 / 0.0405, 1 / 0.0605]
        self.assertAlmostEqual(self.server.predictions.PredictThroughput(asked).predictions[0].steps_per_second, sum(alone), delta=0.01 * sum(alone))
        # A graph given once is that of all.
        given = self.server.profiles.ImportProfile(messages_of(workers(graphs=False), whole_graph(), validate_only=True), timeout=PATIENCE_SECONDS)
        self.assertEqual(list(given.profile.steps), list(stored.steps))

    def test_workers_that_do_not_fit_are_refused(self):
        parts = workers()
        for stream, field in (
            (messages_of([parts[0], parts[1], parts[1]]), "recordings[2]"),
            (messages_of([parts[0], parts[2]]), "recordings[1]"),
            (messages_of([parts[0], parts[1][:100]]), "recordings[1]"),
            (messages_of(workers(graphs=False)), "recordings[0]"),
            (messages_of(parts, overlap_slowdown=1.5), "header.overlap_slowdown"),
            (messages_of(parts, collective_slowdown=1.5), "header.collective_slowdown"),
        ):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.ImportProfile(stream, timeout=PATIENCE_SECONDS)
            self.assertEqual(list(details_of(raised.exception).violations), [field])
        # What a file is called goes before its task.
        named = self.server.profiles.ImportProfile(messages_of([parts[0], parts[2]], names=["rank0.pb", "rank1.pb"]), timeout=PATIENCE_SECONDS)
        self.assertEqual(len(named.recording.workers), 2)

    def test_the_command_line_imports_several_workers(self):
        with tempfile.TemporaryDirectory(prefix="stepcast-workers-") as folder:
            paths = []
            for task, part in enumerate(workers()):
                paths.append(os.path.join(folder, f"worker.{task}.pb"))
                pathlib.Path(paths[-1]).write_bytes(part)
            saved = os.path.join(folder, "job.json")
            command = [os.environ["STEPCAST"], "profile", "import", *paths, "--batch-size", "32", "--bandwidth", "100MB/s", "--save", saved]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertIn("matched: the transfers in each of 3 steps of 3 workers with 1 parameter server\n", ran.stdout)
            self.assertRegex(ran.stdout, r"rank 1 +-3\.000 s ")
            self.assertRegex(ran.stdout, r"server 0 ")
            diagnosed = subprocess.run([os.environ["STEPCAST"], "diagnose", saved], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
            self.assertEqual((diagnosed.returncode, diagnosed.stderr), (0, ""))
            self.assertIn("with 1 parameter server", diagnosed.stdout)

    def test_what_is_missing_is_named(self):
        self.assertIn("no partition_graphs", self.refused(recording(graphs=False)).violations["recording"])
        self.assertIn("the file is empty", self.refused(b"").violations["recording"])
        self.assertIn("header.run_metadata.batch_size", self.refused(recording(), options=store.RunMetadataOptions(platform=PLATFORM)).violations)
        self.assertIn("header.run_metadata.platform.bandwidth_bytes_per_second", self.refused(recording(), options=store.RunMetadataOptions(batch_size=1)).violations)

    def test_broken_recordings_are_refused_or_sound(self):
        chance, whole = random.Random(SEED), recording()
        for at in range(100):
            content = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            content = content[: chance.randrange(len(content))] if at % 2 else content
            try:
                imported = self.run_metadata(bytes(content), validate_only=True)
                self.assertTrue(imported.profile.operations, (SEED, at))
            except grpc.RpcError as error:
                details = details_of(error)
                self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT, (SEED, at, details))
                self.assertIn(details.reason, {"IMPORT_INVALID", "PROFILE_INVALID"}, (SEED, at, details))
        self.assertEqual(len(self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles), 0)

    def test_a_recording_beyond_memory_is_imported_and_one_above_the_limit_refused(self):
        # Over 4 MiB it waits in a file of the data directory, which nobody sees.
        content = recording(steps=9000)
        self.assertGreater(len(content), 4 << 20)
        self.assertEqual(self.run_metadata(content).profile.step_count, 9000)
        details = self.refused(content * 3)
        self.assertEqual((details.code, details.reason, details.quota_subjects), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_TOO_LARGE", ["max_import_bytes"]))

    def test_a_timeline_needs_sizes_and_names_the_variables(self):
        processes = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/job:localhost/replica:0/task:0/cpu:0 Compute"}}
        events = [
            {"name": "w", "op": "VariableV2"},
            {"name": "loss", "op": "MatMul", "input0": "w"},
            {"input1": "loss", "name": "train", "op": "ApplyGradientDescent", "input0": "w"},
        ]
        rows = [{"ph": "X", "pid": 1, "ts": 1000 * at, "dur": 500, "args": each} for at, each in enumerate(events)]
        content = json.dumps({"traceEvents": [processes, *rows]}).encode()
        options = store.TimelineOptions(model="m", batch_size=32, platform=PLATFORM)
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(messages(content, timeline=options))
        self.assertIn('"w"', details_of(raised.exception).violations["header.timeline.variable_bytes"])
        options.variable_bytes["w"] = 1000000
        profile = self.server.profiles.ImportProfile(messages(content, timeline=options, validate_only=True)).profile
        self.assertEqual([each.name for each in profile.operations], ["recv/w", "loss", "send/w", "train"])

    def test_a_trace_of_pytorch_has_its_gradients_and_buckets(self):
        content = PYTORCH.read_bytes()
        options = store.PyTorchTraceOptions(model="alexnet_s", batch_size=128, platform=PLATFORM)
        imported = self.server.profiles.ImportProfile(messages(content, pytorch=options, profile_id="ddp"))
        self.assertEqual((imported.profile.framework, imported.profile.step_count), ("pytorch", 10))
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/ddp"))
        self.assertEqual(list(profile.buckets.sizes_bytes), [5219304, 10409344])
        sent = [each for each in profile.operations if each.collective == profile_pb2.Operation.ALL_REDUCE]
        self.assertEqual((len(sent), sum(each.size_bytes for each in sent)), (16, 15628648))
        # As the recording, and by a step without the profiler.
        ends = [max(step.end_ns) for step in profile.steps]
        self.assertAlmostEqual(sum(ends) / len(ends) / 1e6, 126.474, delta=0.001)
        options.step_seconds = 0.1
        scaled = self.server.profiles.ImportProfile(messages(content, pytorch=options, validate_only=True)).profile
        self.assertAlmostEqual(sum(max(step.end_ns) for step in scaled.steps) / 10 / 1e6, 100, delta=0.001)

    def test_a_trace_of_pytorch_says_what_to_record_instead(self):
        options = store.PyTorchTraceOptions(batch_size=8, platform=PLATFORM)
        whole = gzip.decompress(PYTORCH.read_bytes())
        for content, missing in (
            (whole.replace(b"ProfilerStep#", b"Step#"), "no ProfilerStep"),
            (whole.replace(b"Input Dims", b"Inputs"), "record_shapes=True"),
            (whole[: len(whole) // 2], "cut short"),
        ):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.ImportProfile(messages(content, chunk_bytes=1 << 16, pytorch=options))
            details = details_of(raised.exception)
            self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
            self.assertIn(missing, details.violations["recording"])

    def test_recordings_as_people_make_them_have_their_gradients_and_what_else_they_send(self):
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        plain = [4000, 1600000, 2400, 1200000]
        for case, gradients, others, steps in (
            ("plain", plain, [], 4),
            ("unused_parameters_map", plain, [16], 4),
            ("loss_between_backward_and_step", plain, [4], 4),
            ("tensor_parallel_all_reduce", plain, [], 4),
            ("last_step_cut_off", plain, [], 3),
            ("loss_logged_every_third_step", plain, [], 4),
            ("metadata_before_trace_events", plain, [], 4),
            ("times_as_texts", plain, [], 4),
            ("fp16_compress_hook", [2000, 800000, 1200, 600000], [], 4),
        ):
            with self.subTest(case):
                content = (CASES / case / "trace.json").read_bytes()
                self.server.profiles.ImportProfile(messages(content, pytorch=options, profile_id=case.replace("_", "-")))
                profile = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/" + case.replace("_", "-")))
                sent = [each for each in profile.operations if each.collective == profile_pb2.Operation.ALL_REDUCE and not each.group]
                self.assertEqual([each.size_bytes for each in sent if each.parameter], gradients)
                self.assertEqual([each.size_bytes for each in sent if not each.parameter], others)
                self.assertEqual(len(profile.steps), steps)

    def test_a_plain_trace_is_a_chain_of_layers_that_a_pipeline_is_cut_from(self):
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        content = (PIPELINES / "alexnet_p-plain.json.gz").read_bytes()
        imported = self.server.profiles.ImportProfile(messages(content, pytorch=options, profile_id="plain-chain"))
        self.assertTrue(any("forward/0/Conv2d to forward/8/sum" in note for note in imported.notes), imported.notes)
        operations = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/plain-chain")).operations
        forward = [each for each in operations if getattr(each, "pass") == profile_pb2.Operation.FORWARD]
        # What the next layer's recorded input has, in float32 and of 32 examples.
        shapes = [24 * 27 * 27, 64 * 13 * 13, 96 * 13 * 13, 96 * 13 * 13, 64 * 6 * 6, 1024, 1024, 250]
        self.assertEqual([each.output_bytes for each in forward], [4 * 32 * elements for elements in shapes] + [0])
        # Each backward computation waits for the layer that it undoes, from the last to the first.
        undone = []
        for each in operations:
            if getattr(each, "pass") == profile_pb2.Operation.BACKWARD:
                undone += [before for before in each.waiting_for if getattr(operations[before], "pass") == profile_pb2.Operation.FORWARD]
        self.assertEqual(undone, sorted(undone, reverse=True))
        self.assertEqual({operations[each].name for each in undone}, {each.name for each in forward})

    def test_collectives_of_other_groups_stay_inside_a_worker(self):
        content = (CASES / "tensor_parallel_all_reduce" / "trace.json").read_bytes()
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        profile = self.server.profiles.ImportProfile(messages(content, pytorch=options, validate_only=True)).profile
        inside = [each for each in profile.operations if each.group]
        self.assertEqual([(each.group, each.size_bytes) for each in inside], [("tp", 262144)])
        self.assertEqual(profile.devices_per_worker, 2)
        options.data_parallel_group = "nobody"
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(messages(content, pytorch=options))
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
        self.assertIn('no group "nobody": it has "1" ("tp")', details.violations["header.pytorch.data_parallel_group"])

    def test_a_table_of_layers_is_imported_and_its_faults_name_their_lines(self):
        options = store.LayerProfileOptions(batch_size=4, platform=PLATFORM)
        table = b"name,forward_ms,backward_ms,activation_bytes,parameter_bytes\na,1,2,4096,80000\nb,3,4,8192,0\n"
        profile = self.server.profiles.ImportProfile(messages(table, layer_profile=options, validate_only=True)).profile
        self.assertEqual([each.name for each in profile.operations], ["forward/a", "forward/b", "backward/b", "backward/a", "all_reduce/a", "optimizer"])
        self.assertEqual([each.output_bytes for each in profile.operations], [4096, 8192, 0, 0, 0, 0])
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(messages(table.replace(b"b,3", b"b,-3"), layer_profile=options))
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
        self.assertIn('"-3"', details.violations["line 3"])
        with tempfile.TemporaryDirectory(prefix="stepcast-table-") as folder:
            path, saved = os.path.join(folder, "layers.csv"), os.path.join(folder, "layers.json")
            pathlib.Path(path).write_bytes(table)
            command = [os.environ["STEPCAST"], "profile", "import", path, "--batch-size", "4", "--bandwidth", "1Gbit/s", "--save", saved]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertIn("a table of 2 layers", ran.stdout)
            self.assertEqual(len(json.loads(pathlib.Path(saved).read_text())["operations"]), 6)

    def test_a_profile_of_sailors_takes_its_sizes_from_its_configuration(self):
        options = store.LayerProfileOptions(batch_size=4, platform=PLATFORM, tensor_parallel=2)
        times = json.dumps({"4": {"2": {"0": [0.001, 0, 0.01], "1": [0.002, 0.004, 0.01], "2": [0.003, 0.006, 0.02]}}}).encode()
        sizes = json.dumps({"hidden_size": 16, "sequence_length": 8, "num_layers": 1, "vocab_size": 100}).encode()
        profile = self.server.profiles.ImportProfile(messages(times, sizes, layer_profile=options, validate_only=True)).profile
        self.assertEqual(profile.devices_per_worker, 2)
        self.assertEqual([each.size_bytes for each in profile.operations if each.size_bytes], [3264, 6560, 3200])
        for content, graph, field, said in ((times, b"", "graph", "training configuration"), (times, b"{}", "graph", "vocab_size"), (b"{}", sizes, "recording", "no JSON of micro-batches")):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.ImportProfile(messages(content, graph, layer_profile=options))
            details = details_of(raised.exception)
            self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
            self.assertIn(said, details.violations[field])

    def test_what_a_hook_makes_of_gradients_is_told_by_its_sizes(self):
        """A hook that sends bytes is one that compresses; PowerSGD's thin matrices, of rank 2 here, are refused by their name."""
        trace = json.loads((CASES / "plain" / "trace.json").read_bytes())
        shapes = {400000: [500, 800], 300000: [600, 500]}
        parts = {401000: [1000, 1000, 1600], 300600: [600, 1200, 1000]}
        as_bytes, as_parts = [], []
        for event in trace["traceEvents"]:
            arguments = event["args"]
            if event["name"] == "torch::autograd::AccumulateGrad":
                elements = arguments["Input Dims"][0][0]
                arguments = dict(arguments, **{"Input Dims": [shapes.get(elements, [elements])]})
            if event["name"] == "record_param_comms":
                as_bytes.append(dict(event, args=dict(arguments, dtype="Byte")))
                sizes = parts[arguments["In msg nelems"]]
                as_parts += [dict(event, ts=event["ts"] + 50 * i, args=dict(arguments, **{"In msg nelems": n, "Out msg nelems": n})) for i, n in enumerate(sizes)]
                continue
            as_bytes.append(event)
            if event["name"] not in ("c10d::allreduce_", "gloo:all_reduce"):
                as_parts.append(dict(event, args=arguments))
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        content = json.dumps(dict(trace, traceEvents=as_bytes)).encode()
        self.server.profiles.ImportProfile(messages(content, pytorch=options, profile_id="whole-numbers"))
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/whole-numbers"))
        self.assertEqual((list(profile.buckets.sizes_bytes), profile.buckets.sent_share), ([401000, 300600], 0.25))
        content = json.dumps(dict(trace, traceEvents=as_parts)).encode()
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(messages(content, pytorch=options))
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
        self.assertIn("PowerSGD of rank 2", details.violations["recording"])

    def test_a_trace_that_is_not_json_says_the_byte_and_the_reason(self):
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        for case, reason in (("control_character", "a control character in a text"), ("nan_in_args", "NaN, which is not a number of JSON")):
            with self.subTest(case), self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.ImportProfile(messages((CASES / case / "trace.json").read_bytes(), pytorch=options))
            details = details_of(raised.exception)
            self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"))
            self.assertRegex(details.violations["recording"], "byte [0-9]+: " + reason)

    def steps_per_second(self, profile, **all_reduce):
        request = prediction.PredictThroughputRequest(profile="profiles/" + profile)
        scenario = request.scenarios.add(workers=4)
        scenario.all_reduce.SetInParent()
        if all_reduce:
            scenario.all_reduce.buckets.CopyFrom(profile_pb2.Buckets(**all_reduce))
        return self.server.predictions.PredictThroughput(request).predictions[0].steps_per_second

    def test_buckets_other_than_the_recorded_are_refused_where_gradients_are_not_known(self):
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        content = (CASES / "plain" / "trace.json").read_bytes().replace(b'"Input Dims"', b'"Other Dims"')
        self.server.profiles.ImportProfile(messages(content, pytorch=options, profile_id="unknown"))
        self.assertGreater(self.steps_per_second("unknown"), 0)
        with self.assertRaises(grpc.RpcError) as raised:
            self.steps_per_second("unknown", cap_bytes=1 << 20)
        details = details_of(raised.exception)
        self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("2 buckets and not of the gradients", details.violations["scenarios[0].all_reduce.buckets.cap_bytes"])
        # Advice leaves out what cannot be asked for, and says why.
        advice = self.server.predictions.OptimizeCommunication(tuning_pb2.OptimizeCommunicationRequest(profile="profiles/unknown"))
        self.assertEqual([each.method for each in advice.strategies], [tuning_pb2.OptimizeCommunicationRequest.AS_RECORDED])
        self.assertIn("2 buckets and not of the gradients", {each.reason for each in advice.left_out}.pop())
        # Whole buckets may still go together, and that this is so is told.
        request = strategy_pb2.OptimizeJobRequest(profile="profiles/unknown")
        request.scenario.workers = 4
        request.scenario.all_reduce.latency_seconds = 0.01
        joined = self.server.predictions.OptimizeJob(request)
        self.assertEqual([len(each.operations) for each in joined.strategy.tensors], [2])
        self.assertIn(prediction.Warning.GRADIENTS_NOT_KNOWN, [each.reason for each in joined.warnings])

    def test_caps_hold_for_gradients_that_a_hook_compresses(self):
        options = store.PyTorchTraceOptions(batch_size=32, platform=PLATFORM)
        content = (CASES / "fp16_compress_hook" / "trace.json").read_bytes()
        self.server.profiles.ImportProfile(messages(content, pytorch=options, profile_id="halves"))
        recorded = self.steps_per_second("halves")
        self.assertEqual(self.steps_per_second("halves", cap_bytes=25 << 20), recorded)
        self.assertNotEqual(self.steps_per_second("halves", first_bytes=4 << 20, cap_bytes=25 << 20), recorded)


if __name__ == "__main__":
    unittest.main()
