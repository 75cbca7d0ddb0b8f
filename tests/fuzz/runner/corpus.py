"""The inputs of one target: the archive and the findings in the tree, and the folder that fuzzing adds to."""

import os
import pathlib
import shutil
import subprocess
import tarfile

_FUZZ = pathlib.Path(__file__).resolve().parents[1]
MAX_BYTES = 8192  # of an input
# The program itself bounds an input's processor time; on a busy machine any input may take long.
_LIMITS = [f"-max_len={MAX_BYTES}", "-timeout=600", "-report_slow_units=600", "-rss_limit_mb=2048", "-malloc_limit_mb=256"]


class Corpus:
    def __init__(self, target, programs, work):
        self.target = target
        self.program = programs.resolve() / f"stepcast_fuzz_{target}"
        self.folder = work.resolve() / "corpus" / target
        self.archive = _FUZZ / "corpus" / f"{target}.tar.xz"
        self.findings = _FUZZ / "findings" / target

    def unpack(self):
        """Seeds, what the tree has, and what was found since, in one folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([self.program, "--write-seeds", self.folder], check=True, env=environment())
        if self.archive.exists():
            with tarfile.open(self.archive) as archive:
                archive.extractall(self.folder)
        if self.findings.is_dir():
            shutil.copytree(self.findings, self.folder, dirs_exist_ok=True)

    def command(self, *options):
        return [self.program, *_LIMITS, *options]

    def merge(self):
        """Puts the least that covers as much as the folder into the tree; says how much that is."""
        least = self.folder.with_name(self.target + ".least")
        shutil.rmtree(least, ignore_errors=True)
        least.mkdir()
        subprocess.run(self.command("-merge=1", least, self.folder), check=True, env=environment(), stderr=subprocess.DEVNULL)
        self._pack(least)
        shutil.rmtree(self.folder)
        least.rename(self.folder)
        return f"{self.target}: {sum(1 for _ in self.folder.iterdir())} inputs, {self.archive.stat().st_size} bytes packed"

    def _pack(self, folder):
        # The same inputs make the same archive.
        def plain(entry):
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o644
            return entry

        self.archive.parent.mkdir(exist_ok=True)
        with tarfile.open(self.archive, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name, filter=plain)


def environment(profile=os.devnull):
    """`profile`: where the program says which lines it ran through."""
    return os.environ | {"LLVM_PROFILE_FILE": str(profile), "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=0",
                         "UBSAN_OPTIONS": "print_stacktrace=1"}
