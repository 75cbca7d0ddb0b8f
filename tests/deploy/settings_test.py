"""Every setting in deploy/ and the Dockerfile is one of the server's, which accepts its value."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from deployment import ALERTING, compose_server, compose_variables, container, environment, flags, image_command, overlays, pod, rules, seconds_of, tls

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from certificates import Authority  # noqa: E402
from postgres import Postgres  # noqa: E402
from stepcastd import Server  # noqa: E402

# The time that the server may take to exit once it has stopped (server/docs/decisions.md).
EXIT_SECONDS = 2
# Read by libpq.
LIBPQ_VARIABLES = {"PGPASSWORD"}


class SettingsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        usage = subprocess.run([os.environ["STEPCASTD"], "--help"], capture_output=True, text=True, check=True).stdout
        # name, default and variable of each flag.
        cls.settings = re.findall(r"^  (--[a-z-]+)(?:[^=\n]*=(\S*)|[^=\n]*?) \(Env:(\w+)\)", usage, re.M)
        cls.flags = {flag for flag, _, _ in cls.settings}
        # Those that start no server, too.
        cls.every_flag = set(re.findall(r"^  (--[a-z-]+)", usage, re.M))
        cls.defaults = {variable: default for _, default, variable in cls.settings}
        assert len(cls.settings) > 10, usage

    def seconds_to_stop(self, variables):
        return EXIT_SECONDS + sum(seconds_of(variables.get(name, self.defaults[name])) for name in ("STEPCAST_DRAIN_DELAY", "STEPCAST_DRAIN_TIMEOUT"))

    def starts(self, variables, *arguments):
        # Only not to wait.
        with mock.patch.dict(os.environ, {**variables, "STEPCAST_DRAIN_DELAY": "0s"}):
            server = Server(*arguments)
        try:
            self.assertEqual(server.http("/readyz")[0], 200)
        finally:
            self.assertEqual(server.close(), 0)

    def test_flags_are_the_servers(self):
        for arguments in (*(container(overlay)["args"] for overlay in overlays()), image_command()[1:], compose_server().get("command", [])):
            written = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
            self.assertEqual(len(written), len(flags(arguments)), arguments)
            self.assertLessEqual(set(written), self.flags)
        self.assertEqual(image_command()[0], "stepcastd")

    def test_embedded_pods_are_started_as_the_image_is(self):
        asked = {**flags(container("embedded")["args"]), "--allow-insecure": environment(container("embedded")["env"])["STEPCAST_ALLOW_INSECURE"]}
        self.assertEqual(asked, flags(image_command()))

    def test_variables_are_the_servers(self):
        for overlay in overlays():
            self.assertLessEqual({variable["name"] for variable in container(overlay)["env"]} - LIBPQ_VARIABLES, self.defaults.keys())
        (patch,) = tls()["containers"]
        self.assertLessEqual({variable["name"] for variable in patch["env"]}, self.defaults.keys())
        self.assertLessEqual(compose_variables().keys() - LIBPQ_VARIABLES, self.defaults.keys())

    def test_the_server_starts_with_these_values(self):
        for variables in (environment(container("embedded")["env"]), compose_server()["environment"]):
            self.starts(variables)

    def test_the_server_starts_with_the_shared_values_and_a_database(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        for variables in ({**environment(container("shared")["env"]), "STEPCAST_STORE": flags(container("shared")["args"])["--store"]}, compose_variables()):
            self.starts({**variables, "STEPCAST_POSTGRES": postgres.new_database(), "PGPASSWORD": "unused"})

    def test_the_server_accepts_the_files_of_secrets_beyond_loopback(self):
        (patch,) = tls()["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in patch["volumeMounts"]}
        with tempfile.TemporaryDirectory() as folder:
            for name in mounts:
                os.mkdir(os.path.join(folder, name))
            pair = Authority(folder, "authority").sign_server()
            os.rename(pair.certificate, os.path.join(folder, "tls/tls.crt"))
            os.rename(pair.key, os.path.join(folder, "tls/tls.key"))
            with open(os.path.join(folder, "tokens/tokens.yaml"), "w", encoding="utf-8") as file:
                file.write("- {name: scheduler, role: writer, token: 0123456789abcdef}\n")
            for volume in tls()["volumes"]:
                for file in os.scandir(os.path.join(folder, volume["name"])):
                    os.chmod(file.path, volume["secret"]["defaultMode"])
            variables = environment(patch["env"])
            for name, path in mounts.items():
                variables = {variable: value.replace(path, os.path.join(folder, name)) for variable, value in variables.items()}
            command = [os.environ["STEPCASTD"], "--check-config", *container("embedded")["args"]]
            done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def test_nobody_kills_a_server_that_drains(self):
        for overlay in overlays():
            self.assertGreater(pod(overlay)["terminationGracePeriodSeconds"], self.seconds_to_stop(environment(container(overlay)["env"])))
        self.assertGreater(float(compose_server()["stop_grace_period"].removesuffix("s")), self.seconds_to_stop(compose_server()["environment"]))

    def test_a_start_that_waits_for_the_database_is_not_cut_short(self):
        probe = container("shared")["startupProbe"]
        self.assertGreater(probe["periodSeconds"] * probe["failureThreshold"], float(environment(container("shared")["env"])["STEPCAST_STORE_WAIT_SECONDS"]))

    def test_flags_that_alerts_name_are_the_servers(self):
        alerts = [rule for rule in rules(ALERTING) if "alert" in rule]
        written = " ".join(" ".join(rule["annotations"].values()) for rule in alerts)
        self.assertLessEqual(set(re.findall(r"--[a-z-]+", written)), self.every_flag)
        self.assertLessEqual(set(re.findall(r"STEPCAST_[A-Z_]+", written)), self.defaults.keys())


if __name__ == "__main__":
    unittest.main()
