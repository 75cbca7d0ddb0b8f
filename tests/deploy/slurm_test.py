"""Slurm's plugin in a real slurmctld: what it makes of jobs, and that no job waits for a server that is away."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import unittest

import slurm_cluster
from deployment import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests/e2e"))

from secured import Files, TOKENS  # pylint: disable=wrong-import-position
from stepcastd import Server  # pylint: disable=wrong-import-position

PROFILES = {"resnet50-16": "tests/data/testbed/resnet50_16.profile.json"}
# Each is of a job whose range of nodes is not its author's alone.
FIXED_SIZES = (("--nodes=2-16", "--ntasks=16"), ("--nodes=3-16", "--nodelist=absent[1-3]"), ("--nodes=1-4", "--gpus=16"))
ADVICE = "--comment=stepcast:profile=resnet50-16"


def stepcast(address, *arguments, **environment):
    done = subprocess.run([os.environ["STEPCAST"], *arguments], capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "STEPCAST_SERVER": address, **environment})
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def upload(address):
    for name, path in PROFILES.items():
        stepcast(address, "profile", "upload", os.path.join(ROOT, path), "--id", name)
    # Every step alike: its workers fall into step or do not, by how they start.
    stepcast(address, "profile", "zoo", "vgg16", "--variation", "0", "--bandwidth", "10Gbit/s", "--id", "vgg16-alike")
    recorded = os.path.join(ROOT, "tests/data/pytorch/alexnet_s-25.json.gz")
    stepcast(address, "profile", "import", recorded, "--format", "pytorch", "--batch-size", "128", "--bandwidth", "10Gbit/s", "--id", "alexnet-s")


def submit_advised(cluster, *arguments, **options):
    """Again until the answer is there, as a user would: the first simulation may take longer than the wait."""
    submitted = []

    def has_line():
        submitted.append(cluster.submit(*arguments, **options))
        return submitted[-1][1]

    cluster.eventually(has_line, "a job gets advice", pause=0.2)
    return submitted[-1]


@unittest.skipIf(slurm_cluster.missing(), slurm_cluster.missing())
class SlurmTest(unittest.TestCase):
    settings = "mode: set\nintra-bandwidth: 10e9\n"
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--store", "memory")
        cls.addClassCleanup(cls.server.close)
        upload(cls.server.address)
        # Patient, so that the first job has its advice, too.
        cls.cluster = slurm_cluster.Cluster(f"server: {cls.server.address}\nwait: 1s\n{cls.settings}", cls.options)
        cls.addClassCleanup(cls.cluster.close)

    def submit_advised(self, *arguments, **options):
        return submit_advised(self.cluster, *arguments, **options)

    def assert_unchanged(self, job, nodes):
        self.assertEqual(job["NumNodes"], nodes)
        self.assertNotIn("AdminComment", job)


class SetTest(SlurmTest):
    def test_a_range_is_narrowed_and_who_submits_and_who_administers_are_told(self):
        job, line = self.submit_advised("--nodes=1-16", ADVICE)
        self.assertEqual(job["NumNodes"], "1-2")
        self.assertRegex(line, r"^sbatch: stepcast: --nodes=1-16 is set to --nodes=1-2: 2 nodes \d+/s 98% eff; 16 nodes \d+/s 13%$")
        self.assertRegex(job["AdminComment"], r"^stepcast: --nodes=1-16 is set to --nodes=1-2: .*; resnet50-16: 2 workers give 482\.5 examples/s")

    def test_a_job_so_changed_runs(self):
        job, _ = self.submit_advised("--nodes=1-16", ADVICE, hold=False, script="echo ran on $SLURM_JOB_NUM_NODES")
        self.cluster.eventually(lambda: self.cluster.job(job["JobId"]).get("JobState") == "COMPLETED", "the job is done")
        self.assertEqual(self.cluster.read(f"job-{job['JobId']}.out"), "ran on 1\n")

    def test_the_environment_names_a_profile_too(self):
        job, _ = self.submit_advised("--nodes=1-16", STEPCAST_PROFILE="resnet50-16")
        self.assertEqual(job["NumNodes"], "1-2")

    def test_nodes_of_several_tasks_are_asked_about_as_such(self):
        job, line = self.submit_advised("--nodes=1-16", "--ntasks-per-node=2", "--comment=stepcast:profile=alexnet-s;objective=efficiency=0.9")
        self.assertRegex(job["NumNodes"], r"^1-[1-9]$")
        self.assertRegex(line, r"set to --nodes=1(-[2-9])?: [1-9] nodes? \d+/s 9\d% eff; 16 nodes")

    def test_gpus_are_workers(self):
        job, line = self.submit_advised("--nodes=2-8", "--gres=gpu:4", "--comment=stepcast:profile=alexnet-s;objective=throughput")
        self.assertEqual(job["NumNodes"], "2-8")
        self.assertRegex(line, r"--nodes=2-8 is kept: 8 nodes \d+/s")

    def test_nodes_of_several_workers_with_servers_are_asked_about_too(self):
        job, line = self.submit_advised("--nodes=1-4", "--gres=gpu:3", ADVICE)
        self.assertEqual(job["NumNodes"], "1-1")
        self.assertRegex(line, r"--nodes=1-4 is set to --nodes=1: 1 node \d+/s \d+% eff; 4 nodes \d+/s")

    def test_what_has_no_range_is_left_alone(self):
        for arguments, nodes in ((("--nodes=4",), "4-4"), *((size, size[0].partition("=")[2]) for size in FIXED_SIZES)):
            job, line = self.cluster.submit(*arguments, ADVICE)
            self.assert_unchanged(job, nodes)
            self.assertEqual(line, "")

    def test_a_job_without_a_profile_is_left_alone(self):
        job, line = self.cluster.submit("--nodes=1-16", "--comment=night run")
        self.assert_unchanged(job, "1-16")
        self.assertEqual(line, "")

    def test_doubt_is_silence(self):
        # Two regimes, which the administrator's log says.
        def is_logged():
            job, line = self.cluster.submit("--nodes=1-16", "--comment=stepcast:profile=vgg16-alike")
            self.assert_unchanged(job, "1-16")
            self.assertEqual(line, "")
            return "no advice: vgg16-alike is not sure enough: 2 nodes " in cluster_log(self.cluster)

        self.cluster.eventually(is_logged, "the log says why", pause=0.2)

    def test_a_wrong_profile_is_said_and_the_job_taken(self):
        job, line = self.submit_advised("--nodes=1-16", "--comment=stepcast:profile=resnet")
        self.assert_unchanged(job, "1-16")
        self.assertIn("sbatch: stepcast: no advice: ", line)
        self.assertIn("profiles/resnet", line)

    def test_hostile_comments_are_taken(self):
        for comment in ("stepcast:", "stepcast:profile=", "stepcast:profile=../../etc/passwd", "stepcast:profile=a;;", "stepcast:" + "x" * 1000,
                        "stepcast:profile=resnet50-16;objective=%s%n%s%n", "stepcast:profile='$(reboot)'", "stepcast:profile=\x1b[2J\n\n"):
            job, line = self.cluster.submit("--nodes=1-16", "--comment=" + comment)
            self.assert_unchanged(job, "1-16")
            self.assertIn("stepcast: no advice", line)
            self.assertLess(len(line), 400)
            self.assertNotIn("\x1b", line)

    def test_modifying_a_job_passes(self):
        job, _ = self.submit_advised("--nodes=1-16", ADVICE)
        done = self.cluster.run("scontrol", "update", f"JobId={job['JobId']}", "NumNodes=1-4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.cluster.job(job["JobId"])["NumNodes"], "1-4")


class AdviseTest(SlurmTest):
    settings = ""

    def test_links_inside_nodes_that_nobody_knows_are_asked_for(self):
        _, line = self.submit_advised("--nodes=1-4", "--gres=gpu:4", "--comment=stepcast:profile=alexnet-s")
        self.assertIn("add ;intra-bandwidth=300GB/s", line)

    def test_nothing_is_changed_and_both_are_told(self):
        job, line = self.submit_advised("--nodes=1-16", ADVICE)
        self.assertEqual(job["NumNodes"], "1-16")
        self.assertRegex(line, r"^sbatch: stepcast: --nodes=1-2 is advised instead of --nodes=1-16: 2 nodes ")
        self.assertRegex(job["AdminComment"], r"^stepcast: --nodes=1-2 is advised instead of --nodes=1-16: ")


class CliFilterTest(SlurmTest):
    """The table before submission, by cli_filter.lua in sbatch itself."""

    settings = ""
    options = ("CliFilterPlugins=cli_filter/lua",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(ROOT, "deploy/slurm/cli_filter.lua"), "rb") as script:
            cls.cluster.write("cli_filter.lua", script.read())
        cls.path = f"{os.path.dirname(os.environ['STEPCAST'])}:{os.environ['PATH']}"

    def submit(self, *arguments, **environment):
        return self.cluster.submit(*arguments, **{"PATH": self.path, "STEPCAST_SERVER": self.server.address, **environment})[1]

    def shown(self, *arguments, **environment):
        """The table's lines, without those of the plugin, which begin as sbatch's own."""
        return [line for line in self.submit(*arguments, **environment).splitlines() if line.startswith("stepcast: ")]

    def shown_soon(self, *arguments, **environment):
        """The same, once the plugin has it computed: the server then has it at once, but where a machine is too busy for half a second."""
        tables = []
        self.cluster.eventually(lambda: tables.append(self.shown(*arguments, **environment)) or tables[-1], f"there is a table with {arguments}", pause=0.2)
        return tables[-1]

    def test_the_table_is_shown(self):
        lines = self.shown_soon("--nodes=1-16", ADVICE)
        self.assertRegex(lines[0], r"^stepcast: 2 workers give 482\.5 examples/s, 1\.95 times one worker's")
        self.assertRegex("\n".join(lines), r"\nstepcast: ->        2       482\.5 ")
        self.assertTrue(self.shown_soon("--nodes=1-16", STEPCAST_PROFILE="resnet50-16"))

    def test_workers_are_those_of_the_nodes(self):
        for arguments in (("--gres=gpu:4",), ("--gpus-per-node=4",), ("--ntasks-per-node=4",)):
            job = ("--nodes=1-4", *arguments, "--comment=stepcast:profile=alexnet-s;objective=throughput;intra-bandwidth=10e9")
            self.assertRegex(self.shown_soon(*job)[0], r"^stepcast: 16 workers give .* the highest throughput of 4 to 16")

    def test_nodes_of_a_job_with_servers_are_numbers_of_workers_that_fill_them(self):
        text = "\n".join(self.shown_soon("--nodes=1-3", "--gres=gpu:4", ADVICE + ";objective=throughput"))
        self.assertRegex(text, r"^stepcast: \d+ workers? give .* the highest throughput of 4, 8 and 12")
        self.assertEqual([int(each) for each in re.findall(r"^stepcast: (?:->)? +(\d+) ", text, re.M)], [4, 8, 12])

    def test_what_is_asked_is_what_the_plugin_asks(self):
        # One that prints what it is asked, in place of the real one.
        self.cluster.write("stepcast", '#!/bin/sh\necho "$@"\n', 0o755)
        path = f"{self.cluster.folder}:{os.environ['PATH']}"
        for fields, asked in (
            *((f"objective=deadline={time};examples=9", f"--deadline {time}") for time in ("90m", "1h30m", "1.5h", "2d", "36h")),
            *((f"intra-bandwidth={rate}", f"--intra-bandwidth {rate}") for rate in ("300GB/s", "0.5TB/s", "4e-1TB/s", "600Gbit/s")),
            ("objective=efficiency=8e-1", "--min-efficiency 8e-1"),
        ):
            lines = self.shown_soon("--nodes=1-4", "--gres=gpu:4", f"{ADVICE};{fields}", PATH=path)
            self.assertIn(asked, lines[0])
        for size in FIXED_SIZES:
            self.assertEqual(self.shown(*size, ADVICE, PATH=path), [], size)

    def test_nothing_is_shown_where_nothing_is_asked_or_nobody_answers(self):
        for arguments, environment in (
            (("--nodes=4", ADVICE), {}),
            (("--nodes=1-16",), {}),
            (("--nodes=1-16", ADVICE), {"STEPCAST_SHOW": "0"}),
            (("--nodes=1-16", ADVICE), {"STEPCAST_SERVER": "127.0.0.1:1"}),
            (("--nodes=1-16", ADVICE), {"PATH": os.environ["PATH"]}),
            (("--nodes=1-16", "--comment=stepcast:profile=nobody"), {}),
            (("--nodes=1-16", ADVICE + ";objective=fast"), {}),
        ):
            self.assertEqual(self.shown(*arguments, **environment), [], (arguments, environment))

    def test_a_comment_runs_nothing(self):
        trap = self.cluster.path("trap")
        for text in (f"resnet50-16';touch {trap};'", f"$(touch {trap})", f"`touch {trap}`", f"a|touch${{IFS}}{trap}", f"resnet50-16;examples=1';touch {trap};'",
                     f"resnet50-16;objective=efficiency=0.8$(touch {trap})", f"resnet50-16;examples=$(touch {trap})", "resnet50-16;examples=--server=evil"):
            for environment in ({}, {"STEPCAST_PROFILE": text}):
                self.assertEqual(self.shown("--nodes=1-16", f"--comment=stepcast:profile={text}", **environment), [])
                self.assertEqual(self.shown("--nodes=1-16", **environment), [])
        self.assertFalse(os.path.exists(trap))


class AwayTest(unittest.TestCase):
    """Whatever the predictor does, jobs are taken as they are."""

    def setUp(self):
        if slurm_cluster.missing():
            self.skipTest(slurm_cluster.missing())

    def cluster(self, settings):
        cluster = slurm_cluster.Cluster("mode: set\n" + settings)
        self.addCleanup(cluster.close)
        return cluster

    def load(self, cluster, count, comment, nodes=(1, 16)):
        done = cluster.run(os.environ["STEPCAST_SUBMIT_LOAD"], str(count), comment, *map(str, nodes))
        self.assertEqual(done.returncode, 0, done.stderr + cluster.logs())
        return json.loads(done.stdout)

    def assert_taken(self, cluster, what):
        """Forty jobs are taken, unchanged."""
        plain = self.load(cluster, 40, "none")
        asked = self.load(cluster, 40, ADVICE.partition("=")[2])
        print(f"{what}: a job without a profile {plain}, with one {asked}", file=sys.stderr)
        self.assertEqual((asked["accepted"], asked["line"]), (40, ""))
        job, line = cluster.submit("--nodes=1-16", ADVICE)
        self.assertEqual((job["NumNodes"], line), ("1-16", ""))
        self.assertNotIn("AdminComment", job)

    def test_nobody_listens(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, and not listening
            cluster = self.cluster(f"server: 127.0.0.1:{taken.getsockname()[1]}\n")
            self.assert_taken(cluster, "down")
            self.assertIn("job_submit/stepcast: no advice: ", cluster.read("slurmctld.out"))

    def test_the_server_is_stopped(self):
        server = Server("--store", "memory")
        self.addCleanup(server.close)
        upload(server.address)
        cluster = self.cluster(f"server: {server.address}\n")
        server.process.send_signal(signal.SIGSTOP)
        try:
            self.assert_taken(cluster, "stopped")
            # Its end waits for nobody, either.
            cluster.stop_controller()
        finally:
            server.process.send_signal(signal.SIGCONT)
        self.assertIn("DEADLINE_EXCEEDED", cluster_log(cluster))
        # It is asked again when it is back; the controller, started anew, has forgotten nothing but its answers.
        cluster.start_controller()
        job, _ = submit_advised(cluster, "--nodes=1-16", ADVICE)
        self.assertEqual(job["NumNodes"], "1-2")

    def test_a_wrong_token(self):
        files = Files(self)
        server = Server("--store", "memory", "--tokens", files.tokens)
        self.addCleanup(server.close)
        token = os.path.join(files.folder, "token")
        files.write(token, "a-token-that-nobody-has\n")
        cluster = self.cluster(f"server: {server.address}\ntoken-file: {token}\n")
        self.assert_taken(cluster, "wrong token")
        self.assertIn("UNAUTHENTICATED", cluster_log(cluster))
        self.assertNotIn("a-token-that-nobody-has", cluster_log(cluster))

    def test_the_right_token_over_tls(self):
        files = Files(self)
        server = Server("--store", "memory", "--tokens", files.tokens, *files.tls())
        self.addCleanup(server.close)
        for role in ("writer", "reader"):
            files.write(os.path.join(files.folder, role), TOKENS[role])
        files.write(os.path.join(files.folder, "ca"), files.authority.root().decode())
        ca, writer, reader = (os.path.join(files.folder, name) for name in ("ca", "writer", "reader"))
        stepcast(server.address, "profile", "upload", os.path.join(ROOT, PROFILES["resnet50-16"]), "--id", "resnet50-16", "--tls-ca", ca, "--token-file", writer)
        cluster = self.cluster(f"server: {server.address}\ntls-ca: {ca}\ntoken-file: {reader}\nwait: 1s\n")
        job, _ = submit_advised(cluster, "--nodes=1-16", ADVICE)
        self.assertEqual(job["NumNodes"], "1-2")

    def test_wrong_settings_leave_jobs_alone_and_are_logged(self):
        cluster = self.cluster("mode: advise\n")
        self.assert_taken(cluster, "wrong settings")
        self.assertIn("there is no setting \"mode\", or it is given twice: no job gets advice", cluster_log(cluster))

    def test_two_hundred_submissions(self):
        """How many a second is printed; that each has its advice, and none waited for a simulation, is demanded."""
        server = Server("--store", "memory")
        self.addCleanup(server.close)
        upload(server.address)
        cluster = self.cluster(f"server: {server.address}\n")
        submit_advised(cluster, "--nodes=1-16", ADVICE)
        before = server.metric_after_calls("grpc_server_handled_total", grpc_method="RecommendWorkers")
        plain = self.load(cluster, 200, "none")
        advised = self.load(cluster, 200, ADVICE.partition("=")[2])
        for what, run in (("without a profile", plain), ("with advice", advised)):
            print(f"{what}: {run['accepted'] / run['seconds']:.0f} submissions a second, {run}", file=sys.stderr)
        self.assertEqual(advised["accepted"], 200)
        self.assertIn("is set to --nodes=1-2", advised["line"])
        # All from memory: the predictor heard of none.
        self.assertEqual(server.metric_after_calls("grpc_server_handled_total", grpc_method="RecommendWorkers"), before)


def cluster_log(cluster):
    return cluster.read("slurmctld.out")


if __name__ == "__main__":
    unittest.main()
