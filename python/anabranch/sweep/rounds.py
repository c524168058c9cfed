"""Sweeps whose points are chosen by what the points before gave: seeds until an interval is narrow, and bends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from anabranch.errors import UserError
from anabranch.result.measure_names import one_figure
from anabranch.statistics.sequential import FIRST, MOST, Until, sequence_interval
from anabranch.sweep.design import Design, Point
from anabranch.sweep.figures import Figures
from anabranch.sweep.space import Range, Space
from anabranch.text.spoken import argument

AT_A_TIME = 4
"""Points between two looks at the bends, on any number of cores: the same command makes the same points."""

Make = Callable[[Sequence[Point]], None]
"""Makes runs; their figures are added behind those before."""


@dataclass(frozen=True)
class Refine:
    """How many points are put where a curve bends."""

    figure: str
    points: int


def read_refine(text: str, space: Space | None) -> Refine:
    """``FIGURE:N``.

    Raises:
        UserError: It is none, or there is no one range to refine.
    """
    figure, colon, number = text.rpartition(":")
    if (
        not colon
        or not figure.strip()
        or not (number.strip().isascii() and number.strip().isdigit())
        or not int(number)
    ):
        raise UserError(
            f"{argument('refine', text)}: FIGURE:N was expected, N points more",
            hint=argument("refine", "goodput:20"),
        )
    if space is None or len(space.ranges) != 1:
        raise UserError(f"{argument('refine')} needs one range", hint=argument("range", "PATH=LOW..HIGH"))
    return Refine(figure.strip(), int(number))


def with_seeds_until(
    design: Design, until: Until, most: int | None, figures: Figures, make: Make
) -> tuple[list[Point], list[int]]:
    """Give every combination seeds until its interval is narrow.

    Returns:
        All points, combination by combination, and the number of the run of each.

    Raises:
        UserError: No run has the figure.
    """
    limit = MOST if most is None else most
    combinations = Design(design.factors, design.first_seed, 1)
    values = [combinations[i].values for i in range(len(combinations))]
    runs: list[list[int]] = [[] for _ in values]
    wanted = {i: min(FIRST, limit) for i in range(len(values))}
    while wanted:
        batch = [(i, seed) for i, count in wanted.items() for seed in range(len(runs[i]), count)]
        first = len(figures)
        make([Point(values[i], design.first_seed + seed) for i, seed in batch])
        for run, (i, _) in enumerate(batch, first):
            runs[i].append(run)
        rule = replace(until, figure=_figure(until.figure, figures))
        wanted = {i: count for i in wanted if (count := _more(runs[i], rule, limit, figures)) > len(runs[i])}
    points = [Point(values[i], design.first_seed + k) for i, own in enumerate(runs) for k in range(len(own))]
    return points, [run for own in runs for run in own]


def _more(runs: Sequence[int], until: Until, limit: int, figures: Figures) -> int:
    """How many runs a combination is to have; as many as it has if they are enough."""
    digests = {figures.digest(run) for run in runs}
    known = [v for run in runs if (v := figures.value(until.figure, run)) is not None and math.isfinite(v)]
    if not known or (len(digests) == 1 and None not in digests):
        return len(runs)
    interval = sequence_interval(known)
    return len(runs) if until.is_met(interval) else max(len(runs), until.next_count(interval, limit))


def refined(
    design: Design, space: Space, refine: Refine, figures: Figures, make: Make
) -> tuple[list[Point], list[int]]:
    """Make a design and put points between those where the curve of a figure bends most.

    Returns:
        All points in order, and the number of the run of each.

    Raises:
        UserError: No run has the figure.
    """
    ((_, extent),) = space.ranges.items()
    others = Design(design.factors[:-1], design.first_seed, 1)
    values = [others[i].values for i in range(len(others))]
    seeds = range(design.repeat)
    runs: dict[tuple[int, float], list[int]] = {}

    def add(shares: Sequence[float]) -> None:
        batch = [(i, share) for i in range(len(values)) for share in shares]
        first = len(figures)
        points = [Point((*values[i], extent.at(share)), design.first_seed + k) for i, share in batch for k in seeds]
        make(points)
        for n, at in enumerate(batch):
            begin = first + n * len(seeds)
            runs[at] = list(range(begin, begin + len(seeds)))

    shares = sorted({extent.share(row[0]) for row in design.factors[-1].rows})
    add(shares)
    figure = _figure(refine.figure, figures)
    left = refine.points
    while left > 0:
        curves = [[_mean(figures, figure, runs[i, share]) for share in shares] for i in range(len(values))]
        chosen = between(shares, curves, extent, min(left, AT_A_TIME))
        if not chosen:
            break
        add(chosen)
        shares = sorted([*shares, *chosen])
        left -= len(chosen)
    order = [(i, share) for i in range(len(values)) for share in shares]
    points = [Point((*values[i], extent.at(share)), design.first_seed + k) for i, share in order for k in seeds]
    return points, [run for at in order for run in runs[at]]


def between(
    shares: Sequence[float], curves: Sequence[Sequence[float | None]], extent: Range, count: int
) -> list[float]:
    """Where to put points: the middles of the intervals beside the largest triangles of three neighbours."""
    losses = [0.0] * (len(shares) - 1)
    for curve in curves:
        known = [v for v in curve if v is not None]
        spread = max(known) - min(known) if known else 0.0
        if not spread:
            continue
        for i in range(1, len(shares) - 1):
            a, b, c = curve[i - 1 : i + 2]
            if a is None or b is None or c is None:
                continue
            left, right = shares[i] - shares[i - 1], shares[i + 1] - shares[i]
            area = abs((b - a) * right - (c - b) * left) / spread / 2
            losses[i - 1] += area
            losses[i] += area
    found = []
    for i in sorted(range(len(losses)), key=lambda i: (-losses[i], i)):
        # As the scenario has it: between two whole numbers there may be none.
        middle = extent.share(extent.at((shares[i] + shares[i + 1]) / 2))
        if losses[i] > 0 and shares[i] < middle < shares[i + 1]:
            found.append(middle)
        if len(found) == count:
            break
    return sorted(found)


def _mean(figures: Figures, name: str, runs: Sequence[int]) -> float | None:
    known = [v for run in runs if (v := figures.value(name, run)) is not None]
    return math.fsum(known) / len(known) if known else None


def _figure(name: str, figures: Figures) -> str:
    return one_figure(name, figures.names(), "the sweep has no figure")
