"""Every setting in deploy/ and the Dockerfile is one of the server's, which accepts its value."""

import os
import re
import subprocess
import sys
import unittest
from unittest import mock

from deployment import ALERTING, compose_server, container, environment, flags, image_command, pod, rules

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from stepcastd import Server  # noqa: E402

# How long the server may take to exit once it has stopped (server/README.md, "Decisions").
EXIT_SECONDS = 2


class SettingsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        usage = subprocess.run([os.environ["STEPCASTD"], "--help"], capture_output=True, text=True, check=True).stdout
        # name, default and variable of each flag.
        cls.settings = re.findall(r"^  (--[a-z-]+)(?:[^=\n]*=(\S*)|[^=\n]*?) \(Env:(\w+)\)", usage, re.M)
        cls.flags = {flag for flag, _, _ in cls.settings}
        cls.defaults = {variable: default for _, default, variable in cls.settings}
        assert len(cls.settings) > 10, usage

    def seconds_to_stop(self, variables):
        return EXIT_SECONDS + sum(float(variables.get(name, self.defaults[name])) for name in ("STEPCAST_DRAIN_DELAY", "STEPCAST_DRAIN_TIMEOUT"))

    def test_flags_are_the_servers(self):
        for arguments in (container()["args"], image_command()[1:], compose_server().get("command", [])):
            written = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
            self.assertEqual(len(written), len(flags(arguments)), arguments)
            self.assertLessEqual(set(written), self.flags)
        self.assertEqual(image_command()[0], "stepcastd")

    def test_the_pods_flags_are_the_images(self):
        self.assertEqual(flags(container()["args"]), flags(image_command()))

    def test_variables_are_the_servers(self):
        self.assertLessEqual({variable["name"] for variable in container()["env"]}, self.defaults.keys())
        self.assertLessEqual(compose_server().get("environment", {}).keys(), self.defaults.keys())

    def test_the_server_starts_with_these_values(self):
        for variables in (environment(), compose_server()["environment"]):
            # Only not to wait.
            with mock.patch.dict(os.environ, {**variables, "STEPCAST_DRAIN_DELAY": "0"}):
                server = Server()
            try:
                self.assertEqual(server.http("/readyz")[0], 200)
            finally:
                self.assertEqual(server.close(), 0)

    def test_nobody_kills_a_server_that_drains(self):
        self.assertGreater(pod()["terminationGracePeriodSeconds"], self.seconds_to_stop(environment()))
        self.assertGreater(float(compose_server()["stop_grace_period"].removesuffix("s")), self.seconds_to_stop(compose_server()["environment"]))

    def test_flags_that_alerts_name_are_the_servers(self):
        alerts = [rule for rule in rules(ALERTING) if "alert" in rule]
        written = " ".join(" ".join(rule["annotations"].values()) for rule in alerts)
        self.assertLessEqual(set(re.findall(r"--[a-z-]+", written)), self.flags)
        self.assertLessEqual(set(re.findall(r"STEPCAST_[A-Z_]+", written)), self.defaults.keys())

    def test_the_alert_of_a_store_nearly_full_is_about_nine_tenths_of_the_default(self):
        (alert,) = [rule for rule in rules(ALERTING) if rule["alert"] == "StepcastStoreNearlyFull"]
        self.assertEqual(int(alert["expr"].split(">")[1]), 0.9 * int(self.defaults["STEPCAST_MAX_PROFILES"]))


if __name__ == "__main__":
    unittest.main()
