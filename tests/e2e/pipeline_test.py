"""Jobs whose replicas are pipelines, from the real server: golden cases, shares, and bad input."""

import copy
import json
import os
import subprocess
import tempfile
import unittest

from contract import details_of, from_json, grpc, prediction
from sample import golden, message
from stepcastd import PATIENCE_SECONDS, ServerTest

SPLIT = ("ZERO_BUBBLE_1", "ZERO_BUBBLE_V")


def profile_of(case):
    """The recorded step of one micro-batch: stage s has forward/s, its backward, gradient/s; optimizer/r waits for the gradients of device r."""
    operations, starts, ends = [], [], []
    now = 0

    def add(name, length, waiting_for=(), **operation):
        nonlocal now
        operations.append({"name": name, "waiting_for": list(waiting_for), **operation})
        starts.append(now)
        now += length
        ends.append(now)
        return len(operations) - 1

    stages, devices = len(case["forward_ns"]), case["devices"]
    before = []
    for s in range(stages):
        before = [
            add(f"forward/{s}", case["forward_ns"][s], before, resource="WORKER", **{"pass": "FORWARD"}, output_bytes=([*case["activation_bytes"], 0])[s])
        ]
    gradients = {}
    for s in reversed(range(stages)):
        if case["schedule"] in SPLIT:
            before = [add(f"backward_input/{s}", case["backward_input_ns"][s], before, resource="WORKER", **{"pass": "BACKWARD_INPUT"})]
            last = add(f"backward_weight/{s}", case["backward_weight_ns"][s], before, resource="WORKER", **{"pass": "BACKWARD_WEIGHT"})
        else:
            last = add(f"backward/{s}", case["backward_input_ns"][s] + case["backward_weight_ns"][s], before, resource="WORKER", **{"pass": "BACKWARD"})
            before = [last]
        gradients[s] = add(f"gradient/{s}", 0, [last], resource="COLLECTIVE", collective="ALL_REDUCE", size_bytes=case["gradient_bytes"][s])
    for r in range(devices):
        own = [s for s in range(stages) if device_of(case, s) == r]
        add(f"optimizer/{r}", case["tail_ns"][r], [gradients[s] for s in own], resource="WORKER", **{"pass": "OPTIMIZER"})
    return {
        "display_name": "golden",
        "batch_size": 3,
        "platform": {"bandwidth_bytes_per_second": 1e9},
        "operations": operations,
        "steps": [{"start_ns": starts, "end_ns": ends}],
    }


def device_of(case, stage):
    p = case["devices"]
    return 2 * p - 1 - stage if case["schedule"] == "ZERO_BUBBLE_V" and stage >= p else stage % p


def scenario_of(case):
    pipeline = {
        "stages": case["devices"],
        "chunks": case["chunks"],
        "micro_batches": case["micro_batches"],
        "schedule": case["schedule"],
        "cuts": [f"forward/{s}" for s in range(1, len(case["forward_ns"]))],
        "links": case["links"],
        "bandwidth_bytes_per_second": case["bandwidth_bytes_per_second"],
        "latency_seconds": case["latency_seconds"],
        "reduction": case["reduction"],
    }
    if case["schedule"] == "INTERLEAVED":
        pipeline["group"] = case["group"]
    return {
        "workers": case["replicas"],
        "bandwidth_bytes_per_second": case["reduction_bandwidth_bytes_per_second"],
        "all_reduce": {"algorithm": "RING", "latency_seconds": case["reduction_latency_seconds"]},
        "worker_groups": [{"count": 1, "compute_speed_factor": speed} for speed in case["replica_speeds"]],
        "pipeline": pipeline,
    }


ONE_STEP = {"step_variation": "AS_RECORDED", "horizon": "FIRST_STEPS", "horizon_steps": 1}


def layers(count=6, milliseconds=(4, 8), **changes):
    """A job of equal layers, 2 MB of parameters each, that hand on 1 MB; an optimizer of 3 ms."""
    case = {
        "schedule": "GPIPE",
        "devices": count,
        "forward_ns": [milliseconds[0] * 1000000] * count,
        "backward_input_ns": [milliseconds[1] * 500000] * count,
        "backward_weight_ns": [milliseconds[1] * 500000] * count,
        "activation_bytes": [1000000] * (count - 1),
        "gradient_bytes": [2000000] * count,
        "tail_ns": [3000000 // count] * count,
    }
    return profile_of({**case, **changes})


class PipelineTest(ServerTest):
    def predict(self, profile, scenario, options=None, counts=None):
        request = prediction.PredictThroughputRequest(inline_profile=message(profile))
        from_json(request, {"scenario": scenario, "options": options or {}, "worker_counts": counts or []})
        return self.server.predictions.PredictThroughput(request, timeout=PATIENCE_SECONDS).predictions

    def test_golden_cases_come_out(self):
        cases = golden("pipeline")
        self.assertEqual(len(cases), 60)
        for i, case in enumerate(cases):
            with self.subTest(i):
                [answer] = self.predict(profile_of(case), scenario_of(case), ONE_STEP)
                expected = case["expected"]
                step = case["replicas"] / answer.steps_per_second
                self.assertLess(abs(step / expected["step_seconds"] - 1), 1e-6)
                self.assertLess(abs(answer.pipeline.idle_fraction - expected["idle_fraction"]), 1e-6)
                self.assertEqual([device.chunks_in_flight for device in answer.pipeline.devices], expected["chunks_in_flight"])
                examples = 3 * case["micro_batches"] * case["replicas"] / expected["step_seconds"]
                self.assertLess(abs(answer.examples_per_second / examples - 1), 1e-6)
                self.assertEqual(answer.devices, case["devices"] * case["replicas"])
                shares = answer.pipeline
                parts = [shares.bubble_fraction, shares.transfer_fraction, shares.reduction_fraction, shares.imbalance_fraction, shares.rest_fraction]
                self.assertGreaterEqual(min(parts), -1e-9)
                self.assertLess(abs(sum(parts) - shares.idle_fraction), 1e-9)

    def test_the_bubble_formula_comes_out_of_found_cuts(self):
        [answer] = self.predict(
            layers(6, gradient_bytes=[1] * 6, tail_ns=[0] * 6, activation_bytes=[1] * 5),
            {"pipeline": {"stages": 3, "micro_batches": 9, "bandwidth_bytes_per_second": 1e15, "latency_seconds": 0, "step_barrier": True}},
            {"step_variation": "AS_RECORDED"},
        )
        self.assertLess(abs(1 / answer.steps_per_second / ((9 + 2) * 24e-3) - 1), 1e-6)
        self.assertLess(abs(answer.pipeline.bubble_fraction - 2 / 11), 1e-6)
        self.assertEqual(list(answer.scenario.pipeline.cuts), ["forward/2", "forward/4"])
        self.assertEqual([device.chunks_in_flight for device in answer.pipeline.devices], [3, 2, 1])
        self.assertEqual({a.field for a in answer.assumptions} & {"scenario.pipeline.cuts", "scenario.pipeline.schedule"}, {"scenario.pipeline.cuts", "scenario.pipeline.schedule"})

    def test_replicas_divide_a_global_batch_in_micro_batches(self):
        # 12 micro-batches of 3 examples: each replica has 12, 6 or 3 of 24 ms a stage, and two more fill and drain its 3 stages.
        profile = layers(6, gradient_bytes=[1] * 6, tail_ns=[0] * 6, activation_bytes=[1] * 5)
        pipeline = {"stages": 3, "bandwidth_bytes_per_second": 1e15, "latency_seconds": 0}
        scenario = {"pipeline": pipeline, "change": {"global_batch_size": 36}, "bandwidth_bytes_per_second": 1e15, "all_reduce": {"latency_seconds": 0}}
        answers = self.predict(profile, scenario, {"step_variation": "AS_RECORDED"}, [1, 2, 4])
        for answer, count in zip(answers, (12, 6, 3)):
            self.assertAlmostEqual(36 / answer.examples_per_second, (count + 2) * 24e-3, places=6)
            self.assertAlmostEqual(answer.speedup, 14 / (count + 2), places=4)
            self.assertEqual(answer.scenario.pipeline.micro_batches, count)
        for change, given, counts, field, said in (
            ({"global_batch_size": 36}, {"micro_batches": 4}, [2], "scenario.pipeline.micro_batches", "which of both"),
            ({"global_batch_size": 36}, {}, [2, 5], "worker_counts[1]", "5 workers do not divide the 12 micro-batches"),
            ({"global_batch_size": 35}, {}, [1], "scenario.change.global_batch_size", "35 examples"),
            ({"global_batch_size": 36, "compute_speed_factor": 2}, {}, [1], "scenario.change", "alone"),
        ):
            with self.subTest(said=said), self.assertRaises(grpc.RpcError) as raised:
                self.predict(profile, {**scenario, "change": change, "pipeline": {**pipeline, **given}}, {}, counts)
            self.assertIn(said, details_of(raised.exception).violations[field])

    def test_serial_links_carry_an_activation_and_a_gradient_one_after_the_other(self):
        # Two stages of 36 ms a micro-batch, and transfers of 1 MB at 1 GB/s.
        for links, transfers in (("PAIR", 1), ("SERIAL", 2)):
            seconds = []
            for count in (10, 20):
                pipeline = {"stages": 2, "micro_batches": count, "receives": "FUSED", "links": links, "bandwidth_bytes_per_second": 1e9, "latency_seconds": 0}
                [answer] = self.predict(layers(6), {"pipeline": pipeline}, {"step_variation": "AS_RECORDED"})
                seconds.append(1 / answer.steps_per_second)
            self.assertAlmostEqual((seconds[1] - seconds[0]) / 10, 36e-3 + transfers * 1e-3, places=8)

    def test_replicas_vary_and_their_answers_have_intervals(self):
        scenario = {"pipeline": {"stages": 3, "micro_batches": 8}, "bandwidth_bytes_per_second": 1e9}
        answers = self.predict(layers(6), scenario, counts=[1, 8, 512])
        for answer in answers:
            for interval in (answer.confidence_interval, answer.run_interval, answer.simulation_interval):
                self.assertLess(interval.lower, answer.examples_per_second)
                self.assertGreater(interval.upper, answer.examples_per_second)
            self.assertGreater(answer.run_interval.upper - answer.run_interval.lower, answer.simulation_interval.upper - answer.simulation_interval.lower)
            self.assertIn("./dev testbed --pipeline", answer.model_error.source)
        # Stages that are the layers of a table were recorded in one piece all the same.
        [whole] = self.predict(layers(6), {**scenario, "pipeline": {"stages": 6, "micro_batches": 8}})
        self.assertEqual(whole.model_error, answers[0].model_error)
        # The slowest of more devices sets the pace.
        efficiency = [answer.scaling_efficiency for answer in answers]
        self.assertEqual(sorted(efficiency, reverse=True), efficiency)
        self.assertGreater(efficiency[2], 0.5)

    def test_the_reply_asked_again_gives_the_same_answer(self):
        cluster = {"bandwidth_bytes_per_second": 1e9, "workers_per_node": 2, "intra_node_bandwidth_bytes_per_second": 1e11}
        for more in (
            {"pipeline": {"reduction": "BUCKETS"}},
            {"pipeline": {"reduction": "AT_END"}},
            {"pipeline": {"reduction": "MEGATRON_BUCKETS"}},
            {"all_reduce": {"unfused": {}, "sharding": "OPTIMIZER"}},
            {"cluster": cluster},
            {"cluster": cluster, "pipeline": {"stages": 4, "reduction": "BUCKETS"}},
        ):
            with self.subTest(more):
                pipeline = {"stages": 2, "micro_batches": 4, "links": "DEVICE", **more.get("pipeline", {})}
                [answer] = self.predict(layers(6), {"workers": 2, **more, "pipeline": pipeline})
                request = prediction.PredictThroughputRequest(inline_profile=message(layers(6)), scenario=answer.scenario)
                again = self.server.predictions.PredictThroughput(request, timeout=PATIENCE_SECONDS).predictions[0]
                self.assertEqual(again.examples_per_second, answer.examples_per_second)
                self.assertEqual(again.scenario, answer.scenario)

    def test_all_that_leaves_a_node_goes_by_its_network(self):
        # Four stages of 100 MB on a node of 1 GB/s, two replicas: 400 MB in and out of it, beside steps of 48 ms.
        profile = layers(4, gradient_bytes=[100000000] * 4, tail_ns=[0] * 4)
        cluster = {"bandwidth_bytes_per_second": 1e9, "workers_per_node": 4, "intra_node_bandwidth_bytes_per_second": 1e11, "latency_seconds": 0}
        asked = {"cluster": cluster, "pipeline": {"stages": 4, "micro_batches": 1}}
        [answer] = self.predict(profile, {**asked, "workers": 2}, {"step_variation": "AS_RECORDED"})
        self.assertGreater(2 / answer.steps_per_second, 0.4)
        self.assertLess(2 / answer.steps_per_second, 0.45)
        self.assertEqual(answer.scenario.bandwidth_bytes_per_second, 0.25e9)

    def test_without_gradients_replicas_reduce_nothing_and_are_told_so(self):
        profile = layers(4, gradient_bytes=[0] * 4)
        kept = [o for o in profile["operations"] if o["resource"] == "WORKER" and o["pass"] != "OPTIMIZER"]
        places = [profile["operations"].index(o) for o in kept]
        for operation in kept:
            operation["waiting_for"] = [places.index(before) for before in operation["waiting_for"]]
        profile["operations"] = kept
        profile["steps"] = [{name: [times[i] for i in places] for name, times in profile["steps"][0].items()}]
        answers = self.predict(profile, {"pipeline": {"stages": 2, "micro_batches": 4}}, {"step_variation": "AS_RECORDED"}, [1, 4])
        said = [[a.value for a in answer.assumptions if a.field == "scenario.pipeline"] for answer in answers]
        self.assertEqual(said, [[], ["replicas reduce nothing"]])
        self.assertAlmostEqual(answers[1].scaling_efficiency, 1, places=6)

    def test_what_a_profile_does_not_tell_of_its_stages_is_said_to_be_assumed(self):
        def said(profile, asked):
            [answer] = self.predict(profile, {"workers": 2, "pipeline": {"stages": 2, "micro_batches": 4, **asked}}, {"step_variation": "AS_RECORDED"})
            return {a.field.removeprefix("scenario."): a.value for a in answer.assumptions}

        profile = layers(4)
        self.assertNotIn("pipeline", said(profile, {}))
        self.assertEqual(said(profile, {})["pipeline.reduction"], "AT_END")
        self.assertNotIn("pipeline.reduction", said(profile, {"reduction": "AT_END"}))
        for operation in profile["operations"]:
            operation.pop("output_bytes", None)
        self.assertEqual(said(profile, {})["pipeline"], "stages send nothing")

    def test_collectives_inside_a_replica_do_not_grow_with_workers(self):
        """The same job with its tensor group's all-reduce named, and taken for one of all workers."""
        profile = layers(4, gradient_bytes=[1000] * 4)
        inner = {"name": "tensor", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 100000000, "waiting_for": [0], "group": "tp"}
        for operation in profile["operations"]:
            operation["waiting_for"] = [before + (before > 0) for before in operation["waiting_for"]]
        profile["operations"].insert(1, inner)
        profile["operations"][2]["waiting_for"] = [1]
        begin = profile["steps"][0]["end_ns"][0]
        profile["steps"][0]["start_ns"].insert(1, begin)
        profile["steps"][0]["end_ns"].insert(1, begin + 5000000)
        profile["devices_per_worker"] = 4
        named = self.predict(profile, {}, {"step_variation": "AS_RECORDED"}, [1, 8])
        self.assertLess(abs(1 / named[0].steps_per_second - (4 * 12 + 3 + 5) * 1e-3), 1e-5)
        self.assertGreater(named[1].scaling_efficiency, 0.98)
        self.assertEqual([answer.devices for answer in named], [4, 32])
        inner["group"] = ""
        taken = self.predict(profile, {}, {"step_variation": "AS_RECORDED"}, [1, 8])
        self.assertLess(taken[1].scaling_efficiency, 0.5)

    def test_the_command_line_prints_shares_and_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(layers(6), file)
            asked = "stages=2,micro-batches=8,schedule=1f1b,cuts=forward/3,links=device,bandwidth=10Gbit/s,latency=5us"
            done = subprocess.run(
                [os.environ["STEPCAST"], "predict", path, "--pipeline", asked, "--workers", "1-4", "--bandwidth", "1GB/s"],
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            for text in ("bubble", "4 replicas of 2 GPUs: 8 GPUs", "forward/3", "receives EAGER (--pipeline receives=)"):
                self.assertIn(text, done.stdout)
            self.assertNotIn("stages begin at", done.stdout)
            odd = layers(6)
            odd["operations"][3]["name"] = "forward/b+c, d=e"
            with open(path, "w", encoding="utf-8") as file:
                json.dump(odd, file)
            named = subprocess.run(
                [os.environ["STEPCAST"], "predict", path, "--pipeline", "stages=2,micro-batches=8,cuts=forward/b+c\\, d\\=e,step-barrier", "--output", "json"],
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
            self.assertEqual(named.returncode, 0, named.stderr)
            self.assertIn("forward/b+c, d=e", named.stdout)
            for wrong, says in (("stages=2,micro-batches=0", "micro-batches: 0 is not at least 1"), ("stages=0", "stages: 0"), ("stages", "KEY=VALUE"), ("stages=2,stages=3", "twice"), ("depth=3", "no such key"), ("latency=5", "latency"), ("schedule=x", "1f1b")):
                refused = subprocess.run([os.environ["STEPCAST"], "predict", path, "--pipeline", wrong], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(says, refused.stderr)


def without_passes(profile):
    for operation in profile["operations"]:
        operation.pop("pass", None)


def without_backward(profile):
    for operation in profile["operations"]:
        if operation.get("pass") == "BACKWARD":
            operation["pass"] = "OTHER"


def with_scatter(profile):
    next(o for o in profile["operations"] if o["resource"] == "COLLECTIVE")["collective"] = "REDUCE_SCATTER"


def with_servers(profile):
    for operation in profile["operations"]:
        if operation["resource"] == "COLLECTIVE":
            operation.update(resource="UPLINK", parameter=operation["name"])
            del operation["collective"]


# Scenario, where the fault is, what it says; and a change of the profile.
BAD = [
    ({"pipeline": {"stages": 7}}, "pipeline.stages", "6 forward operations"),
    ({"pipeline": {"stages": 1025}}, "pipeline.stages", "1025"),
    ({"pipeline": {"stages": -1}}, "pipeline.stages", "-1"),
    ({"pipeline": {"stages": None}}, "pipeline.stages", "0, or not given"),
    ({"pipeline": {"micro_batches": None}}, "pipeline.micro_batches", "not given"),
    ({"pipeline": {"micro_batches": -4}}, "pipeline.micro_batches", "-4"),
    ({"pipeline": {"micro_batches": 70000}}, "pipeline.micro_batches", "70000"),
    ({"pipeline": {"schedule": "INTERLEAVED", "stages": 3, "chunks": 2, "micro_batches": 2}}, "pipeline.micro_batches", "2 are fewer than 3 stages"),
    ({"pipeline": {"schedule": "INTERLEAVED", "chunks": 3, "micro_batches": 5}}, "pipeline.micro_batches", "not divisible"),
    ({"pipeline": {"schedule": "INTERLEAVED", "chunks": 4, "micro_batches": 4}}, "pipeline.chunks", "6 forward operations"),
    ({"pipeline": {"chunks": 2}}, "pipeline.chunks", "2 is not 1, which ONE_F_ONE_B has"),
    ({"pipeline": {"schedule": "ZERO_BUBBLE_V", "chunks": 3}}, "pipeline.chunks", "3 is not 2"),
    ({"pipeline": {"chunks": 0}}, "pipeline.chunks", "0"),
    ({"pipeline": {"group": 2}}, "pipeline.group", "INTERLEAVED"),
    ({"pipeline": {"schedule": "INTERLEAVED", "chunks": 2, "group": 1}}, "pipeline.group", "1 is not from"),
    ({"pipeline": {"schedule": "ZERO_BUBBLE_1"}}, "pipeline.schedule", "BACKWARD_WEIGHT"),
    ({"pipeline": {"schedule": 99}}, "pipeline.schedule", "99"),
    ({"pipeline": {"receives": 99}}, "pipeline.receives", "99"),
    ({"pipeline": {"cuts": ["backward/3"]}}, "pipeline.cuts[0]", '"backward/3" is the name of no FORWARD operation'),
    ({"pipeline": {"cuts": ["forward/0"]}}, "pipeline.cuts[0]", "first stage"),
    ({"pipeline": {"cuts": ["forward/1", "forward/2"]}}, "pipeline.cuts", "2 given"),
    ({"pipeline": {"stages": 3, "cuts": ["forward/4", "forward/2"]}}, "pipeline.cuts[1]", "does not follow"),
    ({"pipeline": {"stages": 3, "cuts": ["forward/4", "forward/4"]}}, "pipeline.cuts[1]", "does not follow"),
    ({"pipeline": {"bandwidth_bytes_per_second": 0.5}}, "pipeline.bandwidth_bytes_per_second", "0.5"),
    ({"pipeline": {"bandwidth_bytes_per_second": "NaN"}}, "pipeline.bandwidth_bytes_per_second", "nan"),
    ({"pipeline": {"latency_seconds": -1}}, "pipeline.latency_seconds", "-1"),
    ({"pipeline": {"links": "SERIAL", "transport": "GLOO"}}, "pipeline.links", "SERIAL"),
    ({"pipeline": {"reduction": "AT_END"}, "all_reduce": {"buckets": {"cap_bytes": 5}}}, "pipeline.reduction", "which of both"),
    ({"pipeline": {"reduction": "AT_END"}, "all_reduce": {"unfused": {}}}, "pipeline.reduction", "all_reduce.unfused is given: which of both"),
    ({"pipeline": {}, "all_reduce": {"horovod": {}}}, "all_reduce.horovod", "pipelines"),
    ({"pipeline": {}, "all_reduce": {"sharding": "FULL"}}, "all_reduce.sharding", "FULL is not of pipelines"),
    ({"pipeline": {}, "all_reduce": {"fidelity": "EXPANDED"}}, "all_reduce.fidelity", "EXPANDED"),
    ({"pipeline": {}, "parameter_servers": {"servers": 1}}, "pipeline", "parameter_servers"),
    ({"pipeline": {}, "workers": 2, "start_offsets_ns": [0, 5]}, "start_offsets_ns", "pipelines"),
    ({"pipeline": {}, "workers": 2, "worker_groups": [{"count": 2, "bandwidth_bytes_per_second": 5}]}, "worker_groups[0].bandwidth_bytes_per_second", "pipelines"),
    ({"pipeline": {}, "workers": 3, "worker_groups": [{"count": 2}]}, "worker_groups", "add up to 2"),
    ({"pipeline": {}}, "pipeline", "no operation that it is FORWARD", without_passes),
    ({"pipeline": {}}, "pipeline", "no operation that it is BACKWARD", without_backward),
    ({"pipeline": {}}, "pipeline", "is not an ALL_REDUCE", with_scatter),
    ({"pipeline": {}}, "pipeline", "parameter servers", with_servers),
]


class BadPipelineTest(ServerTest):
    def refusal(self, call, request):
        with self.assertRaises(grpc.RpcError) as raised:
            call(request, timeout=PATIENCE_SECONDS)
        return details_of(raised.exception)

    def test_each_is_refused_at_its_field_with_its_value(self):
        self.assertGreaterEqual(len(BAD), 30)
        for scenario, field, says, *change in BAD:
            with self.subTest(field=field, says=says):
                profile = layers(6)
                for one in change:
                    one(profile)
                asked = copy.deepcopy(scenario)
                for name, value in (("stages", 2), ("micro_batches", 6)):
                    asked["pipeline"].setdefault(name, value)
                asked["pipeline"] = {name: value for name, value in asked["pipeline"].items() if value is not None}
                request = from_json(prediction.PredictThroughputRequest(inline_profile=message(profile)), {"scenario": asked})
                details = self.refusal(self.server.predictions.PredictThroughput, request)
                self.assertEqual((details.code.name, details.reason), ("INVALID_ARGUMENT", "REQUEST_INVALID"), details.message)
                self.assertIn(f"scenario.{field}", details.violations)
                self.assertIn(says, details.violations[f"scenario.{field}"])

    def test_other_methods_refuse_it_by_name(self):
        from contract import prediction_request

        asked = {"pipeline": {"stages": 2, "micro_batches": 4}}
        for method in ("OptimizeOrder", "OptimizeCommunication", "OptimizeJob"):
            with self.subTest(method):
                request = prediction_request(method)
                request.inline_profile.CopyFrom(message(layers(6)))
                from_json(request, {"scenario": asked})
                details = self.refusal(getattr(self.server.predictions, method), request)
                self.assertEqual(details.code.name, "INVALID_ARGUMENT", details.message)
                self.assertIn("scenario.pipeline", details.violations)


if __name__ == "__main__":
    unittest.main()
