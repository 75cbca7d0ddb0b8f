"""Reports: the page on the server's HTTP port and who may see it, the same page by the command line, and what a browser makes of it."""

import concurrent.futures
import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from compare_test import ALL_REDUCE
from contract import diagnosis_pb2, json_format, prediction, profile_pb2, recommendation_pb2, scenario_pb2, store
from layout_test import with_memory
from pipeline_test import layers
from sample import message, recorded, small
from secured import TOKENS, SecuredTest
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = os.path.join(HERE, "../data/ddp_sweep/resnet50_s/ranks-w3")
STEPCAST = os.environ["STEPCAST"]
BASE = "/report/profiles/"
MAX_BYTES = 3_000_000
# Bounds of the work of drawing the page and all its plots, which is the same on every machine.
MAX_LAYOUTS = 20
MAX_NODES = 12_000


def ask(server, path, method="GET", host=None, headers=()):
    """(status, headers, text) of a request, with nothing added or normalised."""
    connection = http.client.HTTPConnection(*server.http_address.rsplit(":", 1), timeout=PATIENCE_SECONDS)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or server.http_address)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read().decode()
    finally:
        connection.close()


def bearer(token):
    return [("Authorization", f"Bearer {token}")]


def data_of(page):
    """What a page shows."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def as_json(reply):
    """A reply as pages hold it: without what may differ the next time."""
    found = json_format.MessageToDict(reply)
    found.pop("simulation", None)
    return found


def without_statistics(data):
    # Who was asked, and when.
    data.pop("command")
    data.pop("made")
    for subject in data["subjects"]:
        for reply in subject.values():
            if isinstance(reply, dict):
                reply.pop("simulation", None)
    return data


def stepcast(*arguments):
    return subprocess.run([STEPCAST, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS * 4)


def upload(server, profile, name):
    server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(profile), profile_id=name))


class PageTest(ServerTest):
    flags = ("--report", "--store", "memory", "--max-report-seconds", str(PATIENCE_SECONDS))

    def page(self, path):
        status, headers, text = ask(self.server, BASE + path)
        self.assertEqual(status, 200, text[:500])
        return headers, text

    def test_its_numbers_are_those_of_the_calls(self):
        for profile, name in ((small(), "servers"), (ALL_REDUCE, "reduces")):
            upload(self.server, profile, name)
            counts = [1, 2, 3, 5]
            _, text = self.page(f"{name}?workers=1-3,5")
            (subject,) = data_of(text)["subjects"]
            source = {"profile": f"profiles/{name}"}
            predicted = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(**source, worker_counts=counts, series_points=40))
            for each in predicted.predictions:
                if each.HasField("collectives"):
                    del each.collectives.collectives[:]
            expected = as_json(predicted)
            self.assertEqual({key: value for key, value in subject["prediction"].items() if key != "simulation"}, expected)
            constraints = recommendation_pb2.Constraints(min_workers=1, max_workers=5)
            recommended = self.server.predictions.RecommendWorkers(recommendation_pb2.RecommendWorkersRequest(**source, constraints=constraints))
            self.assertEqual(subject["recommendation"]["reason"], recommended.reason)
            self.assertEqual(subject["recommendation"]["workers"], recommended.workers)
            self.assertEqual(subject["missing"], {} if name == "servers" else subject["missing"])
            self.assertEqual(subject["timeline"]["workers"], recommended.workers)
            self.assertIn("models", subject)
            scenario = scenario_pb2.Scenario(workers=recommended.workers)
            diagnosed = self.server.predictions.DiagnoseJob(diagnosis_pb2.DiagnoseJobRequest(**source, scenario=scenario))
            self.assertEqual(subject["diagnosis"]["path"], as_json(diagnosed)["path"])
            self.assertEqual([each["ratio"] for each in subject["diagnosis"].get("whatIfs", [])], [each.ratio for each in diagnosed.what_ifs])
            self.assertIn("orders" if name == "servers" else "tuning", subject)
            # The batch of one worker, shared by all: strong scaling.
            batch = subject["profile"]["batchSize"]
            shared = scenario_pb2.Scenario(change=scenario_pb2.JobChange(global_batch_size=batch))
            dividing = [count for count in counts if batch % count == 0]
            strong = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(**source, scenario=shared, worker_counts=dividing))
            self.assertEqual((subject["scaling"]["other"], int(subject["scaling"]["globalBatch"])), ("strong", batch))
            self.assertEqual([each["speedup"] for each in subject["scaling"]["predictions"]], [each.speedup for each in strong.predictions])

    def test_everybody_names_the_same_bottleneck(self):
        """Prediction, recommendation, diagnosis and page: of every number of workers, by default options."""
        fields = ("bottleneck", "bottleneck_index", "bottleneck_change", "bottleneck_gain", "most_used", "most_used_index")
        profiles = {"servers": small(), "varying": recorded(), "reduces": ALL_REDUCE, "idle": {**ALL_REDUCE, "device_idle_fraction": 0.6}}
        for name, profile in profiles.items():
            upload(self.server, profile, name)
            source = {"profile": f"profiles/{name}"}
            predicted = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(**source, worker_counts=[1, 2, 4])).predictions
            limits = recommendation_pb2.Constraints(min_workers=1, max_workers=4)
            recommended = self.server.predictions.RecommendWorkers(recommendation_pb2.RecommendWorkersRequest(**source, constraints=limits))
            frontier = {each.scenario.workers: each for each in recommended.frontier}
            (subject,) = data_of(self.page(f"{name}?workers=1,2,4")[1])["subjects"]
            for each, on_page in zip(predicted, subject["prediction"]["predictions"], strict=True):
                workers = each.scenario.workers
                with self.subTest(profile=name, workers=workers):
                    self.assertTrue(each.HasField("bottleneck_gain"))
                    self.assertNotEqual(each.bottleneck_change, 0)
                    named = [getattr(each, field) for field in fields]
                    self.assertEqual([getattr(frontier[workers], field) for field in fields], named)
                    self.assertEqual(on_page["bottleneck"], profile_pb2.Operation.Resource.Name(each.bottleneck))
                    self.assertEqual(on_page["bottleneckChange"], prediction.Prediction.Change.Name(each.bottleneck_change))
                    self.assertEqual(on_page["bottleneckGain"], each.bottleneck_gain)
                    scenario = scenario_pb2.Scenario(workers=workers)
                    diagnosed = self.server.predictions.DiagnoseJob(diagnosis_pb2.DiagnoseJobRequest(**source, scenario=scenario))
                    self.assertEqual([getattr(diagnosed.prediction, field) for field in fields], named)
                    of_one = {change.change: change.ratio for change in diagnosed.what_ifs if change.change in prediction.Prediction.Change.values()}
                    self.assertAlmostEqual(of_one[each.bottleneck_change], max(of_one.values()), delta=1e-4)
                    # A prediction's is of fewer runs.
                    self.assertAlmostEqual(each.bottleneck_gain, of_one[each.bottleneck_change] - 1, delta=0.05 * of_one[each.bottleneck_change])
                    busiest = max(each.utilization, key=lambda used: used.fraction)
                    self.assertEqual((each.most_used, each.most_used_index), (busiest.resource, busiest.index))

    def test_a_step_on_its_lanes_is_the_one_that_a_hand_draws(self):
        # Down 10 ms, compute 20 ms, up 10 ms, update 2 ms, and nobody else on the links.
        upload(self.server, small(), "alone")
        timeline = data_of(self.page("alone?workers=1")[1])["subjects"][0]["timeline"]
        self.assertEqual(timeline["lanes"], ["downlink", "worker", "uplink", "parameter server"])
        found = [(timeline["names"][name], timeline["kinds"][kind], start, length, size) for _, name, kind, start, length, size in timeline["operations"]]
        self.assertEqual(
            found,
            [
                ("pull", "transfer", 0, 10_000_000, 1_000_000),
                ("compute", "computation", 10_000_000, 20_000_000, 0),
                ("push", "transfer", 30_000_000, 10_000_000, 1_000_000),
                ("update", "computation", 40_000_000, 2_000_000, 0),
            ],
        )
        self.assertEqual(timeline["lengthNs"], 42_000_000)

    def test_it_runs_what_was_built_in_and_nothing_else(self):
        bad = "</script><script>window.unsafe=1</script><!--<script>\u2028&quot;"
        profile = small(display_name=bad[:200], model="<img src=x onerror=alert(1)>")
        profile["operations"][0]["name"] = bad
        upload(self.server, profile, "hostile")
        headers, text = self.page("hostile?workers=1,2")
        policy = headers["Content-Security-Policy"]
        self.assertRegex(policy, r"^default-src 'none'; script-src 'sha256-[\w+/]{43}=' 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$")
        self.assertIn(policy.removesuffix("; frame-ancestors 'none'").replace("'", "&#39;"), text)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Cache-Control"], "no-store")
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        # Data, library and script: three elements and no more, whatever the names are.
        self.assertEqual(len(re.findall(r"<script[ >]", text)), 3)
        self.assertEqual(text.count("</script>"), 3)
        self.assertNotIn("<img", text)
        (subject,) = data_of(text)["subjects"]
        self.assertEqual(subject["profile"]["displayName"], bad[:200])
        self.assertIn(bad, subject["timeline"]["names"])
        self.assertIn("Permission to use, copy, modify, and/or distribute this software", text)

    def test_two_profiles_are_compared(self):
        upload(self.server, small(), "first")
        upload(self.server, small(batch_size=16), "second")
        both = data_of(self.page("first?against=second&workers=1,2")[1])["subjects"]
        self.assertEqual([subject["label"] for subject in both], ["first", "second"])
        rates = [subject["prediction"]["predictions"][0]["examplesPerSecond"] for subject in both]
        self.assertAlmostEqual(rates[1] / rates[0], 2, places=3)

    def test_a_bandwidth_may_be_asked_for(self):
        upload(self.server, small(), "links")
        rates = [data_of(self.page(f"links?workers=1{more}")[1])["subjects"][0]["prediction"]["predictions"][0] for more in ("", "&bandwidth_bytes_per_second=2e8")]
        self.assertGreater(rates[1]["examplesPerSecond"], rates[0]["examplesPerSecond"])
        self.assertEqual(rates[1]["scenario"]["bandwidthBytesPerSecond"], 2e8)

    def test_what_is_wrong_is_named(self):
        upload(self.server, small(), "good")
        cases = [
            ("nobody", 404, "PROFILE_NOT_FOUND"),
            ("", 404, "PAGE_UNKNOWN"),
            ("Good", 404, "PAGE_UNKNOWN"),
            ("good/", 404, "PAGE_UNKNOWN"),
            ("good%2Fmore", 404, "PAGE_UNKNOWN"),
            ("%2e%2e", 404, "PAGE_UNKNOWN"),
            ("..%2f..%2fetc%2fpasswd", 404, ""),
            ("a" * 64, 404, "PAGE_UNKNOWN"),
            ("good?workers=0", 400, "workers: "),
            ("good?workers=", 400, "workers: "),
            ("good?workers=1-", 400, "workers: "),
            ("good?workers=4097", 400, "workers: "),
            ("good?workers=1-65", 400, "workers: "),
            ("good?workers=9-1", 400, "workers: "),
            ("good?workers=99999999999999999999", 400, "workers: "),
            ("good?workers=1&workers=2", 400, "is there twice"),
            ("good?workers=%zz", 400, "workers: "),
            ("good?bandwidth_bytes_per_second=fast", 400, "bandwidth_bytes_per_second: "),
            ("good?bandwidth_bytes_per_second=nan", 400, "bandwidth_bytes_per_second: "),
            ("good?bandwidth_bytes_per_second=-1", 400, "scenario.bandwidth_bytes_per_second"),
            ("good?against=..%2f", 400, "against: "),
            ("good?against=nobody&workers=1", 404, "PROFILE_NOT_FOUND"),
            ("good?what=1", 400, "what: is unknown"),
        ]
        for path, status, word in cases:
            with self.subTest(path=path):
                found, _, text = ask(self.server, BASE + path)
                self.assertEqual(found, status, text[:300])
                self.assertIn(word, text)
                self.assertLess(len(text), 1000)
        for path in ("/report", "/report/", "/report/profiles", "/report/other/good"):
            self.assertEqual(ask(self.server, path)[0], 404, path)
        # Nothing that was asked has hurt it.
        self.assertEqual(self.server.http("/healthz")[0], 200)

    def test_it_is_only_read(self):
        upload(self.server, small(), "read")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            status, headers, _ = ask(self.server, BASE + "read", method)
            self.assertEqual((status, headers.get("Allow")), (405, "GET, HEAD"), method)
        head = ask(self.server, BASE + "read?workers=1", "HEAD")
        get = ask(self.server, BASE + "read?workers=1")
        self.assertEqual((head[0], head[2]), (200, ""))
        self.assertEqual(head[1]["Content-Security-Policy"], get[1]["Content-Security-Policy"])
        self.assertEqual(ask(self.server, BASE + "nobody", "HEAD")[0], 404)
        self.assertIn("/report/profiles/", self.server.http("/")[1])

    def test_a_name_that_a_site_may_point_here_is_refused(self):
        upload(self.server, small(), "here")
        port = self.server.http_address.rsplit(":", 1)[1]
        for host, status in ((f"evil.example:{port}", 421), ("evil.example", 421), (f"localhost:{port}", 200), (f"127.0.0.1:{port}", 200), (f"[::1]:{port}", 200)):
            self.assertEqual(ask(self.server, BASE + "here?workers=1", host=host)[0], status, host)


class LimitTest(SecuredTest):
    def test_pages_beyond_the_limit_wait_outside_and_hold_up_nobody(self):
        server = self.start("--report", "--max-reports", "1", "--max-report-seconds", "300", "--threads", "2")
        upload(server, recorded(), "large")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            pages = [pool.submit(ask, server, f"{BASE}large?workers={first},{first + 1}") for first in (1, 2, 3, 4)]
            # As long as any is being made, everybody else is served.
            def others_are_served_until_all_are_made():
                self.assertEqual(server.http("/healthz")[0], 200)
                server.profiles.ListProfiles(store.ListProfilesRequest(), timeout=PATIENCE_SECONDS)
                return all(page.done() for page in pages)

            eventually(others_are_served_until_all_are_made, "all pages are made or refused", pause=0.3)
        found = [page.result() for page in pages]
        refused = [(headers.get("Retry-After"), text) for status, headers, text in found if status == 503]
        self.assertIn(200, [status for status, _, _ in found])
        self.assertTrue(refused)
        for retry, text in refused:
            self.assertEqual(retry, "1")
            self.assertIn("TOO_MANY_PAGES", text)
        self.assertEqual(ask(server, BASE + "large?workers=1")[0], 200)

    def test_a_page_in_the_making_does_not_outlive_the_server(self):
        server = self.start("--report", "--drain-timeout", "500ms", "--threads", "1")
        upload(server, recorded(), "endless")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            page = pool.submit(ask, server, BASE + "endless?workers=20-83")
            eventually(lambda: server.metric("grpc_server_started_total", grpc_method="PredictThroughput") > 0, "the page asks")
            server.terminate()
            status, _, text = page.result()
            self.assertEqual(server.wait(), 0)
        self.assertEqual(status, 503, text[:300])

    def test_a_page_has_its_time_and_no_more(self):
        server = self.start("--report", "--max-report-seconds", "0.05", "--threads", "1")
        upload(server, recorded(), "slow")
        status, _, text = ask(server, BASE + "slow?workers=1-64")
        self.assertIn((status, text.split(":")[0]), ((504, "DEADLINE_EXCEEDED"), (429, "RESOURCE_EXHAUSTED")), text)


class SecurityTest(SecuredTest):
    def statuses(self, server, path=BASE + "job?workers=1"):
        rows = {
            "none": (),
            "wrong": bearer("a-token-for-the-admim"),
            "not Bearer": [("Authorization", "Basic YTpi")],
            "not ASCII": [("Authorization", "Bearer \xe9\xff")],
            "two": bearer(TOKENS["reader"]) + bearer(TOKENS["admin"]),
            **{role: bearer(token) for role, token in TOKENS.items()},
        }
        return {name: ask(server, path, headers=headers) for name, headers in rows.items()}

    def test_it_is_off_unless_asked_for(self):
        server = self.start()
        self.assertEqual(ask(server, BASE + "job")[0], 404)
        self.assertNotIn("/report", server.http("/")[1])

    def test_it_asks_for_what_calls_ask_for(self):
        server = self.start("--report", *self.files.tls(), "--tokens", self.files.tokens)
        channel = self.channel(server)
        create = channel.unary_unary("/stepcast.v1.ProfileService/CreateProfile", store.CreateProfileRequest.SerializeToString)
        request = store.CreateProfileRequest(profile=message(small()), profile_id="job")
        create(request, metadata=[("authorization", f"Bearer {TOKENS['writer']}")], timeout=PATIENCE_SECONDS)
        for path, allowed in ((BASE + "job?workers=1", 200), (BASE + "nobody", 404)):
            found = self.statuses(server, path)
            print(path, {name: status for name, (status, _, _) in found.items()})
            for name, (status, headers, text) in found.items():
                with self.subTest(path=path, credentials=name):
                    if name in TOKENS:
                        self.assertEqual(status, allowed, text[:200])
                    else:
                        self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
                        # Neither a page nor whether there is one.
                        self.assertRegex(text, r"^UNAUTHENTICATED: (CREDENTIALS_MISSING|CREDENTIALS_MALFORMED|TOKEN_UNKNOWN): [^\n]*\n$")
                        self.assertNotIn("a-token", text)
        self.assertGreaterEqual(server.metric("stepcast_rejections_total", reason="TOKEN_UNKNOWN"), 2)
        # The other pages ask for nothing, as before.
        self.assertEqual(server.http("/healthz")[0], 200)

    def test_where_it_would_be_open_it_is_refused_at_start(self):
        tls = self.files.tls()
        cases = [
            (("--report", "--http-listen", "none"), "needs --http-listen"),
            (("--report", "--http-listen", "0.0.0.0:0"), "--allow-insecure"),
            (("--report", "--http-listen", "127.0.0.1:0", *tls, "--tls-client-ca", self.files.authority.pair.certificate), "needs --tokens"),
        ]
        for flags, word in cases:
            command = [os.environ["STEPCASTD"], "--listen", "127.0.0.1:0", "--store", "memory", *flags]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--report", done.stderr)
            self.assertIn(word, done.stderr)


class CommandTest(ServerTest):
    flags = ("--store", "memory")

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="stepcast-report-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = self.write("small.json", small())
        self.out = os.path.join(self.folder, "report.html")

    def write(self, name, profile):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        return path

    def report(self, *arguments):
        done = stepcast("report", *arguments, "--out", self.out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.out, encoding="utf-8") as page:
            return done.stdout, data_of(page.read())

    def test_a_file_alone_and_on_a_server_are_one_report(self):
        said, alone = self.report(self.file, "--local", "--workers", "1-4", "--worker-hour", "2", "--currency", "EUR")
        self.assertRegex(said, r"^\d workers? give [\s\S]*\nreport: .*report\.html\n$")
        _, served = self.report(self.file, "--server", self.server.address, "--workers", "1-4", "--worker-hour", "2", "--currency", "EUR")
        self.assertEqual(without_statistics(alone), without_statistics(served))
        (subject,) = alone["subjects"]
        self.assertEqual(subject["asked"]["prices"], {"workerHour": 2.0, "currencyCode": "EUR"})
        self.assertEqual(subject["asked"]["constraints"], {"minWorkers": 1, "maxWorkers": 4})

    def test_it_names_job_file_date_and_the_command_that_gives_it_again(self):
        asked = (self.file, "--workers", "1-3", "--servers", "1", "--worker-hour", "2", "--min-efficiency", "0.2")
        _, data = self.report(*asked)
        self.assertRegex(data["made"], r"^20\d\d-\d\d-\d\d \d\d:\d\d UTC$")
        self.assertEqual(data["subjects"][0]["file"], self.file)
        words = shlex.split(data["command"])
        self.assertEqual(words[:2], ["stepcast", "report"])
        self.assertEqual(sorted(words[2:]), sorted(asked))
        _, again = self.report(*words[2:])
        self.assertEqual(without_statistics(again), without_statistics(data))
        # Other words than numbers are quoted; of a server, which is named; but not who asked.
        _, two = self.report(self.file, "--workers", "1", "--against", "--bandwidth 1GB/s", "--server", self.server.address, "--timeout", "50s")
        self.assertIn("--against '--bandwidth 1GB/s'", two["command"])
        self.assertTrue(two["command"].endswith(f" --server {self.server.address}"), two["command"])
        self.assertNotIn("--timeout", two["command"])
        self.assertNotIn("--out", two["command"])

    def test_more_workers_than_a_page_draws_are_drawn_in_strides(self):
        _, data = self.report(self.file, "--max-workers", "100", "--steps", "4", "--replications", "1")
        (subject,) = data["subjects"]
        counts = [each["scenario"]["workers"] for each in subject["prediction"]["predictions"]]
        self.assertLessEqual(len(counts), 64)
        self.assertEqual((counts[0], counts[-1]), (1, 100))
        self.assertEqual(subject["asked"]["constraints"]["maxWorkers"], 100)
        self.assertEqual(subject["recommendation"]["choices"], 100)

    def test_two_are_compared_by_file_or_by_scenario(self):
        other = self.write("other.json", small(batch_size=16))
        _, files = self.report(self.file, other, "--workers", "1,2")
        self.assertEqual([subject["label"] for subject in files["subjects"]], [self.file, other])
        _, scenarios = self.report(self.file, "--workers", "1,2", "--against", "--bandwidth 800MB/s --servers 1")
        labels = [subject["label"] for subject in scenarios["subjects"]]
        self.assertEqual(labels, ["as asked", "--bandwidth 800MB/s --servers 1"])
        slow, fast = (subject["prediction"]["predictions"][1] for subject in scenarios["subjects"])
        self.assertGreater(fast["examplesPerSecond"], 1.2 * slow["examplesPerSecond"])
        self.assertEqual(fast["scenario"]["bandwidthBytesPerSecond"], 8e8)

    def test_what_cannot_be_had_is_left_out_with_its_reason(self):
        profile = small()
        for operation in profile["operations"]:
            operation.pop("parameter", None)
        _, data = self.report(self.write("nameless.json", profile), "--workers", "1,2")
        (subject,) = data["subjects"]
        self.assertNotIn("otherKind", subject)
        self.assertRegex(subject["missing"]["otherKind"], r"\w")
        self.assertIn("prediction", subject)
        _, none = self.report(self.file, "--workers", "1,2", "--min-efficiency", "0.9999", "--min-workers", "2")
        self.assertNotIn("workers", none["subjects"][0]["recommendation"])
        self.assertIn("infeasibleReason", none["subjects"][0]["recommendation"])

    def test_mistakes_are_named_and_leave_no_file(self):
        cases = [
            ((self.file, "--against", "--bogus 1"), 2, "--bogus"),
            ((self.file, self.file, "--against", "--servers 2"), 2, "--against"),
            ((self.file, "--against", "--latency 1us"), 1, "--latency: belongs to collectives"),
            ((self.file, self.file, self.file), 2, "error"),
            ((), 2, "PROFILE"),
            ((os.path.join(self.folder, "no_file.json"),), 2, "no_file.json"),
            ((self.file, "--workers", "0"), 2, "--workers"),
            ((self.file, "--servers", "0"), 1, "--servers: 0 is not from 1 to 256"),
            ((self.write("bad.json", small(batch_size=0)),), 1, "batch_size"),
        ]
        for arguments, status, word in cases:
            with self.subTest(arguments=arguments):
                done = stepcast("report", *arguments, "--out", self.out)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertFalse(os.path.exists(self.out))
        done = stepcast("report", self.file, "--workers", "1", "--out", os.path.join(self.folder, "no", "folder.html"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)
        page = stepcast("report", self.file, "--workers", "1", "--out", "-").stdout
        self.assertTrue(page.startswith("<!doctype html>") and page.endswith("</html>\n"))


def numbers_in(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))]


LOOKS = [("light", 1280), ("light", 390), ("dark", 1280), ("dark", 390)]
# Both themes and both widths, not all pairs of them.
CORNERS = [LOOKS[0], LOOKS[-1]]


class BrowserTest(ServerTest):
    flags = ("--report", "--store", "memory", "--max-report-seconds", str(PATIENCE_SECONDS))

    def setUp(self):
        chromium = shutil.which("chromium")
        if not chromium or not os.path.exists(os.path.join(HERE, "node_modules", "playwright-core")) or not os.path.exists(os.path.join(HERE, "node_modules", "axe-core")):
            self.skipTest("there is no chromium, or npm's playwright-core and axe-core are not installed")
        self.chromium = chromium
        super().setUp()

    def look(self, url, looks):
        command = ["node", os.path.join(HERE, "report_browser.mjs"), self.chromium, url]
        environment = {**os.environ, "STEPCAST_LOOKS": " ".join(f"{theme}-{width}" for theme, width in looks)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS * 6, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual([(visit["theme"], visit["width"]) for visit in seen["visits"]], looks)
        return seen

    def check(self, seen, url):
        self.assertGreater(seen["pdfBytes"], 20_000)
        for visit in seen["visits"]:
            with self.subTest(theme=visit["theme"], width=visit["width"]):
                self.assertEqual(visit["console"], [])
                self.assertEqual(visit["refused"], [])
                self.assertEqual(visit["requests"], [url])
                self.assertEqual([found for found in visit["axe"] if found["impact"] in ("serious", "critical")], [])
                self.assertIsNone(visit["unsafe"])
                self.assertLessEqual(visit["wider"], 0)
                self.assertTrue(all(shapes > 3 for shapes in visit["plots"]), visit["plots"])
                self.assertLess(visit["work"]["layouts"], MAX_LAYOUTS)
                self.assertLess(visit["work"]["styles"], MAX_LAYOUTS)
                self.assertLess(visit["work"]["nodes"], MAX_NODES)

    def check_keys(self, keys):
        def width(name):
            left, right = keys[name]
            return right - left

        self.assertAlmostEqual(width("zoomed") / width("whole"), 1 / 8, delta=0.01)
        self.assertAlmostEqual(width("wider") / width("whole"), 1 / 4, delta=0.01)
        self.assertGreater(keys["moved"][0], keys["zoomed"][0])
        self.assertEqual(keys["all"], keys["whole"])
        self.assertEqual(keys["first"], keys["back"])
        self.assertNotEqual(keys["first"], keys["second"])

    def test_every_part_in_both_themes_and_at_two_widths(self):
        upload(self.server, recorded(), "alexnet")
        upload(self.server, dict(ALL_REDUCE, display_name="</script><script>window.unsafe = 1</script>"), "reduces")
        url = f"http://{self.server.http_address}{BASE}alexnet?workers=1-6&against=reduces"
        seen = self.look(url, LOOKS)
        self.check(seen, url)
        request = prediction.PredictThroughputRequest(profile="profiles/alexnet", worker_counts=range(1, 7))
        predicted = self.server.predictions.PredictThroughput(request).predictions
        for visit in seen["visits"]:
            self.check_keys(visit["keyboard"])
            rows = visit["tables"]["throughput, A: alexnet"]
            self.assertEqual([row[0] for row in rows], ["1", "2", "3", "4", "5", "6"])
            for row, each in zip(rows, predicted, strict=True):
                shown = [*numbers_in(row[1]), *numbers_in(row[2]), *numbers_in(row[3]), *numbers_in(row[4])]
                mean, runs = each.confidence_interval, each.run_interval
                for number, exact in zip(shown, [each.examples_per_second, mean.lower, mean.upper, runs.lower, runs.upper, each.speedup], strict=True):
                    self.assertAlmostEqual(number, exact, delta=abs(exact) * 0.0006)
                self.assertEqual(numbers_in(row[5]), [round(100 * each.scaling_efficiency)])
            self.assertEqual(visit["slider"]["now"], "2")
            self.assertIn("2 workers: ", visit["slider"]["next"])
            scaling = visit["tables"]["weak and strong scaling, a: alexnet"]
            for row, each in zip(scaling, predicted, strict=True):
                self.assertAlmostEqual(numbers_in(row[1])[0], each.speedup, delta=each.speedup * 0.0006)
                self.assertEqual([len(numbers_in(cell)) for cell in row[2:]], [1, 1, 2, 2] if 64 % int(row[0]) == 0 else [0] * 4)
            self.assertIn("Assumed: Forward and backward take", visit["text"])

    def test_the_memory_of_a_device_stands_beside_the_job(self):
        upload(self.server, ALL_REDUCE, "reduces")
        (predicted,) = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile="profiles/reduces", worker_counts=[2])).predictions
        memory = predicted.memory
        self.assertGreater(memory.gradient_bytes, 0)
        (visit,) = self.look(f"http://{self.server.http_address}{BASE}reduces?workers=2", LOOKS[:1])["visits"]
        ((lower, total, parts),) = re.findall(r"· (at least )?([\d,.]+ \w+) of memory a device: ([^·\n]+)", visit["text"])
        size_of = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
        (gradients,) = re.findall(r"gradients ([\d,.]+ \w+)", parts)
        for shown, exact in ((total, memory.total_bytes), (gradients, memory.gradient_bytes)):
            number, unit = shown.split()
            self.assertAlmostEqual(float(number.replace(",", "")) * size_of[unit], exact, delta=0.0006 * exact)
        self.assertEqual(("kept for the backward pass" in parts, bool(lower)), (memory.HasField("kept_bytes"), not memory.HasField("kept_bytes")))

    def test_an_order_that_slows_the_job_down_is_advised_against(self):
        upload(self.server, recorded("resnet50_16"), "resnet")
        (visit,) = self.look(f"http://{self.server.http_address}{BASE}resnet?workers=1-2", LOOKS[:1])["visits"]
        self.assertRegex(visit["text"], r"It is slower in the long run: each step as recorded makes \d+ % more examples/s, so keep that\.")
        self.assertNotIn("−0 %", visit["text"])

    def test_what_would_help_stands_first_in_the_order_of_its_worth(self):
        upload(self.server, recorded(), "alexnet")
        url = f"http://{self.server.http_address}{BASE}alexnet?workers=1-6"
        for visit in self.look(url, LOOKS[:1])["visits"]:
            self.assertEqual(visit["parts"][0], "finds")
            gains = [float(gain.strip("+ %").replace(",", "")) for gain, _ in visit["finds"]]
            self.assertGreater(len(gains), 1)
            self.assertEqual(gains, sorted(gains, reverse=True))
            self.assertEqual(visit["finds"][0][1], "all-reduces instead of parameter servers")
            # The rows of the plot have the same order, behind the job as it is.
            rates = [float(row[1].replace(",", "")) for row in visit["tables"]["what would help"]]
            self.assertEqual(rates, sorted(rates, reverse=True))
            self.assertRegex(visit["provenance"][0], r"^alexnet\w*, profiles/alexnet$")
            self.assertRegex(visit["provenance"][1], r"^20\d\d-\d\d-\d\d \d\d:\d\d UTC$")
            self.assertEqual(visit["provenance"][2], "stepcast report alexnet --workers 1-6")

    def test_the_edge_of_what_was_asked_is_no_headline(self):
        upload(self.server, dict(ALL_REDUCE, batch_size=100_000), "wide")
        url = f"http://{self.server.http_address}{BASE}wide?workers=1-64"
        for visit in self.look(url, LOOKS[:1])["visits"]:
            self.assertEqual(visit["answer"], "64 workers, the largest number asked about.")
            self.assertTrue(visit["told"])
            self.assertLess(visit["marks"], 20)
            self.assertNotRegex(visit["text"], r"\de[+-]\d", "an exponent")
            self.assertRegex(visit["text"], r"64 workers give \d{1,3}(,\d{3})+ examples/s")
            self.assertNotRegex(visit["text"], r"(?<![\d,.])\d{5,} examples/s", "thousands are apart")
            for axis in visit["axes"]:
                begin = axis["ticks"][0]
                self.assertEqual(axis["broken"], any("axis from " in title for title in axis["titles"]), axis)
                self.assertTrue(axis["broken"] or begin == "0" or "iB" in begin, axis)
        alone = f"http://{self.server.http_address}{BASE}wide?workers=8"
        for visit in self.look(alone, LOOKS[:1])["visits"]:
            self.assertRegex(visit["answer"], r"^8 workers do \d{1,3}(,\d{3})+ examples/s\.$")
            self.assertTrue(visit["told"])
        upload(self.server, recorded(), "inside")
        inside = f"http://{self.server.http_address}{BASE}inside?workers=1-6"
        for visit in self.look(inside, LOOKS[:1])["visits"]:
            self.assertRegex(visit["answer"], r"^Use \d workers?\.$")
            self.assertFalse(visit["told"])

    def test_a_tick_stands_only_where_something_is_known(self):
        # One recorded step: how much others vary is assumed, so nothing is ticked. Single runs of servers have the model's error.
        upload(self.server, small(), "single")
        upload(self.server, recorded(), "many")
        for name, ticked in (("single", set()), ("many", {"Mean"})):
            for visit in self.look(f"http://{self.server.http_address}{BASE}{name}?workers=1-3", LOOKS[:1])["visits"]:
                marks = {re.match(r"[✓!?](?:Not known: |Care: )?([^.]*)\.", text)[1]: style for style, text in visit["checks"]}
                self.assertEqual(marks["Model"], "unknown")
                self.assertEqual({mark for mark in ("Mean", "Single runs") if marks.get(mark) == "good"}, ticked, visit["checks"])
                self.assertEqual(marks["Recording"], "care" if name == "single" else "unknown")

    def test_a_job_that_several_workers_recorded(self):
        options = store.PyTorchTraceOptions(model="toy", batch_size=8, platform=profile_pb2.Platform(bandwidth_bytes_per_second=1e9))
        stream = [store.ImportProfileRequest(header=store.ImportProfileRequest.Header(pytorch=options, profile_id="ranks"))]
        for rank in range(3):
            with open(os.path.join(RANKS, f"rank{rank}.json.gz"), "rb") as file:
                stream += [store.ImportProfileRequest(recording=store.ImportProfileRequest.Recording()), store.ImportProfileRequest(chunk=file.read())]
        recording = self.server.profiles.ImportProfile(iter(stream)).recording
        url = f"http://{self.server.http_address}{BASE}ranks?workers=1-3"
        seen = self.look(url, CORNERS)
        self.check(seen, url)
        for visit in seen["visits"]:
            # Lengths of a step: each is named, and none stands without what it is of.
            self.assertEqual([row[0] for row in visit["lengths"]][0], "predicted")
            self.assertEqual([row[0] for row in visit["lengths"]][-2:], ["recorded", "replayed"])
            self.assertTrue(all(len(row[3]) > 20 for row in visit["lengths"]), visit["lengths"])
            rows = visit["tables"]["recorded workers"]
            self.assertEqual([row[0] for row in rows], ["rank 0", "rank 1", "rank 2"])
            for row, worker in zip(rows[1:], recording.workers[1:]):
                self.assertEqual(row[1], f"{worker.clock_offset_ns * 1e-9:.3f} s")
            self.assertEqual(visit["tables"]["what would help"][0][0], "links twice as fast")
            ((slowdown, least, most, operations),) = visit["tables"]["computation beside collectives"]
            self.assertLess(float(least), float(slowdown))
            self.assertLess(float(slowdown), float(most))
            self.assertAlmostEqual(float(slowdown), 1, delta=0.03)
            self.assertGreater(int(operations), 20)

    def test_a_pipeline_is_drawn_over_time(self):
        with tempfile.TemporaryDirectory(prefix="stepcast-report-") as folder:
            profile, out = os.path.join(folder, "layers.json"), os.path.join(folder, "layers.html")
            with open(profile, "w", encoding="utf-8") as file:
                json.dump(with_memory(layers(8), 1 << 30), file)
            done = stepcast("report", profile, "--pipeline", "stages=4,micro-batches=8", "--workers", "1-4", "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as page:
                (subject,) = data_of(page.read())["subjects"]
            url = "file://" + out
            seen = self.look(url, CORNERS)
        self.check(seen, url)
        self.assertEqual(subject["missing"], {})
        told = subject["recommendation"]["prediction"]
        for visit in seen["visits"]:
            self.assertEqual(visit["parts"][3:6], ["step-time", "pipeline", "diagnosis"])
            self.assertNotIn("alternatives", visit["parts"])
            shares = {row[0]: numbers_in(row[2])[0] for row in visit["tables"]["parts of a step, by the diagnosis"]}
            self.assertEqual(max(shares, key=shares.get), "computation of the devices")
            self.assertAlmostEqual(sum(shares.values()), 100, delta=3)
            self.assertAlmostEqual(shares["the bubble"], 100 * told["pipeline"]["bubbleFraction"], delta=0.6)
            self.assertIn("Devices over one step", visit["text"])
            # 1F1B holds as many micro-batches as there are devices left: 2 layers of 1 GiB each, and 4 x 4 MB of state.
            memory = [numbers_in(row[5])[0] for row in visit["tables"]["devices"]]
            for held, chunks in zip(memory, (4, 3, 2, 1), strict=True):
                self.assertAlmostEqual(held, 2 * chunks + 16e6 / 2**30, delta=0.002)
        # One bar a computation, and what is not computed is shaded: four devices, eight micro-batches forward and backward, four ends.
        operations = [one for one in subject["timeline"]["operations"] if subject["timeline"]["lanes"][one[0]].startswith("device")]
        self.assertEqual(len(operations), 4 * 8 * 2 + 4)

    def test_four_thousand_operations(self):
        with tempfile.TemporaryDirectory(prefix="stepcast-report-") as folder:
            profile, out = os.path.join(folder, "many.json"), os.path.join(folder, "many.html")
            with open(profile, "w", encoding="utf-8") as file:
                json.dump(many_operations(1000), file)
            done = stepcast("report", profile, "--workers", "1,2", "--steps", "40", "--replications", "2", "--timeout", "10m", "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                page = file.read()
            self.assertLess(len(page.encode()), MAX_BYTES)
            (subject,) = data_of(page)["subjects"]
            self.assertEqual(len(subject["timeline"]["operations"]), 4000, subject["missing"])
            seen = self.look(f"file://{out}", CORNERS)
            print(f"{len(page.encode())} bytes, drawn with", [visit["work"] for visit in seen["visits"]])
            self.check(seen, f"file://{out}")
            for visit in seen["visits"]:
                self.check_keys(visit["keyboard"])


def many_operations(parameters):
    """A profile of four operations a parameter: downloads, computations in a chain, uploads, updates."""
    names = [f"model/block_{i // 10}/layer_{i % 10}/kernel" for i in range(parameters)]
    operations, start, end = [], [], []
    for i, name in enumerate(names):
        waits = [4 * i] + ([4 * i - 3] if i else [])
        operations += [
            {"name": f"recv/{name}", "resource": "DOWNLINK", "size_bytes": 40_000 + 7 * i, "parameter": name},
            {"name": f"compute/{name}", "resource": "WORKER", "waiting_for": waits},
            {"name": f"send/{name}", "resource": "UPLINK", "size_bytes": 40_000 + 7 * i, "waiting_for": [4 * i + 1], "parameter": name},
            {"name": f"update/{name}", "resource": "PARAMETER_SERVER", "waiting_for": [4 * i + 2], "parameter": name},
        ]
        at = 500_000 * i
        start += [at, at + 100_000, at + 400_000, at + 450_000]
        end += [at + 100_000, at + 400_000, at + 450_000, at + 460_000]
    return small(display_name="many", operations=operations, steps=[{"start_ns": start, "end_ns": end}], platform={"bandwidth_bytes_per_second": 1e9})


if __name__ == "__main__":
    unittest.main()
