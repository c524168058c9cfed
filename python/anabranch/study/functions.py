"""The functions of claims' expressions, each with one line of help; the reference lists them from here."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.statistics import statistics
from anabranch.study.series import (
    Cell,
    Key,
    NoValueError,
    Series,
    combine,
    interval_ends,
    number,
    pairs,
    reduce,
)

Value: TypeAlias = "Series | Cell"


@dataclass(frozen=True)
class Function:
    """One function: its usage and help, its number of positional arguments, and whether it accepts ``over=AXIS``."""

    usage: str
    help: str
    arity: tuple[int, int]
    call: Callable[..., Value]
    over: bool = False


def _series(value: Value, name: str) -> Series:
    if not isinstance(value, Series):
        raise NoValueError(f"{name}() needs a series over the grid, not a single value")
    return value


def _reducer(name: str, function: Callable[[list[float]], Cell]) -> Callable[..., Value]:
    def call(x: Value, *, over: str | None = None) -> Value:
        return reduce(_series(x, name), over, function)

    return call


def _over_true(name: str, function: Callable[[list[float]], Cell]) -> Callable[..., Value]:
    def call(x: Value, *, over: str | None = None) -> Value:
        if isinstance(x, bool):
            return function([float(x)])
        return reduce(_series(x, name), over, function)

    return call


def _extreme_at(name: str, pick: Callable[..., tuple[float, Cell]]) -> Callable[..., Value]:
    def call(x: Value, *, over: str | None = None) -> Value:
        series = _series(x, name).collapsed()
        if over is None:
            raise NoValueError(f"{name}() needs over=AXIS")
        if over not in series.axes:
            raise NoValueError(f"there is no axis {over} to go along")
        axes, groups = series.groups(over)
        cells: dict[Key, Cell] = {
            k: pick(((number(v), at) for at, v in rows), key=lambda row: row[0])[1] for k, rows in groups.items()
        }
        return cells[()] if not axes else Series(axes, cells)

    return call


def _seed_mean(x: Value) -> Value:
    return _series(x, "seed_mean").collapsed()


def _spearman(x: Value, y: Value) -> Value:
    return statistics.spearman(*pairs(x, y))


def _correlation(x: Value, y: Value) -> Value:
    return statistics.pearson(*pairs(x, y))


def _slope(y: Value, x: Value) -> Value:
    ys, xs = pairs(y, x)
    return statistics.slope(xs, ys)


def _lower95(x: Value) -> Value:
    return interval_ends(_series(x, "lower95"))[0]


def _upper95(x: Value) -> Value:
    return interval_ends(_series(x, "upper95"))[1]


def _lower95_at_once(x: Value) -> Value:
    return interval_ends(_series(x, "lower95_at_once"), at_once=True)[0]


def _elementwise(function: Callable[[float], float]) -> Callable[[Value], Value]:
    def call(x: Value) -> Value:
        if isinstance(x, Series):
            return x.map(lambda v: function(number(v)))
        return None if x is None else function(number(x))

    return call


def _larger(*values: Value) -> Value:
    return functools.reduce(lambda x, y: combine(x, y, lambda a, b: max(number(a), number(b))), values)


def _smaller(*values: Value) -> Value:
    return functools.reduce(lambda x, y: combine(x, y, lambda a, b: min(number(a), number(b))), values)


def _lookup(x: Value, **where: Value) -> Value:
    """For every point, the value at the point whose named axes have the expressions' values instead."""
    series = _series(x, "lookup").collapsed()
    cells: dict[Key, Cell] = {}
    sources = {axis: to.collapsed() if isinstance(to, Series) else to for axis, to in where.items()}
    for axis in sources:
        if axis not in series.axes:
            raise NoValueError(f"there is no axis {axis} to look along")
    for point, _ in series:
        moved = dict(point)
        for axis, to in sources.items():
            moved[axis] = to.cells.get(tuple(point.get(a) for a in to.axes)) if isinstance(to, Series) else to
        key = tuple(moved[a] for a in series.axes)
        if key in series.cells:
            cells[tuple(point[a] for a in series.axes)] = series.cells[key]
    return Series(series.axes, cells)


def _by_time(x: Value, name: str) -> tuple[tuple[str, ...], dict[Key, list[tuple[float, Cell]]]]:
    series = _series(x, name)
    if "time_s" not in series.axes:
        raise NoValueError(f"{name}() needs samples over time")
    axes, groups = series.groups("time_s")
    return axes, {k: sorted((number(t), v) for t, v in rows) for k, rows in groups.items()}


def _per_series(x: Value, name: str, function: Callable[[list[tuple[float, Cell]]], Cell]) -> Value:
    axes, groups = _by_time(x, name)
    out = Series(axes, {k: function(rows) for k, rows in groups.items()}).collapsed()
    return out.cells[()] if not out.axes and () in out.cells else out


def _runs(x: Value) -> Value:
    def count(rows: list[tuple[float, Cell]]) -> Cell:
        flags = [bool(v) for _, v in rows]
        return sum(1 for i, flag in enumerate(flags) if flag and (i == 0 or not flags[i - 1]))

    return _per_series(x, "runs", count)


def _time_when(x: Value) -> Value:
    return _per_series(x, "time_when", lambda rows: next((t for t, v in rows if v), math.inf))


def _first(x: Value) -> Value:
    return _per_series(x, "first", lambda rows: rows[0][1])


def _last(x: Value) -> Value:
    return _per_series(x, "last", lambda rows: rows[-1][1])


def _until(x: Value, condition: Value) -> Value:
    """The value of x at the first time at which the condition holds, or at the last time if it never does."""
    axes, values = _by_time(combine(x, condition, lambda a, _: a), "until")
    _, holds = _by_time(combine(x, condition, lambda _, b: b), "until")
    cells = {
        key: next((value for (_, value), (_, met) in zip(rows, holds[key], strict=True) if met), rows[-1][1])
        for key, rows in values.items()
    }
    out = Series(axes, cells).collapsed()
    return out.cells[()] if not out.axes else out


def _cross_correlation(x: Value, y: Value, lag_s: Value) -> Value:
    """Largest Pearson correlation of x with y delayed by 0‥lag_s, on the common time grid."""
    both = combine(x, y, lambda a, _: a), combine(x, y, lambda _, b: b)
    axes, left = _by_time(both[0], "cross_correlation")
    _, right = _by_time(both[1], "cross_correlation")
    if isinstance(lag_s, Series):
        raise NoValueError("the lag must be one number of seconds")
    limit = number(lag_s)
    cells: dict[Key, Cell] = {}
    for key, rows in left.items():
        times = [t for t, _ in rows]
        xs, ys = [number(v) for _, v in rows], [number(v) for _, v in right[key]]
        step = times[1] - times[0] if len(times) > 1 else 1.0
        best: float | None = None
        for shift in range(min(int(limit / step + 1e-9), len(xs) - 2) + 1):
            # x reacts to y: x at t is compared with y at t − lag.
            r = statistics.pearson(xs[shift:], ys[: len(ys) - shift])
            best = r if r is not None and (best is None or r > best) else best
        cells[key] = best
    out = Series(axes, cells).collapsed()
    return out.cells[()] if not out.axes else out


FUNCTIONS: dict[str, Function] = {
    "min": Function("min(x)", "smallest value", (1, 1), _reducer("min", min), over=True),
    "max": Function("max(x)", "largest value", (1, 1), _reducer("max", max), over=True),
    "mean": Function("mean(x)", "mean; of samples, the time-mean", (1, 1),
                     _reducer("mean", lambda v: math.fsum(v) / len(v)), over=True),
    "sum": Function("sum(x)", "sum", (1, 1), _reducer("sum", math.fsum), over=True),
    "median": Function("median(x)", "median", (1, 1),
                       _reducer("median", lambda v: (sorted(v)[(len(v) - 1) // 2] + sorted(v)[len(v) // 2]) / 2),
                       over=True),
    "points": Function("points(x)", "number of points", (1, 1), _reducer("points", lambda v: float(len(v))), over=True),
    "count": Function("count(condition)", "number of points where it holds", (1, 1),
                      _over_true("count", sum), over=True),
    "share": Function("share(condition)", "share of points where it holds (0‥1)", (1, 1),
                      _over_true("share", lambda v: sum(v) / len(v)), over=True),
    "all": Function("all(condition)", "it holds at every point", (1, 1), _over_true("all", all), over=True),
    "any": Function("any(condition)", "it holds at some point", (1, 1), _over_true("any", any), over=True),
    "argmin": Function("argmin(x, over=axis)", "coordinate on the axis of the smallest value", (1, 1),
                       _extreme_at("argmin", min), over=True),
    "argmax": Function("argmax(x, over=axis)", "coordinate on the axis of the largest value", (1, 1),
                       _extreme_at("argmax", max), over=True),
    "seed_mean": Function("seed_mean(x)", "mean over seeds, point by point", (1, 1), _seed_mean),
    "spearman": Function("spearman(x, y)", "rank correlation over common points (−1‥1)", (2, 2), _spearman),
    "correlation": Function("correlation(x, y)", "Pearson's correlation (−1‥1)", (2, 2), _correlation),
    "slope": Function("slope(y, x)", "least-squares slope of y against x", (2, 2), _slope),
    "lower95": Function("lower95(x)", "lower end of the 95 % interval over seeds, point by point",
                        (1, 1), _lower95),
    "upper95": Function("upper95(x)", "upper end of it", (1, 1), _upper95),
    "lower95_at_once": Function("lower95_at_once(x)",
                                "lower end, such that the intervals of all points hold at once (Bonferroni)",
                                (1, 1), _lower95_at_once),
    "abs": Function("abs(x)", "absolute value", (1, 1), _elementwise(abs)),
    "log10": Function("log10(x)", "decimal logarithm", (1, 1), _elementwise(math.log10)),
    "larger": Function("larger(x, y, …)", "the largest of them, point by point", (2, 32), _larger),
    "smaller": Function("smaller(x, y, …)", "the smallest of them, point by point", (2, 32), _smaller),
    "lookup": Function("lookup(x, axis=expression, …)", "the value at the point with those coordinates instead",
                       (1, 1), _lookup),
    "runs": Function("runs(condition)", "samples: how many times it becomes (or starts out) true", (1, 1), _runs),
    "time_when": Function("time_when(condition)", "samples: first time it holds, in s; infinite if never", (1, 1),
                          _time_when),
    "first": Function("first(x)", "samples: value at the first time", (1, 1), _first),
    "last": Function("last(x)", "samples: value at the last time", (1, 1), _last),
    "until": Function("until(x, condition)",
                      "samples: value at the first time the condition holds; at the last time if never",
                      (2, 2), _until),
    "cross_correlation": Function("cross_correlation(x, y, lag_s)",
                                  "samples: largest correlation of x with an earlier y", (3, 3),
                                  _cross_correlation),
}  # fmt: skip
"""Every function of the expression language, in the order the reference shows them."""
