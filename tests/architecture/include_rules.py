"""The rules of README.md in this folder, and what in a tree breaks them."""

import os
import re

SOURCE_FOLDERS = ("core", "server", "client", "deploy", "tests")
PUBLIC_HEADERS = "client/include"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
# Longest first: generated files share a prefix with the library they are made for.
_LIBRARIES = (
    ("grpc/health/v1/", "proto"),
    ("grpc/reflection/", "proto"),
    ("stepcast/v1/", "proto"),
    ("stepcast_version_text.h", "version"),
    ("google/rpc/", "proto"),
    ("google/longrunning/", "proto"),
    ("tensorflow/", "tensorflow"),
    ("google/protobuf/", "protobuf"),
    ("grpcpp/", "grpc"),
    ("grpc/", "grpc"),
    ("CivetServer.h", "civetweb"),
    ("civetweb.h", "civetweb"),
    ("sqlite3.h", "sqlite3"),
    ("libpq-fe.h", "libpq"),
    ("zlib.h", "zlib"),
    ("sys/", "posix"),
    ("arpa/", "posix"),
    ("net/", "posix"),
    ("netinet/", "posix"),
)


class Rules:
    """folders: folder -> what it may include, itself and the standard library apart. never: folder -> what it must not reach."""

    def __init__(self, text):
        self.folders = {folder: set(" ".join(cells).split()) for folder, *cells in _table(text, "includes")}
        self.never = {folder: cells[0].split() for folder, *cells in _table(text, "never")}

    def row_of(self, folder):
        """The row that covers `folder`, or None."""
        covering = folder
        while covering and covering not in self.folders:
            covering = os.path.dirname(covering)
        # The row of a whole layer covers the files right in it: a new folder of that layer is unknown until it has a row.
        return covering if covering and (covering == folder or covering not in SOURCE_FOLDERS) else None


def _table(text, name):
    block = re.search(rf"^```{name}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if not block:
        raise ValueError(f"no table `{name}`")
    return [[cell.strip() for cell in line.split("|")] for line in block.group(1).splitlines()[1:]]


def library_of(bracket, path):
    """The library a header belongs to that is not in the tree; `<name>` for one of the C++ standard library."""
    for prefix, library in _LIBRARIES:
        if path.startswith(prefix):
            return library
    if "/" in path:
        return path.split("/")[0]
    return "posix" if path.endswith(".h") else f"<{path}>"


class Tree:
    """Every C++ file under `top`, with the files and the libraries it includes."""

    def __init__(self, top):
        self.top = top
        self.includes = {}  # file -> [(line, file or None, library or None)]
        for source_folder in SOURCE_FOLDERS:
            for folder, folders, names in os.walk(os.path.join(top, source_folder)):
                folders.sort()
                for name in sorted(names):
                    if name.endswith((".h", ".cc", ".cpp", ".hpp")):
                        file = os.path.relpath(os.path.join(folder, name), top)
                        self.includes[file] = list(self._read(file))

    def _read(self, file):
        with open(os.path.join(self.top, file), encoding="utf-8") as source:
            text = source.read()
        for match in _INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            own = self._own(match[2])
            yield line, own, None if own else library_of(match[1], match[2])

    def _own(self, path):
        for candidate in (path, os.path.join(PUBLIC_HEADERS, path)):
            if os.path.isfile(os.path.join(self.top, candidate)):
                return candidate
        # A file that is not there (yet) still says which folder is meant.
        return path if path.split("/")[0] in SOURCE_FOLDERS else None


def faults(tree, rules):
    """What breaks a rule, a sentence each."""
    return list(_direct(tree, rules)) + list(_reached(tree, rules)) + list(_rows_without_folder(tree, rules))


def _direct(tree, rules):
    for file, includes in tree.includes.items():
        folder = os.path.dirname(file)
        row = rules.row_of(folder)
        if row is None:
            yield f"{file}: folder {folder} has no row"
            continue
        for line, own, library in includes:
            if own:
                target = rules.row_of(os.path.dirname(own))
                if target != row and target not in rules.folders[row]:
                    yield f"{file}:{line}: {row} must not include {own}"
            elif not library.startswith("<") and library not in rules.folders[row]:
                yield f"{file}:{line}: {row} must not include the library {library}"


def _reached(tree, rules):
    for folder, forbidden in rules.never.items():
        for file in tree.includes:
            if file.startswith(folder + "/"):
                yield from _reached_from(file, tree, folder, forbidden)


def _reached_from(file, tree, folder, forbidden):
    # Breadth first, so the path shown is a shortest one.
    queue, seen = [(file, file)], {file}
    for path, at in queue:
        for _, own, library in tree.includes.get(at, ()):
            name = library or os.path.dirname(own)
            if name in forbidden:
                yield f"{path}: {folder} must not reach {name}"
            if own and own not in seen:
                seen.add(own)
                queue.append((f"{path} -> {own}", own))


def _rows_without_folder(tree, rules):
    for folder in rules.folders:
        if not any(file.startswith(folder + "/") for file in tree.includes):
            yield f"the table has a row for {folder}, the tree has no file there"
