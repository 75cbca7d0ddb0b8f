"""How many lines of each decoder its corpus runs through, as clang counts them."""

import json
import pathlib
import subprocess

from corpus import environment
from targets import DECODERS

_TOP = pathlib.Path(__file__).resolve().parents[3]
_README = _TOP / "tests/fuzz/README.md"
_BEGIN, _END = "<!-- what the last ./dev fuzz --coverage --report said -->\n", "<!-- end of it -->\n"


def report(corpora, work, write):
    lines = ["| target | inputs | lines of its decoder | run through | |", "|---|---|---|---|---|"]
    for corpus in corpora:
        files = _lines(corpus, work)
        all_lines = sum(count for count, _ in files.values())
        covered = sum(count for _, count in files.values())
        inputs = sum(1 for _ in corpus.folder.iterdir())
        lines.append(f"| {corpus.target} | {inputs} | {all_lines} | {covered} | {100 * covered / all_lines:.1f} % |")
        for file, (count, hit) in sorted(files.items()):
            print(f"{corpus.target}: {file}: {hit} of {count}", flush=True)
    table = "\n".join(lines) + "\n"
    print(table)
    if write:
        text = _README.read_text(encoding="utf-8")
        head, rest = text.split(_BEGIN)
        _README.write_text(head + _BEGIN + table + _END + rest.split(_END)[1], encoding="utf-8")


def _lines(corpus, work):
    """File -> (lines, lines run through)."""
    raw, profile = (work / f"{corpus.target}.{ending}" for ending in ("profraw", "profdata"))
    subprocess.run(corpus.command("-runs=0", corpus.folder), env=environment(raw.resolve()), stderr=subprocess.DEVNULL, check=True)
    subprocess.run(["llvm-profdata-14", "merge", "-o", profile, raw], check=True)
    told = subprocess.run(["llvm-cov-14", "export", "-summary-only", f"-instr-profile={profile}", corpus.program], stdout=subprocess.PIPE, check=True)
    raw.unlink()
    found = {}
    for file in json.loads(told.stdout)["data"][0]["files"]:
        path = pathlib.Path(file["filename"]).resolve()  # ccache makes it go by way of the build
        if path.is_relative_to(_TOP) and str(path.relative_to(_TOP)) in DECODERS[corpus.target]:
            found[str(path.relative_to(_TOP))] = (file["summary"]["lines"]["count"], file["summary"]["lines"]["covered"])
    missing = set(DECODERS[corpus.target]) - set(found)
    if missing:
        raise SystemExit(f"{corpus.target} does not contain {sorted(missing)}")
    return found
