"""Small-sample statistics: means with Student-t intervals, rank correlation, Latin hypercubes.

A page of code here saves the dependency on a numerical library many times the size of the engine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_MANY = 256
"""From this number of values on, an array is faster than a list."""


@dataclass(frozen=True)
class Interval:
    """A mean and its two-sided confidence interval.

    Attributes:
        mean: Arithmetic mean of the values.
        lower: Lower end; ``None`` if there is no interval (n = 1, or a deterministic repeat).
        upper: Upper end, likewise.
        n: Number of independent values.
        level: Confidence level (0‥1).
    """

    mean: float
    lower: float | None
    upper: float | None
    n: int
    level: float = 0.95


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Mean and Student-t interval of independent values.

    Raises:
        ValueError: ``values`` is empty.
    """
    n = len(values)
    if n == 0:
        raise ValueError("no values")
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, None, None, 1, level)
    if n >= _MANY:
        import numpy as np

        squares = np.square(np.asarray(values) - mean).tolist()
    else:
        squares = [(v - mean) ** 2 for v in values]
    variance = math.fsum(squares) / (n - 1)
    half = t_quantile(0.5 + level / 2, n - 1) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n, level)


@lru_cache(maxsize=1024)
def t_quantile(p: float, degrees: float) -> float:
    """The ``p`` quantile (0.5 < p < 1) of Student's t distribution with ``degrees`` degrees of freedom."""
    low, high = 0.0, 1.0
    while _t_cdf(high, degrees) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _t_cdf(middle, degrees) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True)
class TTest:
    """A two-sided t-test of a difference of means.

    Attributes:
        name: ``"paired t"`` or ``"Welch t"``.
        p: Probability of a difference at least as large under the null hypothesis.
        lower: Lower end of the difference's interval.
        upper: Upper end.
        n: Number of pairs, or of values on the smaller side.
        level: Confidence level of the interval (0‥1).
    """

    name: str
    p: float
    lower: float
    upper: float
    n: int
    level: float = 0.95

    @property
    def is_significant(self) -> bool:
        """The interval of the difference does not contain 0."""
        return self.p < 1 - self.level


def paired_test(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> TTest:
    """Student's t-test of ``second`` − ``first`` over pairs with common random numbers.

    Raises:
        ValueError: There are fewer than two pairs, or values without a partner.
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    n = len(differences)
    if n < 2:
        raise ValueError("a paired test needs two pairs")
    mean, variance = _moments(differences)
    return _t_test("paired t", mean, math.sqrt(variance / n), n - 1, n, level)


def welch_test(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> TTest:
    """Welch's t-test of ``second`` − ``first`` (Biometrika 34, 1947), for independent values of unequal variance.

    Raises:
        ValueError: A side has fewer than two values.
    """
    n, m = len(first), len(second)
    if min(n, m) < 2:
        raise ValueError("Welch's test needs two values on each side")
    (mean_1, variance_1), (mean_2, variance_2) = _moments(first), _moments(second)
    a, b = variance_1 / n, variance_2 / m
    # Compute with the share instead of the variances, whose squares may underflow.
    share = a / (a + b) if a + b > 0 else 0.5
    degrees = 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (m - 1))
    return _t_test("Welch t", mean_2 - mean_1, math.sqrt(a + b), degrees, min(n, m), level)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and variance. Equal values have variance 0, whatever the rounding of their mean."""
    if min(values) == max(values):
        return values[0], 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)


def _t_test(name: str, difference: float, error: float, degrees: float, n: int, level: float) -> TTest:
    if error == 0:
        return TTest(name, 1.0 if difference == 0 else 0.0, difference, difference, n, level)
    t = difference / error
    # Twice the tail beyond |t|: one minus the distribution function would lose small probabilities.
    p = _beta_regularised(degrees / (degrees + t * t), degrees / 2, 0.5)
    half = t_quantile(0.5 + level / 2, degrees) * error
    return TTest(name, p, difference - half, difference + half, n, level)


def runs_needed(values: Sequence[float], threshold: float, level: float = 0.95) -> int | None:
    """The number of values that would put ``threshold`` outside the interval if mean and spread do not change.

    ``None`` if it cannot be estimated: fewer than two values, or the mean equals the threshold.
    """
    interval = mean_interval(values, level) if values else None
    if interval is None or interval.lower is None or interval.mean == threshold:
        return None
    sd = (interval.mean - interval.lower) * math.sqrt(interval.n) / t_quantile(0.5 + level / 2, interval.n - 1)
    n = 2
    while t_quantile(0.5 + level / 2, n - 1) * sd / math.sqrt(n) >= abs(interval.mean - threshold):
        n = max(n + 1, math.ceil(n * 1.1))
        if n > 1_000_000:
            return None
    return n


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation (−1‥1); ties share their mean rank. ``None`` if either side is constant."""
    return pearson(_ranks(x), _ranks(y))


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation (−1‥1); ``None`` for fewer than two pairs or a constant side."""
    if len(x) != len(y):
        raise ValueError("both sides need the same number of values")
    if len(x) < 2:
        return None
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    sxy = math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    sxx = math.fsum((a - mx) ** 2 for a in x)
    syy = math.fsum((b - my) ** 2 for b in y)
    if sxx == 0 or syy == 0:
        return None
    return sxy / math.sqrt(sxx * syy)


def slope(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Least-squares slope of y against x; ``None`` if x is constant."""
    if len(x) < 2:
        return None
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    sxx = math.fsum((a - mx) ** 2 for a in x)
    if sxx == 0:
        return None
    return math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sxx


def latin_hypercube(points: int, dimensions: int, seed: int) -> list[list[float]]:
    """``points`` points of the unit cube: every dimension has exactly one in each of ``points`` equal slices."""
    rng = random.Random(seed)  # noqa: S311 - a design, not a secret
    columns = []
    for _ in range(dimensions):
        slices = list(range(points))
        rng.shuffle(slices)
        columns.append([(s + rng.random()) / points for s in slices])
    return [[column[i] for column in columns] for i in range(points)]


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    i = 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in range(i, j + 1):
            ranks[order[k]] = (i + j) / 2 + 1
        i = j + 1
    return ranks


def _t_cdf(t: float, degrees: float) -> float:
    """P(T ≤ t) for t ≥ 0, by the regularised incomplete beta function."""
    x = degrees / (degrees + t * t)
    return 1 - 0.5 * _beta_regularised(x, degrees / 2, 0.5)


def _beta_regularised(x: float, a: float, b: float) -> float:
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (Lentz's method; NIST DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + even * d, tiny)
        c = _away_from_zero(1 + even / c, tiny)
        result *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _away_from_zero(1 + odd * d, tiny)
        c = _away_from_zero(1 + odd / c, tiny)
        step = c * d
        result *= step
        if abs(step - 1) < 1e-15:
            break
    return result


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
