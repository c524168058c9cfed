"""Figures of the entries: cells of the studies' pages, stored runs of other implementations, and short runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from anabranch import Study
from anabranch.plot.study import Drawing
from anabranch.study.definition import Definition
from anabranch.study.results import Condition, Job, Pool

from comparison import pages
from comparison.oracle import ROOT

_MEASURE = re.compile(r"(?:^|, )([A-Za-z][\w ]*?) (-?\d[\d.e+-]*|inf)\b")
_ENGINES = {"kernel": "virtual time", "live": "real time"}
"""Files of runs with a Linux kernel, the first of them preferred, and the kind of time."""
_PATHS = {
    ("link-aggregation", "live"): ", 1 ms between the switches, 30 s",
    ("link-aggregation", "kernel"): ", 30 s",
}
"""Runs over another path than the study's, or shorter ones, as the label says."""


@dataclass(frozen=True)
class Judged:
    """A claim's row of a study's page."""

    verdict: str
    measures: Mapping[str, float]


@dataclass(frozen=True)
class OnLinux:
    """A claim's measures in runs with a Linux kernel, and the label of those runs."""

    label: str
    measures: Mapping[str, float]


def page(study: str) -> str:
    """The path of a study's page in the checkout."""
    return f"docs/studies/{study}.md"


@cache
def definition(study: str) -> Definition:
    """A study as its file defines it."""
    return Study.load(ROOT / "studies" / study).definition


def numbers(text: str) -> dict[str, float]:
    """The measures of a cell: ``off 789.2 Mbit/s, on 756.5 Mbit/s`` has ``off`` and ``on``."""
    return {name: float(value) for name, value in _MEASURE.findall(text)}


def judged(study: str, claim: str, part: str = "results") -> Judged:
    """A claim's verdict and measures, from the study's page."""
    for name, _, _, measured, verdict, *_ in pages.cells(page(study), part)[2:]:
        if name == claim:
            return Judged(verdict, numbers(measured))
    raise SystemExit(f"{page(study)}: no claim {claim} in the part {part}")


def witnessed(study: str, claim: str) -> Judged:
    """The same on stored runs of another implementation."""
    rows = [line.strip("| ").split(" | ") for line in pages.shown(page(study), "witnesses") if line.startswith("| ")]
    for name, _, measured, verdict, *_ in rows:
        if name == claim:
            return Judged(verdict, numbers(measured))
    raise SystemExit(f"{page(study)}: no claim {claim} in the part witnesses")


def corrected(study: str, claim: str) -> tuple[Judged, Judged]:
    """A claim before and after the first correction that names it."""
    for line in pages.shown(page(study), "corrections"):
        cells = line.strip("| ").split(" | ")
        if cells[0] == claim:
            _, before, was, after, measured = cells
            return Judged(before, numbers(was)), Judged(after, numbers(measured))
    raise SystemExit(f"{page(study)}: no claim {claim} in the part corrections")


def table(study: str, part: str) -> dict[str, dict[str, str]]:
    """A generated table of a study's page: row → column → cell."""
    head, _, *rows = (line for line in pages.cells(page(study), part) if len(line) > 1)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def column(study: str, part: str, name: str) -> tuple[list[float], list[float], list[float]]:
    """The numbers of a column over those of the rows, and half of their intervals, 0 if the table has none."""
    cells = table(study, part)
    values = [row[name].rstrip("%").split(" ± ") for row in cells.values()]
    halves = [float(value[1]) if len(value) > 1 else 0.0 for value in values]
    return [float(row) for row in cells], [float(value[0]) for value in values], halves


def on_linux(study: str, claim: str) -> OnLinux | None:
    """A claim's measures with a Linux kernel: in virtual time if it was run there, else in real time."""
    for engine, time in _ENGINES.items():
        file = ROOT / "studies" / study / f"{engine}.json"
        if not file.is_file():
            continue
        kept = json.loads(file.read_text("utf-8"))
        for row in kept["claims"]:
            if row["id"] == claim:
                release = ".".join(kept["machine"]["kernel"].split(".")[:2])
                path = _PATHS.get((study, engine), "")
                return OnLinux(f"Linux {release}, {time}{path}", row["live"]["measures"])
    return None


def run(
    study: str,
    chosen: Callable[[Job], bool],
    *,
    opens: tuple[tuple[str, object], ...] = (),
    changed: Callable[[Definition], Definition] = lambda same: same,
) -> Drawing:
    """Make the chosen runs of a study's full grid.

    ``opens`` are values of open parameters that differ from the study's; ``changed`` changes the definition first.
    """
    pool = Pool(changed(definition(study)))
    jobs = [job for job in pool.plan(Condition(full=True, opens=opens)) if chosen(job)]
    pool.make(jobs)
    return Drawing(pool.results(jobs))


def with_variants(experiment: str, variants: Iterable[str]) -> Callable[[Definition], Definition]:
    """Return a change that gives an experiment other variants of the study."""

    def changed(study: Definition) -> Definition:
        own = replace(study.experiments[experiment], variants=tuple(variants))
        return replace(study, experiments={**study.experiments, experiment: own})

    return changed


def rounded(values: Sequence[float]) -> list[float]:
    """Values with four digits: machines may round the last digits differently."""
    return [float(f"{value:.4g}") for value in values]
