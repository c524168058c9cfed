"""Difference between a figure of one input and of the first, and its statistical significance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from anabranch.statistics.statistics import TTest, paired_test, welch_test
from anabranch.sweep.sweep import Estimate, estimate


@dataclass(frozen=True)
class Sample:
    """One figure of one input at one point: a (seed, digest, value) for each run."""

    runs: tuple[tuple[int, str | None, float | None], ...] = ()

    @cached_property
    def estimate(self) -> Estimate | None:
        """Mean and interval; ``None`` if no run has the figure."""
        return estimate([(digest, value) for _, digest, value in self.runs])

    @cached_property
    def by_seed(self) -> dict[int, float]:
        """Values of the runs that have the figure."""
        return {seed: v for seed, _, v in self.runs if v is not None and math.isfinite(v)}

    @property
    def seeds(self) -> set[int]:
        """The seeds of all runs."""
        return {seed for seed, _, _ in self.runs}


@dataclass(frozen=True)
class Difference:
    """A figure of another input minus the same figure of the first.

    Attributes:
        absolute: In the unit of the figure.
        percent: Of the first; ``None`` if that is 0 and this is not.
        test: The test of significance; ``None`` without repeats.
    """

    absolute: float
    percent: float | None
    test: TTest | None

    def to_json(self) -> dict[str, object]:
        """Part of the document of ``compare --json``."""
        test = self.test
        return {
            "absolute": self.absolute,
            "percent": self.percent,
            "lower": test.lower if test else None,
            "upper": test.upper if test else None,
            "test": test.name if test else None,
            "p": test.p if test else None,
            "significant": test.is_significant if test else None,
        }


def difference(first: Sample, other: Sample) -> Difference | None:
    """The difference of two samples; ``None`` if one of them lacks the figure."""
    a, b = first.estimate, other.estimate
    if a is None or b is None:
        return None
    absolute = b.interval.mean - a.interval.mean
    if a.interval.mean != 0:
        percent: float | None = 100 * absolute / abs(a.interval.mean)
    else:
        percent = 0.0 if absolute == 0 else None
    return Difference(absolute, percent, _test(first, a, other, b))


def _test(first: Sample, a: Estimate, other: Sample, b: Estimate) -> TTest | None:
    """The paired test if both sides have the same seeds, because then they share their random streams."""
    if a.deterministic and b.deterministic:
        return None
    if first.seeds == other.seeds:
        seeds = sorted(first.by_seed.keys() & other.by_seed.keys())
        if len(seeds) < 2:
            return None
        return paired_test([first.by_seed[s] for s in seeds], [other.by_seed[s] for s in seeds])
    if min(a.interval.n, b.interval.n) < 2:
        return None
    return welch_test(list(first.by_seed.values()), list(other.by_seed.values()))
