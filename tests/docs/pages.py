"""The documents of the tree as pages: their fences, headings and links."""

import os
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]

# Folders whose documents are not ours.
_SKIPPED = {"build", "node_modules", ".git", "stubs"}

# Pages for users: at most MAX_LINES lines of at most MAX_COLUMNS columns, and every command runs.
MAX_LINES = 200
MAX_COLUMNS = 100
_USER_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "client/README.md", "client/examples/README.md",
               "core/README.md", "server/README.md", "deploy/README.md")  # fmt: skip

# The first line of a page that a program writes; such pages may be longer.
GENERATED = "<!-- Generated: tests/docs/docs_test.py --write -->"

_FENCE = re.compile(r"^( *)(`{3,})([^`]*)$")
_LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


class Block:
    """A fenced block: `info` behind the fence, its lines, and the index of the first of them in the page."""

    def __init__(self, info, first):
        self.info = info.strip()
        self.first = first
        self.lines = []

    @property
    def language(self):
        return self.info.split(" ")[0] if self.info else ""

    def option(self, name):
        """`name=value` of the info string; "" for a bare word; None where it is not there."""
        for word in self.info.split(" ")[1:]:
            if word == name or word.startswith(name + "="):
                return word[len(name) + 1 :]
        return None


class Page:
    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(TOP).as_posix()
        self.lines = path.read_text(encoding="utf-8").split("\n")
        self.blocks = []
        self.headings = []
        self.links = []  # (line number, target)
        self.open_fence = None
        self._read()

    def _read(self):
        block = None
        for index, line in enumerate(self.lines):
            fence = _FENCE.match(line)
            if block is not None:
                if fence and fence[2] == self.open_fence and not fence[3].strip():
                    self.blocks.append(block)
                    block = self.open_fence = None
                else:
                    block.lines.append(line)
                continue
            if fence:
                block, self.open_fence = Block(fence[3], index + 1), fence[2]
                continue
            heading = re.match(r"#+ (.*)", line)
            if heading:
                self.headings.append(heading[1])
            bare = re.sub(r"`[^`]*`", "", line)
            self.links += [(index + 1, match[1] or match[2]) for match in _LINK.finditer(bare)]

    def is_for_users(self):
        return self.name in _USER_PAGES or "/docs/" in "/" + self.name and not self.name.startswith("tests/")

    def is_generated(self):
        return self.lines[0] == GENERATED

    def title(self):
        return self.headings[0] if self.headings else self.name

    def about(self):
        """The first sentence below the title."""
        text, fenced = [], {index for block in self.blocks for index in range(block.first - 1, block.first + len(block.lines) + 1)}
        for index, line in enumerate(self.lines[1:], 1):
            if text and not line.strip():
                break
            if line.strip() and index not in fenced and not line.startswith(("#", "<!--", "[", "!", "20")):
                text.append(line.strip())
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text))
        return re.split(r"(?<=[.:]) ", plain)[0].rstrip(":")

    def anchors(self):
        """The headings as GitHub names them."""
        seen, anchors = {}, set()
        for heading in self.headings:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            anchors.add(slug if count == 0 else f"{slug}-{count}")
        return anchors


def all_pages():
    pages = []
    for folder, below, files in os.walk(TOP):
        below[:] = sorted(name for name in below if name not in _SKIPPED)
        pages += [Page(pathlib.Path(folder, file)) for file in sorted(files) if file.endswith(".md")]
    return pages


def broken_links(page):
    """Each link of a page that leads nowhere in the tree."""
    for number, target in page.links:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.path.parent / path).resolve() if path else page.path
        if not file.exists():
            yield f"{page.name}:{number}: there is no {target}"
        elif anchor and file.suffix == ".md" and anchor not in Page(file).anchors():
            yield f"{page.name}:{number}: there is no heading for {target}"
