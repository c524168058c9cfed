"""The figures of many runs as columns. Each run takes eight bytes per figure, and its digest."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.result.flat import flatten
from anabranch.sweep.quantities import numbers_of
from anabranch.text import toml_text

if TYPE_CHECKING:
    from anabranch.result.table import Table
    from anabranch.sweep.design import Point


class Figures:
    """Collects the figures of runs, in any order."""

    def __init__(self, runs: int = 0) -> None:
        self._runs = runs
        self._columns: dict[str, array[float]] = {}
        self._digests: list[str | None] = [None] * runs
        # The first run for each set of names: columns are in the order of the runs, not of their completion.
        self._shapes: dict[tuple[str, ...], int] = {}

    def __len__(self) -> int:
        return self._runs

    def grow(self, runs: int) -> None:
        """Allocate space for more runs."""
        self._runs += runs
        self._digests += [None] * runs
        for column in self._columns.values():
            column.extend(array("d", [math.nan]) * runs)

    def names(self) -> list[str]:
        """The names of all figures."""
        return list(self._columns)

    def value(self, name: str, run: int) -> float | None:
        """A figure of a run; ``None`` if it does not apply."""
        value = self._columns[name][run]
        return None if math.isnan(value) else value

    def digest(self, run: int) -> str | None:
        """The digest of a run."""
        return self._digests[run]

    def ordered(self, runs: Sequence[int]) -> Figures:
        """The figures of these runs, in this order."""
        other = Figures(len(runs))
        other._columns = {name: array("d", [column[run] for run in runs]) for name, column in self._columns.items()}
        other._digests = [self._digests[run] for run in runs]
        # Figure names keep the order in which runs were made, which is the same everywhere.
        other._shapes = dict(self._shapes)
        return other

    def add(self, run: int, summary: Mapping[str, Any]) -> None:
        """Add the figures of run number ``run``; adding a run twice has no effect, because its figures are the same."""
        flat = flatten(summary, means=True)
        shape = tuple(flat)
        before = self._shapes.get(shape)
        if before is None or run < before:
            self._shapes[shape] = run
        columns = self._columns
        for name, value in flat.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = array("d", [math.nan]) * self._runs
            # A summary is JSON, which has no NaN: so NaN can represent a missing figure.
            column[run] = math.nan if value is None else value
        self._digests[run] = summary.get("digest")

    def table(self, axes: Sequence[str], points: Sequence[Point]) -> Table:
        """One row per run: the axes (quantities as numbers), the seed, the digest, and the figures."""
        import numpy as np

        from anabranch.result.table import Table, column_of

        order = [name for shape, _ in sorted(self._shapes.items(), key=lambda item: item[1]) for name in shape]
        columns: dict[str, list[Any]] = {axis: [] for axis in axes}
        seeds = array("q")
        for point in points:
            for axis, value in zip(axes, point.values, strict=True):
                columns[axis].append(_cell(value))
            seeds.append(point.seed)
        for axis, cells in columns.items():
            kinds = set(map(type, cells))
            if kinds - {int, float} and len(kinds) > 1:
                columns[axis] = [value_text(c) for c in cells]
        for axis in axes:
            if numbers := numbers_of(axis, columns[axis]):
                columns[numbers.column] = numbers.values
        columns["seed"] = seeds.tolist()
        columns["digest"] = self._digests
        figures = {name: column_of(np.frombuffer(self._columns[name], dtype=np.float64)) for name in order}
        return Table.of(columns).with_columns(figures)


def runs_table(axes: Sequence[str], points: Sequence[Point], summaries: Sequence[Mapping[str, Any]]) -> Table:
    """One row per run, as in :class:`anabranch.SweepResult`."""
    figures = Figures(len(summaries))
    for run, summary in enumerate(summaries):
        figures.add(run, summary)
    return figures.table(axes, points)


def _cell(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else toml_text.write_value(value)


def value_text(value: Any) -> str:
    """A value of an axis as text, as in TOML and JSON, but strings without quotation marks."""
    return value if isinstance(value, str) else toml_text.write_value(value)
