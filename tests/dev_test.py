"""`./dev` says how it is used at once: no help builds, installs or asks the network for anything."""

import os
import re
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Whatever takes long, or changes the machine.
TRAPS = ("apt-get", "cmake", "cpack", "ctest", "dpkg-query", "npm", "sudo")


def run(*arguments):
    """(exit status, standard output, standard error, the traps that were called)."""
    with tempfile.TemporaryDirectory(prefix="stepcast-dev-") as folder:
        called = os.path.join(folder, "called")
        for name in TRAPS:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho {name} >>'{called}'\nexit 99\n")
            os.chmod(path, 0o755)
        done = subprocess.run(
            [os.path.join(TOP, "dev"), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        )
        traps = []
        if os.path.exists(called):
            with open(called, encoding="utf-8") as file:
                traps = sorted(set(file.read().split()))
        return done.returncode, done.stdout, done.stderr, traps


def verbs():
    """As the script tells them apart."""
    with open(os.path.join(TOP, "dev"), encoding="utf-8") as file:
        cases = file.read().split("\nmain() {")[1]
    return re.findall(r"^    ([a-z]+)\) \w+ \"\$@\" ;;$", cases, re.M)


class HelpTest(unittest.TestCase):
    def test_the_usage_has_every_verb_and_no_other(self):
        status, out, errors, traps = run("--help")
        self.assertEqual((status, errors, traps), (0, "", []))
        self.assertEqual(sorted(re.findall(r"^  ([a-z]+)\b", out, re.M)), sorted(verbs()))
        self.assertEqual(run()[:2], (0, out))

    def test_every_verb_says_how_it_is_used_without_a_build(self):
        self.assertGreater(len(verbs()), 8)
        for verb in verbs():
            for arguments in ([verb, "--help"], [verb, "-h"], [verb, "--seconds", "1", "--help"]):
                with self.subTest(arguments):
                    status, out, errors, traps = run(*arguments)
                    self.assertEqual((status, errors, traps), (0, "", []))
                    self.assertRegex(out, rf"^(  {verb}\b|usage: \./dev {verb}\b)")
                    others = [other for other in verbs() if other != verb and re.search(rf"^  {other}\b", out, re.M)]
                    self.assertEqual(others, [])

    def test_verbs_that_hand_options_on_name_them(self):
        for arguments, option in (
            (["testbed", "--help"], "--most-restarts"),
            (["testbed", "--ddp", "--help"], "--record-to"),
            (["fuzz", "--help"], "--coverage"),
            (["endure", "soak", "--help"], "--seed"),
            (["bench", "--help"], "--rounds"),
        ):
            with self.subTest(arguments):
                self.assertIn(option, run(*arguments)[1])

    def test_what_is_no_verb_has_no_help(self):
        status, out, errors, traps = run("polish", "--help")
        self.assertEqual((status, out, traps), (2, "", []))
        self.assertTrue(errors.startswith("Usage: ./dev VERB"), errors)

    def test_a_trap_is_seen(self):
        # So that an empty list above says something.
        self.assertTrue(run("build", "release")[3])


if __name__ == "__main__":
    unittest.main()
