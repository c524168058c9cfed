"""Judge the congestion controls that a diagnosis names: Linux in virtual time, each control on each path.

    tools/env python validation/diagnose/controls.py [--paths N] [--others N] [--first SEED] [--keep FOLDER]
                                                     [--write] [--verbose]

Each of N paths (20), drawn from the seeds 321, 322 …, carries each named control, and the first paths
(10) also the controls that are none of them. Rules and thresholds were chosen with the paths of the seeds
below 321. Runs of LP and Compound in which they do nothing but what Reno does are counted with the others,
and the figure is given without them as well. --keep names a folder of captures to reuse or fill. --write
fills the part of docs/validation/diagnosis.md. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from anabranch.diagnosis.controls import TITLES
from anabranch.diagnosis.diagnosis import diagnose

from diagnose import page
from diagnose.control_runs import OTHERS, POINTS, SIMULATED, TestPath, captures
from diagnose.control_truth import is_renos

PATHS, OTHER_PATHS, FIRST = 20, 10, 321
NONE, UNDECIDED = "none of these", "undecided"
UNNAMED = (*OTHERS, *(name for name in SIMULATED if name not in TITLES))
LEAST_RIGHT, MOST_WRONG = 0.9, 0.02
AS_RENO = ", as Reno"
"""The suffix of another control whose run is Reno's."""


@dataclass
class Tally:
    """Verdicts by control, of the captures at one point."""

    verdicts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, control: str, verdict: str) -> None:
        """Count one verdict."""
        self.verdicts.setdefault(control, Counter())[verdict] += 1

    def counts(self, *, named: bool, with_renos: bool = True) -> tuple[int, int, int]:
        """Right, undecided and wrong verdicts about the named controls, or about the others."""
        right = undecided = all_of = 0
        for control, verdicts in self.verdicts.items():
            if (control in TITLES) is named and (with_renos or not control.endswith(AS_RENO)):
                right += verdicts[control if named else NONE]
                undecided += verdicts[UNDECIDED]
                all_of += verdicts.total()
        return right, undecided, all_of - right - undecided


def verdict_of(file: Path) -> tuple[str, str]:
    """The verdict about the connection with the most packets, and its evidence."""
    connections = diagnose(file)["connections"]
    connection = max(connections, key=lambda one: int(one["packets"]))
    if not connection["path"]:
        return UNDECIDED, "no model of the path"
    control = connection["path"]["flow"]["control"]
    verdict = control["name"] or (NONE if control["verdict"] == "none-of-these" else UNDECIDED)
    return verdict, " ".join([*control["candidates"], *control["evidence"]])


def judge(paths: int, others: int, first: int, kept: Path, *, verbose: bool) -> dict[str, Tally]:
    """The verdicts at each capture point."""
    tallies = {point: Tally() for point in POINTS}
    for number in range(paths):
        names = [*TITLES, *(UNNAMED if number < others else ())]
        path, renos = TestPath.drawn(first + number), set()
        for control, point, file in captures(path, names, kept):
            verdict, evidence = verdict_of(file)
            if point == POINTS[0] and is_renos(path, control, file):
                renos.add(control)
            tallies[point].add(control + (AS_RENO if control in renos else ""), verdict)
            right = control if control in TITLES else NONE
            if verbose and verdict != right:
                print(f"path {first + number}, {control} at the {point}: {verdict}: {evidence}", flush=True)
    return tallies


def table(tallies: dict[str, Tally]) -> Iterator[str]:
    """The figures and the confusion matrix."""
    yield "| figure | found | bar | verdict |"
    yield "| --- | --- | --- | --- |"
    for point, tally in tallies.items():
        right, undecided, wrong = tally.counts(named=True)
        whole = max(right + undecided + wrong, 1)
        yield _row(f"controls that are named, captured at the {point}", right, whole, LEAST_RIGHT, is_least=True)
        yield _row(f"controls that are named wrongly, at the {point}", wrong, whole, MOST_WRONG, is_least=False)
        right, undecided, wrong = tally.counts(named=False)
        whole = max(right + undecided + wrong, 1)
        yield _row(f"other controls that are named, at the {point}", wrong, whole, MOST_WRONG, is_least=False)
        right, undecided, wrong = tally.counts(named=False, with_renos=False)
        whole = max(right + undecided + wrong, 1)
        name = f"the same without runs that are Reno's, at the {point}"
        yield _row(name, wrong, whole, MOST_WRONG, is_least=False)
    for point, tally in tallies.items():
        yield ""
        yield f"Captured at the {point}:"
        yield ""
        yield "| control | runs | right | undecided | wrong |"
        yield "| --- | --- | --- | --- | --- |"
        for control, verdicts in sorted(tally.verdicts.items(), key=_order):
            true = control if control in TITLES else NONE
            named = {name: count for name, count in verdicts.items() if name not in (true, UNDECIDED)}
            words = ", ".join(f"{count} {TITLES.get(name, name)}" for name, count in named.items()) or "0"
            title = TITLES.get(control, control)
            yield f"| {title} | {verdicts.total()} | {verdicts[true]} | {verdicts[UNDECIDED]} | {words} |"


def _order(row: tuple[str, Counter[str]]) -> int:
    """The place of a control in the table."""
    return [*TITLES, *UNNAMED].index(row[0].removesuffix(AS_RENO))


def _row(name: str, count: int, whole: int, bar: float, *, is_least: bool) -> str:
    share = count / whole
    is_met = share >= bar if is_least else share <= bar
    words = f"at {'least' if is_least else 'most'} {bar:.0%}"
    return f"| {name} | {share:.1%} ({count} of {whole}) | {words} | {'met' if is_met else '**missed**'} |"


def main() -> int:
    """Judge all controls on all paths."""
    options = argparse.ArgumentParser()
    options.add_argument("--paths", type=int, default=PATHS)
    options.add_argument("--others", type=int, default=OTHER_PATHS)
    options.add_argument("--first", type=int, default=FIRST)
    options.add_argument("--keep", type=Path, metavar="FOLDER")
    options.add_argument("--write", action="store_true")
    options.add_argument("--verbose", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tallies = judge(given.paths, given.others, given.first, given.keep or Path(name), verbose=given.verbose)
    lines = list(table(tallies))
    print("\n".join(lines))
    if given.write:
        last = given.first + given.paths - 1
        told = (
            f"Paths {given.first} to {last}, and {given.first} to {given.first + given.others - 1} for other controls."
        )
        page.write("controls", "\n".join([told, "", *lines]))
    return int(any("missed" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
