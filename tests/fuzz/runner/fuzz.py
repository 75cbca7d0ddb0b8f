"""Fuzzes every decoder, keeps what that finds worth keeping, and says what it covers.

Run it as `./dev fuzz`, which builds the programs it is given.
"""

import argparse
import pathlib
import sys

import coverage
from corpus import Corpus
from fuzzer import fuzz
from targets import DECODERS


def main():
    options = _options()
    corpora = [Corpus(target, options.programs, options.work) for target in options.targets or sorted(DECODERS)]
    for corpus in corpora:
        corpus.unpack()
    if options.coverage:
        coverage.report(corpora, options.work, write=options.report)
        return 0
    if options.merge:
        for corpus in corpora:
            print(corpus.merge(), flush=True)
        return 0
    verdicts = []
    for corpus in corpora:
        verdicts.append(fuzz(corpus, options.seconds, options.work))
        print(verdicts[-1].text, flush=True)
    return 1 if any(verdict.findings for verdict in verdicts) else 0


def _options():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="; ".join(sorted(DECODERS)) + "; default: one after the other, all")
    parser.add_argument("--seconds", type=int, default=600, help="for each target; default: %(default)s")
    parser.add_argument("--merge", action="store_true", help="instead: write what covers as much as all that was found to tests/fuzz/corpus")
    parser.add_argument("--coverage", action="store_true", help="instead: say how many lines of the decoders the corpora run through")
    parser.add_argument("--report", action="store_true", help="with --coverage: write it to tests/fuzz/README.md")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for target in options.targets:
        if target not in DECODERS:
            parser.error(f"no such target: {target}")
    if options.report and not options.coverage:
        parser.error("--report goes with --coverage")
    return options


if __name__ == "__main__":
    sys.exit(main())
