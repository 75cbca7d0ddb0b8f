"""Settings from a file, the environment and flags, as the process takes them."""

import os
import subprocess
import tempfile
import unittest
from unittest import mock

from stepcastd import PATIENCE_SECONDS, Server


def run(*arguments, **variables):
    """(exit status, stdout, stderr) of a stepcastd that is not to serve."""
    done = subprocess.run([os.environ["STEPCASTD"], *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


class FileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepcast-config-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "stepcastd.yaml")

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.path


class ConfigTest(FileTest):
    def test_a_sound_configuration_is_ok(self):
        self.assertEqual(run("--check-config", "--config", self.write("threads: 2\n")), (0, "ok\n", ""))

    def test_every_fault_is_a_line_and_nothing_is_served(self):
        self.write("threads: many\nbogus: 1\n")
        for mode in (["--check-config"], []):
            status, out, errors = run(*mode, "--config", self.path, "--queue-max", "-1", STEPCAST_LOG_LEVEL="loud")
            self.assertEqual((status, out), (2, ""))
            lines = errors.splitlines()
            self.assertEqual(len(lines), 4, errors)
            for line, parts in zip(lines, ((f"{self.path}:1", "--threads", "many"), (f"{self.path}:2", "bogus"), ("STEPCAST_LOG_LEVEL", "loud"), ("--queue-max", "-1"))):
                for part in ("stepcastd: ", *parts):
                    self.assertIn(part, line)

    def test_what_is_printed_is_a_sound_configuration(self):
        status, out, _ = run("--print-config", "--threads", "3", STEPCAST_QUEUE_MAX="9")
        self.assertEqual(status, 0)
        self.assertIn("threads: 3  # --threads\n", out)
        self.assertIn("queue-max: 9  # STEPCAST_QUEUE_MAX\n", out)
        self.assertEqual(run("--check-config", "--config", self.write(out))[:2], (0, "ok\n"))

    def test_a_server_serves_with_its_file_and_says_which_variables_it_ignores(self):
        with mock.patch.dict(os.environ, {"STEPCAST_TREADS": "3"}):
            server = Server("--config", self.write("log-format: json\n"))
        try:
            self.assertEqual(server.http("/readyz")[0], 200)
            ignored = [line for line in server.errors().splitlines() if "STEPCAST_TREADS" in line]
            self.assertEqual(len(ignored), 1)
            self.assertIn('"level":"warning"', ignored[0])
        finally:
            self.assertEqual(server.close(), 0)


if __name__ == "__main__":
    unittest.main()
