"""Runs unittest tests of the working directory: `run_unittest.py RECORD NAME...`, with names as unittest takes them.

What became of each is written to the file RECORD, in the form of GoogleTest's. Exit status: 0 passed, 77 all skipped, 1 something failed or there was
no test.
"""

import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, ".")


class Recording(unittest.TextTestResult):
    """What became of each test, beside what is printed."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cases = {}

    def note(self, test, outcome=None, why=""):
        # A failure before or after the tests of a class has a name of its own.
        words = test.id().split(".")
        element = self.cases.setdefault(test.id(), ElementTree.Element("testcase", classname=".".join(words[:-1]), name=words[-1], status="run"))
        if outcome:
            ElementTree.SubElement(element, outcome, message=why)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failure", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failure", str(err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failure", str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)


record, names = sys.argv[1], sys.argv[2:]
result = unittest.TextTestRunner(verbosity=2, resultclass=Recording).run(unittest.defaultTestLoader.loadTestsFromNames(names))
root = ElementTree.Element("testsuites")
root.extend(result.cases.values())
os.makedirs(os.path.dirname(record), exist_ok=True)
# Only XML's characters: an error may hold any.
text = ElementTree.tostring(root, encoding="unicode")
with open(record, "w", encoding="utf-8") as file:
    file.write("".join(character for character in text if character >= " " or character in "\n\t"))
if not result.wasSuccessful() or not result.cases:
    sys.exit(1)
sys.exit(77 if len(result.skipped) == len(result.cases) else 0)
