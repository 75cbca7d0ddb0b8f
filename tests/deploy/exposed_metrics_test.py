"""Panels, rules and alerts ask for metrics that a running server has."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

from deployment import ALERTING, CASES, JOB, RECORDING, dashboard, document, panels, rules

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from certificates import Authority  # noqa: E402
from contract import store  # noqa: E402
from stepcastd import Server, samples  # noqa: E402

# Prometheus makes these.
OWN = {"up", "ALERTS"}
# And adds these.
TARGET_LABELS = {"job", "instance"}
MACROS = {"$__rate_interval": "5m", "$job": JOB, "$instance": ".*"}


def names(expression):
    """The metrics of a PromQL expression."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"(?<![\w:.])([A-Za-z_:][\w:]*)(?!\s*\(|[\w:])", bare)
    return set(words) - {"and", "or", "unless", "bool", "offset"}


def targets():
    """(panel's title, expression) of everything that the dashboard asks Prometheus."""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for macro, value in MACROS.items():
                expression = expression.replace(macro, value)
            yield panel["title"], expression


class ExposedMetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = Server()
        try:
            # An answer that is not OK: series of other codes begin with the first.
            assert server.profiles.GetProfile.future(store.GetProfileRequest(name="profiles/nobody")).exception()
            cls.samples = list(samples(server.http("/metrics")[1]))
        finally:
            server.close()
        # Series that only a server with TLS has.
        with tempfile.TemporaryDirectory() as folder:
            pair = Authority(folder, "authority").sign_server()
            server = Server("--tls-cert", pair.certificate, "--tls-key", pair.key)
            try:
                known = {name for name, _, _ in cls.samples}
                cls.samples += [sample for sample in samples(server.http("/metrics")[1]) if sample[0] not in known]
            finally:
                server.close()
        cls.names = {name for name, _, _ in cls.samples}
        cls.recorded = {rule["record"] for rule in rules(RECORDING)}

    def test_what_rules_and_alerts_ask_for_exists(self):
        for rule in rules(RECORDING):
            self.assertTrue(names(rule["expr"]) <= self.names, (rule["record"], names(rule["expr"]) - self.names))
        for rule in rules(ALERTING):
            unknown = names(rule["expr"]) - self.names - self.recorded - OWN
            self.assertTrue(names(rule["expr"]) and not unknown, (rule["alert"], unknown))

    def test_what_the_dashboard_asks_for_exists(self):
        lists = [variable for variable in dashboard()["templating"]["list"] if variable["type"] == "query"]
        # label_values(metric, label)
        asked = [*targets(), *((variable["name"], re.sub(r"label_values\((.*), \w+\)", r"\1", variable["query"]["query"])) for variable in lists)]
        for title, expression in asked:
            unknown = names(expression) - self.names - self.recorded - OWN
            self.assertTrue(names(expression) and not unknown, (title, unknown))

    def test_calls_are_those_of_every_service_of_ours_and_waits_are_not_slow(self):
        services = {labels["grpc_service"] for _, labels, _ in self.samples if "grpc_service" in labels} - {"other"}
        ours = {service for service in services if not service.startswith("grpc.")}
        self.assertIn("google.longrunning.Operations", ours)
        asked = [expression for _, expression in targets()] + [rule["expr"] for path in (RECORDING, ALERTING) for rule in rules(path)]
        for selector in (selector for expression in asked for selector in re.findall(r"\bgrpc_server_\w+\{([^}]*)\}", expression)):
            pattern = re.search(r'grpc_service=~"([^"]*)"', selector)[1]
            self.assertEqual({service for service in services if re.fullmatch(pattern, service)}, ours, selector)
        for expression in (expression for expression in asked if "grpc_server_handling_seconds" in expression):
            self.assertIn('grpc_method!="WaitOperation"', expression)

    def test_series_of_the_alerts_cases_look_like_the_servers(self):
        labels = {name: {frozenset(labels) for other, labels, _ in self.samples if other == name} for name in self.names}
        for case in document(CASES)["tests"]:
            for series in case["input_series"]:
                name = series["series"].partition("{")[0]
                own = frozenset(re.findall(r'(\w+)="', series["series"])) - TARGET_LABELS
                self.assertIn(own, labels[name] if name not in OWN else {frozenset()}, case["name"])

    def test_every_panel_shows_something_of_a_server_that_has_just_started(self):
        def series(name, labels, value):
            pairs = {**labels, "job": JOB, "instance": "a"}
            written = ",".join(f'{label}="{text}"' for label, text in pairs.items())
            return {"series": f"{name}{{{written}}}", "values": f"{value}x10"}

        checks = [
            {"expr": f"clamp_max(count({expression}), 1)", "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]}
            for _, expression in targets()
        ]
        test = {"input_series": [series("up", {}, 1), *(series(*sample) for sample in self.samples)], "interval": "1m", "promql_expr_test": checks}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "panels.yml")
            with open(path, "w", encoding="utf-8") as file:
                yaml.safe_dump({"rule_files": [RECORDING], "evaluation_interval": "1m", "tests": [test]}, file)
            done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class DashboardTest(unittest.TestCase):
    def test_it_asks_its_questions_in_order(self):
        rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
        self.assertEqual(rows, ["Is it up?", "Is it slow?", "Why?", "Is it right?"])

    def test_panels_are_told_apart_and_do_not_overlap(self):
        everything = dashboard()["panels"]
        self.assertEqual(len({panel["id"] for panel in everything}), len(everything))
        taken = set()
        for panel in everything:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            taken |= cells

    def test_no_panel_is_bound_to_one_installation(self):
        for panel in panels():
            for target in panel["targets"]:
                self.assertEqual(target["datasource"]["uid"], "${datasource}", panel["title"])
                self.assertIn('job="$job"', target["expr"], panel["title"])


if __name__ == "__main__":
    unittest.main()
