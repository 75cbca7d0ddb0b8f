"""`stepcast job`, as a user runs it: the answers and errors of the commands that ask in a call, through restarts and endings."""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import unittest
import uuid

from optimize_test import training
from pipeline_test import layers
from sample import recorded, small
from stepcastd import PATIENCE_SECONDS, Server, ServerTest, eventually

# Some seconds of simulation: under way when the next thing happens, whatever the machine does.
LONG = ("--workers", "16", "--steps", "15000", "--replications")
NAME = r"operations/o-[0-9a-f]{16}-[0-9a-f]{16}"


def comparable(text):
    """The JSON of a reply, byte for byte, without what tells one computation of it from another."""
    return re.sub(r'"(engineSeconds|cached)": [^,\n]*', "", text)


class JobCommandTest(ServerTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="stepcast-jobs-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.small = self.write("small.json", small())
        self.jobs = self.write("jobs.json", {"jobs": [{"id": "a", "profile": self.small}, {"id": "b", "profile": self.small}], "capacity": {"workers": 4}})

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        return path

    def begin(self, *arguments):
        command = [os.environ["STEPCAST"], "--server", self.server.address, *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_program(self, *arguments):
        """(exit status, standard output, standard error)."""
        process = self.begin(*arguments)
        out, errors = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, out, errors

    def done(self, *arguments):
        status, out, errors = self.run_program(*arguments)
        self.assertEqual(status, 0, f"{arguments}: {errors}")
        return out

    def start(self, *arguments):
        name = self.done("job", "start", *arguments).strip()
        self.assertRegex(name, f"^{NAME}$")
        return name

    def refused(self, *arguments):
        status, out, errors = self.run_program(*arguments)
        self.assertEqual(status, 1, f"{arguments}: {out}{errors}")
        return errors

    def state(self, name):
        return json.loads(self.done("job", "get", name, "--output", "json"))["metadata"]["state"]


class ComputedJobTest(JobCommandTest):
    def questions(self):
        return {
            "predict": ["predict", self.small, "--workers", "1-3", "--steps", "200", "--seed", "7", "--bandwidth", "1Gbit/s"],
            "recommend": ["recommend", self.small, "--max-workers", "3", "--steps", "100"],
            "order": ["order", self.small, "--method", "tac", "--method", "graph", "--steps", "100"],
            "allocate": ["allocate", self.jobs, "--steps", "100"],
            "compare": ["compare", self.small, "--workers", "1-2", "--steps", "100"],
            "diagnose": ["diagnose", self.small, "--workers", "2", "--steps", "100"],
            "optimize": ["optimize", self.write("collectives.json", training()), "--workers", "2", "--steps", "60"],
            "layout": ["layout", self.write("layers.json", layers(4)), "--devices", "4", "--memory", "80GB", "--micro-batches", "8"],
        }

    def test_a_job_prints_what_the_call_prints_byte_for_byte(self):
        for name, question in self.questions().items():
            with self.subTest(name):
                table, answer = self.done(*question), self.done(*question, "--output", "json")
                self.assertEqual(comparable(self.done("job", "start", *question, "--wait", "--output", "json")), comparable(answer))
                job = self.start(*question)
                self.assertEqual(self.done("job", "wait", job), table)
                self.assertEqual(comparable(self.done("job", "wait", job, "--output", "json")), comparable(answer))
                got = self.done("job", "get", job)
                self.assertTrue(got.endswith("\n\n" + table), got)
                self.assertIn("state      succeeded\n", got)

    def test_get_tells_how_far_it_is_and_holds_the_reply(self):
        question = self.questions()["predict"]
        job = self.start(*question)
        self.done("job", "wait", job)
        operation = json.loads(self.done("job", "get", job.removeprefix("operations/"), "--output", "json"))
        self.assertEqual((operation["name"], operation["done"]), (job, True))
        metadata = operation["metadata"]
        self.assertEqual((metadata["method"], metadata["state"], metadata["attempts"]), ("PredictThroughput", "SUCCEEDED", 1))
        self.assertLessEqual(metadata["createTime"], metadata["endTime"])
        answer = json.loads(self.done(*question, "--output", "json"))
        self.assertEqual(operation["response"]["predictions"], answer["predictions"])

    def test_a_start_that_is_waited_for_says_its_name_and_nothing_else_beside(self):
        question = ["order", self.small, "--method", "tac", "--transfers", "1", "--save-priorities", os.path.join(self.folder, "priorities")]
        status, out, errors = self.run_program("job", "start", *question, "--wait")
        self.assertEqual((status, out), (0, self.done(*question)))
        self.assertRegex(errors, f"^started: {NAME}\n$")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "priorities")))

    def test_a_job_fails_as_its_call_does(self):
        for question in (
            ["recommend", self.write("bad.json", small(batch_size=-1))],
            ["predict", self.small, "--workers", "1", "--steps", "-1"],
        ):
            with self.subTest(question):
                expected = self.refused(*question)
                job = self.start(*question)
                typed = expected
                # Flags are named where they were typed.
                expected = expected.replace("--steps:", "options.steps_per_worker:")
                self.assertEqual(self.refused("job", "wait", job), expected)
                status, out, errors = self.run_program("job", "get", job)
                self.assertEqual((status, errors), (1, expected))
                self.assertIn("state      failed\n", out)
                self.assertRegex(self.refused("job", "start", *question, "--wait"), f"^started: {NAME}\n{re.escape(typed)}$")

    def test_a_job_on_a_profile_that_is_not_there_is_refused_as_its_call_is(self):
        for command in ("predict", "recommend", "order", "compare", "diagnose", "optimize"):
            self.assertEqual(self.refused("job", "start", command, "nobody", "--wait"), self.refused(command, "nobody"))

    def test_what_runs_is_cancelled_and_forgotten(self):
        job = self.start("predict", self.write("recorded.json", recorded()), *LONG, "50")
        eventually(lambda: self.state(job) == "RUNNING", "the job runs")
        self.assertIn("OPERATION_NOT_DONE", self.refused("job", "delete", job))
        waiting = self.begin("job", "wait", job)
        eventually(lambda: self.server.metric("grpc_server_started_total", grpc_method="WaitOperation") == 1, "somebody waits")
        self.assertEqual(self.done("job", "cancel", job), f"asked to end: {job}\n")
        _, errors = waiting.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(waiting.returncode, 1)
        self.assertIn("error: CANCELLED: CANCELLED: ", errors)
        self.assertEqual(self.done("job", "cancel", job, "--output", "json"), "{}\n", "what is done stays as it is")
        self.assertEqual(self.done("job", "delete", job), f"deleted: {job}\n")
        self.assertIn("OPERATION_NOT_FOUND", self.refused("job", "get", job))

    def test_who_waits_is_answered_through_a_restart(self):
        question = ["predict", self.write("recorded.json", recorded()), *LONG, "4", "--output", "json"]
        expected = self.done(*question, "--timeout", f"{PATIENCE_SECONDS}s")
        self.server.kill()
        # The same address again, as behind a name.
        self.server.listen = self.server.address
        self.server.start()
        waiting = self.begin("job", "start", *question, "--wait")
        started = waiting.stderr.readline()
        self.assertRegex(started, f"^started: {NAME}\n$")
        job = started.split()[1]
        eventually(lambda: self.server.metric("grpc_server_started_total", grpc_method="WaitOperation") == 1, "somebody waits")
        eventually(lambda: self.state(job) == "RUNNING", "the job runs")
        self.server.kill()
        self.server.start()
        out, errors = waiting.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(waiting.returncode, 0, errors)
        self.assertEqual(comparable(out), comparable(expected))
        self.assertEqual(json.loads(self.done("job", "get", job, "--output", "json"))["metadata"]["attempts"], 2)


class QueuedJobTest(JobCommandTest):
    """On a server that computes none, what is started waits."""

    flags = ("--max-running-operations", "0")

    def queue(self, *arguments):
        return self.start("predict", self.small, *arguments)

    def test_gives_up_waiting_in_time_and_the_job_goes_on(self):
        job = self.queue()
        errors = self.refused("job", "wait", job, "--timeout", "4s")
        self.assertIn(f"error: DEADLINE_EXCEEDED: JOB_NOT_DONE: {job} ", errors)
        self.assertIn("JOB_NOT_DONE", self.refused("job", "start", "predict", self.small, "--wait", "--timeout", "4s"))
        self.assertEqual(self.state(job), "QUEUED")
        self.assertIn("state      queued\n", self.done("job", "get", job))

    def test_a_cancelled_job_has_an_error_and_status_1(self):
        job = self.queue()
        self.done("job", "cancel", job)
        status, out, errors = self.run_program("job", "get", job, "--output", "json")
        self.assertEqual((status, json.loads(out)["metadata"]["state"]), (1, "JOB_CANCELLED"))
        self.assertIn("error: CANCELLED: CANCELLED: ", errors)
        self.assertEqual(self.refused("job", "wait", job), errors)

    def test_a_request_id_starts_one_job(self):
        request_id = str(uuid.uuid4())
        first = self.queue("--request-id", request_id)
        self.assertEqual(self.queue("--request-id", request_id), first)
        self.assertIn("REQUEST_ID_REUSED", self.refused("job", "start", "predict", self.small, "--workers", "2", "--request-id", request_id))
        self.assertIn("--request-id", self.refused("job", "start", "predict", self.small, "--request-id", "no-uuid"))
        self.assertNotEqual(self.queue(), self.queue())

    def test_lists_page_by_page_or_all(self):
        names = [self.queue() for _ in range(3)]
        listed = lambda *flags: json.loads(self.done("job", "list", *flags, "--output", "json"))
        page = listed("--page-size", "2")
        rest = listed("--page-size", "2", "--page-token", page["nextPageToken"])
        self.assertEqual([job["name"] for job in [*page["operations"], *rest["operations"]]], names)
        self.assertEqual((len(rest["operations"]), rest["nextPageToken"]), (1, ""))
        self.assertEqual([job["name"] for job in listed()["operations"]], names)
        table = self.done("job", "list", "--page-size", "2")
        self.assertIn(f"next page: --page-token {page['nextPageToken']}\n", table)
        self.assertEqual([line.split()[:3] for line in self.done("job", "list").splitlines()[1:]], [[name, "PredictThroughput", "queued"] for name in names])
        self.assertIn("--page-token", self.refused("job", "list", "--page-token", "invented"))

    def test_unknown_names_are_refused_by_the_server_and_bad_ones_here(self):
        for command in ("get", "wait", "cancel", "delete"):
            with self.subTest(command):
                self.assertIn("error: NOT_FOUND: OPERATION_NOT_FOUND: ", self.refused("job", command, "o-none"))
                for bad in ("profiles/a", "operations/", "UPPER"):
                    status, _, errors = self.run_program("job", command, bad)
                    self.assertEqual((status, f'error: "{bad}" cannot be the name of a job' in errors), (2, True), errors)

    def test_wrong_usage_is_status_2_and_starts_nothing(self):
        for arguments in (
            ["job"],
            ["job", "start"],
            ["job", "start", "trace", self.small],
            ["job", "start", "predict"],
            ["job", "start", "predict", self.small, "--plot"],
            ["job", "start", "predict", self.small, "--wait", "--plot", "--output", "json"],
            ["job", "start", "order", self.small, "--save-priorities", os.path.join(self.folder, "p")],
            ["job", "start", "predict", "no such file"],
            ["job", "get"],
            ["job", "wait", "o-1", "--timeout", "soon"],
            ["job", "list", "--page-size", "many"],
        ):
            with self.subTest(arguments):
                status, _, errors = self.run_program(*arguments)
                self.assertEqual(status, 2, errors)
        for arguments in (["job", "start", "predict", self.small], ["job", "list"], ["job", "get", "o-1"]):
            local = subprocess.run([os.environ["STEPCAST"], "--local", *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            self.assertEqual((local.returncode, "jobs need a server" in local.stderr), (2, True), local.stderr)
        self.assertEqual(json.loads(self.done("job", "list", "--output", "json"))["operations"], [])

    def test_a_server_that_is_gone_is_status_1(self):
        self.server.kill()
        for arguments in (["start", "predict", self.small], ["get", "o-1"], ["wait", "o-1"], ["list"], ["cancel", "o-1"], ["delete", "o-1"]):
            with self.subTest(arguments):
                self.assertIn("error: UNAVAILABLE: ", self.refused("job", *arguments))
        self.server.start()


class TokenTest(unittest.TestCase):
    def test_a_job_is_started_with_the_token_of_a_writer_only(self):
        with tempfile.TemporaryDirectory(prefix="stepcast-jobs-") as folder:
            path = lambda name: os.path.join(folder, name)
            rows = []
            for role in ("reader", "writer"):
                with open(os.open(path(role), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                    file.write(f"token-of-a-{role}\n")
                rows.append(f"- {{name: {role}, role: {role}, sha256: {hashlib.sha256(f'token-of-a-{role}'.encode()).hexdigest()}}}\n")
            with open(os.open(path("tokens.yaml"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                file.writelines(rows)
            with open(path("small.json"), "w", encoding="utf-8") as file:
                json.dump(small(), file)
            server = Server("--tokens", path("tokens.yaml"))
            self.addCleanup(server.close)

            def start(role):
                command = [os.environ["STEPCAST"], "--server", server.address, "--token-file", path(role), "job", "start", "predict", path("small.json")]
                return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)

            self.assertRegex(start("writer").stdout, f"^{NAME}\n$")
            refused = start("reader")
            self.assertEqual((refused.returncode, "error: PERMISSION_DENIED: ROLE_TOO_LOW: " in refused.stderr), (1, True), refused.stderr)


if __name__ == "__main__":
    unittest.main()
