"""Intervals that remain valid after every run, so that a sweep can stop when they are narrow enough.

Student's interval is valid for a number of runs that was fixed in advance. A sweep that stops when it is narrow stops
too early. A confidence sequence is valid for all numbers of runs at once, so any rule may stop it (Lai, On Confidence
Sequences, Annals of Statistics 4, 1976). This one inverts the t-test that bets with a normal mixture over the effect's
size, and needs no known variance (Wang and Ramdas, Anytime-valid t-tests and confidence sequences for Gaussian means
with unknown variance, arXiv:2310.03722). It is exact for normal values, as Student's is. Empirical-Bernstein and
betting sequences need known bounds, which figures of runs do not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.errors import UserError
from anabranch.statistics.statistics import Interval, mean_interval
from anabranch.text.spoken import argument

SPREAD = 0.1
"""Variance of the mixture, in squared standard deviations of one value: narrowest at about 100 values."""
FIRST = 16
"""Values before the first evaluation: fewer are not conclusive if most of them are equal."""
MOST = 1000
"""Largest number of seeds of a point by default."""
STEP = 1.5
"""Largest growth between two evaluations."""


@dataclass(frozen=True)
class Until:
    """The condition under which a point has enough seeds.

    Attributes:
        figure: The figure whose interval is evaluated.
        width: The required full width.
        is_relative: Whether the width is a share of the mean.
    """

    figure: str
    width: float
    is_relative: bool = False

    def is_met(self, interval: Interval) -> bool:
        """Whether the interval is narrow enough."""
        return interval.lower is not None and self._wide(interval) <= self.width

    def next_count(self, interval: Interval, most: int) -> int:
        """The number of values for the next evaluation."""
        if interval.lower is None:
            return min(most, max(FIRST, 2 * interval.n))
        # The width decreases with the square root of the number.
        needed = interval.n * (self._wide(interval) / self.width) ** 2
        return min(most, max(interval.n + 1, math.ceil(min(needed, interval.n * STEP))))

    def _wide(self, interval: Interval) -> float:
        wide = (interval.upper or 0.0) - (interval.lower or 0.0)
        if not self.is_relative:
            return wide
        return wide / abs(interval.mean) if interval.mean else math.inf


def read_until(text: str) -> Until:
    """``FIGURE:WIDTH``, the width in the figure's unit or in per cent of the mean.

    Raises:
        UserError: The text has another form.
    """
    figure, colon, width = text.rpartition(":")
    number = width.strip().removesuffix("%")
    try:
        # `float` reads digits of other scripts and underscores as well.
        value = float(number) if number.isascii() and "_" not in number else math.nan
    except ValueError:
        value = math.nan
    if not colon or not figure.strip() or not value > 0 or not math.isfinite(value):
        raise UserError(
            f"{argument('until', text)}: FIGURE:WIDTH was expected, a width above 0 or in per cent",
            hint=argument("until", "goodput:5%"),
        )
    is_relative = width.strip().endswith("%")
    return Until(figure.strip(), value / 100 if is_relative else value, is_relative)


def sequence_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """The mean and the confidence sequence's interval after these values; without ends if it is unbounded.

    Raises:
        ValueError: ``values`` is empty.
    """
    mean, n = mean_interval(values, level).mean, len(values)
    half = half_width(n, level) if n > 1 else None
    if half is None:
        return Interval(mean, None, None, n, level)
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    half *= math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n, level)


def half_width(n: int, level: float = 0.95) -> float | None:
    """Half of the interval in standard errors, comparable to Student's quantile; ``None`` if it is unbounded.

    The bet's wealth against a mean with t-statistic t is √(1/r) ((1 + t²/ν) / (1 + t²/(νr)))^(n/2), ν = n − 1 and
    r = 1 + n·SPREAD; the interval contains the means against which it stays below 1/α.
    """
    freedom, r = n - 1, 1 + n * SPREAD
    root = math.exp(2 / n * (0.5 * math.log(r) - math.log(1 - level)))
    if root >= r:
        return None
    return math.sqrt(freedom * (root - 1) / (1 - root / r))
