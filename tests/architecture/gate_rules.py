"""The gate: limits of the product that only shrink, read from limits.md in this folder."""

import re

from house_counts import CODE_FOLDERS, function_lines

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 450
MAX_COLUMNS = 100
# Lines by which a room, and a long file, may lie below its number before the number is to follow.
ROOM_SLACK = 150
FILE_SLACK = 25

# The rooms that may ask which scheme a job has; others ask the job for what they need of it.
SCHEME_ROOMS = ("core/communication/", "core/model/", "server/convert/", "client/cli/flags/scenario_flags.cc")
_SCHEME = re.compile(
    r"has_servers\(\)|all_reduce\(\)|has_pipeline\(\)|pipeline\.has_value\(\)"
    r"|(get|get_if|holds_alternative)<(AllReduce|ParameterServers)>|\.kind\(\) =="
)
_BLOCK = re.compile(r"^```(?P<name>[a-z-]+)\n(?P<rows>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text):
    """{name: [cells of each row]} of the fenced tables; the first row, of headings, is left out."""
    return {
        block["name"]: [[cell.strip() for cell in row.split("|")] for row in block["rows"].splitlines()[1:]]
        for block in _BLOCK.finditer(text)
    }


def product(tree):
    """The product's files of a tree (house_counts.py)."""
    folders = tuple(folder + "/" for folder in CODE_FOLDERS)
    return {path: text for path, text in tree.items() if path.startswith(folders) and path.endswith((".h", ".cc"))}


def room_of(path):
    """`core/engine` of `core/engine/x/y.cc`, `server` of `server/main.cc`."""
    folders = path.split("/")[:-1]
    return "/".join(folders[:2])


def _lines(text):
    return len(text.splitlines())


def room_lines(files):
    rooms = {}
    for path, text in files.items():
        rooms[room_of(path)] = rooms.get(room_of(path), 0) + _lines(text)
    return rooms


def long_functions(files):
    """{path: lines of its longest function} of files that have one above the limit."""
    longest = {path: max(function_lines(text), default=0) for path, text in files.items()}
    return {path: lines for path, lines in longest.items() if lines > MAX_FUNCTION_LINES}


def long_files(files):
    return {path: _lines(text) for path, text in files.items() if _lines(text) > MAX_FILE_LINES}


def wide_files(files):
    """{path: columns of its widest line} of files that have one above the limit."""
    widest = {path: max(map(len, text.splitlines()), default=0) for path, text in files.items()}
    return {path: columns for path, columns in widest.items() if columns > MAX_COLUMNS}


def scheme_lines(files):
    """Lines outside of SCHEME_ROOMS that ask which scheme a job has."""
    asking = {path: sum(bool(_SCHEME.search(line)) for line in text.splitlines()) for path, text in files.items()}
    return sum(lines for path, lines in asking.items() if not path.startswith(SCHEME_ROOMS))


def faults(name, found, rows, slack):
    """A sentence for each number found that a table does not allow, or that it allows for no reason any more. found: {key: number}; rows: [key, limit, reason]."""
    told = []
    limits = {}
    for row in rows:
        if len(row) != 3 or not row[1].isdigit() or not row[2]:
            told.append(f"{name}: `{' | '.join(row)}` is not `key | number | reason`")
        elif row[0] in limits:
            told.append(f"{name}: {row[0]} has two rows")
        else:
            limits[row[0]] = int(row[1])
    for key, number in sorted(found.items()):
        limit = limits.get(key)
        if limit is None:
            told.append(f"{name}: {key} has {number} and no row: make it smaller, or add a row with the reason")
        elif number > limit:
            told.append(f"{name}: {key} has {number}, above its {limit}: take something out, or raise the number and say there what users got for it")
        elif number < limit - slack:
            told.append(f"{name}: {key} has {number}, well below its {limit}: lower the number, so that it stays")
    told += [f"{name}: {key} is not above the limit, or not there, any more: take its row out" for key in sorted(set(limits) - set(found))]
    return told
