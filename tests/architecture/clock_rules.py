"""The clocks and sleeps that tests name, against the table `clocks` of README.md in this folder."""

import os
import re

_EXTENSIONS = (".cc", ".h", ".cpp", ".hpp", ".py", ".mjs", ".js", ".cjs", ".ts", ".sh")
# Packages of npm, and data that fuzzers and recordings made.
_SKIPPED_FOLDERS = {"node_modules", "corpus", "findings", "data", "__pycache__"}

_CPP = (
    r"\b(?:steady|system|high_resolution|file|utc|tai|gps)_clock\b|\babsl::Now\b|\bGetCurrentTimeNanos\b|\b(?:RealClock|SteadyLoadClock)\b"
    r"|\bclock_get\w+|\bclock_t\b|\bCLOCKS_PER_SEC\b|\bgettimeofday\b|\btimespec_get\b|\bgetrusage\b|\bstd::(?:clock|time)\b|(?<![\w.>:])(?:clock\(\)|time\(\s*(?:nullptr|NULL|0|&))"
    r"|\brdtscp?\b|<ctime>|<time\.h>|<sys/(?:time|times|timerfd)\.h>"
    r"|\bsleep_(?:for|until)\b|\bSleepFor\b|\b(?:u|nano|clock_nano)?sleep\s*\(|\bpg_sleep\b"
    # Waits that may end before what they wait for.
    r"|\b(?:wait|try_acquire|try_lock\w*)_(?:for|until)\b|\bWaitFor(?:Notification)?(?:WithTimeout|WithDeadline)?\s*\(|\bAwaitWith\w+\("
)
_PYTHON = (
    r"\bimport\s+(?:\w+\s*,\s*)*(?:time|timeit|sched|asyncio)\b|\bfrom\s+(?:time|timeit|sched|asyncio)\s+import\b"
    r"|\b(?:perf_counter|monotonic|process_time|thread_time)(?:_ns)?\b|\btime\.(?:time|sleep)\b|\bos\.times\b|\bgetrusage\b|\b(?:utcnow|today)\(|\bdatetime\.now\b|\bTimer\("
    r"|\b__import__\b|\bimport_module\b"
    # Pauses, and waits that may end before what they wait for.
    r"|\.(?:wait|join|settimeout)\(\s*[\d.]|\b(?:timeout|seconds)=[\d.]+\)"
)
_JAVASCRIPT = r"\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.\w+|\bhrtime\b|\bset(?:Timeout|Interval|Immediate)\b|\bwaitForTimeout\b"
_SHELL = r"^\s*sleep\s|[;&|\"']\s*sleep\s+[\d.$]|\bdate \+|\bSECONDS\b|\bEPOCH(?:SECONDS|REALTIME)\b"
# Assertions on a time that another program measured.
_MEASURED = (
    r"(?:\bassertLess(?:Equal)?|\b(?:EXPECT|ASSERT)_L[TE])\(.*"
    r"(?:\belapsed|\bengine_seconds\b|\bmilliseconds, \d|\btook\b|_MS\b|Ms\"\])"
)
_NAMES = {
    ".py": f"{_PYTHON}|{_MEASURED}",
    ".sh": _SHELL,
    **{extension: _JAVASCRIPT for extension in (".mjs", ".js", ".cjs", ".ts")},
    **{extension: f"{_CPP}|{_MEASURED}" for extension in (".cc", ".h", ".cpp", ".hpp")},
}
_NAMES = {extension: re.compile(names, re.MULTILINE) for extension, names in _NAMES.items()}


class Places:
    """Where tests may name a clock: path -> how many lines may, or None for any. A folder ends with a slash."""

    def __init__(self, text):
        block = re.search(r"^```clocks\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if not block:
            raise ValueError("no table `clocks`")
        self.lines, self.faults = {}, []
        for row in block.group(1).splitlines()[1:]:
            path, lines, reason = (cell.strip() for cell in row.split("|"))
            self.lines[path] = int(lines) if lines else None
            if not reason:
                self.faults.append(f"the table has no reason for {path}")

    def row_of(self, file):
        if file in self.lines:
            return file
        return next((path for path in self.lines if path.endswith("/") and file.startswith(path)), None)


def clock_lines(top):
    """(file, line number, the name) of every line below `top`/tests that names a clock, a pause or a wait that ends by itself."""
    for folder, folders, names in os.walk(os.path.join(top, "tests")):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        for name in sorted(names):
            pattern = _NAMES.get(os.path.splitext(name)[1])
            if pattern is None:
                continue
            file = os.path.relpath(os.path.join(folder, name), top)
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as source:
                for number, line in enumerate(source, 1):
                    if match := pattern.search(line):
                        yield file, number, match[0].strip()


def clock_faults(top, places):
    """What breaks the table, a sentence each."""
    faults = list(places.faults)
    seen = dict.fromkeys(places.lines, 0)
    for file, number, name in clock_lines(top):
        row = places.row_of(file)
        if row is None:
            faults.append(f"{file}:{number}: `{name}`: no verdict of a test hangs on a clock: count steps, order events, or wait with the shared helper")
            continue
        seen[row] += 1
        if places.lines[row] is not None and seen[row] > places.lines[row]:
            faults.append(f"{file}:{number}: `{name}`: the table allows {places.lines[row]} lines of {file}")
    for path, lines in seen.items():
        if lines == 0 or lines < (places.lines[path] or 0):
            faults.append(f"the table allows {places.lines[path] or 'clocks'} in {path}, which has {lines}: make it less")
    return faults
