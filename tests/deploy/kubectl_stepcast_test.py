"""`kubectl stepcast` under the real kubectl: manifests without a cluster, and objects from a stand-in of the API server."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import yaml

from deployment import KUBERNETES, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from sample import message, small  # noqa: E402
from contract import store  # noqa: E402
from stepcastd import PATIENCE_SECONDS, Server  # noqa: E402

KINDS = {
    "Job": ("batch", "v1", "jobs"),
    "PyTorchJob": ("kubeflow.org", "v1", "pytorchjobs"),
    "MPIJob": ("kubeflow.org", "v2beta1", "mpijobs"),
    "TrainJob": ("trainer.kubeflow.org", "v1alpha1", "trainjobs"),
    "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
}
PROFILE = "tiny-8"  # of parameter servers
RING = "resnet-ring"  # of all-reduces
HOSTILE = "$(touch pwned) `touch pwned` ; touch pwned | \x1b[31mred \x1f' \" \\ \n--help"


def pod(gpus=None):
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    return {"spec": {"containers": [{"name": "train", "image": "train", **limits}]}}


SPECS = {
    "Job": {"parallelism": 4, "template": pod()},
    "PyTorchJob": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3, "template": pod()}}},
    "MPIJob": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}}},
    "TrainJob": {"trainer": {"numNodes": 4}},
    "JobSet": {"replicatedJobs": [{"name": "driver", "template": {"spec": {"parallelism": 1}}}, {"name": "worker", "template": {"spec": {"parallelism": 4, "template": pod()}}}]},
}


def job(kind="Job", name="train", profile=PROFILE, spec=None, **annotations):
    group, version, _ = KINDS[kind]
    metadata = {"name": name, "namespace": "default"}
    if profile is not None:
        metadata["labels"] = {"stepcast.dev/profile": profile}
    if annotations:
        metadata["annotations"] = {f"stepcast.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": spec or SPECS[kind]}


class ApiServer:
    """As much of the API server as `kubectl get` asks for."""

    def __init__(self):
        self.objects = {}  # path -> object
        answer = self._answer

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answer(self.path.split("?")[0])
                body = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def put(self, made):
        group, version, plural = KINDS[made["kind"]]
        self.objects[f"/apis/{group}/{version}/namespaces/{made['metadata']['namespace']}/{plural}/{made['metadata']['name']}"] = made

    def _answer(self, path):
        versions = sorted({(group, version) for group, version, _ in KINDS.values()})
        if path == "/api":
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/api/v1":
            return 200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": []}
        if path == "/apis":
            groups = {}
            for group, version in versions:
                groups.setdefault(group, []).append({"groupVersion": f"{group}/{version}", "version": version})
            return 200, {
                "kind": "APIGroupList",
                "groups": [{"name": name, "versions": known, "preferredVersion": known[0]} for name, known in groups.items()],
            }
        for group, version in versions:
            if path == f"/apis/{group}/{version}":
                resources = [
                    {"name": plural, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
                    for kind, (a_group, a_version, plural) in KINDS.items()
                    if (a_group, a_version) == (group, version)
                ]
                return 200, {"kind": "APIResourceList", "groupVersion": f"{group}/{version}", "resources": resources}
        if path in self.objects:
            return 200, self.objects[path]
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": f"{path} not found", "code": 404}


@unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
@unittest.skipUnless(shutil.which("jq"), "jq is not installed")
class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        profile = message(small())
        cls.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile, profile_id=PROFILE))
        subprocess.run(
            [os.environ["STEPCAST"], "--server", cls.server.address, "profile", "zoo", "resnet18_cifar", "--all-reduce", "--bandwidth", "10Gbit/s", "--id", RING],
            check=True, capture_output=True,
        )

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepcast-kubectl-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # As installed: the plugin and the program on PATH. `profiles/NAME` is no file, whatever lies here.
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        os.symlink(os.path.join(KUBERNETES, "kubectl-stepcast"), os.path.join(self.bin, "kubectl-stepcast"))
        os.symlink(os.environ["STEPCAST"], os.path.join(self.bin, "stepcast"))
        self.api = ApiServer()
        self.addCleanup(self.api.close)
        self.config = os.path.join(self.folder, "config")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "apiVersion": "v1", "kind": "Config", "current-context": "here",
                    "clusters": [{"name": "here", "cluster": {"server": self.api.address}}],
                    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                    "users": [{"name": "me", "user": {}}],
                },
                file,
            )

    def run_plugin(self, *arguments, stdin=None, **environment):
        """(exit status, standard output, standard error) of `kubectl stepcast`."""
        done = subprocess.run(
            ["kubectl", "stepcast", *arguments],
            input=stdin, stdin=None if stdin else subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, cwd=self.folder,
            env={
                **os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": self.folder, "KUBECONFIG": self.config, "STEPCAST_SERVER": self.server.address,
                "NO_PROXY": "127.0.0.1", **environment,
            },
        )
        return done.returncode, done.stdout, done.stderr

    def write(self, *objects, name="job.yaml"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump_all(objects, file)
        return path

    def spy(self):
        """A stepcast that prints its arguments, one a line, instead."""
        path = os.path.join(self.bin, "stepcast")
        os.remove(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nprintf "[%s]\\n" "$@"\n')
        os.chmod(path, 0o755)

    def asked(self, *objects, rest=()):
        """The arguments that stepcast gets for each object; the plugin must succeed."""
        status, out, errors = self.run_plugin("recommend", "-f", self.write(*objects), *(["--", *rest] if rest else []))
        self.assertEqual((status, errors), (0, ""))
        return [re.findall(r"^\[(.*)\]$", part, re.M) for part in out.split("[recommend]")[1:]]

    def direct(self, *flags, profile=PROFILE):
        done = subprocess.run(
            [os.environ["STEPCAST"], "--server", self.server.address, "recommend", f"profiles/{profile}", *flags], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
        )
        return done.stdout


class RecommendTest(PluginTest):
    def test_a_manifest_of_every_kind_is_answered_without_a_cluster(self):
        expected = self.direct("--max-workers", "8")
        for kind in KINDS:
            with self.subTest(kind):
                path = self.write(job(kind, min="1" if kind != "PyTorchJob" else "2", max="8"))
                status, out, errors = self.run_plugin("recommend", "-f", path, KUBECONFIG="/dev/null")
                self.assertEqual((status, errors), (0, ""))
                heading, answer = out.split("\n", 1)
                self.assertRegex(heading, rf"^{kind} train: profile {PROFILE}, [12] to 8 pods, now 4$")
                self.assertEqual(answer, expected if kind != "PyTorchJob" else self.direct("--min-workers", "2", "--max-workers", "8"))

    def test_the_workers_of_a_set_are_the_one_job_of_several_pods(self):
        self.spy()

        def jobs(*counts):
            specs = [{"name": f"j{index}", "replicas": replicas, "template": {"spec": {"parallelism": pods}}} for index, (replicas, pods) in enumerate(counts)]
            return {"replicatedJobs": [{key: value for key, value in spec.items() if value is not None} for spec in specs]}

        for counts, heading in (
            (((1, 1), (8, 1)), "1 to 16 pods, now 8"),
            (((None, 1), (3, 6)), "1 to 18 pods, now 18"),
            (((1, None), (20, None)), "1 to 20 pods, now 20"),
            (((0, 1),), "1 to 16 pods"),
        ):
            status, out, errors = self.run_plugin("recommend", "-f", self.write(job("JobSet", spec=jobs(*counts))))
            self.assertEqual((status, errors, out.splitlines()[0]), (0, "", f"JobSet train: profile {PROFILE}, {heading}"))
        for counts in (((None, 4), (8, 1)), ((2, 1), (1, 2)), ((1, 1), (1, 1))):
            status, _, errors = self.run_plugin("recommend", "-f", self.write(job("JobSet", spec=jobs(*counts))))
            self.assertEqual((status, "which replicated job has the workers" in errors), (1, True), errors)

    def test_what_a_job_says_becomes_the_question(self):
        self.spy()
        gpus = {"parallelism": 20, "template": pod("4")}
        elastic = {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 5}, **SPECS["PyTorchJob"]}
        for made, arguments in (
            (job(), ["--min-workers=1", "--max-workers=16"]),
            (job(spec={"parallelism": 20, "template": pod()}), ["--min-workers=1", "--max-workers=20"]),
            (job(spec=gpus), ["--min-workers=4", "--max-workers=80", "--workers-per-node=4"]),
            (job(spec=gpus, workers_per_pod="1", max="7"), ["--min-workers=1", "--max-workers=7"]),
            (job("PyTorchJob", spec=elastic), ["--min-workers=3", "--max-workers=6"]),
            (job("PyTorchJob"), ["--min-workers=2", "--max-workers=16"]),
            (job("MPIJob", spec={"slotsPerWorker": 2, **SPECS["MPIJob"]}), ["--min-workers=2", "--max-workers=32", "--workers-per-node=2"]),
            (job("TrainJob", spec={"trainer": {"numNodes": 2, "numProcPerNode": "auto"}}), ["--min-workers=1", "--max-workers=16"]),
            # The object's own bounds hold, whatever the annotations say.
            (job("PyTorchJob", spec=elastic, min="1", max="16"), ["--min-workers=3", "--max-workers=6"]),
            (job("PyTorchJob", spec=elastic, min="4", max="5"), ["--min-workers=4", "--max-workers=5"]),
            (job("PyTorchJob", min="1"), ["--min-workers=2", "--max-workers=16"]),
            (job(min="20"), ["--min-workers=20", "--max-workers=20"]),
            # A master alone is a pod, and may stay one.
            (job("PyTorchJob", spec={"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": pod("8")}}}), ["--min-workers=8", "--max-workers=128", "--workers-per-node=8"]),
            (job("PyTorchJob", spec={"pytorchReplicaSpecs": {"Master": {"template": pod("2")}, "Worker": {"replicas": 0, "template": pod("4")}}}, max="2"), ["--min-workers=2", "--max-workers=4", "--workers-per-node=2"]),
            (job(objective="knee"), ["--min-workers=1", "--max-workers=16"]),
            (job(objective="throughput"), ["--min-workers=1", "--max-workers=16", "--objective=max-throughput"]),
            (job(objective="efficiency=0.8"), ["--min-workers=1", "--max-workers=16", "--objective=max-throughput", "--min-efficiency=0.8"]),
            (
                job(objective="deadline=6h", examples="1000"),
                ["--min-workers=1", "--max-workers=16", "--objective=min-cost", "--deadline=6h", "--worker-hour=1", "--examples=1000"],
            ),
        ):
            with self.subTest(made):
                self.assertEqual(self.asked(made), [[f"profiles/{PROFILE}", *arguments]])
        for time in ("1h30m", "2d", "1.5h", "90m"):
            self.assertIn(f"--deadline={time}", self.asked(job(objective=f"deadline={time}", examples="9"))[0])
        for rate, asked in (("0.5TB/s", "0.5TB/s"), (".5TB/s", ".5TB/s"), ("4e-1TB/s", "4e-1TB/s"), ("2E+11B/s", "2E+11B/s"), ("600Gbit/s", "600Gbit/s")):
            self.assertIn(f"--intra-bandwidth={asked}", self.asked(job(workers_per_pod="2", intra_bandwidth=rate))[0])
        self.assertEqual(
            self.asked(job(objective="deadline=6h", examples="9"), rest=["--node-hour", "2"])[0][3:],
            ["--objective=min-cost", "--deadline=6h", "--examples=9", "--node-hour", "2"],
        )

    def test_pods_of_several_workers_are_asked_about_as_their_profile_was_recorded(self):
        gpus = {"parallelism": 2, "template": pod("4")}
        # With parameter servers: the numbers of workers that fill pods, each with a link of its own.
        status, out, errors = self.run_plugin("recommend", "-f", self.write(job(spec=gpus, max="3", intra_bandwidth="300GB/s")))
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(out, f"Job train: profile {PROFILE}, 1 to 3 pods of 4 workers, now 2\n" + self.direct("--workers", "4,8,12"))
        # In collectives: nodes, whose inner links somebody must know.
        status, out, errors = self.run_plugin("recommend", "-f", self.write(job(profile=RING, spec=gpus, max="3")))
        self.assertEqual(status, 1)
        self.assertIn("--intra-bandwidth", errors)
        for rate in ("300e9", "300GB/s"):
            status, out, errors = self.run_plugin("recommend", "-f", "-", stdin=json.dumps(job(profile=RING, spec=gpus, max="3", intra_bandwidth=rate)))
            self.assertEqual((status, errors), (0, ""))
            flags = ("--min-workers", "4", "--max-workers", "12", "--workers-per-node", "4", "--intra-bandwidth", "300GB/s")
            self.assertEqual(out.split("\n", 1)[1], self.direct(*flags, profile=RING))
        # What a node costs is of a node.
        made = self.write(job(spec=gpus, max="3", objective="cost", examples="1000"))
        status, out, errors = self.run_plugin("recommend", "-f", made, "--", "--node-hour", "8")
        self.assertEqual(status, 1)
        self.assertIn("give --worker-hour", errors)
        self.assertEqual(self.run_plugin("recommend", "-f", made, "--", "--worker-hour", "2")[0], 0)
        # Of more than 256 counts, every so many pods.
        status, out, errors = self.run_plugin("recommend", "-f", self.write(job(spec=gpus, max="300")), "--", "--objective", "max-throughput", "--steps", "10")
        self.assertEqual((status, errors), (0, ""))

    def test_real_deadlines_and_costs_are_answered(self):
        for annotations, rest in (
            ({"objective": "deadline=6h", "examples": "1000000"}, []),
            ({"objective": "cost", "examples": "1000000"}, ["--", "--worker-hour", "2"]),
            ({"objective": "efficiency=0.7"}, []),
        ):
            with self.subTest(annotations):
                status, out, errors = self.run_plugin("recommend", "-f", self.write(job(**annotations)), *rest)
                self.assertEqual(status, 0, errors)
                self.assertIn("examples/s", out)

    def test_several_objects_and_files_are_answered_each_and_others_left_alone(self):
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"stepcast.dev/profile": PROFILE}}}
        first = self.write(job(name="a"), service, job(name="b"), name="first.yaml")
        second = self.write({"apiVersion": "v1", "kind": "List", "items": [job("TrainJob", name="c"), job(name="d", profile=None)]}, name="second.yaml")
        status, out, errors = self.run_plugin("recommend", "-f", first, f"--filename={second}")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(re.findall(r"^(\w+ \w): profile", out, re.M), ["Job a", "Job b", "TrainJob c"])

    def test_standard_input_and_json(self):
        status, out, errors = self.run_plugin("recommend", "-f", "-", "--", "--output", "json", stdin=json.dumps(job(max="3")))
        self.assertEqual(status, 0, errors)
        self.assertEqual(json.loads(out)["choices"], 3)
        self.assertIn("Job train: profile", errors)

    def test_an_object_of_the_cluster_is_answered(self):
        self.api.put(job(max="8"))
        self.api.put(job("PyTorchJob", name="torch", max="8"))
        status, out, errors = self.run_plugin("recommend", "job/train", "pytorchjob/torch", "-n", "default")
        self.assertEqual((status, errors), (0, ""))
        self.assertIn(f"Job train: profile {PROFILE}, 1 to 8 pods, now 4\n" + self.direct("--max-workers", "8"), out)
        self.assertIn("PyTorchJob torch: ", out)
        status, out, errors = self.run_plugin("recommend", "job/none")
        self.assertEqual((status, out, "not found" in errors), (1, "", True), errors)

    def test_one_that_is_wrong_is_named_and_the_others_are_answered(self):
        for wrong, why in (
            (job(profile="Not-An-Id"), '"Not-An-Id", which cannot be the name of a stored profile'),
            (job(profile="../" + PROFILE), "cannot be the name"),
            (job(profile="absent"), "PROFILE_NOT_FOUND"),
            (job(min="none"), '"none" is not a count'),
            (job(max="9.5"), '"9.5" is not a count'),
            (job(min="9", max="8"), "at most 8 pods is below the least, 9"),
            (job(objective="speed"), 'stepcast.dev/objective is "speed"'),
            (job(workers_per_pod="2", intra_bandwidth="fast"), 'stepcast.dev/intra-bandwidth is "fast"'),
            (job(objective="efficiency=lots"), "lots"),
            (job(objective="deadline=6h"), "examples"),
            (job(objective="cost", examples="many"), "many"),
            (job(spec={"parallelism": "many"}), "not a count"),
            (job("JobSet", spec={"replicatedJobs": []}), "which replicated job"),
            (job("JobSet", replicated_job="nobody"), "which replicated job"),
        ):
            with self.subTest(why):
                status, out, errors = self.run_plugin("recommend", "-f", self.write(wrong, job("TrainJob", name="right", max="2")))
                self.assertEqual(status, 1)
                self.assertIn(why, errors)
                self.assertIn("TrainJob right: ", out)

    def test_nothing_that_a_manifest_says_is_run_or_drives_the_terminal(self):
        for made in (
            job(profile=HOSTILE), job(min=HOSTILE), job(max=HOSTILE), job(objective=HOSTILE), job(objective="efficiency=" + HOSTILE),
            job(examples=HOSTILE), job(name=HOSTILE), job(workers_per_pod=HOSTILE), job(workers_per_pod="2", intra_bandwidth=HOSTILE), job(objective="deadline=1h", examples="PATH[$(touch pwned)]"),
            job(spec={"parallelism": "PATH[$(touch pwned)]"}), job(min="PATH[$(touch pwned)]"),
        ):
            with self.subTest(made):
                _, out, errors = self.run_plugin("recommend", "-f", self.write(made))
                self.assertFalse(os.path.exists(os.path.join(self.folder, "pwned")))
                self.assertNotIn("\x1b", out + errors)
                self.assertNotIn("Usage: stepcast", out)

    def test_the_server_away_is_said(self):
        status, _, errors = self.run_plugin("recommend", "-f", self.write(job()), "--", "--timeout", "2s", STEPCAST_SERVER="127.0.0.1:1")
        self.assertEqual((status, "UNAVAILABLE" in errors), (1, True), errors)

    def test_nothing_to_ask_about_is_said(self):
        status, out, errors = self.run_plugin("recommend", "-f", self.write(job(profile=None)))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("no training job here has the label", errors)
        status, out, errors = self.run_plugin("recommend", "-f", os.path.join(self.folder, "none.yaml"))
        self.assertEqual((status, out, "does not exist" in errors), (1, "", True), errors)


class ExplainTest(PluginTest):
    CURVE = [{"workers": 2, "pods": 1, "examples_per_second": 679.2, "efficiency": 0.757}, {"workers": 4, "pods": 2, "examples_per_second": 813.4, "efficiency": 0.4534}]

    def test_what_the_webhook_wrote_is_a_table(self):
        self.api.put(
            job(recommended="2", requested="4, of 1 to 8", throughput="813.4 examples/s (804.1 to 822.6)", reason="2 pods give most.", curve=json.dumps(self.CURVE))
        )
        status, out, errors = self.run_plugin("explain", "job/train")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(
            out.splitlines(),
            [
                f"Job train, profile {PROFILE}",
                "now          4                         pods of workers that it has",
                "recommended  2                         pods that Stepcast suggests, marked -> below",
                "requested    4, of 1 to 8              pods that were asked for, and the range that was looked at",
                "throughput   813.4 examples/s (804.1 to 822.6)  with the recommended pods, and where its mean is sure to lie",
                "reason       2 pods give most.",
                "",
                "    pods  workers  examples/s  efficiency",
                "       1        2       679.2       75.7%",
                "->     2        4       813.4       45.3%",
            ],
        )

    def test_where_there_is_none_it_says_why(self):
        self.api.put(job(name="labelled"))
        self.api.put(job(name="bare", profile=None))
        self.api.put(job(name="unknown", profile="absent"))
        self.api.put(job(name="hostile", profile=HOSTILE))
        status, out, _ = self.run_plugin("explain", "job/labelled")
        self.assertEqual((status, "before\nthe admission webhook" in out, "kubectl stepcast recommend job/labelled" in out), (1, True, True), out)
        for cause in ("profile was not stored", "annotation stepcast.dev/ was wrong", "no stepcast.dev/intra-bandwidth"):
            self.assertIn(cause, out)
        self.assertNotIn("has no profile", out)
        self.assertIn("has no profile absent.", self.run_plugin("explain", "job/unknown")[1])
        self.assertNotIn("has no profile", self.run_plugin("explain", "job/unknown", STEPCAST_SERVER="127.0.0.1:1")[1])
        self.assertNotIn("\x1b", self.run_plugin("explain", "job/hostile")[1])
        status, out, _ = self.run_plugin("explain", "job/bare")
        self.assertEqual((status, "no label stepcast.dev/profile" in out), (1, True), out)

    def test_whatever_is_written_there_does_not_drive_the_terminal_or_stop_the_rest(self):
        for curve in (HOSTILE, "[", "[1]", "{}", "null", json.dumps([{"workers": "\x1b"}]), json.dumps([{"workers": 1, "examples_per_second": HOSTILE}])):
            with self.subTest(curve):
                self.api.put(job(recommended=HOSTILE, reason=HOSTILE, throughput=HOSTILE, requested=HOSTILE, curve=curve))
                status, out, errors = self.run_plugin("explain", "job/train")
                self.assertEqual((status, errors), (0, ""))
                self.assertNotIn("\x1b", out)
                self.assertIn("reason       $(touch pwned)", out)
                self.assertFalse(os.path.exists(os.path.join(self.folder, "pwned")))

    def test_one_that_is_not_there_is_kubectl_s_to_say(self):
        self.api.put(job(recommended="2"))
        status, out, errors = self.run_plugin("explain", "job/none")
        self.assertEqual((status, out, "not found" in errors), (1, "", True), errors)


class UsageTest(PluginTest):
    def test_help_needs_nothing(self):
        for arguments in (["--help"], ["help"], ["recommend", "--help"], ["explain", "-h"]):
            status, out, errors = self.run_plugin(*arguments)
            self.assertEqual((status, errors), (0, ""))
            self.assertTrue(out.startswith("Usage: kubectl stepcast recommend "), out)

    def test_wrong_usage_is_status_2(self):
        path = self.write(job())
        for arguments in (
            [], ["unknown"], ["recommend"], ["recommend", "--namespace", "a"], ["recommend", "-f"], ["recommend", "train"], ["recommend", "--all", "job/a"],
            ["recommend", "job/a b"], ["recommend", "job/$(touch pwned)"], ["explain"], ["explain", "-f", path], ["explain", "job/a", "--", "--plot"],
        ):
            with self.subTest(arguments):
                status, out, errors = self.run_plugin(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertNotEqual(errors, "")

    def test_a_program_that_is_missing_is_named(self):
        os.remove(os.path.join(self.bin, "stepcast"))
        if shutil.which("stepcast"):
            self.skipTest("stepcast is installed on this machine")
        status, _, errors = self.run_plugin("recommend", "-f", self.write(job()))
        self.assertEqual((status, "needs stepcast" in errors), (1, True), errors)


if __name__ == "__main__":
    unittest.main()
