"""Sweeps with adaptive points: further seeds until an interval is narrow, and further points where a curve bends."""

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
"""Points between two evaluations of the bends, whatever the number of cores, so that a command is reproducible."""

Make = Callable[[Sequence[Point]], None]
"""Makes runs, and appends their figures to the previous ones."""


@dataclass(frozen=True)
class Refine:
    """The number of points to add where a curve bends."""

    figure: str
    points: int


def read_refine(text: str, space: Space | None) -> Refine:
    """``FIGURE:N``.

    Raises:
        UserError: It has another form, or there is not exactly one range to refine.
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
    """Add seeds to every combination until its interval is narrow.

    Returns:
        All points, combination by combination, and the run number of each.

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
    """The number of runs that a combination needs; its present number if these are enough."""
    digests = {figures.digest(run) for run in runs}
    known = [v for run in runs if (v := figures.value(until.figure, run)) is not None and math.isfinite(v)]
    if not known or (len(digests) == 1 and None not in digests):
        return len(runs)
    interval = sequence_interval(known)
    return len(runs) if until.is_met(interval) else max(len(runs), until.next_count(interval, limit))


def refined(
    design: Design, space: Space, refine: Refine, figures: Figures, make: Make
) -> tuple[list[Point], list[int]]:
    """Make a design, and add points where the curve of a figure bends most.

    Returns:
        All points in order, and the run number of each.

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
    """Positions for new points: the middles of the intervals at the largest triangles of three neighbours."""
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
        # Round to a value of the scenario: between two whole numbers there may be none.
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
