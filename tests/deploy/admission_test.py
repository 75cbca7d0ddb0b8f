"""The admission webhook as a process: golden reviews of every kind, hostile ones, its TLS, and the real kubectl in front of a stand-in API server."""

import copy
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
import warnings

from deployment import ROOT, component, container, environment, flags, seconds_of
from manifest_types import PACKAGES, faults, installed
from webhook import Webhook
from api_server import ApiServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from certificates import Authority  # noqa: E402
from contract import recommendation_pb2  # noqa: E402
from secured import TOKENS, Files  # noqa: E402
from stepcastd import PATIENCE_SECONDS, Server, eventually  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REVIEWS = os.path.join(HERE, "admission", "reviews")
OURS = "stepcast.dev/"
MAX_WARNING = 120


def golden():
    """name -> case, of every file."""
    cases = {}
    for name in sorted(os.listdir(REVIEWS)):
        with open(os.path.join(REVIEWS, name), encoding="utf-8") as file:
            cases[name.removesuffix(".json")] = json.load(file)
    return cases


def value_at(document, pointer):
    for key in pointer.split("/")[1:]:
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def patched(pairs):
    """What fast-json-patch makes of (object, patch) pairs."""
    cases = json.dumps([{"object": new, "patch": patch} for new, patch in pairs])
    done = subprocess.run(["node", os.path.join(HERE, "admission", "apply_patches.mjs")], input=cases, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def upload(server):
    """The profiles of the golden reviews: of parameter servers one that is certain and one that is not, and one of all-reduces."""
    for model in (["alexnet"], ["resnet50", "--all-reduce"], ["vgg16", "--variation", "0", "--id", "vgg16-alike"]):
        command = [os.environ["STEPCAST"], "--server", server.address, "profile", "zoo", *model, "--bandwidth", "10Gbit/s"]
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


class AdmissionCase(unittest.TestCase):
    """A class with one server, and a folder."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--store", "memory")
        cls.addClassCleanup(cls.server.close)
        upload(cls.server)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepcast-admission-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *arguments, server=None, **options):
        webhook = Webhook(self.folder, server or self.server.address, *arguments, **options)
        self.addCleanup(lambda: self.assertEqual(webhook.close(), 0, webhook.errors()))
        return webhook


class GoldenTest(AdmissionCase):
    def check_annotations(self, name, case, response, before, after):
        annotations = after["metadata"].get("annotations") or {}
        ours = {key.removeprefix(OURS): value for key, value in annotations.items() if key.startswith(OURS)}
        recommended = int(ours["recommended"])
        self.assertRegex(ours["throughput"], r"^\d+(\.\d+)? examples/s \(\d+(\.\d+)? to \d+(\.\d+)?\)$", name)
        curve = json.loads(ours["curve"])
        per_pod = case["expect"].get("pods_of", 1)
        self.assertEqual([point["workers"] for point in curve], sorted({point["workers"] for point in curve}), name)
        self.assertIn(recommended * per_pod, [point["workers"] for point in curve], name)
        self.assertTrue(all(0 < point["efficiency"] <= 1.5 and point["examples_per_second"] > 0 for point in curve), name)
        self.assertLess(len(ours["curve"]), 4096)
        self.assertTrue(ours["reason"], name)
        if "range" in case["expect"]:
            least, most = case["expect"]["range"]
            self.assertTrue(least <= recommended <= most, (name, recommended))
            self.assertEqual(int(ours["requested"].split(", of ")[1].split(" to ")[0]), least, name)
        self.assertEqual(response["auditAnnotations"]["recommended"], ours["recommended"])
        return recommended

    def check(self, name, case, response, after):
        expected = case["expect"]
        before = case["review"]["request"].get("object")
        self.assertIs(response["allowed"], True, name)
        self.assertEqual(response["uid"], case["review"]["request"]["uid"], name)
        for warning in response["warnings"]:
            self.assertRegex(warning, r"^stepcast: [ -~]+$", name)
            self.assertLessEqual(len(warning), MAX_WARNING, name)
        outcome = response.get("auditAnnotations", {}).get("outcome", "skipped")
        if expected["outcome"]:
            self.assertEqual(outcome, expected["outcome"], (name, response))
        if expected.get("silent"):
            self.assertEqual(response["warnings"], [], name)
        if "warning" in expected:
            self.assertRegex("\n".join(response["warnings"]), expected["warning"], name)
        if expected.get("bare"):
            self.assertEqual(response["patch"], [], name)
            return
        recommended = self.check_annotations(name, case, response, before, after)
        # Nothing but what is expected differs from what was sent.
        wanted = copy.deepcopy(before)
        for pointer, besides in expected["counts"].items():
            above, _, last = pointer.rpartition("/")
            value_at(wanted, above)[last] = recommended + besides
        if expected.get("kueue"):
            least = int(after["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"])
            # Kueue refuses a job that this does not hold for.
            self.assertTrue(0 < least < after["spec"]["parallelism"], name)
            self.assertEqual(after["metadata"]["annotations"]["kueue.x-k8s.io/job-completions-equal-parallelism"], "true")
            self.assertEqual(after["spec"]["parallelism"], after["spec"]["completions"])
        wanted["metadata"]["annotations"] = after["metadata"]["annotations"]
        self.assertEqual(after, wanted, name)
        kept = {key: value for key, value in (before["metadata"].get("annotations") or {}).items()}
        self.assertLessEqual(kept.items(), after["metadata"]["annotations"].items(), name)

    @unittest.skipUnless(installed(), "npm has not installed fast-json-patch: ./dev test does")
    def test_every_review_is_answered_as_its_file_says_and_again_the_same(self):
        webhook = self.start()
        cases = golden()
        self.assertGreaterEqual(len(cases), 45)
        responses = {name: webhook.review(case["review"]) for name, case in cases.items()}
        afters = dict(zip(cases, patched([(cases[name]["review"]["request"].get("object"), responses[name]["patch"]) for name in cases])))
        for name, case in cases.items():
            with self.subTest(name, about=case["about"]):
                self.check(name, case, responses[name], afters[name])
        # Asked about what came out, nothing more is changed.
        for name, case in cases.items():
            again = copy.deepcopy(case["review"])
            again["request"]["object"] = afters[name]
            with self.subTest(name, again=True):
                self.assertEqual(webhook.review(again)["patch"], [], name)
        # Dry runs and the old version of reviews are no others.
        self.assertEqual(responses["job_dry_run"]["patch"], responses["job_set"]["patch"])
        self.assertEqual(responses["job_review_v1beta1"], responses["job_set"])
        self.assertEqual(webhook.metric("stepcast_admission_reviews_total", kind="Job", outcome="set", dry_run="true"), 1)
        self.assertEqual(webhook.metric("stepcast_admission_reviews_total", kind="other"), 2)
        jobs = [after for name, after in afters.items() if name in ("job_set", "job_kueue", "job_work_queue", "job_advise", "job_deadline")]
        self.assertEqual(faults(jobs), [])
        self.assertNotEqual(faults([{**jobs[0], "spec": {**jobs[0]["spec"], "parallelism": "2"}}]), [])

    @unittest.skipUnless(installed() and shutil.which("kubectl") and shutil.which("jq"), "kubectl, jq or fast-json-patch is not installed")
    def test_kubectls_plugin_reads_the_same_counts_from_an_object_as_the_webhook(self):
        webhook = self.start()
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        os.symlink(os.path.join(ROOT, "deploy", "kubernetes", "kubectl-stepcast"), os.path.join(programs, "kubectl-stepcast"))
        # It is asked what the plugin tells of an object, not what is recommended.
        os.symlink(shutil.which("true"), os.path.join(programs, "stepcast"))
        compared = 0
        for name, case in golden().items():
            new = case["review"]["request"].get("object")
            if case["expect"].get("bare") or "name" not in new["metadata"]:
                continue  # kubectl reads no object that has no name
            ((after),) = patched([(new, webhook.review(case["review"])["patch"])])
            asked = (after["metadata"].get("annotations") or {}).get(OURS + "requested")
            if asked is None:
                continue
            done = subprocess.run(
                ["kubectl", "stepcast", "recommend", "-f", "-"],
                input=json.dumps(new), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
                env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": self.folder},
            )
            with self.subTest(name):
                self.assertEqual(done.returncode, 0, done.stderr)
                told = re.search(r", (\d+) to \d+ pods(?: of (\d+) workers)?(?:, now (\d+))?$", done.stdout.strip())
                self.assertIsNotNone(told, done.stdout)
                pods, least = re.match(r"(\d+), of (\d+) to", asked).groups()
                self.assertEqual((told[3] or "1", told[1], told[2] or "1"), (pods, least, str(case["expect"].get("pods_of", 1))))
                compared += 1
        self.assertGreaterEqual(compared, 25)

    def test_links_inside_pods_are_the_clusters_where_a_job_does_not_say(self):
        unknown, known = golden()["mpijob_unknown_links"]["review"], golden()["mpijob_slots"]["review"]
        first = self.start("--intra-bandwidth", "300e9")
        patch = first.review(unknown)["patch"]
        started = {rate: self.start("--intra-bandwidth", rate, authority=first.authority) for rate in ("300GB/s", "1MB/s")}
        self.assertEqual(started["300GB/s"].review(unknown)["patch"], patch)
        self.assertNotEqual(started["1MB/s"].review(unknown)["patch"], patch)
        # The annotation counts more than the flag.
        self.assertEqual(started["1MB/s"].review(known)["patch"], patch)

    def test_the_recommended_count_is_the_servers(self):
        webhook = self.start()
        constraints = recommendation_pb2.Constraints(min_workers=1, max_workers=8)
        request = recommendation_pb2.RecommendWorkersRequest(profile="profiles/alexnet", constraints=constraints)
        reply = self.server.predictions.RecommendWorkers(request)
        response = webhook.review(golden()["job_set"]["review"])
        self.assertEqual(int(response["auditAnnotations"]["recommended"]), reply.workers)
        self.assertNotEqual(reply.workers, 8)


class HostileTest(AdmissionCase):
    def review_of(self, new):
        review = copy.deepcopy(golden()["job_set"]["review"])
        review["request"]["object"] = new
        return review

    def test_objects_of_three_mebibytes_are_answered(self):
        webhook = self.start()
        new = golden()["job_set"]["review"]["request"]["object"]
        new["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {f"f:{i}": {} for i in range(1000)}}]
        new["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": f"VARIABLE_{i}", "value": "x" * 1000} for i in range(3100)]
        self.assertGreater(len(json.dumps(new)), 3 << 20)
        self.assertEqual(webhook.review(self.review_of(new))["auditAnnotations"]["outcome"], "set")

    def test_what_is_no_review_is_refused_and_others_are_answered(self):
        webhook = self.start("--max-review-bytes", str(4 << 20))
        good = golden()["job_set"]["review"]
        text = json.dumps(good).encode()
        deep = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":' + b'{"a":' * 500_000
        wide = json.dumps(self.review_of({"metadata": {"labels": {f"l{i}": "" for i in range(30_000)}}})).encode()
        for body, status, why in (
            (b"", 400, b"is not JSON"),
            (b"[]", 400, b"AdmissionReview"),
            (b"null", 400, b"AdmissionReview"),
            (text[:-1], 400, b"is not JSON from byte"),
            (text + b"x", 400, b"is not JSON"),
            (b"\xff\xfe" + text, 400, b"is not JSON"),
            (text.replace(b"AdmissionReview", b"AdmissionRevue"), 400, b"AdmissionRevue"),
            (text.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v9"), 400, b"admission.k8s.io/v9"),
            (text.replace(b'"uid"', b'"uuid"'), 400, b"has no request.uid"),
            (deep, 400, b"is nested deeper than 512"),
            (deep.replace(b'{"a":', b"["), 400, b"is nested deeper than 512"),
            (wide, 400, b"has too many values"),
            (b" " * (4 << 20) + text, 413, b"at most 4194304 bytes"),
        ):
            answered, _, said = webhook.request("POST", "/admit", body)
            self.assertEqual(answered, status, (body[:80], said))
            self.assertIn(why, said)
        for method, path, status in (("GET", "/admit", 405), ("PUT", "/admit", 405), ("GET", "/", 404), ("POST", "/", 404), ("POST", "/admit/..", 404)):
            self.assertEqual(webhook.request(method, path, text)[0], status, (method, path))
        self.assertEqual(webhook.request("GET", "/admit")[1]["Allow"], "POST")
        self.assertEqual(webhook.request("POST", "/admit", text, {"Content-Type": "text/yaml"})[0], 415)
        self.assertEqual(webhook.request("POST", "/admit", text, {"X": "y" * 20_000})[0], 431)
        # In chunks nobody knows the size before.
        self.assertEqual(webhook.request("POST", "/admit", (b" " * 65536 for _ in range(100)))[0], 413)
        self.assertEqual(webhook.review(good)["auditAnnotations"]["outcome"], "set")
        self.assertEqual(webhook.metric("stepcast_admission_http_responses_total", code="413"), 2)

    def test_objects_of_any_shape_are_admitted(self):
        webhook = self.start()
        labels = {"stepcast.dev/profile": "alexnet"}
        for new in (None, 1, [], {}, {"metadata": 1}, {"metadata": {"labels": labels, "annotations": 1}}, {"metadata": {"labels": labels}, "spec": [1]}):
            response = webhook.review(self.review_of(new))
            self.assertIs(response["allowed"], True, new)

    def test_slow_and_idle_connections_hold_up_nobody(self):
        webhook = self.start("--max-connections", "8")
        host, _, port = webhook.address.rpartition(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(6)]
        try:
            self.assertEqual(webhook.review(golden()["job_set"]["review"])["auditAnnotations"]["outcome"], "set")
            begun = webhook.context().wrap_socket(idle[0], server_hostname="localhost")
            self.addCleanup(begun.close)
            begun.sendall(b"POST /admit HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            self.assertEqual(webhook.review(golden()["job_set"]["review"])["auditAnnotations"]["outcome"], "set")
            # They are given up on.
            idle[1].settimeout(PATIENCE_SECONDS)
            self.assertEqual(idle[1].recv(1), b"")
            begun.settimeout(PATIENCE_SECONDS)
            self.assertEqual(begun.recv(1), b"")
        finally:
            for connection in idle:
                connection.close()


class PredictorTest(AdmissionCase):
    """What becomes of reviews while stepcastd does not answer."""

    def outcome(self, webhook, name="job_set"):
        response = webhook.review(golden()[name]["review"])
        self.assertIs(response["allowed"], True)
        self.assertEqual(response["patch"], [])
        return response

    def test_away(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            webhook = self.start(server=f"127.0.0.1:{unused.getsockname()[1]}", wait="1")
            first = self.outcome(webhook)
            self.assertIn(first["auditAnnotations"]["outcome"], ("unavailable", "late"))
            self.assertRegex(first["warnings"][0], r"^stepcast: spec\.parallelism stays: ")
            eventually(lambda: self.outcome(webhook)["auditAnnotations"]["outcome"] == "unavailable", "the breaker opens")
            # A suggestion that cannot be made is none of its user's business.
            self.assertEqual(self.outcome(webhook, "job_advise")["warnings"], [])
            self.assertEqual(webhook.metric("stepcast_admission_advice_breaker_open"), 1)
            self.assertEqual(webhook.page("/readyz")[0], 200)
            eventually(lambda: "no advice" in webhook.errors(), "a line in the log")
            self.assertEqual(webhook.errors().count("no advice"), 1)

    def test_stopped_and_back(self):
        server = Server("--store", "memory")
        self.addCleanup(server.close)
        upload(server)
        webhook = self.start(server=server.address, wait="0.3")
        eventually(lambda: webhook.review(golden()["job_set"]["review"])["patch"], "an answer")
        server.process.send_signal(signal.SIGSTOP)
        try:
            # What is known is known; what is not is waited for, and no longer than that.
            self.assertTrue(webhook.review(golden()["job_set"]["review"])["patch"])
            self.assertEqual(self.outcome(webhook, "job_bounds")["auditAnnotations"]["outcome"], "late")
        finally:
            server.process.send_signal(signal.SIGCONT)

    def test_known_by_a_token_over_tls_which_may_change(self):
        files = Files(self)
        server = Server("--store", "memory", *files.tls(), "--tokens", files.tokens)
        self.addCleanup(server.close)
        token = os.path.join(self.folder, "token")
        Files.write(token, "a-token-that-nobody-has\n")
        address = server.address.replace("127.0.0.1", "localhost")
        root = files.authority.pair.certificate
        webhook = self.start("--server-ca", root, "--server-token-file", token, server=address)
        refused = self.outcome(webhook)
        self.assertEqual(refused["auditAnnotations"]["outcome"], "unavailable")
        self.assertNotIn("token", " ".join(refused["warnings"]))
        Files.write(token, TOKENS["reader"] + "\n")
        webhook.reload()
        eventually(lambda: "credentials reloaded" in webhook.errors(), "the token is read again")
        # The reader is let in, and nobody has stored that profile here.
        known = webhook.review(golden()["job_set"]["review"])
        self.assertEqual(known["auditAnnotations"]["outcome"], "wrong")
        self.assertIn("no profile", known["warnings"][0])


class TlsTest(AdmissionCase):
    def handshake(self, webhook, **changes):
        context = webhook.context(changes.pop("root", None), changes.pop("pair", None))
        for name, value in changes.items():
            setattr(context, name, value)
        host, _, port = webhook.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                # Where a client's certificate is missing, TLS 1.3 says so only now.
                if not secure.recv(1):
                    raise ssl.SSLError("closed")
                return secure.version(), secure.getpeercert()["serialNumber"]

    def test_only_over_tls_of_today(self):
        webhook = self.start()
        self.assertEqual(self.handshake(webhook)[0], "TLSv1.3")
        self.assertEqual(self.handshake(webhook, maximum_version=ssl.TLSVersion.TLSv1_2)[0], "TLSv1.2")
        old = webhook.context()
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        host, _, port = webhook.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as plain, self.assertRaises((ssl.SSLError, OSError)):
            old.wrap_socket(plain, server_hostname="localhost")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as plain:
            plain.sendall(b"GET /admit HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertNotIn(b"HTTP", plain.recv(1024))
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.handshake(webhook, root=Authority(self.folder, "stranger").pair.certificate)
        self.assertEqual(webhook.review(golden()["job_set"]["review"])["auditAnnotations"]["outcome"], "set")

    def test_with_a_client_authority_only_its_clients_come_in(self):
        clients = Authority(self.folder, "clients")
        webhook = self.start("--tls-client-ca", clients.pair.certificate)
        good = clients.sign("api-server", "kube-apiserver")
        self.assertTrue(self.handshake(webhook, pair=good))
        for pair in (None, Authority(self.folder, "others").sign("api-server", "kube-apiserver"), clients.sign("late", "kube-apiserver", end="20210101000000Z")):
            with self.assertRaises((ssl.SSLError, OSError)):
                self.handshake(webhook, pair=pair)
        review = golden()["job_set"]["review"]
        self.assertTrue(webhook.review(review, context=webhook.context(pair=good))["patch"])

    def test_a_renewed_certificate_is_taken_up_and_a_bad_one_is_not(self):
        webhook = self.start("--reload-seconds", "0.2")
        first = self.handshake(webhook)[1]
        second = webhook.authority.sign_server("second")
        webhook.use(second)
        eventually(lambda: self.handshake(webhook)[1] != first, "the new certificate is served")
        new = self.handshake(webhook)[1]
        # Half a pair, then one that has expired.
        with open(webhook.certificate, "w", encoding="utf-8") as file:
            file.write("no certificate")
        eventually(lambda: "credentials not reloaded" in webhook.errors(), "it is found to be none")
        self.assertEqual(self.handshake(webhook)[1], new)
        webhook.use(webhook.authority.sign_server("expired", end="20210101000000Z"))
        eventually(lambda: "expired at" in webhook.errors(), "it is found to have expired")
        self.assertEqual(self.handshake(webhook)[1], new)
        self.assertEqual(webhook.metric("stepcast_reloads_total", outcome="ok"), 1)
        self.assertGreaterEqual(webhook.metric("stepcast_reloads_total", outcome="failed"), 2)
        self.assertEqual(webhook.page("/readyz")[0], 200)

    def refusal(self, *arguments):
        done = subprocess.run([os.environ["STEPCAST_ADMISSION"], *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, stdin=subprocess.DEVNULL)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_it_does_not_start_without_what_it_needs(self):
        authority = Authority(self.folder, "authority")
        pair = authority.sign_server()
        tls = ["--tls-cert", pair.certificate, "--tls-key", pair.key]
        self.assertEqual(self.refusal(), (2, "stepcast-admission: --tls-cert: is required: Kubernetes calls webhooks over TLS alone\n"))
        status, said = self.refusal(*tls, "--listen", "0.0.0.0:0")
        self.assertEqual(status, 2)
        self.assertIn("anybody might ask", said)
        for arguments, status, why in (
            (["--tls-cert", pair.certificate, "--tls-key", authority.pair.key], 1, "is not the key of the certificate"),
            (["--tls-cert", "/nowhere", "--tls-key", pair.key], 1, "cannot be read"),
            ([*tls, "--server-token-file", "/nowhere"], 1, "cannot be read"),
            ([*tls, "--wait-seconds", "0"], 2, "--wait-seconds"),
            ([*tls, "--max-pending-bytes", "1024"], 2, "is below --max-review-bytes"),
            ([*tls, "--no-such-flag"], 2, "--no-such-flag"),
            ([*tls, "--backup-to", "x"], 2, "--backup-to"),
        ):
            answered, said = self.refusal(*arguments)
            self.assertEqual(answered, status, (arguments, said))
            self.assertIn(why, said)
        os.chmod(pair.key, 0o644)
        self.assertIn("every user of the system may use it", self.refusal(*tls)[1])


class SettingsTest(unittest.TestCase):
    """The manifests' flags and variables are the webhook's, and it accepts their values."""

    def test_the_deployments_settings_are_accepted(self):
        (deployment,) = component("admission", "deployment.yaml")
        (patch,) = component("admission-tls", "called_over_tls.yaml")
        (spec,) = deployment["spec"]["template"]["spec"]["containers"]
        (tls,) = patch["spec"]["template"]["spec"]["containers"]
        self.assertEqual(spec["command"], ["stepcast-admission"])
        with tempfile.TemporaryDirectory() as folder:
            pair = Authority(folder, "authority").sign_server()
            Files.write(os.path.join(folder, "token"), "0123456789abcdef")
            places = {"/etc/stepcast/tls/tls.crt": pair.certificate, "/etc/stepcast/tls/tls.key": pair.key}
            places |= {"/etc/stepcast/client/ca.crt": pair.certificate, "/etc/stepcast/client/token": os.path.join(folder, "token")}
            arguments = [f"{name}={places.get(value, value)}" for name, value in flags(spec["args"]).items()]
            self.assertEqual(len(arguments), len(spec["args"]))
            variables = {name: places.get(value, value) for name, value in {**environment(spec["env"]), **environment(tls["env"])}.items()}
            command = [os.environ["STEPCAST_ADMISSION"], "--check-config", *arguments]
            done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
            print_out = subprocess.run([*command[:1], "--print-config", *arguments], env={**os.environ, **variables}, capture_output=True, text=True).stdout
        for name in variables:
            self.assertIn(f"# {name}", print_out)
        grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        self.assertGreater(grace, 2 + seconds_of(variables["STEPCAST_DRAIN_DELAY"]) + seconds_of(variables["STEPCAST_DRAIN_TIMEOUT"]))

    def test_every_flag_is_in_the_help_and_the_readme_names_only_those(self):
        usage = subprocess.run([os.environ["STEPCAST_ADMISSION"], "--help"], capture_output=True, text=True, check=True).stdout
        self.assertIn("STEPCAST_TLS_CERT", usage)
        self.assertNotIn("--backup-to", usage)


@unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
class KubectlTest(AdmissionCase):
    """What a user sees: the real kubectl, a stand-in API server that keeps the real MutatingWebhookConfiguration, and the real webhook."""

    def setUp(self):
        super().setUp()
        self.cluster = Authority(self.folder, "cluster")
        (configuration,) = component("admission", "webhook.yaml")
        (self.configuration,) = configuration["webhooks"]

    def start_asked(self, *names):
        """A webhook that has been asked about these before, so that an answer in the API server's two seconds is no question of this machine's load."""
        webhook = self.start()
        for name in names:
            webhook.review(golden()[name]["review"])
        return webhook

    def api(self, webhook_address, authority):
        api = ApiServer(self.cluster.sign_server("api"), self.configuration, webhook_address, authority)
        self.addCleanup(api.close)
        return api

    def kubectl(self, api, *arguments, new=None):
        """(stdout, stderr) of a kubectl that succeeds."""
        home = os.path.join(self.folder, "home")
        os.makedirs(home, exist_ok=True)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": api.url, "certificate-authority": self.cluster.pair.certificate}}],
            "users": [{"name": "u", "user": {"token": "a-token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
            "current-context": "x",
        }
        path = os.path.join(self.folder, "kubeconfig.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        done = subprocess.run(
            ["kubectl", "--kubeconfig", path, *arguments],
            input=json.dumps(new) if new else None,
            env={**os.environ, "HOME": home, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def create(self, api, name, *arguments):
        new = golden()[name]["review"]["request"]["object"]
        return self.kubectl(api, "create", "--validate=false", "-f", "-", *arguments, new=new)

    def test_every_kind_is_created_with_the_counts_and_the_warning_is_printed(self):
        kinds = {"job_set": "jobs", "pytorchjob_set": "pytorchjobs", "mpijob_set": "mpijobs", "trainjob_set": "trainjobs", "jobset_set": "jobsets"}
        webhook = self.start_asked(*kinds)
        api = self.api(webhook.address, webhook.authority.pair.certificate)
        for name, plural in kinds.items():
            said, warned = self.create(api, name)
            self.assertIn("/train created", said)
            self.assertRegex(warned, r"^Warning: stepcast: spec\.\S+ \d+ -> \d+: \d+(\.\d+)? examples/s \(\d+ % efficient\)")
            stored = next(new for key, new in api.objects.items() if key[2] == plural)
            pointer, besides = next(iter(golden()[name]["expect"]["counts"].items()))
            self.assertEqual(value_at(stored, pointer), int(stored["metadata"]["annotations"][OURS + "recommended"]) + besides)
        self.assertEqual(api.calls, ["answered"] * 5)
        printed, _ = self.kubectl(api, "get", "job", "train", "-o", "jsonpath={.metadata.annotations}")
        self.assertIn("recommended", printed)

    def test_a_dry_run_shows_what_would_be_and_stores_nothing(self):
        webhook = self.start_asked("job_set")
        api = self.api(webhook.address, webhook.authority.pair.certificate)
        shown, warned = self.create(api, "job_set", "--dry-run=server", "-o", "json")
        self.assertRegex(warned, "^Warning: stepcast: spec.parallelism 8 -> ")
        self.assertLess(json.loads(shown)["spec"]["parallelism"], 8)
        self.assertEqual(api.objects, {})

    def test_an_unlabelled_job_is_not_asked_about(self):
        webhook = self.start()
        api = self.api(webhook.address, webhook.authority.pair.certificate)
        self.assertEqual(self.create(api, "job_no_label")[1], "")
        self.assertEqual(api.calls, [])

    def test_a_webhook_that_is_down_or_has_a_wrong_certificate_is_ignored(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            api = self.api(f"127.0.0.1:{unused.getsockname()[1]}", self.cluster.pair.certificate)
            said, warned = self.create(api, "job_set")
        self.assertIn("created", said)
        self.assertEqual(warned, "")
        self.assertEqual(next(iter(api.objects.values()))["spec"]["parallelism"], 8)
        webhook = self.start()
        api = self.api(webhook.address, self.cluster.pair.certificate)
        self.assertEqual(self.create(api, "job_set")[1], "")
        self.assertIn("CERTIFICATE_VERIFY_FAILED", api.calls[0])

    def test_a_webhook_that_is_stopped_costs_its_two_seconds_and_no_more(self):
        webhook = self.start()
        api = self.api(webhook.address, webhook.authority.pair.certificate)
        webhook.process.send_signal(signal.SIGSTOP)
        try:
            self.assertIn("created", self.create(api, "job_set")[0])
        finally:
            webhook.process.send_signal(signal.SIGCONT)
        self.assertIn("timed out", api.calls[0])


if __name__ == "__main__":
    unittest.main()
