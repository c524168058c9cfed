"""Ranges of a sweep, and the choice of their points: evenly spaced, a Latin hypercube, or Sobol's sequence.

Sobol's sequence and Latin hypercubes take a page; a numerical library for them would be larger than the engine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.keys.grid import MAX_POINTS, axis_path
from anabranch.statistics.statistics import latin_hypercube
from anabranch.sweep.design import Factor
from anabranch.text.spoken import argument

DESIGNS = ("grid", "lhs", "sobol")
DIGITS = 9
"""Significant digits of a value, enough for the points of one design to remain distinct."""
COUNTED = ("", "packet", "packets", "byte", "bytes")
"""Units of counts. A range between two whole numbers in such a unit has only whole numbers."""
LHS_SEED = 1
"""Seed of the hypercube, so that a command always has the same points."""

_END = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*")

# Joe and Kuo, Constructing Sobol sequences with better two-dimensional projections (SIAM J. Sci. Comput. 30, 2008):
# degree and inner coefficients of a primitive polynomial, and the first direction numbers, from the second axis on.
_DIRECTIONS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
)
MOST_SOBOL_AXES = len(_DIRECTIONS) + 1
_BITS = 32


@dataclass(frozen=True)
class Range:
    """Values between two ends, both included.

    Attributes:
        low: The lower end.
        high: The upper end.
        unit: The unit of both; empty for bare numbers.
        is_log: Equal ratios are equally likely, instead of equal differences.
        is_whole: The values are whole numbers.
    """

    low: float
    high: float
    unit: str = ""
    is_log: bool = False
    is_whole: bool = False

    def at(self, share: float) -> Any:
        """The value at a share of the range (0‥1), in the form of a scenario."""
        if self.is_log:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        value = min(max(value, self.low), self.high)
        number = round(value) if self.is_whole else float(f"{value:.{DIGITS}g}")
        return f"{number} {self.unit}" if self.unit else number

    def share(self, value: Any) -> float:
        """The position in the range (0‥1) of a value of :meth:`at`."""
        match = _END.fullmatch(str(value))
        number = float(match[1]) if match else math.nan
        if self.is_log:
            return (math.log(number) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (number - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Space:
    """The ranges of a sweep, and the number of their points."""

    ranges: dict[str, Range]
    design: str
    points: int

    def factor(self) -> Factor:
        """The points without duplicates, which rounding to whole numbers may cause."""
        count = len(self.ranges)
        shares: Sequence[Sequence[float]]
        if self.design == "lhs":
            shares = latin_hypercube(self.points, count, LHS_SEED)
        elif self.design == "sobol":
            shares = sobol(self.points, count)
        else:
            shares = _lattice(self.points, count)
        rows = [tuple(r.at(x) for r, x in zip(self.ranges.values(), row, strict=True)) for row in shares]
        return Factor(tuple(self.ranges), list(dict.fromkeys(rows)))


def read_space(ranges: Mapping[str, str], design: str | None, points: int | None) -> Space | None:
    """Parse the ranges of a sweep; ``None`` if there are none.

    Raises:
        UserError: A range is wrong, or there are options of ranges without a range.
    """
    if not ranges:
        for name, value in (("design", design), ("points", points)):
            if value is not None:
                raise UserError(
                    f"{argument(name, value)} is of ranges, and none is given",
                    hint=argument("range", "PATH=LOW..HIGH"),
                )
        return None
    chosen = design or "sobol"
    if chosen not in DESIGNS:
        raise UserError(f"{argument('design', chosen)}: there is no such design", hint=nearest(chosen, DESIGNS))
    if points is None:
        raise UserError("ranges need the number of points", hint=argument("points", "N"))
    if not 2 <= points <= MAX_POINTS:
        raise UserError(f"{argument('points', points)}: 2 to {MAX_POINTS:,} were expected")
    read = {axis_path(path): read_range(path, text) for path, text in ranges.items()}
    if len(read) < len(ranges):
        raise UserError("two ranges are of one path", hint="give each path once")
    if chosen == "sobol" and len(read) > MOST_SOBOL_AXES:
        raise UserError(
            f"Sobol's sequence has at most {MOST_SOBOL_AXES} ranges here, and {len(read)} are given",
            hint=argument("design", "lhs"),
        )
    if chosen == "grid" and points ** len(read) > MAX_POINTS:
        raise UserError(f"the grid has {points ** len(read):,} points; at most {MAX_POINTS:,} were expected")
    return Space(read, chosen, points)


def read_range(path: str, text: str) -> Range:
    """Parse ``LOW..HIGH``, followed by ``:log`` for a logarithmic scale.

    Raises:
        UserError: The text has another form.
    """
    told = argument("range", f"{path}={text}")
    ends, colon, scale = text.partition(":")
    low, dots, high = ends.partition("..")
    first, last = _END.fullmatch(low), _END.fullmatch(high)
    if not dots or first is None or last is None or (colon and scale.strip() != "log"):
        raise UserError(f"{told}: LOW..HIGH or LOW..HIGH:log was expected", hint="1 Mbit/s..100 Mbit/s:log")
    unit = last[2]
    if first[2] not in ("", unit):
        raise UserError(f"{told}: both ends need one unit, and they have {first[2]} and {unit or 'none'}")
    a, b = float(first[1]), float(last[1])
    if not (math.isfinite(a) and math.isfinite(b) and a < b):
        raise UserError(f"{told}: the first end is not below the second")
    if colon and a <= 0:
        raise UserError(f"{told}: a range of ratios begins above 0")
    is_whole = unit in COUNTED and all(re.fullmatch(r"[+-]?[0-9]+", end[1]) for end in (first, last))
    return Range(a, b, unit, bool(colon), is_whole)


def sobol(points: int, axes: int) -> list[list[float]]:
    """The first points of Sobol's sequence, each in the middle of its cell. A longer one contains a shorter one."""
    columns = [_directions(axis) for axis in range(axes)]
    state = [0] * axes
    rows = []
    for i in range(points):
        rows.append([(x + 0.5) / 2**_BITS for x in state])
        # Antonov and Saleev: neighbours in Gray code differ in one bit.
        bit = (~i & (i + 1)).bit_length() - 1
        state = [x ^ column[bit] for x, column in zip(state, columns, strict=True)]
    return rows


def _directions(axis: int) -> list[int]:
    if axis == 0:
        return [1 << (_BITS - 1 - i) for i in range(_BITS)]
    degree, inner, first = _DIRECTIONS[axis - 1]
    found = [m << (_BITS - 1 - i) for i, m in enumerate(first)]
    for i in range(degree, _BITS):
        value = found[i - degree] ^ (found[i - degree] >> degree)
        for k in range(1, degree):
            if inner >> (degree - 1 - k) & 1:
                value ^= found[i - k]
        found.append(value)
    return found


def _lattice(points: int, axes: int) -> Sequence[Sequence[float]]:
    import itertools

    return list(itertools.product([i / (points - 1) for i in range(points)], repeat=axes))
