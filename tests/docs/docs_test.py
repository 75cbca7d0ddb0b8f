#!/usr/bin/python3
"""The documents say what is so: commands print what is written, links lead somewhere, generated pages are up to date.

docs_test.py --write [PAGE...] prints outputs and generated pages anew, in place. It needs STEPCAST and STEPCASTD in the
environment, or programs built in build/dev. commands.py says how a block marks what varies and what is not run.
"""

import os
import sys
import unittest

import generated
from commands import WHY_NOT, Command, Reader, commands_of, matches, rewritten
from pages import GENERATED, MAX_COLUMNS, MAX_LINES, TOP, all_pages, broken_links

for name, built in (("STEPCAST", "client/stepcast"), ("STEPCASTD", "server/app/stepcastd")):
    os.environ.setdefault(name, str(TOP / "build/dev" / built))


def fault_of(command, varies):
    """The difference between what a command printed and what is written, or None."""
    if not matches(command.written, command.printed, varies):
        return "printed\n" + "\n".join(command.printed) + "\nwritten\n" + "\n".join(command.written)
    if command.status != 0 and not any("error" in line for line in command.printed):
        return f"ended with status {command.status}"
    return None


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = all_pages()

    def test_fences_are_closed(self):
        for page in self.pages:
            with self.subTest(page.name):
                self.assertIsNone(page.open_fence)

    def test_links_lead_somewhere(self):
        self.assertEqual([fault for page in self.pages for fault in broken_links(page)], [])

    def test_pages_for_users_are_short_and_narrow(self):
        for page in filter(lambda page: page.is_for_users(), self.pages):
            with self.subTest(page.name):
                wide = [f"{page.name}:{index + 1}" for index, line in enumerate(page.lines) if len(line) > MAX_COLUMNS]
                self.assertEqual(wide, [])
                if not page.is_generated():
                    self.assertLessEqual(len(page.lines) - 1, 110 if page.name == "README.md" else MAX_LINES)

    def test_what_is_not_run_says_why(self):
        for page in filter(lambda page: page.is_for_users(), self.pages):
            for block in page.blocks:
                why = block.option("no-run")
                with self.subTest(f"{page.name}:{block.first}"):
                    if why is not None:
                        self.assertIn(why, WHY_NOT)
                    if block.language in ("", "text") and any(line.startswith("$ ") for line in block.lines):
                        self.fail("commands stand in a block `console`")

    def test_files_that_are_shown_are_in_the_tree(self):
        for page in self.pages:
            for block in page.blocks:
                if block.option("file") is not None:
                    with self.subTest(f"{page.name}:{block.first}"):
                        self.assertIn("\n".join(block.lines), (TOP / block.option("file")).read_text(encoding="utf-8"))

    def test_generated_pages_are_up_to_date(self):
        for path, text in generated.pages().items():
            with self.subTest(path):
                self.assertEqual((TOP / path).read_text(encoding="utf-8"), text, "docs_test.py --write makes it anew")

    def test_the_map_of_the_core_names_every_room(self):
        rooms = {path.name for path in (TOP / "core").iterdir() if (path / "CMakeLists.txt").exists()}
        text = (TOP / "core/README.md").read_text(encoding="utf-8")
        self.assertEqual({room for room in rooms if f"`{room}`" not in text and f"[{room}](" not in text}, set())

    def test_maps_name_every_page(self):
        for path, text in generated.maps().items():
            with self.subTest(path):
                self.assertEqual((TOP / path).read_text(encoding="utf-8"), text, "docs_test.py --write makes it anew")


class CommandsTest(unittest.TestCase):
    def test_every_command_prints_what_is_written(self):
        ran, left = 0, {}
        for page in filter(lambda page: page.is_for_users(), all_pages()):
            with self.subTest(page.name), Reader() as reader:
                faults = []
                for block in page.blocks:
                    if block.language not in ("console", "sh"):
                        continue
                    if block.option("no-run") is not None:
                        count = len(commands_of(block)) if block.language == "console" else 1
                        left[block.option("no-run")] = left.get(block.option("no-run"), 0) + count
                        continue
                    if block.language == "sh":
                        status, output = reader.run_script(block)
                        ran += 1
                        if status != 0:
                            faults.append(f"{page.name}:{block.first}: status {status}\n{output}")
                        continue
                    for command in reader.run(block):
                        ran += 1
                        fault = fault_of(command, block.option("varies") is not None)
                        if fault:
                            faults.append(f"{page.name}:{block.first}: `{command.text}` {fault}")
                self.assertEqual(faults, [], "\n\n".join(faults))
        print(f"{ran} commands ran; not run: " + (", ".join(f"{count} for want of {WHY_NOT[why]}" for why, count in sorted(left.items())) or "none"))
        self.assertGreater(ran, 0)


class MatchesTest(unittest.TestCase):
    """The comparison itself."""

    def test_lines_are_compared_one_by_one(self):
        self.assertTrue(matches(["a", "b"], ["a", "b"]))
        for written, printed in ((["a"], ["a", "b"]), (["a", "b"], ["a"]), (["a"], ["b"]), ([], ["a"]), (["1 s"], ["2 s"])):
            self.assertFalse(matches(written, printed), (written, printed))

    def test_elisions(self):
        self.assertTrue(matches(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertTrue(matches(["...", "d"], ["d"]))
        self.assertTrue(matches(["abc ..."], ["abcdef"]))
        self.assertFalse(matches(["a", "...", "d"], ["a", "b", "c"]))
        self.assertFalse(matches(["abd ..."], ["abcdef"]))

    def test_numbers_that_vary(self):
        self.assertTrue(matches(["took 1.5 s,   40 of 3"], ["took 22.75 ms, 4 of 5"], varies=True))
        self.assertFalse(matches(["took 1.5 s"], ["lasted 1.5 s"], varies=True))

    def test_a_difference_or_a_status_is_a_fault(self):
        command = Command("false")
        command.status = 1
        self.assertIn("status 1", fault_of(command, False))
        command.written, command.status = ["a"], 0
        self.assertIn("written\na", fault_of(command, False))

    def test_outputs_are_rewritten_within_their_elisions(self):
        self.assertEqual(rewritten(["a", "...", "z"], ["1", "2", "3", "4"]), ["1", "...", "4"])
        self.assertEqual(rewritten(["a", "..."], ["1", "2", "3"]), ["1", "..."])
        self.assertEqual(rewritten(["a"], ["x" * 101]), ["x" * 96 + " ..."])
        self.assertEqual(rewritten(["head", "...", "the middle line 1", "...", "tail"], ["H", "b", "the middle line 2", "c", "T"]),
                         ["H", "...", "the middle line 2", "...", "T"])  # fmt: skip


def write(names):
    """Prints outputs and generated pages anew."""
    # Maps name the generated pages.
    for make in (generated.pages, generated.maps):
        for path, text in make().items():
            target = TOP / path
            if (names and path not in names) or (target.exists() and target.read_text(encoding="utf-8") == text):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"made {path}")
    for page in filter(lambda page: page.is_for_users() and (not names or page.name in names), all_pages()):
        with Reader() as reader:
            _write_page(page, reader)


def _write_page(page, reader):
    lines, shift = list(page.lines), 0
    for block in page.blocks:
        if block.option("no-run") is not None or block.language not in ("console", "sh"):
            continue
        if block.language == "sh":
            status, output = reader.run_script(block)
            if status != 0:
                print(f"{page.name}:{block.first}: status {status}\n{output}")
            continue
        varies = block.option("varies") is not None
        new = []
        for command in reader.run(block):
            fault = fault_of(command, varies)
            # An error takes the place of an output only where one was written.
            if command.status != 0 and command.written and not any("error" in line for line in command.written):
                print(f"{page.name}:{block.first}: left as it was: `{command.text}` ended with status {command.status}")
                fault = None
            first, *more = command.text.split("\n")
            new += [f"$ {first}", *(f"> {line}" for line in more)]
            new += rewritten(command.written, command.printed) if fault else command.written
        at = block.first + shift
        lines[at : at + len(block.lines)] = new
        shift += len(new) - len(block.lines)
    if lines != page.lines:
        page.path.write_text("\n".join(lines), encoding="utf-8")
        print(f"rewrote {page.name}")


assert GENERATED in generated.HEAD

if __name__ == "__main__":
    if "--write" in sys.argv[1:2]:
        write(sys.argv[2:])
    else:
        unittest.main()
