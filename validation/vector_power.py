"""Which pairs of controls each reference vector tells apart: `python validation/vector_power.py [--write]`.

The trace of each control is compared with the vector of each other one. `--write` fills the table of
docs/guides/vectors.md.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from pathlib import Path

from anabranch.vectors.compared import Series, compare
from anabranch.vectors.scenarios import SMSS, VECTORS

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "validation/data/vectors"
PAGE = ROOT / "docs/guides/vectors.md"
BEGIN, END = "<!-- begin power -->\n", "<!-- end power -->\n"


def series(control: str, scenario: str) -> Series:
    """A stored vector."""
    with (STORED / control / f"{scenario}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [float(row["time_s"]) for row in rows], [int(row["cwnd_bytes"]) / SMSS for row in rows]


def table() -> str:
    """The table: for each scenario the pairs (trace, vector) that differ, and the others by name."""
    names = sorted(folder.name for folder in STORED.iterdir() if folder.is_dir())
    pairs = list(itertools.permutations(names, 2))
    lines = [f"| scenario | distinguished, of {len(pairs)} | not distinguished |", "| --- | --- | --- |"]
    for scenario in (vector.name for vector in VECTORS):
        known = {name: series(name, scenario) for name in names}
        passing: dict[str, list[str]] = {}
        for trace, vector in pairs:
            if all(check.holds for check in compare(known[vector], known[trace])):
                passing.setdefault(trace, []).append(vector)
        count = sum(map(len, passing.values()))
        lines.append(f"| `{scenario}` | {len(pairs) - count} | {_named(passing)} |")
    return "\n".join(lines) + "\n"


def _named(passing: dict[str, list[str]]) -> str:
    """The pairs that are not distinguished: groups in which each passes as each other, then the others."""
    alike: dict[frozenset[str], list[str]] = {}
    for trace, vectors in passing.items():
        alike.setdefault(frozenset([trace, *vectors]), []).append(trace)
    groups = [sorted(group) for group, members in alike.items() if len(group) == len(members)]
    within = {name for group in groups for name in group}
    told = [" = ".join(group) for group in groups]
    told += [f"{trace} as {', '.join(vectors)}" for trace, vectors in passing.items() if trace not in within]
    return "; ".join(told) or "–"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="fill the table of the page")
    found = table()
    if not parser.parse_args().write:
        sys.stdout.write(found)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
