"""Runs the scenario files of the comparisons on all cores."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch import _engine as engine
from anabranch.progress import Progress

from comparison.oracle import DATA

SEEDS = 20
"""Runs of a row that depends on the random seed."""


@dataclass(frozen=True)
class Case:
    """A scenario file, its settings and its number of seeds."""

    file: str
    sets: tuple[str, ...]
    seeds: int


_made: dict[Case, list[dict[str, Any]]] = {}


def simulate(cases: Iterable[Case], label: str) -> dict[Case, list[dict[str, Any]]]:
    """Run each case once per seed, from seed 1 on; return the summaries. Cases that have been run are not run again."""
    asked = list(dict.fromkeys(cases))
    wanted = [case for case in asked if case not in _made]
    texts = {case.file: (DATA / case.file).read_text("utf-8") for case in wanted}
    jobs: list[tuple[str, str, list[str], int | None]] = [
        (texts[case.file], case.file, list(case.sets), seed) for case in wanted for seed in range(1, case.seeds + 1)
    ]
    with Progress(label, len(jobs)) as progress:
        runs = iter(engine.run_many(jobs, digest=False, progress=progress.update))
    for case in wanted:
        _made[case] = [json.loads(next(runs).summary_json) for _ in range(case.seeds)]
    return {case: _made[case] for case in asked}


@dataclass(frozen=True)
class Spread:
    """A figure over the seeds of a case.

    As a format, ``range.3f`` writes the mean with the range if there is one, ``sd.3f`` with the
    standard deviation.
    """

    mean: float
    low: float
    high: float
    sd: float = 0.0
    count: int = 1

    @classmethod
    def of(cls, runs: Iterable[Mapping[str, Any]], figure: Callable[[Mapping[str, Any]], float]) -> Spread:
        """Return mean, range and standard deviation of a figure of each run."""
        values = [figure(run) for run in runs]
        sd = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(math.fsum(values) / len(values), min(values), max(values), sd, len(values))

    def __format__(self, how: str) -> str:
        """Write the mean, and the range or deviation that the format requests."""
        if how.startswith("sd"):
            return f"{self.mean:{how[2:]}} ({self.sd:{how[2:]}})"
        if not how.startswith("range"):
            return format(self.mean, how)
        how = how.removeprefix("range")
        spread = f" ({self.low:{how}}–{self.high:{how}})" if self.low < self.high else ""
        return f"{self.mean:{how}}{spread}"


def of_flow(flow: str, name: str) -> Callable[[Mapping[str, Any]], float]:
    """Return a function that reads one figure of one flow from a summary; 0 if the figure is absent."""
    return lambda summary: float(summary["flows"][flow][name] or 0)
