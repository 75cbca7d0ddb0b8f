"""`stepcast completion` in a real bash, zsh and fish: every command and option that the help shows is completed, and nothing else is."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

STEPCAST = os.environ["STEPCAST"]


def stepcast(*arguments, **options):
    return subprocess.run([STEPCAST, *arguments], capture_output=True, text=True, **options)


def help_of(path):
    """The commands below, and the options, that the help of a command shows."""
    text = stepcast(*path, "--help-all").stdout
    commands = re.search(r"^Subcommands:\n((?:  .*\n)*)", text, re.M)
    options = re.findall(r"^  ((?:-\w,)?--[a-z0-9-]+)", text, re.M)
    return re.findall(r"^  ([a-z-]+)", commands[1], re.M) if commands else [], {name for names in options for name in names.split(",")}


def tree(path=(), above=frozenset()):
    """path -> (commands, options), of every command; an option of a command may stand after those below it."""
    commands, options = help_of(path)
    found = {path: (commands, above | options)}
    for command in commands:
        found.update(tree((*path, command), above | options))
    return found


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = stepcast("completion", "bash", check=True).stdout

    def complete(self, *lines, folder="/"):
        """What bash's function leaves for each line, a list of words the last of which is being written."""
        program = self.script + 'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stepcast; printf "%s\\n" "${COMPREPLY[@]}" .; }\n'
        program += "\n".join("ask stepcast " + shlex.join(line) for line in lines)
        done = subprocess.run(["bash", "--norc", "-u", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return [[word for word in answer.splitlines() if word] for answer in done.stdout.split(".\n")[:-1]]

    def test_every_command_and_option_of_the_help_is_completed(self):
        found = tree()
        self.assertGreater(len(found), 25)
        self.assertIn(("job", "start", "predict"), found)
        commands = self.complete(*((*path, "") for path, (below, _) in found.items() if below))
        for path, answer in zip((path for path, (below, _) in found.items() if below), commands, strict=True):
            self.assertEqual(answer, found[path][0], path)
        options = self.complete(*((*path, "-") for path in found))
        for path, answer in zip(found, options, strict=True):
            self.assertEqual(set(answer), found[path][1], path)

    def test_commands_are_found_behind_options_and_their_values(self):
        words = self.complete(
            ["--output", "json", "jo"],
            ["--output", "=", "json", "jo"],
            ["--local", "--timeout", "profile", "pro"],
            ["job", "--server", "host", "st"],
            ["job", "start", "--wa"],
            ["job", "start", "predict", "--wa"],
        )
        self.assertEqual(words, [["job"], ["job"], ["profile"], ["start"], [], ["--warmup", "--wait"]])

    def test_values_are_those_of_the_type(self):
        words = self.complete(
            ["--output", ""], ["--output", "="], ["--output", "=", "j"], ["--output=t"], ["predict", "x", "--order", "r"], ["profile", "import", "--format", ""],
            ["completion", ""], ["predict", "--workers", ""], ["recommend", "x", "--plot", "--ser"], ["help", "dia"])  # fmt: skip
        self.assertEqual(
            words,
            [["table", "json"], ["table", "json"], ["json"], ["--output=table"], ["recorded", "random", "reverse"], ["layers", "run-metadata", "timeline", "pytorch", "chakra", "horovod"],
             ["bash", "zsh", "fish"], [], ["--server", "--server-hour", "--servers", "--server-partition"], ["diagnose"]])  # fmt: skip

    def test_every_model_that_is_completed_is_in_the_zoo(self):
        (models,) = self.complete(["profile", "zoo", ""])
        self.assertIn("resnet50", models)
        with tempfile.TemporaryDirectory() as folder:
            for model in models:
                asked = ("--local", "profile", "zoo", model, "--bandwidth", "1Gbit/s", "--save", os.path.join(folder, model))
                made = [stepcast(*asked, *communication) for communication in ((), ("--all-reduce",))]
                self.assertIn(0, [run.returncode for run in made], [run.stderr for run in made])

    def test_folders_are_completed_where_one_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "a folder"))
            with open(os.path.join(folder, "a.json"), "w", encoding="utf-8"):
                pass
            self.assertEqual(self.complete(["profile", "sync", "a"], folder=folder), [["a folder"]])

    def test_files_are_completed_where_one_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a profile.json", "a.svg"):
                with open(os.path.join(folder, name), "w", encoding="utf-8"):
                    pass
            both = ["a profile.json", "a.svg"]
            words = self.complete(["predict", "a"], ["allocate", "a"], ["--tls-ca", "a"], ["predict", "x", "--plot", "a"], ["job", "get", "a"], folder=folder)
            self.assertEqual([sorted(answer) for answer in words], [both, both, both, both, []])

    def test_clusters_are_completed_beside_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "p4-of-ours.json"), "w", encoding="utf-8"):
                pass
            words = self.complete(["predict", "x", "--cluster", "p"], ["predict", "x", "--cluster=p4d"], ["clusters", "p"], ["clusters", ""], folder=folder)
        presets = [name for name in words[3] if name.startswith("p")]
        self.assertIn("p4d", presets)
        self.assertEqual(words[:3], [[*presets, "p4-of-ours.json"], [f"--cluster={name}" for name in presets if name.startswith("p4d")], presets])
        self.assertIn("dgx-a100", words[3])

    def test_a_shell_that_is_not_known_is_named(self):
        refused = stepcast("completion", "tcsh")
        self.assertEqual(refused.returncode, 2)
        for name in ("tcsh", "bash", "zsh", "fish"):
            self.assertIn(name, refused.stderr)

    def test_the_program_completes_itself(self):
        # As the README says it.
        program = 'PATH="$1:$PATH"; source <(stepcast completion bash); complete -p stepcast'
        done = subprocess.run(["bash", "--norc", "-c", program, "bash", os.path.dirname(STEPCAST)], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "complete -F _stepcast stepcast\n")


class OtherShells:
    """The same of a shell whose `complete` a class has: the candidates for a line, a list of words the last of which is being written."""

    def test_every_command_and_option_of_the_help_is_completed(self):
        found = tree()
        parents = [path for path, (below, _) in found.items() if below]
        # A command with others below it may take a file, too: there is none.
        with tempfile.TemporaryDirectory() as folder:
            answers = self.complete(*((*path, "") for path in parents), folder=folder)
        for path, answer in zip(parents, answers, strict=True):
            self.assertEqual(set(answer), set(found[path][0]), path)
        for path, answer in zip(found, self.complete(*((*path, "--") for path in found)), strict=True):
            self.assertEqual(set(answer), {option for option in found[path][1] if option.startswith("--")}, path)

    def test_commands_are_found_behind_options_and_their_values(self):
        words = self.complete(["--output", "json", "jo"], ["--timeout", "profile", "pro"], ["job", "--server", "host", "st"], ["job", "start", "predict", "--wa"])
        self.assertEqual([sorted(answer) for answer in words], [["job"], ["profile"], ["start"], ["--wait", "--warmup"]])

    def test_values_are_those_of_the_type(self):
        words = self.complete(["--output", ""], ["predict", "x", "--order", "r"], ["completion", ""], ["predict", "--workers", ""], ["--output=t"])
        self.assertEqual([sorted(answer) for answer in words[:3]], [["json", "table"], ["random", "recorded", "reverse"], ["bash", "fish", "zsh"]])
        self.assertEqual(words[3], [])
        self.assertEqual([word.removeprefix("--output=") for word in words[4]], ["table"])

    def test_clusters_and_commands_are_completed(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "p4d.json"), "w", encoding="utf-8"):
                pass
            words = self.complete(["predict", "x", "--cluster", "p4"], ["clusters", "p4"], ["help", "dia"], folder=folder)
        self.assertEqual([sorted(answer) for answer in words], [["p4d", "p4d.json"], ["p4d"], ["diagnose"]])

    def test_files_are_completed_where_one_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.json", "a.svg"):
                with open(os.path.join(folder, name), "w", encoding="utf-8"):
                    pass
            words = self.complete(["predict", "a."], ["--tls-ca", "a."], ["job", "get", "a."], folder=folder)
            self.assertEqual([sorted(answer) for answer in words], [["a.json", "a.svg"], ["a.json", "a.svg"], []])


@unittest.skipUnless(shutil.which("zsh"), "there is no zsh: ./dev test installs it")
class ZshTest(OtherShells, unittest.TestCase):
    # zsh's own functions that keep candidates print them; it would leave out those that do not begin as the word does.
    STUBS = """
compdef() {}
_files() { print -rl -- ${PREFIX}*(N) }
compset() { PREFIX="${PREFIX#*=}" }
compadd() { shift; local each; for each in "$@"; do [[ "$each" == "$PREFIX"* ]] && print -r -- "$each"; done }
ask() { words=("$@"); CURRENT=$#; PREFIX="${words[CURRENT]}"; _stepcast; print . }
"""

    @classmethod
    def setUpClass(cls):
        cls.script = stepcast("completion", "zsh", check=True).stdout

    def complete(self, *lines, folder="/"):
        program = self.STUBS + self.script + "\n".join("ask stepcast " + shlex.join(line) for line in lines)
        done = subprocess.run(["zsh", "-f", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return [[word for word in answer.splitlines() if word] for answer in done.stdout.split(".\n")[:-1]]


@unittest.skipUnless(shutil.which("fish"), "there is no fish: ./dev test installs it")
class FishTest(OtherShells, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = stepcast("completion", "fish", check=True).stdout

    def complete(self, *lines, folder="/"):
        with tempfile.TemporaryDirectory() as home:
            program = self.script + "\n".join(f'complete -C "stepcast {" ".join(line)}"; echo .' for line in lines)
            done = subprocess.run(
                ["fish", "--no-config"], input=program, cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, "HOME": home}
            )
        self.assertEqual(done.stderr, "")
        answers, answer = [], []
        for line in done.stdout.splitlines():
            if line == ".":
                answers.append(answer)
                answer = []
            else:
                answer.append(line.split("\t")[0])
        return answers


if __name__ == "__main__":
    unittest.main()
