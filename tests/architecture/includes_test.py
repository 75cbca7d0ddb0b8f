"""The tree keeps the tables of README.md in this folder, and a tree that does not is found out."""

import os
import tempfile
import unittest

from include_rules import Rules, Tree, faults

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

TABLES = """
```includes
folder      | may include | libraries
core/base   |             | absl
core/model  | core/base   | absl
server/rpc  | core/model  | grpc proto
server      | server/rpc  |
```
```never
folder      | must not reach
core        | proto grpc <thread>
```
"""

KEEPS_THE_TABLES = {
    "core/base/error.h": '#include <string>\n#include "absl/status/status.h"\n',
    "core/model/profile.h": '#include "core/base/error.h"\n',
    "server/rpc/service.cc": '#include <grpcpp/grpcpp.h>\n#include "core/model/profile.h"\n#include "stepcast/v1/profile.pb.h"\n',
    "server/main.cc": '#include "server/rpc/service.h"\n',
}


def faults_of(files):
    with tempfile.TemporaryDirectory() as top:
        for path, text in {**KEEPS_THE_TABLES, **files}.items():
            os.makedirs(os.path.join(top, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write(text)
        return faults(Tree(top), Rules(TABLES))


class IncludesTest(unittest.TestCase):
    def test_the_tree_keeps_the_tables(self):
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
            rules = Rules(readme.read())
        tree = Tree(TOP)
        self.assertGreater(len(tree.includes), 100)
        found = faults(tree, rules)
        self.assertFalse(found, "\n" + "\n".join(found))


class BadIncludesTest(unittest.TestCase):
    def test_a_tree_that_keeps_them_has_no_faults(self):
        self.assertEqual(faults_of({}), [])

    def test_an_include_of_a_higher_layer_is_found(self):
        self.assertEqual(
            faults_of({"core/base/clock.h": '#include <string>\n#include "core/model/profile.h"\n'}),
            ["core/base/clock.h:2: core/base must not include core/model/profile.h"],
        )

    def test_an_include_written_with_spaces_is_found(self):
        self.assertIn("must not include core/model/profile.h", faults_of({"core/base/a.cc": '  #  include  "core/model/profile.h"\n'})[0])

    def test_a_library_that_is_not_in_the_row_is_found(self):
        self.assertEqual(faults_of({"core/model/log.cc": "#include <spdlog/spdlog.h>\n"}), ["core/model/log.cc:1: core/model must not include the library spdlog"])

    def test_a_generated_header_in_the_core_is_found(self):
        found = faults_of({"core/model/wire.cc": '#include "stepcast/v1/profile.pb.h"\n'})
        self.assertEqual(found[0], "core/model/wire.cc:1: core/model must not include the library proto")

    def test_a_forbidden_standard_header_is_found_through_another_file(self):
        found = faults_of({"core/base/lock.h": "#include <thread>\n", "core/model/pool.cc": '#include "core/base/lock.h"\n'})
        self.assertEqual(
            found, ["core/base/lock.h: core must not reach <thread>", "core/model/pool.cc -> core/base/lock.h: core must not reach <thread>"]
        )

    def test_a_folder_without_a_row_is_found(self):
        self.assertEqual(faults_of({"core/misc/x.h": ""}), ["core/misc/x.h: folder core/misc has no row"])
        self.assertEqual(faults_of({"server/misc/x.h": ""}), ["server/misc/x.h: folder server/misc has no row"])

    def test_a_row_without_a_folder_is_found(self):
        with tempfile.TemporaryDirectory() as top:
            self.assertIn("the table has a row for core/base, the tree has no file there", faults(Tree(top), Rules(TABLES)))


if __name__ == "__main__":
    unittest.main()
