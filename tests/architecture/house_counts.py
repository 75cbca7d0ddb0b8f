"""The counts of the house: sizes, comments and tests of the product, of any revision.

    python3 tests/architecture/house_counts.py [REVISION...]

Prints a Markdown table with a column for each revision; without one, for the work tree. Revisions
are read by `git archive`: nothing is checked out. README.md in this folder says what is counted.
"""

import io
import math
import os
import re
import subprocess
import sys
import tarfile

CODE_FOLDERS = ("core", "server", "client")
READ_FOLDERS = CODE_FOLDERS + ("proto", "tests")
SMALL_FILE_LINES = 25

_OPENING = re.compile(r"(What|Whether|How|Where|Which|When|Who|Why)\b")
_COMMENT = re.compile(r"\s*//\s?(.*)")
_SERVER_WORDS = re.compile(r"(?<!\w)(server|downlink|uplink)(?!\w)", re.IGNORECASE)
# Longest first where one begins like another: raw strings before strings. A quote between two
# digits or letters separates digits.
_TOKENS = re.compile(
    r'R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"
    r"|//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r"|^[ \t]*\#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)


# Trees: path -> text of the files below READ_FOLDERS.


def _git(top, *arguments):
    return subprocess.run(("git", "-C", top) + arguments, check=True, stdout=subprocess.PIPE).stdout


def _is_read(path):
    return path.split("/")[0] in READ_FOLDERS and path.endswith((".h", ".cc", ".proto"))


def tree_of_revision(top, revision):
    """The files of a commit. Fails with CalledProcessError where there is no such commit."""
    names = _git(top, "ls-tree", "-r", "-z", "--name-only", "--full-tree", revision).decode()
    paths = [path for path in names.split("\0") if _is_read(path)]
    if not paths:
        return {}
    folders = sorted({path.split("/")[0] for path in paths})
    archive = io.BytesIO(_git(top, "archive", "--format=tar", revision, "--", *folders))
    with tarfile.open(fileobj=archive) as tar:
        return {path: tar.extractfile(path).read().decode() for path in paths}


def tree_of_work(top):
    """The files of the work tree that git has or would take."""
    names = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode()
    tree = {}
    for path in sorted(set(names.split("\0"))):
        if _is_read(path) and os.path.isfile(os.path.join(top, path)):
            with open(os.path.join(top, path), encoding="utf-8") as file:
                tree[path] = file.read()
    return tree


# Counts of one text.


def _blanked(text):
    """The text with its lines, but without comments, directives and what strings hold."""

    def blank(match):
        token = match.group()
        lines = "\n" * token.count("\n")
        return '""' + lines if token[0] in "R\"'" else " " + lines

    return _TOKENS.sub(blank, text)


def _kind_of_block(head, before):
    """What a brace opens at class or namespace level. head: its declaration so far, outside of
    parentheses; before: the last character before it that is not blank."""
    head = re.sub(r"\boperator\s*([^\w\s(]+|\(\s*\))", "operator", head)
    plain = re.sub(r"^\s*template\s*<[^{]*?>\s*(?=class|struct|union|enum)", "", head).strip()
    if re.match(r"(inline\s+)?namespace\b|extern\s*\"\"\s*$", plain):
        return "scope"
    if re.match(r"(typedef\s+)?(class|struct|union|enum)\b", plain):
        return "scope"
    if "(" not in head or re.search(r"(?<![=!<>])=(?!=)", head):
        return "value"
    # `Name() : member{...}`: a member's braces follow its name, a body's a parenthesis or brace.
    in_members = re.search(r"\)\s*(noexcept\s*)?:(?!:)", head)
    return "value" if in_members and re.match(r"[\w>]", before) else "function"


def function_lines(text):
    """The lines of each function's body, from the line of its opening brace to that of the closing
    one; of a function within a function, a lambda for one, none. A simple count of braces: a
    function whose body a macro opens, or whose name or value is written with an unusual operator,
    may be missed."""
    lengths = []
    scopes = []  # of the braces that are open: kind, line
    head = ""  # of the declaration at hand, outside of parentheses
    parentheses = 0
    line = 1
    before = ""
    for character in _blanked(text):
        is_in_function = any(kind == "function" for kind, _ in scopes)
        if character == "\n":
            line += 1
        if character == "{":
            kind = "inner"
            if not is_in_function:
                kind = "value" if parentheses else _kind_of_block(head, before)
                if any(outer == "value" for outer, _ in scopes):
                    kind = "value"
            scopes.append((kind, line))
            if kind == "scope":
                head = ""
        elif character == "}" and scopes:
            kind, opened = scopes.pop()
            if kind == "function":
                lengths.append(line - opened + 1)
            if kind in ("function", "scope"):
                head = ""
        elif not is_in_function and not any(kind == "value" for kind, _ in scopes):
            parentheses += (character == "(") - (character == ")")
            if character == ";" and not parentheses:
                head = ""
            elif not parentheses or character == "(":
                head += character
                head = re.sub(r"^\s*(public|private|protected)\s*:(?!:)", "", head)
        if not character.isspace():
            before = character
    return lengths


def comment_openings(text):
    """The number of whole-line comments, each once however many lines it has, and of those that
    open with a question word."""
    comments = asking = 0
    was_comment = False
    for text_line in text.splitlines():
        comment = _COMMENT.match(text_line)
        if comment and not was_comment:
            comments += 1
            asking += bool(_OPENING.match(comment.group(1)))
        was_comment = bool(comment)
    return comments, asking


def percentile(values, share):
    """The least value that `share` of the values do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0


# Counts of a tree.


def _lines(text):
    return len(text.splitlines())


def _share(part, whole):
    return f"{100 * part / whole if whole else 0:.1f} % ({part:,} of {whole:,})"


def _percentiles(values, *shares):
    return " / ".join(str(percentile(values, share)) for share in shares)


def _comment_share(texts):
    lines = [line for text in texts for line in text.splitlines()]
    comments = sum(bool(_COMMENT.match(line)) for line in lines)
    return f"{100 * comments / len(lines) if lines else 0:.1f}"


def _openings(headers, folders):
    pairs = [
        comment_openings(text)
        for path, text in headers.items()
        if path.split("/")[0] in folders
    ]
    return _share(sum(asking for _, asking in pairs), sum(comments for comments, _ in pairs))


def _tested(tree, stems):
    return _share(sum(f"tests/{stem}_test.cc" in tree for stem in stems), len(stems))


def _below(tree, folders, endings):
    paths = [path for path in tree if path.startswith(folders) and path.endswith(endings)]
    return {path: tree[path] for path in paths}


def counts(tree):
    """The rows of the table, name -> text, of a tree."""
    folders = tuple(folder + "/" for folder in CODE_FOLDERS)
    code = _below(tree, folders, (".h", ".cc"))
    headers = _below(code, folders, ".h")
    sources = _below(code, folders, ".cc")
    contract = _below(tree, ("proto/",), ".proto").values()
    engine = _below(code, ("core/engine/", "core/network/"), (".h", ".cc")).values()
    blanked = [_blanked(text) for text in code.values()]
    lines = sum(map(_lines, code.values()))
    small = sum(_lines(text) <= SMALL_FILE_LINES for text in code.values())
    functions = [length for text in code.values() for length in function_lines(text)]
    header_share = _comment_share(headers.values())
    source_share = _comment_share(sources.values())
    indexes = sum(len(re.findall(r"\bsize_t Index\([^;{]*\{", text)) for text in blanked)
    casts = sum(text.count("static_cast<size_t>(") for text in blanked)
    speaking = sum(bool(_SERVER_WORDS.search(text)) for text in engine)
    return {
        "product lines, C++ / with .proto": f"{lines:,} / {lines + sum(map(_lines, contract)):,}",
        "product files, C++ / with .proto": f"{len(code):,} / {len(code) + len(contract):,}",
        f"files of {SMALL_FILE_LINES} lines or fewer": _share(small, len(code)),
        "header lines p50 / p90": _percentiles(list(map(_lines, headers.values())), 0.5, 0.9),
        "function lines p50 / p90 / p99": _percentiles(functions, 0.5, 0.9, 0.99),
        "comment share of headers / sources": f"{header_share} / {source_share} %",
        "header comments that open with a question": _openings(headers, CODE_FOLDERS),
        "the same of core and server alone": _openings(headers, ("core", "server")),
        "engine and network files that say server": str(speaking),
        "sources with a same-path test": _tested(tree, {path[: -len(".cc")] for path in sources}),
        "stems with a same-path test": _tested(tree, {os.path.splitext(path)[0] for path in code}),
        "definitions of `size_t Index(`": str(indexes),
        "casts `static_cast<size_t>(`": str(casts),
    }


def table(columns):
    """The Markdown table of columns: name -> counts."""
    rows = [[""] + list(columns)]
    for name in next(iter(columns.values())):
        rows.append([name] + [column[name] for column in columns.values()])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    padded = [[cell.ljust(width) for cell, width in zip(row, widths)] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in padded)


def main(revisions):
    top = _git(".", "rev-parse", "--show-toplevel").decode().strip()
    if revisions:
        print(table({revision: counts(tree_of_revision(top, revision)) for revision in revisions}))
    else:
        print(table({"work tree": counts(tree_of_work(top))}))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"house_counts.py: `{' '.join(error.cmd)}` failed")
