"""Criteria of the comparisons.

A small error of a formula is weak evidence if every congestion control gives nearly the same
figure. The error of a row is therefore compared with that of a mistaken answer: the mean error of
answering with the other congestion controls' rows of the same path. Our error must be smaller in
three rows of four, and its median at most half of the mistaken answers' median.

A mean over two controls is easy to beat if one of them is far away; it hardly distinguishes the
near one. So the share of rows in which ours is closer than the nearest mistaken answer is also
reported, without a bar.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

ROWS_CLOSER = 0.75
"""Minimum share of rows that are closer than the mistaken answers."""
MEDIAN_RATIO = 0.5
"""Largest ratio of the median error to the mistaken answers' median error."""


@dataclass(frozen=True)
class Verdict:
    """A condition, its measured value and whether it holds; ``None`` if no row could be judged."""

    condition: str
    found: str
    held: bool | None

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        return "not judged" if self.held is None else "holds" if self.held else "**does not hold**"


@dataclass(frozen=True)
class Errors:
    """Error of a row's answer, and the mean and minimum error of answering with the other controls' rows."""

    ours: float
    others: float
    nearest: float

    @property
    def closer(self) -> bool:
        """Whether ours is the smaller one."""
        return self.ours < self.others


R = TypeVar("R")


@dataclass(frozen=True)
class Measure(Generic[R]):
    """A figure that distinguishes congestion controls, on the scale on which errors are taken.

    Attributes:
        name: Its name in verdicts.
        unit: Unit of an error, with a space before it.
        theirs: A row's reference figure.
        ours: Our figure for a row.
        scale: Function applied to both figures before they are subtracted.
        relative: Whether the error is relative to the reference.
    """

    name: str
    unit: str
    theirs: Callable[[R], float]
    ours: Callable[[R], float]
    scale: Callable[[float], float] = float
    relative: bool = False

    def error(self, answer: float, row: R) -> float:
        """Distance of an answer from a row."""
        theirs = self.scale(self.theirs(row))
        error = abs(self.scale(answer) - theirs)
        return error / theirs if self.relative else error


def errors(
    rows: Sequence[R], measure: Measure[R], path: Callable[[R], Hashable], control: Callable[[R], str]
) -> list[Errors | None]:
    """Return each row's errors; ``None`` if no other control was measured on the path."""
    found: list[Errors | None] = []
    for row in rows:
        others = [other for other in rows if path(other) == path(row) and control(other) != control(row)]
        if not others:
            found.append(None)
            continue
        mistaken = [measure.error(measure.theirs(other), row) for other in others]
        found.append(Errors(measure.error(measure.ours(row), row), math.fsum(mistaken) / len(mistaken), min(mistaken)))
    return found


def told_apart(measure: Measure[R], found: Iterable[Errors | None]) -> list[Verdict]:
    """Judge the errors of all rows."""
    judged = [errors for errors in found if errors is not None]
    closer = f"{measure.name}: closer than the other controls' rows in at least {ROWS_CLOSER:.0%} of the rows"
    median = f"{measure.name}: median error at most {MEDIAN_RATIO:g} of theirs"
    nearest = f"{measure.name}: closer than the nearest of the other controls' rows (for information)"
    if not judged:
        return [Verdict(condition, "no row", None) for condition in (closer, median, nearest)]
    count = sum(errors.closer for errors in judged)
    ours = statistics.median(errors.ours for errors in judged)
    others = statistics.median(errors.others for errors in judged)
    return [
        Verdict(closer, f"{count} of {len(judged)}", count >= ROWS_CLOSER * len(judged)),
        Verdict(
            median,
            f"{ours:.3g}{measure.unit} against {others:.3g}{measure.unit}",
            ours <= MEDIAN_RATIO * others,
        ),
        Verdict(nearest, f"{sum(errors.ours < errors.nearest for errors in judged)} of {len(judged)}", None),
    ]
