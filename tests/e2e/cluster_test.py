"""Presets of machines, through the command line and through a client of gRPC that is not ours; units, and errors as a new user meets them."""

import json
import os
import subprocess
import tempfile
import unittest

from all_reduce_test import training
from contract import details_of, from_json, grpc, json_format, prediction, recommendation_pb2
from sample import small
from stepcastd import PATIENCE_SECONDS, ServerTest

DGX = {
    "bandwidth_bytes_per_second": 192e9,
    "workers_per_node": 8,
    "intra_node_bandwidth_bytes_per_second": 204e9,
    "latency_seconds": 4.7e-6,
    "intra_node_latency_seconds": 3.4e-6,
    "algorithm": "RING",
}


def stepcast(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "STEPCAST_SERVER"}
    done = subprocess.run([os.environ["STEPCAST"], *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


def step_of(workers):
    """Seconds of training()'s step on DGX A100: the first all-reduce hides behind computation, the second does not."""
    hop = 3.4e-6 + 10e6 / (workers * 204e9)
    if workers > 8:
        hop = max(hop, 4.7e-6 + 10e6 / (workers * 192e9))
    return 0.051 + 2 * (workers - 1) * hop


class ClusterTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.job = cls.write("job.json", training())
        cls.servers = cls.write("servers.json", small())

    @classmethod
    def write(cls, name, content):
        path = os.path.join(cls.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def predicted(self, profile, **scenario):
        request = {"inline_profile": profile, "scenario": scenario, "options": {"step_variation": "AS_RECORDED", "steps_per_worker": 60}}
        [answer] = self.server.predictions.PredictThroughput(from_json(prediction.PredictThroughputRequest(), request)).predictions
        return answer

    def test_a_client_of_grpc_sends_the_figures_and_gets_those_in_force(self):
        for workers in (2, 8, 16, 64):
            answer = self.predicted(training(), workers=workers, cluster=DGX)
            self.assertAlmostEqual(workers / answer.steps_per_second / step_of(workers), 1, delta=1e-6)
            job = answer.scenario.all_reduce
            self.assertEqual((job.workers_per_node, job.intra_node_bandwidth_bytes_per_second, job.latency_seconds), (8, 204e9, 4.7e-6))
            self.assertEqual(answer.scenario.bandwidth_bytes_per_second, 192e9)
            self.assertFalse(answer.scenario.HasField("cluster"))

    def test_replicas_of_several_devices_share_the_network_of_their_node(self):
        """Each device is in a ring of its own: eight of a node have an eighth of its network each."""
        for devices, workers_of_node in ((8, 1), (4, 2)):
            answer = self.predicted({**training(), "devices_per_worker": devices}, workers=16, cluster=DGX)
            hop = 4.7e-6 + 10e6 / (16 * 192e9 / devices)
            self.assertAlmostEqual(16 / answer.steps_per_second / (0.051 + 30 * hop), 1, delta=1e-6)
            self.assertEqual(answer.scenario.all_reduce.workers_per_node, workers_of_node)
            self.assertEqual(answer.scenario.bandwidth_bytes_per_second, 192e9 / devices)
            self.assertEqual(answer.devices, 16 * devices)
            self.assertFalse(answer.scenario.HasField("nodes_per_worker"))

    def test_a_replys_scenario_has_the_nodes_of_its_replicas(self):
        """Replicas of 16 devices fill two nodes of 8 each, and cost as much when the reply's scenario, which has no cluster, is asked about."""
        request = {
            "inline_profile": {**training(), "devices_per_worker": 16},
            "scenario": {"cluster": DGX},
            "constraints": {"max_workers": 2, "examples": 1000},
            "prices": {"node_hour": 30},
        }

        def recommended():
            reply = self.server.predictions.RecommendWorkers(from_json(recommendation_pb2.RecommendWorkersRequest(), request))
            return reply.frontier[1], reply.frontier_outcomes[1].cost

        two, cost = recommended()
        self.assertEqual(two.scenario.nodes_per_worker, 2)
        self.assertAlmostEqual(cost, 1000 / two.examples_per_second / 3600 * 2 * 2 * 30, delta=1e-9)
        request["scenario"] = json_format.MessageToDict(two.scenario, preserving_proto_field_name=True)
        del request["scenario"]["workers"]
        again, cost_again = recommended()
        self.assertEqual((again.examples_per_second, cost_again), (two.examples_per_second, cost))

    def test_the_scenarios_own_figures_go_before_the_clusters(self):
        answer = self.predicted(training(), workers=16, cluster=DGX, bandwidth_bytes_per_second=1e9, all_reduce={"latency_seconds": 1e-3})
        # Both all-reduces are longer than the computation beside them, and the second waits for the first.
        self.assertAlmostEqual(16 / answer.steps_per_second, 0.031 + 2 * 30 * (1e-3 + 10e6 / 16e9), delta=1e-6)
        self.assertEqual(answer.scenario.all_reduce.workers_per_node, 8)

    def test_a_job_with_parameter_servers_stays_one(self):
        answer = self.predicted(small(), workers=2, cluster=DGX)
        self.assertEqual(answer.scenario.WhichOneof("communication"), "parameter_servers")
        plain = self.predicted(small(), workers=2, bandwidth_bytes_per_second=192e9)
        self.assertEqual(answer.examples_per_second, plain.examples_per_second)
        self.assertIn(("cluster", "a node's link for each worker"), [(each.field.removeprefix("scenario."), each.value) for each in answer.assumptions])

    def test_other_traffic_takes_its_share_of_links_between_nodes(self):
        answer = self.predicted(training(), workers=16, cluster=DGX, bandwidth_bytes_per_second=4e9, other_traffic_fraction=0.75, all_reduce={"latency_seconds": 1e-3})
        self.assertAlmostEqual(16 / answer.steps_per_second, 0.031 + 2 * 30 * (1e-3 + 10e6 / 16e9), delta=1e-6)
        self.assertEqual(answer.scenario.bandwidth_bytes_per_second, 1e9)
        self.assertFalse(answer.scenario.HasField("other_traffic_fraction"))
        of_servers = self.predicted(small(), workers=2, bandwidth_bytes_per_second=2e6, other_traffic_fraction=0.5)
        self.assertEqual(of_servers.examples_per_second, self.predicted(small(), workers=2, bandwidth_bytes_per_second=1e6).examples_per_second)
        for share in (-0.5, 1, "NaN"):
            with self.subTest(share=share), self.assertRaises(grpc.RpcError) as caught:
                self.predicted(training(), workers=2, other_traffic_fraction=share)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("scenario.other_traffic_fraction", details_of(caught.exception).violations)

    def test_the_command_line_takes_other_traffic(self):
        def rate(*flags):
            status, out, err = stepcast("predict", self.job, "--workers", "4", "--latency", "20us", "--output", "json", *flags)
            self.assertEqual(status, 0, err)
            return json.loads(out)["predictions"][0]["examplesPerSecond"]

        self.assertEqual(rate("--bandwidth", "10Gbit/s", "--other-traffic", "0.5"), rate("--bandwidth", "5Gbit/s"))
        self.assertEqual(rate("--bandwidth", "10Gbit/s", "--other-traffic", "50%"), rate("--bandwidth", "5Gbit/s"))
        status, _, err = stepcast("predict", self.job, "--workers", "4", "--other-traffic", "1.5")
        self.assertEqual(status, 1)
        self.assertIn("--other-traffic: 1.5 is not from 0 to 0.99", err)

    def test_a_bad_cluster_is_refused_with_field_and_value(self):
        for change, field, value in (
            ({"bandwidth_bytes_per_second": 0}, "bandwidth_bytes_per_second", "0 is not from"),
            ({"bandwidth_bytes_per_second": -3}, "bandwidth_bytes_per_second", "-3"),
            ({"workers_per_node": 0}, "workers_per_node", "0 is not from 1"),
            ({"intra_node_bandwidth_bytes_per_second": None}, "intra_node_bandwidth_bytes_per_second", "not given, and workers_per_node is 8"),
            ({"latency_seconds": 11}, "latency_seconds", "11 is not from 0 to 10"),
            ({"algorithm": "MEASURED"}, "algorithm", "MEASURED"),
            ({"algorithm": 99}, "algorithm", "99"),
        ):
            for profile in (training(), small()):
                with self.assertRaises(grpc.RpcError) as raised:
                    self.predicted(profile, cluster={**DGX, **change})
                details = details_of(raised.exception)
                self.assertEqual(details.code, grpc.StatusCode.INVALID_ARGUMENT)
                self.assertIn(value, details.violations[f"scenario.cluster.{field}"])

    def test_the_command_line_sends_a_presets_figures(self):
        code, out, errors = stepcast("clusters", "dgx-a100", "--output", "json")
        self.assertEqual(code, 0, errors)
        shown = json.loads(out)
        scenario = from_json(prediction.PredictThroughputRequest(), {"scenario": shown["scenario"]}).scenario
        self.assertEqual(scenario, from_json(prediction.PredictThroughputRequest(), {"scenario": {"cluster": DGX}}).scenario)
        own = self.write("own.json", shown["cluster"])
        for cluster in ("dgx-a100", own):
            for where in ((), ("--server", self.server.address)):
                code, out, errors = stepcast("predict", self.job, "--cluster", cluster, "--workers", "16", "--as-recorded", "--output", "json", *where)
                self.assertEqual((code, errors), (0, ""))
                [answer] = json.loads(out)["predictions"]
                self.assertAlmostEqual(16 / answer["stepsPerSecond"] / step_of(16), 1, delta=1e-6)

    def test_every_preset_predicts_and_has_sources(self):
        code, out, errors = stepcast("clusters", "--output", "json")
        self.assertEqual(code, 0, errors)
        clusters = json.loads(out)["clusters"]
        self.assertGreaterEqual(len(clusters), 10)
        for each in clusters:
            name = each["cluster"]["name"]
            code, out, errors = stepcast("predict", self.job, "--cluster", name)
            self.assertEqual(code, 0, errors)
            self.assertTrue(errors.startswith(f"cluster: {name}: "), errors)
            self.assertRegex(errors, r"bandwidth \S+ \((measured|nominal)\)")
            text = stepcast("clusters", name)[1]
            for figure in each["cluster"].values():
                if isinstance(figure, dict):
                    self.assertIn(figure["source"], text)

    def test_flags_replace_figures_one_by_one(self):
        _, _, errors = stepcast("predict", self.job, "--cluster", "p4d", "--bandwidth", "10Gbit/s", "--workers", "8,16")
        self.assertIn("cluster: p4d: all-reduces: workers-per-node 8, latency 4.7us, intra-bandwidth 204GB/s (measured)", errors)
        self.assertNotIn("400Gbit/s", errors)
        self.assertIn("bandwidth: 10Gbit/s is 1250000000 bytes/s", errors)

    def test_every_question_takes_a_cluster(self):
        for command in (("recommend", self.job), ("compare", self.job), ("diagnose", self.job, "--workers", "8"), ("trace", self.job, "--workers", "2"),
                        ("tune", self.job, "--workers", "8"), ("report", self.job, "--out", os.path.join(self.folder.name, "report.html")),
                        ("order", self.servers), ("predict", self.servers)):
            code, _, errors = stepcast(*command, "--cluster", "dgx-a100", "--timeout", "5m")
            self.assertEqual(code, 0, (command, errors))

    def test_what_a_new_user_types(self):
        """The command, its exit status, and what it says: on standard error unless it succeeds."""
        bad = self.write("bad.json", {"name": "bad", "bandwidth": "10"})
        for arguments, status, text in (
            (["predict", self.job, "--bucket-cap", "25"], 2, '--bucket-cap: "25" has no unit: 25 bytes or 25 MiB? Write 25MiB, or --bucket-cap-mb 25 as PyTorch does'),
            (["predict", self.job, "--bucket-cap-mb", "25", "--workers", "1"], 0, "examples/s"),
            (["predict", self.job, "--bucket-cap-mb", "25MiB"], 2, "--bucket-cap-mb"),
            (["predict", self.job, "--bucket-cap", "25M"], 2, "write 25MB or 25MiB"),
            (["predict", self.job, "--bandwidth", "10"], 2, '--bandwidth: "10" has no unit: write 10Gbit/s or 10GB/s or 10B/s'),
            (["predict", self.job, "--bandwidth", "10G"], 2, "write 10Gbit/s or 10GB/s"),
            (["predict", self.job, "--latency", "20"], 2, '--latency: "20" has no unit: write 20us or 20ms or 20s'),
            (["predict", self.job, "--latency", "0", "--workers", "2"], 0, "examples/s"),
            (["predict", self.servers, "--window", "65536"], 2, '--window: "65536" has no unit: write 65536B or 64KiB'),
            (["predict", self.servers, "--window", "65536B", "--workers", "2"], 0, "examples/s"),
            (["predict", self.servers, "--turns", "65160"], 2, "write 65160B"),
            (["predict", self.servers, "--quantum", "1048576"], 2, "write 1048576B or 1024KiB"),
            (["predict", self.servers, "--worker-group", "2:1:100"], 2, "--worker-group: \"100\" has no unit"),
            (["predict", self.servers, "--offsets", "0,5"], 2, "--offsets: \"5\" has no unit"),
            (["predict", self.job, "--partition", "4"], 2, "--partition: \"4\" has no unit"),
            (["predict", self.job, "--first-bucket", "1"], 2, "--first-bucket: \"1\" has no unit"),
            (["predict", self.job, "--horovod-fusion", "128"], 2, "--horovod-fusion: \"128\" has no unit"),
            (["predict", self.job, "--horovod-cycle", "1"], 2, "--horovod-cycle: \"1\" has no unit"),
            (["predict", self.job, "--timeout", "60"], 2, "--timeout: \"60\" has no unit"),
            (["predict", self.job, "--time-budget", "5"], 2, "--time-budget: \"5\" has no unit"),
            (["recommend", self.job, "--examples", "100", "--deadline", "8"], 2, "--deadline: \"8\" has no unit"),
            (["tune", self.job, "--cap", "25"], 2, "--cap: \"25\" has no unit"),
            (["optimize", self.job, "--memory-budget", "16"], 2, "--memory-budget: \"16\" has no unit"),
            (["predict", self.job, "--cluster", "dgx-a10"], 2, '"dgx-a10" is not a cluster or a file; did you mean dgx-a100?'),
            (["predict", self.job, "--cluster", bad], 2, '"bandwidth": "10" has no unit'),
            (["predict", self.job, "--cluster", "./nowhere.json"], 2, "nowhere.json"),
            (["clusters", "dgx-a10"], 2, "did you mean dgx-a100?"),
            (["clusters"], 0, "dgx-a100"),
            (["clusters", "p4d"], 0, "https://aws.amazon.com/"),
            (["predcit", self.job], 2, 'unknown command "predcit"; did you mean predict?'),
            (["predict", self.job, "--latnecy", "20us"], 2, "unknown flag --latnecy; did you mean --latency?"),
            (["predict", self.job, "--latency", "20s", "--workers", "2"], 1, "error: INVALID_ARGUMENT: REQUEST_INVALID: --latency: 20 is not from 0 to 10\n"),
            (["predict", self.job, "--workers", "2,5", "--workers-per-node", "4", "--intra-bandwidth", "1GB/s"], 1,
             "--workers, number 2: 5 workers do not fill nodes of 4 (--workers-per-node)\n"),
        ):
            code, out, errors = stepcast(*arguments)
            self.assertEqual(code, status, (arguments, errors))
            self.assertIn(text, errors if status else out, arguments)
            # What is wrong is said once.
            if status == 1:
                self.assertEqual(errors.count("\n"), 1, errors)

    def test_a_field_of_a_file_keeps_its_path(self):
        jobs = self.write("jobs.json", {"jobs": [{"id": "a", "profile": self.job, "scenario": {"all_reduce": {"latency_seconds": 20}}}], "capacity": {"workers": 2}})
        code, out, errors = stepcast("allocate", jobs)
        self.assertEqual(code, 0, errors)
        self.assertIn("error (a): scenario.all_reduce.latency_seconds: 20 is not from 0 to 10\n", out)
        # Of all jobs alike, a field of the file and a flag in its place.
        cases = (({"capacity": {"workers": 0}}, (), "capacity.workers: 0"), ({"capacity": {"workers": 2}}, ("--workers", "0"), "--workers: 0"))
        for capacity, flags, text in cases:
            jobs = self.write("jobs.json", {"jobs": [{"id": "a", "profile": self.job}], **capacity})
            code, _, errors = stepcast("allocate", jobs, *flags)
            self.assertEqual(code, 1, errors)
            self.assertIn(f"error: INVALID_ARGUMENT: REQUEST_INVALID: {text}", errors)


if __name__ == "__main__":
    unittest.main()
