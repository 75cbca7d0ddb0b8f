"""What a person meets first: the command line without a server, names that are nearly right, files of the wrong kind, answers that take too long."""

import gzip
import json
import os
import subprocess
import tempfile
import unittest
import urllib.request

import grpc
from contract import details_of, prediction, recommendation_pb2, store
from patience import growing_seconds
from sample import recorded, small
from stepcastd import PATIENCE_SECONDS, ServerTest

PYTORCH = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2}]}
MEGABYTE = 1 << 20


class FrontDoorTest(ServerTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="stepcast-door-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.small = self.write("small.json", json.dumps(small()).encode())

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def run_program(self, *arguments, server=True):
        """(exit status, standard output, standard error); without a server nobody names one."""
        environment = {name: value for name, value in os.environ.items() if name != "STEPCAST_SERVER"}
        if server:
            environment["STEPCAST_SERVER"] = self.server.address
        done = subprocess.run(
            [os.environ["STEPCAST"], *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def done(self, *arguments, server=True):
        status, out, errors = self.run_program(*arguments, server=server)
        self.assertEqual(status, 0, f"{arguments}: {errors}")
        return out

    def refused(self, *arguments, server=True):
        status, out, errors = self.run_program(*arguments, server=server)
        self.assertEqual(status, 1, f"{arguments}: {out}")
        return errors

    def zoo(self, model, *more):
        return json.loads(self.done("profile", "zoo", model, "--bandwidth", "10Gbit/s", "--output", "json", *more))["profile"]

    # Files need no server, and have the same answer as with one.
    def test_a_file_is_answered_without_a_server(self):
        asked = ("predict", self.small, "--workers", "1,2", "--steps", "100", "--output", "json")
        alone, asked_there = (json.loads(self.done(*asked, server=server)) for server in (False, True))
        self.assertEqual(alone["predictions"], asked_there["predictions"])
        jobs = self.write("jobs.json", json.dumps({"jobs": [{"id": "a", "profile": self.small}], "capacity": {"workers": 2}}).encode())
        self.assertIn("total: ", self.done("allocate", jobs, "--steps", "100", server=False))

    def test_a_checked_profile_says_first_whether_it_is_valid_and_what_to_do(self):
        lines = self.done("profile", "check", self.small, server=False).splitlines()
        self.assertRegex(lines[0], "^valid: ")
        self.assertRegex(lines[1], "^explained: ")
        self.assertRegex(lines[-1], "^to do: ")
        self.assertLess(len(lines), 10)
        details = self.done("profile", "check", self.small, "--details", server=False)
        self.assertIn("whole streams, as requested", details)
        for word in ("TURNS", "FIRST_COME", "turns", "first come"):
            self.assertNotIn(word, details)

    def test_passes_and_throughput_over_time_stand_below_the_table(self):
        saved = os.path.join(self.folder, "resnet18.json")
        self.done("profile", "zoo", "resnet18", "--all-reduce", "--bandwidth", "10Gbit/s", "--save", saved, server=False)
        asked = ("predict", saved, "--workers", "1,2", "--passes", "--over-time", "5")
        plain, passes, over_time = self.done(*asked, server=False).split("\n\n")
        self.assertEqual(plain + "\n", self.done(*asked[:4], server=False))
        self.assertEqual(passes.split()[:6], ["workers", "step", "forward", "backward", "optimizer", "other"])
        self.assertEqual([line.split()[0] for line in over_time.splitlines()], ["workers"] + ["1"] * 5 + ["2"] * 5)
        told = json.loads(self.done(*asked, "--output", "json", server=False))["predictions"][1]
        self.assertEqual(len(told["throughputOverTime"]), 5)
        self.assertGreater(told["passes"]["backwardSeconds"], told["passes"]["forwardSeconds"])
        self.assertIn("passes: not known", self.done("predict", self.small, "--workers", "1", "--steps", "100", "--passes", server=False))
        self.assertIn("--over-time: 201 is not from 0 to 200", self.refused("predict", self.small, "--over-time", "201", server=False))
        status, _, errors = self.run_program("predict", self.small, "--over-time", "0", server=False)
        self.assertEqual(status, 2, errors)
        self.assertIn("--over-time: 0 is not from 1 to 200", errors)

    # TicTac, 3.2: the efficiency of each recorded step, and how much of its length it explains.
    def test_a_checked_profile_tells_the_orders_of_its_steps(self):
        recording = self.write("recorded.json", json.dumps(recorded("resnet50_16")).encode())
        summary = self.done("profile", "check", recording, server=False)
        told = json.loads(self.done("profile", "check", recording, "--output", "json", server=False))["recording"]["orders"]
        self.assertRegex(summary, f"\norders: {told['uniqueOrders']} different ones of the downloads in {len(told['steps'])} steps; scheduling efficiency ")
        self.assertGreater(len(told["steps"]), 1)
        for step in told["steps"]:
            self.assertLessEqual(step["schedulingEfficiency"], 1)
            self.assertGreater(step["seconds"], 0)
        self.assertIn("scheduling efficiency\n", self.done("profile", "check", recording, "--details", server=False))

    # A row that is shown says what predict says.
    def test_every_row_of_a_recommendation_is_what_predict_says(self):
        self.done("profile", "upload", self.small, "--id", "small")
        recommended = self.server.predictions.RecommendWorkers(recommendation_pb2.RecommendWorkersRequest(profile="profiles/small"))
        self.assertTrue(all(outcome.in_full for outcome in recommended.frontier_outcomes))
        counts = [row.scenario.workers for row in recommended.frontier]
        predicted = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile="profiles/small", worker_counts=counts))
        self.assertEqual(list(predicted.predictions), list(recommended.frontier))

    # Weaknesses of a prediction stand with what is made of it.
    def test_warnings_reach_every_answer(self):
        self.zoo("vgg16", "--variation", "0")
        options = ("--steps", "200", "--simultaneous") if "--simultaneous" in self.done("recommend", "--help") else ("--steps", "200")
        warned = json.loads(self.done("predict", "vgg16", "--workers", "2", "--output", "json", *options))["predictions"][0]["warnings"]
        if not warned:
            self.skipTest("nothing weakens this prediction")
        recommended = json.loads(self.done("recommend", "vgg16", "--max-workers", "4", "--output", "json", *options))
        # Of several numbers of workers that have the same one, the first one's numbers are told.
        self.assertLessEqual({each["reason"] for each in warned}, {each["reason"] for each in recommended["warnings"]})
        self.assertIn("\nwarning (", self.done("recommend", "vgg16", "--max-workers", "4", *options))
        self.assertIn("\nwarning (", self.done("compare", "vgg16", "--workers", "2", *options))
        self.assertIn("\nwarning: ", self.done("order", "vgg16", "--workers", "2", "--method", "graph", *options))
        jobs = self.write("jobs.json", json.dumps({"jobs": [{"id": "a", "profile": "vgg16", "maxWorkers": 2}], "capacity": {"workers": 2}}).encode())
        self.assertIn("\nwarning (a): ", self.done("allocate", jobs, *options))

    # A model of the zoo is found under its name.
    def test_a_model_of_the_zoo_has_its_name(self):
        self.assertEqual(self.zoo("resnet50")["name"], "profiles/resnet50")
        self.assertEqual(self.zoo("resnet50")["name"], "profiles/resnet50")
        other = self.zoo("resnet50", "--batch-size", "8")["name"]
        self.assertRegex(other, "^profiles/p-[0-9a-f]{20}$")
        self.assertEqual(self.zoo("inception_v3")["name"], "profiles/inception-v3")
        self.done("predict", "resnet50", "--workers", "1", "--steps", "10")

    # TicTac's Table 1 and LIBRA's Table I, by a client that is not ours: tensors and bytes that travel.
    def test_the_models_of_the_papers_tables_have_their_tensors(self):
        servers = {"vgg19": (38, 548.05), "inception_v2": (141, 42.64), "resnet50_v2": (125, 97.45), "resnet101_v2": (244, 169.86)}
        for communication, models in (("PARAMETER_SERVERS", servers), ("ALL_REDUCE", {"resnet152": (467, 229.62), "xception": (156, 87.19)})):
            for model, expected in models.items():
                zoo = store.ModelZooOptions(model=model, platform={"bandwidth_bytes_per_second": 1.25e9}, communication=communication)
                header = store.ImportProfileRequest.Header(model_zoo=zoo, validate_only=True)
                made = self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header=header)])).profile
                sizes = [operation.size_bytes for operation in made.operations if operation.collective or operation.resource == made.operations[0].DOWNLINK]
                self.assertEqual((len(sizes), round(sum(sizes) / MEGABYTE, 2)), expected, model)
        for model, flags in (("resnet152", ()), ("inception_v2", ("--all-reduce",))):
            self.assertIn("it is one of ", self.refused("profile", "zoo", model, "--bandwidth", "1Gbit/s", *flags))

    # Of two jobs that train the same network, each has a name.
    def test_a_model_of_the_zoo_may_be_of_an_all_reduce_job(self):
        made = self.zoo("resnet50", "--all-reduce")
        self.assertEqual(made["name"], "profiles/resnet50-all-reduce")
        self.assertNotEqual(self.zoo("resnet50")["digest"], made["digest"])
        stored = self.server.profiles.GetProfile(store.GetProfileRequest(name=made["name"]))
        gradients = [operation for operation in stored.operations if operation.collective]
        self.assertEqual((len(gradients), sum(gradient.size_bytes for gradient in gradients)), (161, 4 * 25_557_032))
        self.assertEqual(stored.buckets.rule.cap_bytes, 25 * MEGABYTE)
        self.assertIn("it is one of all-reduce jobs", self.refused("profile", "zoo", "bert_base", "--bandwidth", "1Gbit/s"))
        self.assertIn("stepcast profile zoo bert_base --all-reduce", self.refused("predict", "bert-base"))
        saved = os.path.join(self.folder, "bert.json")
        self.done("profile", "zoo", "bert_base", "--all-reduce", "--bandwidth", "10Gbit/s", "--save", saved, server=False)
        with open(saved, encoding="utf-8") as file:
            self.assertEqual(sum(operation.get("resource") == "COLLECTIVE" for operation in json.load(file)["operations"]), 199)

    def test_what_is_not_there_names_what_is_like_it(self):
        self.zoo("resnet50", "--id", "mine")
        errors = self.refused("predict", "resnet50")
        self.assertIn('there is no profile profiles/resnet50; like it: profiles/mine (model "resnet50")', errors)
        self.assertIn("stepcast profile zoo resnet50", errors)
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/mime"))
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason, details.metadata["similar"]), (grpc.StatusCode.NOT_FOUND, "PROFILE_NOT_FOUND", "profiles/mine"))

    def test_a_job_on_nothing_is_refused_at_once(self):
        errors = self.refused("job", "start", "predict", "nothing", "--workers", "2")
        self.assertIn("error: NOT_FOUND: PROFILE_NOT_FOUND: ", errors)
        self.assertEqual(json.loads(self.done("job", "list", "--output", "json"))["operations"], [])

    def test_the_first_page_says_what_there_is(self):
        version = self.done("--version").split()[1]
        for method in ("GET", "HEAD"):
            request = urllib.request.Request(f"http://{self.server.http_address}/", method=method)
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE_SECONDS) as reply:
                body = reply.read().decode()
                self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "text/plain; charset=utf-8"))
            if method == "GET":
                for part in (f"stepcastd {version}\n", "/metrics", "/healthz", "/readyz"):
                    self.assertIn(part, body)

    # A caller who asks for too much hears how much that was.
    def test_a_deadline_says_what_was_asked_and_what_to_do(self):
        self.done("profile", "upload", self.small, "--id", "small")
        endless = prediction.PredictThroughputRequest(profile="profiles/small", worker_counts=[64])
        endless.options.steps_per_worker = 1_000_000
        # On a busy machine the caller's own clock may be the first.
        for timeout in growing_seconds(1):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.predictions.PredictThroughput(endless, timeout=timeout)
            details = details_of(raised.exception)
            self.assertEqual(details.code, grpc.StatusCode.DEADLINE_EXCEEDED)
            if details.reason:
                break
        self.assertEqual(details.reason, "DEADLINE_EXCEEDED")
        self.assertGreater(int(details.metadata["expected_operations"]), int(details.metadata["simulated_operations"]))
        self.assertGreater(float(details.metadata["expected_seconds"]), 1)
        self.assertIn("stepcast job start", details.message)
        endless = ("--workers", "64", "--steps", "1000000", "--timeout")
        for timeout in growing_seconds(1):
            alone = self.refused("predict", self.small, *endless, f"{timeout}s", server=False)
            remote = self.refused("predict", "small", *endless, f"{timeout}s")
            if "simulated operations were asked for" in alone and "simulated operations were asked for" in remote:
                break
        for errors in (alone, remote):
            self.assertIn("--precision", errors)

    # Of the wrong kind, and compressed.
    def test_an_import_of_the_wrong_kind_says_what_it_looks_like(self):
        trace = self.write("trace.json", json.dumps(PYTORCH).encode())
        packed = self.write("trace.json.gz", gzip.compress(json.dumps(PYTORCH).encode()))
        for server in (True, False):
            for path in (trace, packed):
                for form in ("run-metadata", "timeline", "layers"):
                    asked = ("profile", "import", path, "--format", form, "--batch-size", "8", "--bandwidth", "1Gbit/s", "--save", self.folder + "/x.json")
                    errors = self.refused(*asked, *(() if form != "timeline" else ("--variables", self.write("sizes", b"w 4\n"))), server=server)
                    self.assertIn("it looks like a trace of PyTorch's profiler", errors)
                    self.assertIn("run-metadata (TensorFlow's serialised RunMetadata)", errors)
        self.assertIn("looks like a trace of PyTorch's profiler", self.refused("predict", trace, server=False))

    def test_files_may_be_compressed_wherever_they_are_read(self):
        packed = self.write("small.json.gz", gzip.compress(json.dumps(small()).encode()))
        self.assertEqual(self.done("predict", packed, "--steps", "100", server=False), self.done("predict", self.small, "--steps", "100", server=False))
        self.assertEqual(json.loads(self.done("profile", "upload", packed, "--id", "packed", "--output", "json"))["name"], "profiles/packed")
        layers = b"node1 -- Linear(a) -- forward_compute_time=2.000, backward_compute_time=4.000, activation_size=1.0, parameter_size=4000.000\n"
        made = [
            json.loads(self.done("profile", "import", path, "--batch-size", "8", "--bandwidth", "1MB/s", "--output", "json", server=server))["profile"]["digest"]
            for path in (self.write("layers.txt", layers), self.write("layers.txt.gz", gzip.compress(layers)))
            for server in (True,)
        ]
        self.assertEqual(made[0], made[1])


class SmallServerTest(ServerTest):
    flags = ("--max-profile-bytes", str(MEGABYTE), "--max-import-bytes", str(2 * MEGABYTE))

    def upload(self, content, encoding=store.UploadProfileRequest.JSON):
        def messages():
            yield store.UploadProfileRequest(header=store.UploadProfileRequest.Header(encoding=encoding))
            yield store.UploadProfileRequest(chunk=content)

        return self.server.profiles.UploadProfile(messages())

    def test_the_server_decompresses_and_a_little_that_becomes_much_ends_at_the_limit(self):
        self.assertEqual(self.upload(gzip.compress(json.dumps(small()).encode())).operation_count, len(small()["operations"]))
        bomb = gzip.compress(b" " * (30 * MEGABYTE), 9)
        self.assertLess(len(bomb), MEGABYTE // 10)
        with self.assertRaises(grpc.RpcError) as raised:
            self.upload(bomb)
        self.assertEqual(details_of(raised.exception).reason, "PROFILE_TOO_LARGE")
        header = store.ImportProfileRequest.Header()
        header.layer_profile.batch_size = 8
        header.layer_profile.platform.bandwidth_bytes_per_second = 1e9
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(iter((store.ImportProfileRequest(header=header), store.ImportProfileRequest(chunk=bomb))))
        self.assertEqual(details_of(raised.exception).reason, "PROFILE_TOO_LARGE")
        header.timeline.batch_size = 8
        header.timeline.platform.bandwidth_bytes_per_second = 1e9
        header.timeline.variable_bytes["w"] = 4
        comments = gzip.compress(b'{"a": [' + b'"", ' * MEGABYTE, 9)
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.ImportProfile(iter((store.ImportProfileRequest(header=header), store.ImportProfileRequest(chunk=comments))))
        self.assertEqual(details_of(raised.exception).reason, "IMPORT_TOO_LARGE")
        with self.assertRaises(grpc.RpcError) as raised:
            self.upload(gzip.compress(json.dumps(small()).encode())[:-9])
        details = details_of(raised.exception)
        self.assertEqual((details.reason, details.violations), ("PROFILE_MALFORMED", {"chunk": "its gzip data is cut short"}))

    def test_a_recording_above_the_servers_limit_comes_with_the_ways_around_it(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as trace:
            trace.write(b'{"traceEvents": [' + b" " * (3 * MEGABYTE) + b"]}")
            trace.flush()
            asked = ("profile", "import", trace.name, "--format", "pytorch", "--batch-size", "8", "--bandwidth", "1Gbit/s")
            environment = os.environ | {"STEPCAST_SERVER": self.server.address}
            done = subprocess.run([os.environ["STEPCAST"], *asked], env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("max_import_bytes = 2097152", done.stderr)
        self.assertIn("hint: that is a limit of the server (stepcastd --max-import-bytes); --save FILE imports here", done.stderr)


if __name__ == "__main__":
    unittest.main()
