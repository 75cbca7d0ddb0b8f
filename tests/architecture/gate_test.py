"""The product keeps the limits of limits.md, which only shrink; and the rules find what breaks them."""

import pathlib
import unittest

import gate_rules
from house_counts import CODE_FOLDERS

_HERE = pathlib.Path(__file__).resolve().parent
_TOP = _HERE.parents[1]


def function_of(lines):
    return "void F() {\n" + "  G();\n" * (lines - 2) + "}\n"


class RulesTest(unittest.TestCase):
    def test_a_table_is_read_without_its_headings(self):
        text = "words\n```rooms\nroom | lines | why\ncore/a | 12 | because\n```\nmore\n"
        self.assertEqual(gate_rules.blocks(text), {"rooms": [["core/a", "12", "because"]]})

    def test_rooms_are_folders_of_the_second_level(self):
        files = {"core/a/x.cc": "1\n2\n", "core/a/b/y.h": "3\n", "server/main.cc": "4\n"}
        self.assertEqual(gate_rules.room_lines(files), {"core/a": 3, "server": 1})

    def test_what_is_too_long_or_wide_is_found(self):
        files = {"core/a/short.cc": function_of(60), "core/a/long.cc": function_of(61)}
        self.assertEqual(gate_rules.long_functions(files), {"core/a/long.cc": 61})
        self.assertEqual(gate_rules.long_files({"core/a/x.h": "\n" * 450, "core/a/y.h": "\n" * 451}), {"core/a/y.h": 451})
        self.assertEqual(gate_rules.wide_files({"core/a/x.h": "x" * 100, "core/a/y.h": "x" * 101}), {"core/a/y.h": 101})

    def test_questions_after_the_scheme_count_outside_of_its_rooms(self):
        asks = "a = s.has_servers() ? 1 : s.all_reduce().x;\n"
        files = {"core/predict/x.cc": asks + asks, "core/communication/x.cc": asks, "client/cli/flags/scenario_flags.cc": asks}
        self.assertEqual(gate_rules.scheme_lines(files), 2)
        for asks in ("x.pipeline.has_value()", "s.kind() == JobKind::kPipeline", "std::get<ParameterServers>(c)"):
            self.assertEqual(gate_rules.scheme_lines({"core/trace/x.cc": asks + "\n"}), 1, asks)
        self.assertEqual(gate_rules.scheme_lines({"core/trace/x.cc": "s.NodesOf(8); s.compute_speeds();\n"}), 0)

    def test_numbers_above_their_limits_far_below_them_and_without_a_row_are_told(self):
        rows = [["a", "100", "r"], ["b", "100", "r"], ["c", "100", "r"], ["gone", "9", "r"]]
        told = gate_rules.faults("rooms", {"a": 101, "b": 89, "c": 90, "new": 5}, rows, slack=10)
        self.assertEqual([each.split()[1] for each in told], ["a", "b", "new", "gone"])
        self.assertIn("has 101, above its 100", told[0])
        self.assertIn("has 89, well below its 100", told[1])

    def test_a_row_without_a_reason_and_a_second_row_are_told(self):
        told = gate_rules.faults("files", {"a": 5}, [["a", "5", "r"], ["a", "6", "r"], ["b", "7", ""], ["c", "x", "r"]], slack=10)
        self.assertEqual(len(told), 3)


class GateTest(unittest.TestCase):
    """Each limit by name, so that what broke is in the test's."""

    @classmethod
    def setUpClass(cls):
        paths = [path for folder in CODE_FOLDERS for path in sorted((_TOP / folder).rglob("*.*"))]
        cls.files = gate_rules.product({str(path.relative_to(_TOP)): path.read_text() for path in paths if path.suffix in (".h", ".cc")})
        cls.limits = gate_rules.blocks((_HERE / "limits.md").read_text())

    def expect(self, name, found, slack=0):
        told = gate_rules.faults(name, found, self.limits[name], slack)
        self.assertEqual(told, [], "\n" + "\n".join(told))

    def test_rooms(self):
        self.assertGreater(len(self.files), 300)
        self.expect("rooms", gate_rules.room_lines(self.files), gate_rules.ROOM_SLACK)

    def test_functions(self):
        self.expect("functions", gate_rules.long_functions(self.files))

    def test_files(self):
        self.expect("files", gate_rules.long_files(self.files), gate_rules.FILE_SLACK)

    def test_columns(self):
        self.expect("columns", gate_rules.wide_files(self.files))

    def test_schemes(self):
        self.expect("schemes", {"lines": gate_rules.scheme_lines(self.files)})


if __name__ == "__main__":
    unittest.main()
