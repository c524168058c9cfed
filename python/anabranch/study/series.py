"""Figures over a grid: the values in a claim's expression.

A :class:`Series` is one value per point of some axes (``variant``, a grid axis such as ``ri``, ``seed``, ``time_s``).
Two series are combined on their common axes, so a baseline without a grid axis is combined with every point of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.statistics import statistics

Cell: TypeAlias = "float | int | bool | str | None"
Key: TypeAlias = "tuple[Cell, ...]"


class NoValueError(ValueError):
    """A figure needed by a claim does not exist, so the claim cannot be judged."""


@dataclass(frozen=True)
class Series:
    """One value per point of ``axes``; ``cells`` maps a point's coordinates, in the order of ``axes``, to it."""

    axes: tuple[str, ...]
    cells: Mapping[Key, Cell]

    def __iter__(self) -> Iterator[tuple[dict[str, Cell], Cell]]:
        for key, value in self.cells.items():
            yield dict(zip(self.axes, key, strict=True)), value

    def map(self, function: Callable[[Cell], Cell]) -> Series:
        """``function`` applied to every value; a missing value remains missing."""
        return Series(self.axes, {k: None if v is None else function(v) for k, v in self.cells.items()})

    def keep(self, test: Callable[[dict[str, Cell]], bool]) -> Series:
        """The points for which ``test`` returns true."""
        return Series(self.axes, {k: v for k, v in self.cells.items() if test(dict(zip(self.axes, k, strict=True)))})

    def drop(self, axis: str) -> Series:
        """Drop an axis with a single remaining coordinate.

        Raises:
            NoValueError: Several coordinates remain, so points would coincide.
        """
        at = self.axes.index(axis)
        if len({k[at] for k in self.cells}) > 1:
            raise NoValueError(f"several values of {axis} are left")
        return Series(self.axes[:at] + self.axes[at + 1 :], {k[:at] + k[at + 1 :]: v for k, v in self.cells.items()})

    def groups(self, over: str) -> tuple[tuple[str, ...], dict[Key, list[tuple[Cell, Cell]]]]:
        """(coordinate on ``over``, value) lists by the other axes."""
        at = self.axes.index(over)
        out: dict[Key, list[tuple[Cell, Cell]]] = {}
        for key, value in self.cells.items():
            out.setdefault(key[:at] + key[at + 1 :], []).append((key[at], value))
        return self.axes[:at] + self.axes[at + 1 :], out

    def collapsed(self) -> Series:
        """The mean over seeds, if there are seeds and numbers; the mean is missing if any seed lacks a value."""
        if "seed" not in self.axes:
            return self
        axes, groups = self.groups("seed")
        cells: dict[Key, Cell] = {}
        for key, rows in groups.items():
            values = [v for _, v in rows]
            if any(v is None for v in values):
                cells[key] = None
            elif len(values) == 1:
                cells[key] = values[0]
            elif any(isinstance(v, str) for v in values):
                return self
            else:
                cells[key] = math.fsum(number(v) for v in values) / len(values)
        return Series(axes, cells)

    def numbers(self) -> list[float]:
        """Every value as a number.

        Raises:
            NoValueError: There is no point, or a value is missing; the message names the point.
        """
        if not self.cells:
            raise NoValueError("no point of the grid fits")
        out = []
        for key, value in self.cells.items():
            if value is None:
                raise NoValueError(f"no value{_at(self.axes, key)}")
            out.append(number(value))
        return out


def number(value: Cell) -> float:
    """A cell as a number: true is 1, false 0.

    Raises:
        NoValueError: It is missing, or text.
    """
    if value is None:
        raise NoValueError("no value")
    if isinstance(value, str):
        raise NoValueError(f'"{value}" is not a number')
    return float(value)


def combine(a: Series | Cell, b: Series | Cell, function: Callable[[Cell, Cell], Cell]) -> Series | Cell:
    """``function`` of both, point by point on their common axes; missing if either is missing."""

    def both(x: Cell, y: Cell) -> Cell:
        return None if x is None or y is None else function(x, y)

    if not isinstance(a, Series) and not isinstance(b, Series):
        return both(a, b)
    if not isinstance(a, Series):
        assert isinstance(b, Series)  # noqa: S101 - for the type checker: one of the two is a series
        return Series(b.axes, {k: both(a, v) for k, v in b.cells.items()})
    if not isinstance(b, Series):
        return Series(a.axes, {k: both(v, b) for k, v in a.cells.items()})
    shared = [x for x in a.axes if x in b.axes]
    extra = [x for x in b.axes if x not in a.axes]
    in_a = [a.axes.index(x) for x in shared]
    in_b = [b.axes.index(x) for x in shared]
    rest = [b.axes.index(x) for x in extra]
    lookup: dict[Key, list[tuple[Key, Cell]]] = {}
    for key, value in b.cells.items():
        lookup.setdefault(tuple(key[i] for i in in_b), []).append((tuple(key[i] for i in rest), value))
    cells: dict[Key, Cell] = {}
    for key, value in a.cells.items():
        for more, other in lookup.get(tuple(key[i] for i in in_a), ()):
            cells[key + more] = both(value, other)
    if not cells and a.cells and b.cells:
        raise NoValueError(f"no common point of {_names(a.axes)} and {_names(b.axes)}")
    return Series((*a.axes, *extra), cells)


def reduce(series: Series, over: str | None, function: Callable[[list[float]], Cell]) -> Series | Cell:
    """``function`` of all values (means over seeds), or of the values along one axis."""
    flat = series.collapsed()
    if over is None:
        return function(flat.numbers())
    if over not in flat.axes:
        raise NoValueError(f"there is no axis {over} to go along")
    axes, groups = flat.groups(over)
    return Series(axes, {k: function([number(v) for _, v in rows]) for k, rows in groups.items()})


def interval_ends(series: Series, *, at_once: bool = False) -> tuple[Series, Series]:
    """Lower and upper end of the 95 % interval over seeds at every point; paired, if the series is a difference.

    Args:
        series: A value for each point and seed.
        at_once: The intervals of all points hold jointly with 95 % confidence (Bonferroni), not just individually.

    Raises:
        NoValueError: A point has fewer than two seeds, and so no interval.
    """
    if "seed" not in series.axes:
        raise NoValueError("an interval needs at least 2 seeds per point")
    axes, groups = series.groups("seed")
    level = 1 - 0.05 / (len(groups) if at_once else 1)
    lower: dict[Key, Cell] = {}
    upper: dict[Key, Cell] = {}
    for key, rows in groups.items():
        interval = statistics.mean_interval([number(v) for _, v in rows], level)
        if interval.lower is None:
            raise NoValueError("an interval needs at least 2 seeds per point")
        lower[key], upper[key] = interval.lower, interval.upper
    return Series(axes, lower), Series(axes, upper)


def pairs(a: Series | Cell, b: Series | Cell) -> tuple[list[float], list[float]]:
    """Values of both at their common points, as means over seeds."""
    if not isinstance(a, Series) or not isinstance(b, Series):
        raise NoValueError("two series over the grid were expected")
    flat_a, flat_b = a.collapsed(), b.collapsed()
    left = combine(flat_a, flat_b, lambda x, _: x)
    right = combine(flat_a, flat_b, lambda _, y: y)
    assert isinstance(left, Series)  # noqa: S101 - two series give a series
    assert isinstance(right, Series)  # noqa: S101 - likewise
    return left.numbers(), right.numbers()


def _at(axes: tuple[str, ...], key: Key) -> str:
    return (" at " + ", ".join(f"{a} {_plain(k)}" for a, k in zip(axes, key, strict=True))) if axes else ""


def _plain(value: Cell) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _names(axes: tuple[str, ...]) -> str:
    return f"({', '.join(axes)})" if axes else "a single value"
