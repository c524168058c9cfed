"""The points of a sweep: every combination of the values of its axes, each with its seeds.

Points are computed on access. Ten million of them take no more memory than one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

MAX_RESOLVED = 10_000
"""Up to this number, all combinations are checked before the first run; beyond, this number of rows of each factor."""


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the values of the axes, in their order, and the seed."""

    values: tuple[Any, ...]
    seed: int


@dataclass(frozen=True)
class Factor:
    """Axes that vary together: one axis of a grid, or all axes of a sample of a space."""

    axes: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]


class Design(Sequence[Point]):
    """Every combination of the rows of factors, the last varying fastest, each with its seeds.

    Args:
        factors: The varied factors.
        first_seed: First seed of every combination.
        repeat: Number of seeds of every combination.
    """

    def __init__(self, factors: Sequence[Factor], first_seed: int, repeat: int) -> None:
        self.factors = list(factors)
        self.first_seed = first_seed
        self.repeat = repeat
        self._numbers = range(math.prod(len(factor.rows) for factor in factors) * repeat)
        self._last: tuple[int, tuple[Any, ...]] = (-1, ())

    @property
    def axes(self) -> list[str]:
        """The dotted paths of all axes, in order."""
        return [axis for factor in self.factors for axis in factor.axes]

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Point: ...

    @overload
    def __getitem__(self, at: slice) -> Design: ...

    def __getitem__(self, at: int | slice) -> Point | Design:
        if isinstance(at, slice):
            part = Design(self.factors, self.first_seed, self.repeat)
            part._numbers = self._numbers[at]
            return part
        combination, seed = divmod(self._numbers[at], self.repeat)
        last, values = self._last
        if last != combination:
            # The seeds of a combination share one tuple.
            values = self._values(combination)
            self._last = (combination, values)
        return Point(values, self.first_seed + seed)

    def __iter__(self) -> Iterator[Point]:
        return (self[i] for i in range(len(self)))

    def _values(self, combination: int) -> tuple[Any, ...]:
        rows: list[tuple[Any, ...]] = []
        for factor in reversed(self.factors):
            combination, row = divmod(combination, len(factor.rows))
            rows.append(factor.rows[row])
        return tuple(value for row in reversed(rows) for value in row)


def grid(axes: Mapping[str, Sequence[Any]]) -> list[Factor]:
    """Every combination of the values of the axes."""
    return [Factor((axis,), [(value,) for value in values]) for axis, values in axes.items()]


def to_check(factors: Sequence[Factor]) -> Iterator[tuple[Any, ...]]:
    """The combinations to resolve before the first run: all, or a few that cover every row of every factor."""
    combinations = Design(factors, 0, 1)
    if len(combinations) <= MAX_RESOLVED:
        yield from (point.values for point in combinations)
        return
    most = min(MAX_RESOLVED, max(len(factor.rows) for factor in factors))
    for i in range(most):
        rows = [factor.rows[min(i, len(factor.rows) - 1)] for factor in factors]
        yield tuple(value for row in rows for value in row)
