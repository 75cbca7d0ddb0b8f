"""The help of every command: short, complete on request, and of that command alone."""

import os
import re
import subprocess
import unittest

from completion_test import stepcast, tree


def flags(text):
    return set(re.findall(r"(--[a-z][a-z0-9-]*)", text))


class HelpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.paths = list(tree())
        cls.helps = {path: stepcast(*path, "--help").stdout for path in cls.paths}
        cls.whole = {path: stepcast(*path, "--help-all").stdout for path in cls.paths}

    def test_help_is_short_and_narrow(self):
        for path, text in self.helps.items():
            with self.subTest(path):
                self.assertLess(text.count("\n"), 60)
        for path, text in {**self.helps, **self.whole}.items():
            with self.subTest(path):
                # A list of choices is one word.
                self.assertEqual([line for line in text.splitlines() if len(line) > 100 and " " in line.strip() and "|" not in line], [])

    def test_what_is_left_out_is_counted(self):
        left_out = 0
        for path, text in self.helps.items():
            rows = [len(re.findall(r"^  (?:-\w,)?--", shown, re.M)) for shown in (text, self.whole[path])]
            counted = re.search(r"^(\d+) more flags: (.*) --help-all$", text, re.M)
            with self.subTest(path):
                self.assertEqual(rows[1] - rows[0], int(counted[1]) if counted else 0)
                if counted:
                    self.assertEqual(counted[2], " ".join(("stepcast", *path)))
            left_out += rows[1] - rows[0]
        self.assertGreater(left_out, 100)

    def test_common_flags_are_shown(self):
        for path in (("predict",), ("recommend",), ("report",), ("tune",)):
            self.assertLessEqual({"--cluster", "--bandwidth", "--workers", "--workers-per-node"}, flags(self.helps[path]), path)

    def test_examples_are_of_the_command_and_have_its_flags(self):
        seen = 0
        for path, text in self.helps.items():
            for example in re.findall(r"^  .*\bstepcast (.*)$", text.partition("\nExamples:\n")[2], re.M):
                with self.subTest(example):
                    if path:
                        self.assertEqual(tuple(word for word in example.split() if word in path)[: len(path)], path)
                        self.assertLessEqual(flags(example), flags(self.whole[path]) | flags(self.whole[()]))
                    seen += 1
        self.assertGreater(seen, 20)

    def test_the_command_help_says_the_same(self):
        for path in self.paths:
            if path != ("help",):
                self.assertEqual(stepcast("help", *path).stdout, self.helps[path], path)
                self.assertEqual(stepcast("help", "--all", *path).stdout, self.whole[path], path)

    def test_help_of_a_command_that_is_not_there(self):
        for words, meant in ((["predct"], "predict"), (["job", "strat"], "start")):
            refused = stepcast("help", *words)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn(f'unknown command "{words[-1]}"; did you mean {meant}?', refused.stderr)

    def test_mistyped_commands_and_flags_are_told_what_is_like_them(self):
        for words, meant in ((["predct", "x"], "predict"), (["predict", "x", "--bandwith", "1Gbit/s"], "--bandwidth")):
            refused = stepcast(*words)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"did you mean {meant}?", refused.stderr)

    def test_manual_pages_hold_all_flags(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/packages/man_pages.sh")
        with open(script, encoding="utf-8") as file:
            self.assertIn("--help-all", file.read())
        done = subprocess.run([os.environ["STEPCAST"], "predict", "--help-all"], capture_output=True, text=True, check=True)
        self.assertIn("--quantum BYTES", done.stdout)


if __name__ == "__main__":
    unittest.main()
