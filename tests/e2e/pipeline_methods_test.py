"""Every question about jobs whose replicas are pipelines, from the real server: recommend, allocate, trace, compare, diagnose, report and jobs."""

import collections
import json
import os
import subprocess
import tempfile
import unittest

from contract import allocation_pb2, comparison_pb2, details_of, details_within, diagnosis_pb2, from_json, grpc, prediction, recommendation_pb2, trace_pb2
from pipeline_test import layers
from sample import message, small
from stepcastd import PATIENCE_SECONDS, ServerTest

EXACT = {"step_variation": "AS_RECORDED"}
PIPELINE = {"stages": 2, "micro_batches": 8}


def run(*words, text=None):
    return subprocess.run([os.environ["STEPCAST"], *words], input=text, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


class PipelineMethodsTest(ServerTest):
    def ask(self, method, request, value):
        return getattr(self.server.predictions, method)(from_json(request, value), timeout=PATIENCE_SECONDS)

    def refusal(self, method, request, value):
        with self.assertRaises(grpc.RpcError) as raised:
            self.ask(method, request, value)
        return details_of(raised.exception)

    def predict(self, profile, scenario, counts=(), options=EXACT):
        request = prediction.PredictThroughputRequest(inline_profile=message(profile))
        return self.ask("PredictThroughput", request, {"scenario": scenario, "worker_counts": list(counts), "options": options}).predictions


class TooLargeTest(PipelineMethodsTest):
    def test_more_unlike_replicas_than_there_is_room_for_are_refused_and_the_server_goes_on(self):
        groups = [{"count": 1, "compute_speed_factor": 1 + i / 1000} for i in range(60)]
        scenario = {"workers": 60, "pipeline": {"stages": 6, "micro_batches": 60000}, "worker_groups": groups}
        for options in (EXACT, {}):
            request = prediction.PredictThroughputRequest(inline_profile=message(layers(6)))
            refused = self.refusal("PredictThroughput", request, {"scenario": scenario, "options": options})
            self.assertEqual((refused.code, refused.reason), (grpc.StatusCode.OUT_OF_RANGE, "PIPELINE_TOO_LARGE"))
        self.assertEqual(len(self.predict(layers(6), {"pipeline": PIPELINE, "workers": 2})), 1)


class RecommendTest(PipelineMethodsTest):
    def recommend(self, profile, value):
        return self.ask("RecommendWorkers", recommendation_pb2.RecommendWorkersRequest(inline_profile=message(profile)), value)

    # Reductions of 12 MB over 0.1 GB/s hold a job of 100 ms steps back.
    scenario = {"pipeline": PIPELINE, "bandwidth_bytes_per_second": 1e8}

    def test_a_recommendation_says_what_a_prediction_does_and_counts_devices(self):
        for objective in ("KNEE", "MAX_THROUGHPUT"):
            reply = self.recommend(layers(6), {"scenario": self.scenario, "objective": objective, "constraints": {"max_workers": 8}, "options": EXACT})
            alone = {answer.scenario.workers: answer for answer in self.predict(layers(6), self.scenario, range(1, 9))}
            self.assertEqual(len(reply.frontier), 8)
            for tried in reply.frontier:
                self.assertEqual(tried.examples_per_second, alone[tried.scenario.workers].examples_per_second)
                self.assertEqual(tried.devices, 2 * tried.scenario.workers)
                self.assertGreater(len(tried.pipeline.devices), 0)
            value = {w: answer.examples_per_second ** (2 if objective == "KNEE" else 1) / (w if objective == "KNEE" else 1) for w, answer in alone.items()}
            best = max(value.values())
            self.assertGreaterEqual(value[reply.workers], 0.98 * best)
            self.assertGreater(reply.probability_best, 0)
            self.assertIn("of 2 devices", reply.reason)
            self.assertIn("limited by", reply.reason)

    def test_many_counts_are_searched_and_not_all_simulated(self):
        reply = self.recommend(layers(6), {"scenario": self.scenario, "objective": "MAX_THROUGHPUT", "constraints": {"max_workers": 64}})
        self.assertLess(len(reply.frontier), 40)
        alone = self.predict(layers(6), self.scenario, range(1, 65), {})
        best = max(alone, key=lambda answer: answer.examples_per_second)
        chosen = next(answer for answer in alone if answer.scenario.workers == reply.workers)
        self.assertGreaterEqual(chosen.examples_per_second, 0.98 * best.examples_per_second)

    def test_money_time_and_nodes_are_of_replicas(self):
        # Nodes of two devices: a replica of four lies on two.
        cluster = {"bandwidth_bytes_per_second": 1e9, "workers_per_node": 2, "intra_node_bandwidth_bytes_per_second": 1e10}
        for stages, nodes in ((4, lambda w: 2 * w), (2, lambda w: w), (1, lambda w: (w + 1) // 2)):
            reply = self.recommend(
                layers(8),
                {
                    "scenario": {"pipeline": {"stages": stages, "micro_batches": 8}, "cluster": cluster},
                    "constraints": {"worker_counts": [1, 2, 4], "examples": 100000},
                    "prices": {"worker_hour": 3, "node_hour": 5, "device_hour": 7, "currency_code": "USD"},
                    "options": EXACT,
                },
            )
            for tried, outcome in zip(reply.frontier, reply.frontier_outcomes):
                workers = tried.scenario.workers
                hours = 100000 / tried.examples_per_second / 3600
                self.assertLess(abs(outcome.cost / (hours * ((3 + 7 * stages) * workers + 5 * nodes(workers))) - 1), 1e-9, (stages, workers))
            # A reply's scenario, asked again, lies on as many nodes.
            again = {"scenario": json_of(reply.frontier[0].scenario), "plan": {"examples": 1000, "node_hour": 5, "device_hour": 2}}
            [told] = self.ask("PredictThroughput", prediction.PredictThroughputRequest(inline_profile=message(layers(8))), {**again, "options": EXACT}).predictions
            self.assertLess(abs(told.forecast.cost / (1000 / told.examples_per_second / 3600 * (5 * nodes(1) + 2 * stages)) - 1), 1e-9)

    def test_a_budget_and_a_deadline_are_kept(self):
        one = self.predict(layers(6), {**self.scenario, "workers": 1})[0].examples_per_second
        question = {"scenario": self.scenario, "constraints": {"max_workers": 4, "examples": 100000, "deadline": f"{100000 / one / 1.5:.3f}s"}, "options": EXACT}
        reply = self.recommend(layers(6), question)
        self.assertGreater(reply.workers, 1)
        question["constraints"]["deadline"] = "1s"
        self.assertEqual(self.recommend(layers(6), question).workers, 0)
        self.assertIn("deadline", self.recommend(layers(6), question).infeasible_reason)

    def test_replicas_that_divide_a_global_batch_are_looked_at(self):
        # 24 micro-batches of 3 examples. INTERLEAVED orders multiples of its 2 devices, so 24 and 8 replicas, with 1 and 3 each, have no order.
        for schedule, possible in (({}, [1, 2, 3, 4, 6, 8, 12, 24]), ({"schedule": "INTERLEAVED", "chunks": 2}, [1, 2, 3, 4, 6, 12])):
            scenario = {"pipeline": {"stages": 2, **schedule}, "change": {"global_batch_size": 72}, "bandwidth_bytes_per_second": 1e8}
            reply = self.recommend(layers(8), {"scenario": scenario, "objective": "MAX_THROUGHPUT", "constraints": {"max_workers": 24}, "options": EXACT})
            self.assertEqual([tried.scenario.workers for tried in reply.frontier], possible)
            alone = {answer.scenario.workers: answer for answer in self.predict(layers(8), scenario, possible)}
            for tried in reply.frontier:
                self.assertEqual(tried.examples_per_second, alone[tried.scenario.workers].examples_per_second)
                self.assertEqual(tried.speedup, alone[tried.scenario.workers].speedup)
                self.assertEqual(tried.scenario.pipeline.micro_batches, 24 // tried.scenario.workers)
            best = max(answer.examples_per_second for answer in alone.values())
            self.assertGreaterEqual(alone[reply.workers].examples_per_second, 0.98 * best)
            self.assertIn(f"with {72 // reply.workers} of the 72 examples", reply.reason)
        for change, given, constraints, field, says in (
            (72, {"micro_batches": 4}, {}, "scenario.pipeline.micro_batches", "which of both"),
            (71, {}, {}, "scenario.change.global_batch_size", "71 examples"),
            (72, {}, {"worker_counts": [2, 5]}, "constraints.worker_counts[1]", "5 workers do not divide the global batch of 72 examples"),
            (72, {"schedule": "INTERLEAVED", "chunks": 2}, {"worker_counts": [8]}, "constraints.worker_counts[0]", "as many for each as its schedule"),
            (72, {}, {"min_workers": 13, "max_workers": 23}, "constraints.max_workers", "divides the global batch of 72 examples"),
        ):
            with self.subTest(says=says):
                value = {"scenario": {"pipeline": {"stages": 2, **given}, "change": {"global_batch_size": change}}, "constraints": constraints}
                details = self.refusal("RecommendWorkers", recommendation_pb2.RecommendWorkersRequest(inline_profile=message(layers(8))), value)
                self.assertIn(says, details.violations[field])

    def test_bad_requests_are_refused_by_name(self):
        for value, field, says in (
            ({"scenario": {"pipeline": {"stages": 7, "micro_batches": 2}}}, "scenario.pipeline.stages", "6 forward"),
            ({"scenario": {"pipeline": PIPELINE}, "constraints": {"max_parameter_servers": 2}}, "constraints.max_parameter_servers", "collectives"),
            ({"scenario": {"pipeline": PIPELINE}, "options": {"horizon": "FIRST_SECONDS", "horizon_seconds": 2}}, "options.horizon", "pipelines"),
            ({"scenario": {"pipeline": {**PIPELINE, "nodes_per_replica": 0}}}, "scenario.pipeline.nodes_per_replica", "0 is not"),
            ({"scenario": {"pipeline": {**PIPELINE, "gradient_element_bytes": 2}}}, "scenario.pipeline.gradient_element_bytes", "MEGATRON_BUCKETS"),
            ({"scenario": {"pipeline": {**PIPELINE, "reduction": "MEGATRON_BUCKETS", "gradient_element_bytes": 9}}}, "scenario.pipeline.gradient_element_bytes", "9 is not"),
            ({"scenario": {"pipeline": {**PIPELINE, "reduction": "MEGATRON_BUCKETS"}, "all_reduce": {"buckets": {"cap_bytes": 5}}}}, "scenario.pipeline.reduction", "which of both"),
            ({"scenario": {"pipeline": PIPELINE, "all_reduce": {"sharding": "FULL"}}}, "scenario.all_reduce.sharding", "GRADIENTS"),
            ({"scenario": {"pipeline": PIPELINE, "workers": 3}}, "scenario.workers", "3"),
        ):
            with self.subTest(field=field, says=says):
                details = self.refusal("RecommendWorkers", recommendation_pb2.RecommendWorkersRequest(inline_profile=message(layers(6))), value)
                self.assertEqual((details.code.name, details.reason), ("INVALID_ARGUMENT", "RECOMMENDATION_INVALID"), details.message)
                self.assertIn(says, details.violations[field])

    def test_the_command_line_recommends(self):
        with Job(layers(6)) as job:
            done = run("recommend", job, "--pipeline", "stages=2,micro-batches=8", "--max-workers", "4", "--objective", "max-throughput")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("of 2 devices", done.stdout)


class MegatronBucketsTest(PipelineMethodsTest):
    def test_the_first_stage_has_buckets_and_the_others_one(self):
        # 2 stages of 4 layers of 30 million elements: buckets of 60 million or more in the first, one in the second.
        profile = layers(8, gradient_bytes=[120000000] * 8, tail_ns=[0] * 8)
        exposed = {}
        for reduction in ("AT_END", "BUCKETS", "MEGATRON_BUCKETS"):
            scenario = {"workers": 4, "pipeline": {**PIPELINE, "reduction": reduction}, "bandwidth_bytes_per_second": 1e11}
            exposed[reduction] = self.predict(profile, scenario)[0].pipeline.reduction_fraction
        self.assertLess(exposed["MEGATRON_BUCKETS"], exposed["AT_END"])
        self.assertGreaterEqual(exposed["MEGATRON_BUCKETS"], exposed["BUCKETS"])
        # Elements of 2 bytes: twice as many of them, and so more buckets, which begin earlier.
        scenario["pipeline"]["gradient_element_bytes"] = 2
        self.assertLessEqual(self.predict(profile, scenario)[0].pipeline.reduction_fraction, exposed["MEGATRON_BUCKETS"])

    def test_the_command_line_asks_for_it(self):
        with Job(layers(6)) as job:
            done = run("predict", job, "--workers", "2", "--pipeline", "stages=2,micro-batches=4,reduction=megatron,element-bytes=2,nodes=2", "--output", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            pipeline = json.loads(done.stdout)["predictions"][0]["scenario"]["pipeline"]
            self.assertEqual((pipeline["reduction"], pipeline["gradientElementBytes"], pipeline["nodesPerReplica"]), ("MEGATRON_BUCKETS", 2, 2))


class AllocateTest(PipelineMethodsTest):
    def job(self, name, profile, scenario, **more):
        return allocation_pb2.AllocationJob(id=name, inline_profile=message(profile)), {"scenario": scenario, **more}

    def allocate(self, jobs, **value):
        request = allocation_pb2.AllocateWorkersRequest()
        for job, more in jobs:
            request.jobs.append(from_json(job, more))
        return self.ask("AllocateWorkers", request, {**value, "options": EXACT})

    def jobs(self):
        return [self.job("large", layers(8), {"pipeline": {"stages": 4, "micro_batches": 8}}), self.job("small", layers(8), {"all_reduce": {}})]

    def test_devices_are_shared(self):
        reply = self.allocate(self.jobs(), capacity={"devices": 13})
        taken = 4 * reply.allocations[0].workers + reply.allocations[1].workers
        self.assertEqual(reply.devices, taken)
        self.assertLessEqual(taken, 13)
        self.assertEqual(reply.workers, sum(job.workers for job in reply.allocations))
        self.assertEqual(reply.one_more_worker.devices, 1)
        # No other way to share is better: all were looked at.
        curves = [{point.workers: point.examples_per_second for point in job.curve} for job in reply.allocations]
        best = max(
            curves[0][a] / curves[0][1] + curves[1][b] / curves[1][1] for a in curves[0] for b in curves[1] if 4 * a + b <= 13
        )
        self.assertLess(abs(reply.total_utility - best), 1e-9)

    def test_a_job_with_a_global_batch_gets_replicas_that_divide_it(self):
        # 12 micro-batches of 3 examples: of 5 replicas that there is room for, 4 is the most that divides them.
        scenario = {"pipeline": {"stages": 4}, "change": {"global_batch_size": 36}}
        reply = self.allocate([self.job("large", layers(8), scenario)], capacity={"devices": 22})
        self.assertEqual(reply.allocations[0].workers, 4)
        alone = {answer.scenario.workers: answer.examples_per_second for answer in self.predict(layers(8), scenario, [1, 2, 3, 4, 6])}
        self.assertEqual({point.workers: point.examples_per_second for point in reply.allocations[0].curve}, alone)

    def test_what_does_not_fit_is_told_in_devices(self):
        reply = self.allocate(self.jobs(), capacity={"devices": 4})
        self.assertEqual(reply.infeasible_reason, "capacity.devices: the jobs' minimums need 5, which is 1 more than the 4 there are")

    def test_workers_of_one_size_may_be_counted(self):
        large = self.job("a", layers(8), {"pipeline": {"stages": 4, "micro_batches": 8}}), self.job("b", layers(8), {"pipeline": {"stages": 4, "micro_batches": 4}})
        by_workers = self.allocate(large, capacity={"workers": 5})
        by_devices = self.allocate(large, capacity={"devices": 23})
        self.assertEqual([job.workers for job in by_workers.allocations], [job.workers for job in by_devices.allocations])
        self.assertEqual((by_workers.workers, by_workers.devices, by_workers.one_more_worker.devices), (5, 20, 0))
        self.assertEqual(by_devices.one_more_worker.devices, 4)

    def test_contradictions_are_refused_by_name(self):
        for capacity, field, says in (
            ({"workers": 8}, "capacity.workers", "4 devices, those of jobs[1] 1 device: give capacity.devices"),
            ({"workers": 8, "devices": 8}, "capacity.workers", "give either"),
            ({"devices": 0}, "capacity.devices", "0 is not"),
            ({"devices": 2000000}, "capacity.devices", "2000000"),
        ):
            with self.subTest(field=field, says=says):
                with self.assertRaises(grpc.RpcError) as raised:
                    self.allocate(self.jobs(), capacity=capacity)
                details = details_of(raised.exception)
                self.assertEqual((details.code.name, details.reason), ("INVALID_ARGUMENT", "REQUEST_INVALID"), details.message)
                self.assertIn(says, details.violations[field])
        bad = self.allocate([*self.jobs(), self.job("bad", layers(2), {"pipeline": {"stages": 3, "micro_batches": 3}})], capacity={"devices": 8})
        self.assertIn("2 forward", details_within(bad.allocations[2].error).violations["scenario.pipeline.stages"])
        self.assertGreater(bad.allocations[0].workers, 0)

    def test_the_command_line_shares_devices(self):
        with Job(layers(8)) as job:
            asked = {"jobs": [{"id": "large", "profile": job, "scenario": {"pipeline": {"stages": 4, "micro_batches": 8}}}, {"id": "small", "profile": job}]}
            done = run("allocate", "-", "--devices", "9", text=json.dumps(asked))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("of 9 devices", done.stdout)


def picoseconds(event):
    begin = round(event["ts"] * 1e6)
    return begin, begin + round(event["dur"] * 1e6)


class TraceTest(PipelineMethodsTest):
    def trace(self, profile, scenario, steps=2, **more):
        request = trace_pb2.GenerateTraceRequest(inline_profile=message(profile))
        from_json(request, {"scenario": scenario, "options": {"steps_per_worker": steps}, **more})
        return json.loads(b"".join(reply.chunk for reply in self.server.predictions.GenerateTrace(request, timeout=PATIENCE_SECONDS)))["traceEvents"]

    def test_every_computation_is_on_its_device_once_and_transfers_lead_to_it(self):
        for pipeline in (
            {"stages": 3, "micro_batches": 6, "schedule": "ONE_F_ONE_B"},
            {"stages": 2, "micro_batches": 4, "schedule": "INTERLEAVED", "chunks": 3},
            {"stages": 3, "micro_batches": 4, "schedule": "ONE_F_ONE_B", "receives": "FUSED", "links": "DEVICE"},
        ):
            with self.subTest(pipeline=pipeline):
                events = self.trace(layers(6), {"workers": 2, "pipeline": pipeline, "bandwidth_bytes_per_second": 1e9})
                p, m, v = pipeline["stages"], pipeline["micro_batches"], pipeline.get("chunks", 1)
                names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
                slices = [e for e in events if e["ph"] == "X"]
                computed = [e for e in slices if e["cat"] == "computation" and e["args"]["part"] != "rest"]
                seen = collections.Counter((e["pid"], e["args"]["step"], e["args"]["part"], e["args"]["stage"], e["args"]["micro_batch"]) for e in computed)
                self.assertEqual(set(seen.values()), {1})
                processes = {e["pid"] for e in slices}
                self.assertEqual(len(seen), len(processes) * 2 * 2 * p * v * m)
                for e in computed:
                    self.assertEqual(names[e["pid"], e["tid"]], f"device {e['args']['stage'] % p}")
                lanes = collections.defaultdict(list)
                for e in slices:
                    lanes[e["pid"], e["tid"]].append(picoseconds(e))
                for lane, spans in lanes.items():
                    spans.sort()
                    for before, after in zip(spans, spans[1:]):
                        self.assertLessEqual(before[1], after[0], names[lane])
                # Arrows: made, sent, waited for, in this order, and each once.
                flows = collections.defaultdict(dict)
                for e in events:
                    if e["ph"] in "stf" and e["ph"] != "M":
                        self.assertNotIn(e["ph"], flows[e["pid"], e["id"]])
                        flows[e["pid"], e["id"]][e["ph"]] = e
                self.assertEqual(len(flows), len(processes) * 2 * 2 * (p * v - 1) * m)
                for flow in flows.values():
                    self.assertEqual(set(flow), set("stf"))
                    self.assertLessEqual(flow["s"]["ts"], flow["t"]["ts"])
                    self.assertLessEqual(flow["t"]["ts"], flow["f"]["ts"])
                transfers = [e for e in slices if e["cat"] == "transfer"]
                self.assertEqual({e["args"]["size_bytes"] for e in transfers}, {1000000})
                self.assertEqual(len(transfers), len(flows))
                self.assertTrue(any(e["cat"] == "collective" for e in slices))
                self.assertTrue(any(e["args"].get("part") == "rest" for e in slices))

    def test_the_trace_is_of_the_predicted_run(self):
        scenario = {"pipeline": {"stages": 2, "micro_batches": 4}}
        events = self.trace(layers(6), scenario, steps=3)
        steps = [picoseconds(e) for e in events if e["ph"] == "X" and e["cat"] == "step"]
        [answer] = self.predict(layers(6), scenario, options={**EXACT, "horizon": "FIRST_STEPS", "horizon_steps": 3})
        self.assertLess(abs(steps[-1][1] * 1e-12 / 3 * answer.steps_per_second - 1), 1e-6)

    def test_bad_requests_are_refused_by_name(self):
        for scenario, more, field, says in (
            ({"pipeline": PIPELINE}, {"critical_path": True}, "critical_path", "pipelines"),
            ({"pipeline": {"stages": 9, "micro_batches": 2}}, {}, "scenario.pipeline.stages", "6 forward"),
            ({"pipeline": {"stages": 6, "micro_batches": 60000}}, {"options": {"steps_per_worker": 10}}, "options.steps_per_worker", "max_trace_events"),
        ):
            with self.subTest(field=field):
                with self.assertRaises(grpc.RpcError) as raised:
                    self.trace(layers(6), scenario, **{"steps": 2, **more}) if "options" not in more else self.trace(layers(6), scenario, steps=10)
                self.assertIn(says, details_of(raised.exception).violations[field])
        # Both sides of a transfer wait for another first.
        deadlock = {"pipeline": {"stages": 3, "micro_batches": 6, "schedule": "INTERLEAVED", "chunks": 2, "receives": "LATE"}}
        try:
            self.trace(layers(6), deadlock)
        except grpc.RpcError as error:
            self.assertEqual(details_of(error).reason, "PIPELINE_DEADLOCK")

    def test_the_command_line_writes_it(self):
        with Job(layers(6)) as job, tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "trace.json")
            done = run("trace", job, "--pipeline", "stages=3,micro-batches=4", "--steps", "1", "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                names = {event["args"]["name"] for event in json.load(file)["traceEvents"] if event["name"] == "thread_name"}
            self.assertIn("link from 0 to 1", names)


class CompareTest(PipelineMethodsTest):
    def compare(self, profile, value):
        return self.ask("CompareModels", comparison_pb2.CompareModelsRequest(inline_profile=message(profile)), {**value, "options": EXACT})

    def test_the_formulas_stand_beside_the_simulation(self):
        for pipeline, v in (({"stages": 3, "micro_batches": 6}, 1), ({"stages": 3, "micro_batches": 6, "schedule": "INTERLEAVED", "chunks": 2}, 2)):
            scenario = {"pipeline": {**pipeline, "bandwidth_bytes_per_second": 1e9, "latency_seconds": 0}, "bandwidth_bytes_per_second": 1e9, "all_reduce": {"latency_seconds": 0}}
            reply = self.compare(layers(6), {"worker_counts": [1, 4], "scenario": scenario})
            for comparison in reply.comparisons:
                workers = comparison.workers
                said = {comparison_pb2.ModelPrediction.Model.Name(model.model): model for model in comparison.models}
                self.assertEqual(list(said), ["BUBBLE_FORMULA", "LINEAR_SCALING", "SIMAI"])
                # A device computes two layers of 12 ms; three cuts hand on 1 MB; the optimizer takes 1 ms of a device.
                bubble = (6 + 2 / v) * 0.024
                examples = 3 * 6 * workers
                self.assertLess(abs(said["BUBBLE_FORMULA"].examples_per_second / (examples / bubble) - 1), 1e-6)
                one = reply.comparisons[0].prediction.examples_per_second
                self.assertLess(abs(said["LINEAR_SCALING"].examples_per_second / (workers * one) - 1), 1e-6)
                reduction = 2 * (workers - 1) / workers * 4e6 / 1e9
                simai = bubble + 2 * 6 * v * 0.001 + reduction + 0.001
                self.assertLess(abs(said["SIMAI"].examples_per_second / (examples / simai) - 1), 1e-5)
                for model in said.values():
                    self.assertLess(abs(model.relative_difference - (model.examples_per_second / comparison.prediction.examples_per_second - 1)), 1e-12)
            self.assertLess(abs(reply.pipeline_inputs.slowest_seconds - 0.024), 1e-9)
            self.assertLess(abs(reply.pipeline_inputs.transfer_seconds - 0.001), 1e-9)
            self.assertFalse(reply.HasField("collective_inputs"))

    def test_a_split_backward_has_its_own_bubble(self):
        profile = layers(4, schedule="ZERO_BUBBLE_1")
        reply = self.compare(profile, {"worker_counts": [1], "scenario": {"pipeline": {"stages": 4, "micro_batches": 8, "schedule": "ZERO_BUBBLE_1"}}})
        self.assertLess(abs(3 * 8 / reply.comparisons[0].models[0].examples_per_second - (8 * 0.012 + 3 * (0.012 - 0.008))), 1e-6)
        reply = self.compare(profile, {"worker_counts": [1], "scenario": {"pipeline": {"stages": 2, "micro_batches": 8, "schedule": "ZERO_BUBBLE_V"}}})
        self.assertIn("ZERO_BUBBLE_V", reply.comparisons[0].models[0].unavailable_reason)

    def test_the_command_line_prints_them(self):
        with Job(layers(6)) as job:
            done = run("compare", job, "--pipeline", "stages=3,micro-batches=6", "--workers", "1,2")
            self.assertEqual(done.returncode, 0, done.stderr)
            for text in ("bubble formula", "linear scaling", "SimAI", "the slowest device 24"):
                self.assertIn(text, done.stdout)

    def test_bad_input_is_refused_by_name(self):
        details = self.refusal("CompareModels", comparison_pb2.CompareModelsRequest(inline_profile=message(layers(6))), {"scenario": {"pipeline": {"stages": 2}}})
        self.assertIn("not given", details.violations["scenario.pipeline.micro_batches"])


class DiagnoseTest(PipelineMethodsTest):
    def diagnose(self, profile, scenario, **options):
        return self.ask("DiagnoseJob", diagnosis_pb2.DiagnoseJobRequest(inline_profile=message(profile)), {"scenario": scenario, "options": {**EXACT, **options}})

    def test_parts_add_up_and_each_is_worth_what_its_change_brings(self):
        # The last of three stages computes 1.5 times as long as the others.
        uneven = layers(3, forward_ns=[4000000, 4000000, 6000000], backward_input_ns=[4000000, 4000000, 6000000], backward_weight_ns=[4000000, 4000000, 6000000])
        scenario = {"workers": 4, "pipeline": {"stages": 3, "micro_batches": 6}, "bandwidth_bytes_per_second": 1e9}
        reply = self.diagnose(uneven, scenario)
        [answer] = self.predict(uneven, scenario)
        self.assertEqual(reply.prediction.examples_per_second, answer.examples_per_second)
        step = 4 / answer.steps_per_second
        self.assertLess(abs(sum(finding.seconds for finding in reply.findings) / step - 1), 1e-6)
        self.assertEqual([f.seconds for f in reply.findings], sorted((f.seconds for f in reply.findings), reverse=True))
        parts = {finding.part: finding for finding in reply.findings}
        from stepcast.v1 import pipeline_pb2

        kind = pipeline_pb2.PipelineReport.Bottleneck
        imbalance = parts[kind.Value("IMBALANCE")]
        self.assertEqual(imbalance.device, 2)
        self.assertIn("device 2, the last, computes 18 ms of a micro-batch, 28.6 % more than the mean", imbalance.text)
        change = diagnosis_pb2.WhatIf.Change
        self.assertEqual(change.Name(imbalance.change), "EQUAL_STAGES")
        self.assertGreater(imbalance.ratio, 1.1)
        self.assertEqual(change.Name(parts[kind.Value("TRANSFERS")].change), "FREE_TRANSFERS")
        self.assertEqual(change.Name(parts[kind.Value("REDUCTIONS")].change), "FREE_REDUCTIONS")
        self.assertIn(change.Name(parts[kind.Value("BUBBLE")].change), ("TWICE_THE_MICRO_BATCHES", "TWICE_THE_CHUNKS"))
        self.assertEqual(change.Name(parts[kind.Value("REST")].change), "NO_STEP_END")
        said = {change.Name(what_if.change): what_if.ratio for what_if in reply.what_ifs}
        # What the parts say of transfers, reductions and the end is what a job without them gains, about: they hide each other.
        for name, part in (("FREE_REDUCTIONS", "REDUCTIONS"), ("NO_STEP_END", "REST")):
            share = parts[kind.Value(part)].fraction
            self.assertLess(abs(said[name] - 1 / (1 - share)), 0.03, name)
        # Twice the micro-batches: what PredictThroughput says of them.
        [twice] = self.predict(uneven, {**scenario, "pipeline": {"stages": 3, "micro_batches": 12}})
        self.assertLess(abs(said["TWICE_THE_MICRO_BATCHES"] / (twice.examples_per_second / answer.examples_per_second) - 1), 1e-9)
        left = {change.Name(one.change): one.reason for one in reply.left_out}
        self.assertIn("3 forward operations", left["TWICE_THE_CHUNKS"])
        self.assertEqual(left["EAGER_RECEIVES"], "receives are EAGER")
        self.assertEqual((reply.path_steps, len(reply.path), len(reply.workers)), (0, 0, 0))

    def test_equal_stages_need_no_other_cuts(self):
        reply = self.diagnose(layers(6), {"pipeline": {"stages": 2, "micro_batches": 8}})
        change = diagnosis_pb2.WhatIf.Change
        said = {change.Name(what_if.change): what_if.ratio for what_if in reply.what_ifs}
        self.assertLess(abs(said["EQUAL_STAGES"] - 1), 1e-3)
        self.assertGreater(said["TWICE_THE_CHUNKS"], 1.01)
        self.assertLess(abs(said["COMPUTATION_TWICE_AS_FAST"] - 2), 0.1)
        self.assertIn("one replica reduces nothing", [one.reason for one in reply.left_out])

    def test_the_command_line_prints_the_parts(self):
        with Job(layers(6)) as job:
            done = run("diagnose", job, "--pipeline", "stages=3,micro-batches=6", "--workers", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            for text in ("part of a step", "bubble", "twice the micro-batches", "end of the step"):
                self.assertIn(text, done.stdout)

    def test_bad_input_is_refused_by_name(self):
        details = self.refusal("DiagnoseJob", diagnosis_pb2.DiagnoseJobRequest(inline_profile=message(layers(6))), {"scenario": {"pipeline": {"stages": 2, "micro_batches": -1}}})
        self.assertIn("-1", details.violations["scenario.pipeline.micro_batches"])


class MetricsTest(PipelineMethodsTest):
    def test_pipelines_are_a_kind_of_job(self):
        before = self.counted()
        self.predict(layers(6), {"pipeline": PIPELINE})
        self.predict(small(), {})
        after = self.counted()
        self.assertEqual(after["pipeline"] - before["pipeline"], 1)
        self.assertEqual(after["parameter_servers"] - before["parameter_servers"], 1)
        self.assertEqual(after["all_reduce"], before["all_reduce"])

    def counted(self):
        kinds = ("pipeline", "parameter_servers", "all_reduce")
        return {kind: self.server.metric("stepcast_predictions_total", code="OK", communication=kind, method="PredictThroughput") for kind in kinds}


def json_of(message):
    from google.protobuf import json_format

    return json_format.MessageToDict(message)


class Job:
    """A profile in a file."""

    def __init__(self, profile):
        self.profile = profile

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "job.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.profile, file)
        return path

    def __exit__(self, *_):
        self.folder.cleanup()


if __name__ == "__main__":
    unittest.main()
