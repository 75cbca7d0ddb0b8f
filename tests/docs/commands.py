"""The commands of a page, run as a reader would type them, and what is written of their output.

A block ```console holds commands (`$ `, and `> ` for their further lines), each followed by what it prints. ```sh is a script,
which must end with status 0. Behind the language may stand

  varies        numbers differ from run to run: only the words between them are compared
  no-run=WHY    it is not run, for want of WHY (WHY_NOT below)

In the written output a line `...` stands for any lines, and a line that ends in ` ...` for any line that begins so. Commands
run in a folder that holds the tree, one bash a block. `stepcastd` is started, kept until the page ends, and listens on free
ports, which take the place of 50051 and 9464 in commands and outputs.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from pages import MAX_COLUMNS, TOP

sys.path.append(str(TOP / "tests" / "e2e"))
from ports import free_ports  # noqa: E402

WHY_NOT = {
    "cluster": "a Kubernetes cluster",
    "docker": "a container engine",
    "gpu": "a GPU",
    "kubectl": "kubectl, which Debian's kubernetes-client has",
    "install": "root, a network and a machine to change",
    "long": "minutes of a processor",
    "postgres": "a PostgreSQL server",
    "slurm": "a Slurm cluster",
    "torch": "PyTorch",
    "yours": "files of the reader",
}

_MARK = "\x01end of command\x01"
_ELISION = "..."
_SECONDS = 120
_TOP_ENTRIES_LEFT_OUT = {"build", ".git", "node_modules"}


class Command:
    """A command of a block, and the lines written below it."""

    def __init__(self, text):
        self.text = text
        self.written = []
        self.printed = []
        self.status = 0


def commands_of(block):
    commands = []
    for line in block.lines:
        if line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif line.startswith("> ") and commands and not commands[-1].written:
            commands[-1].text += "\n" + line[2:]
        elif commands:
            commands[-1].written.append(line)
        else:
            raise ValueError(f"a block begins with `{line}`, which is not a command")
    for command in commands:
        while command.written and not command.written[-1]:
            command.written.pop()
    return commands


def is_server(text):
    return re.match(r"stepcastd\b", text) is not None and not re.search(r"--(check-config|print-config|help|version|backup)", text)


def _shape(line):
    """A line without its numbers, units and columns."""
    line = re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", line)
    line = re.sub(r"# ?(ns|us|ms|s|min|h|B|KiB|MiB|GiB|kB|MB|GB|ns/s|us/s)\b", "#", line)
    return re.sub(r"[\s-]+", " ", line).strip()


def _same_line(written, printed, varies):
    shape = _shape if varies else str.rstrip
    if written.endswith(" " + _ELISION):
        return shape(printed).startswith(shape(written[: -len(_ELISION) - 1]))
    return shape(written) == shape(printed)


def matches(written, printed, varies=False):
    """Whether the lines `written` in a document stand for the lines `printed`."""
    if not written:
        return not printed
    if written[0].strip() == _ELISION:
        return any(matches(written[1:], printed[skipped:], varies) for skipped in range(len(printed) + 1))
    return bool(printed) and _same_line(written[0], printed[0], varies) and matches(written[1:], printed[1:], varies)


def _shortened(line):
    return line if len(line) <= MAX_COLUMNS else line[: MAX_COLUMNS - len(_ELISION) - 1].rstrip() + " " + _ELISION


def rewritten(written, printed):
    """The lines to write instead, with the elisions of `written` where they can be kept."""
    if _ELISION not in [line.strip() for line in written]:
        return [_shortened(line.rstrip()) for line in printed]
    parts, part = [], []
    for line in written:
        if line.strip() == _ELISION:
            parts.append(part)
            part = []
        else:
            part.append(line)
    head, middle, tail = parts[0], parts[1:], part
    lines = [_shortened(line.rstrip()) for line in printed[: len(head)]] + [_ELISION]
    rest = printed[len(head) : len(printed) - len(tail)]
    for segment in middle:
        for line in segment:
            # The line that begins with the same words.
            found = [each for each in rest if each[:12] == line[:12]]
            if found:
                lines.append(_shortened(found[0].rstrip()))
                rest = rest[rest.index(found[0]) + 1 :]
        lines.append(_ELISION)
    return lines + [_shortened(line.rstrip()) for line in printed[len(printed) - len(tail) :] if tail]


class Reader:
    """Types what a page says. A context manager: what it started ends with it."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stepcast-docs-"))
        self.tree = self.folder / "stepcast"
        self.tree.mkdir()
        for entry in TOP.iterdir():
            if entry.name not in _TOP_ENTRIES_LEFT_OUT:
                (self.tree / entry.name).symlink_to(entry)
        programs = self.folder / "bin"
        programs.mkdir()
        for name, variable in (("stepcast", "STEPCAST"), ("stepcastd", "STEPCASTD")):
            (programs / name).symlink_to(os.environ[variable])
        (programs / "kubectl-stepcast").symlink_to(TOP / "deploy/kubernetes/kubectl-stepcast")
        self.ports = dict(zip(("50051", "9464"), free_ports(2)))
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "100",
            "PYTHONDONTWRITEBYTECODE": "1",
            "STEPCAST_LISTEN": f"127.0.0.1:{self.ports['50051']}",
            "STEPCAST_HTTP_LISTEN": f"127.0.0.1:{self.ports['9464']}",
            # Of programs that were built with a sanitizer.
            **{name: os.environ[name] for name in ("ASAN_OPTIONS", "LSAN_OPTIONS") if name in os.environ},
        }
        self.server = None
        return self

    def __exit__(self, *_):
        self._stop_server()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, block):
        """Runs the commands of a block, and returns them."""
        commands = commands_of(block)
        batch = []
        for command in commands:
            if is_server(command.text):
                self._run_batch(batch)
                batch = []
                self._start_server(command)
            else:
                batch.append(command)
        self._run_batch(batch)
        return commands

    def run_script(self, block):
        """(status, output) of a script."""
        done = self._bash(self._to_here("\n".join(["set -e", *block.lines])))
        return done.returncode, self._from_here(done.stdout)

    def _bash(self, text):
        return subprocess.run(
            ["bash", "--norc", "-c", text], cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_SECONDS, check=False)  # fmt: skip

    def _run_batch(self, batch):
        if not batch:
            return
        script = "".join(f"{self._to_here(command.text)}\nprintf '%s%d\\n' '{_MARK}' $?\n" for command in batch)
        parts = re.split(f"{_MARK}(\\d+)\n", self._bash(script).stdout)
        for index, command in enumerate(batch):
            text = parts[2 * index] if 2 * index < len(parts) else ""
            command.status = int(parts[2 * index + 1]) if 2 * index + 1 < len(parts) else -1
            command.printed = [line.rstrip() for line in self._from_here(text).rstrip("\n").split("\n")] if text.strip("\n") else []

    def _to_here(self, text):
        for written, port in self.ports.items():
            text = re.sub(rf"(?<=:){written}\b", str(port), text)
        return text

    def _from_here(self, text):
        for written, port in self.ports.items():
            text = text.replace(f":{port}", f":{written}")
        return text.replace(str(self.tree), "/home/you/stepcast")

    def _start_server(self, command):
        self._stop_server()
        text = self._to_here(command.text).rstrip("& ")
        self.server = subprocess.Popen(
            ["bash", "--norc", "-c", "exec " + text], cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        for line in self.server.stdout:
            command.printed.append(self._from_here(line.rstrip()))
            if line.startswith("listening http"):
                break
        else:
            command.status = self.server.wait()
        self.reader = threading.Thread(target=self.server.stdout.read, daemon=True)
        self.reader.start()
        self.environment["STEPCAST_SERVER"] = f"127.0.0.1:{self.ports['50051']}"

    def _stop_server(self):
        if self.server is None:
            return
        if self.server.poll() is None:
            self.server.terminate()
            self.server.wait()
        self.reader.join()
        self.server.stdout.close()
        self.server = None
        self.environment.pop("STEPCAST_SERVER", None)
