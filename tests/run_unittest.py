"""Runs the named unittest tests of the working directory: exit status 0 passed, 77 skipped, with the reason printed, 1 failed."""

import sys
import unittest

sys.path.insert(0, ".")
result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]))
if not result.wasSuccessful() or not (result.testsRun or result.skipped):
    sys.exit(1)
sys.exit(77 if result.skipped else 0)
