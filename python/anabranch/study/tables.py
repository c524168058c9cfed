"""The tables of a study, made from its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.errors import UserError
from anabranch.result.format import spread_within
from anabranch.statistics import statistics
from anabranch.study.bounds import UNBOUNDED, Bounds, bounds_of
from anabranch.study.definition import Column, Definition, Table
from anabranch.study.expression import Expression
from anabranch.study.functions import Value
from anabranch.study.results import Results
from anabranch.study.series import Cell, Key, NoValueError, Series, number
from anabranch.study.verdict import show

NONE = "–"
Record: TypeAlias = "dict[str, Cell]"


@dataclass(frozen=True)
class StudyTable:
    """A table with its content.

    Attributes:
        table: Its definition.
        columns: Its columns for which the grid has points.
        records: One per row: the row's label, the value of each column, its position as ``NAME_at``, and half its 95 %
            interval over seeds as ``NAME_ci95``.
        first: The heading of the row labels.
        bounds: The smallest and largest possible value of columns with intervals.
    """

    table: Table
    columns: tuple[Column, ...]
    records: Sequence[Record]
    first: str
    bounds: Mapping[str, Bounds] = field(default_factory=dict)

    def head(self) -> list[str]:
        """The headings."""
        return [self.first, *(column.title for column in self.columns)]

    @property
    def is_cut(self) -> bool:
        """Whether the interval of a cell is cut off at a bound."""
        for name, (low, high) in self.bounds.items():
            for record in self.records:
                value, half = record[name], record[f"{name}_ci95"]
                if value is None or half is None:
                    continue
                if number(value) - number(half) < low or number(value) + number(half) > high:
                    return True
        return False

    def rows(self) -> list[list[str]]:
        """The rows as text for people."""
        return [
            [str(record["label"]), *(_cell(column, record, self.bounds) for column in self.columns)]
            for record in self.records
        ]


def make(results: Results, *, full: bool) -> list[StudyTable]:
    """Every table of a study.

    Raises:
        UserError: A cell cannot be computed; the message names table and column.
    """
    return [one(results, table, full=full) for table in results.definition.tables]


def one(results: Results, table: Table, *, full: bool) -> StudyTable:
    """One table.

    Raises:
        UserError: A cell cannot be computed; the message names table and column.
    """
    definition = results.definition
    columns = tuple(column for column in table.columns if full or not column.full_only)
    rows = _rows(results, table)
    records: list[Record] = [{table.rows: row, "label": _label(definition, table, row)} for row in rows]
    for column in columns:
        for name, expression in ((column.name, column.value), (f"{column.name}_at", column.at)):
            if expression is None:
                continue
            wanted = [row for row in rows if row not in column.without]
            values = _values(results, table, column, expression, wanted)
            for row, record in zip(rows, records, strict=True):
                record[name] = values[row].value if row in values else None
                if column.interval and name == column.name:
                    record[f"{name}_ci95"] = values[row].half if row in values else None
    bounds = {column.name: bounds_of(definition, column.value) for column in columns if column.interval}
    return StudyTable(table, columns, records, _first(definition, table), bounds)


@dataclass(frozen=True)
class _Measured:
    """A mean over seeds, and half its 95 % interval if there are several seeds and the column shows it."""

    value: Cell
    half: float | None = None


def _rows(results: Results, table: Table) -> list[Cell]:
    if table.rows == "variant":
        return list(table.variants)
    if table.rows == "experiment":
        return list(table.experiments)
    return sorted({key[0] for key in results.axis(table.rows, table.experiment).cells}, key=number)


def _label(definition: Definition, table: Table, row: Cell) -> str:
    if table.rows == "experiment":
        return definition.experiments[str(row)].label
    return definition.variants[str(row)].label if table.rows == "variant" else show(row)


def _first(definition: Definition, table: Table) -> str:
    return definition.axes[table.rows].label if table.rows in definition.axes else ""


def _values(
    results: Results, table: Table, column: Column, expression: Expression, rows: Sequence[Cell]
) -> dict[Cell, _Measured]:
    """The value of each row; rows without a value are absent."""

    def wrong(reason: str) -> UserError:
        where = f'[[table]] {table.id}, column "{column.name}": {expression.text}'
        return UserError(f"{where}: {reason}", file=str(results.definition.directory / "study.toml"))

    def evaluated(experiment: str) -> Value:
        try:
            value = expression.evaluate(results, {}, experiment)
            if column.variant is not None and isinstance(value, Series) and "variant" in value.axes:
                value = value.keep(lambda point: point["variant"] == column.variant).drop("variant")
        except NoValueError as error:
            raise wrong(str(error)) from None
        return value

    if table.rows == "experiment":
        values: dict[Cell, _Measured] = {}
        for row in rows:
            there = results.definition.experiments[str(row)].variants
            if column.variant is None or column.variant in there:
                by_row = _by_row(evaluated(str(row)), None, column, wrong)
                values[row] = by_row[()]
        return values
    by_row = _by_row(evaluated(table.experiment), table.rows, column, wrong)
    if () in by_row:
        return dict.fromkeys(rows, by_row[()])
    missing = [row for row in rows if (row,) not in by_row]
    if missing:
        raise wrong(f"no value at {table.rows} {show(missing[0])}")
    return {row: by_row[row,] for row in rows}


def _by_row(value: Value, axis: str | None, column: Column, wrong: Callable[[str], UserError]) -> dict[Key, _Measured]:
    """The value at each coordinate of ``axis``; at the empty key if there is one value for all."""
    if not isinstance(value, Series):
        if column.interval:
            raise wrong("an interval needs a value for each seed")
        return {(): _Measured(value)}
    flat = value.collapsed()
    rest = [name for name in flat.axes if name != axis]
    if rest:
        what = f"for each {axis} " if axis else ""
        raise wrong(f"a value {what}was expected; {', '.join(rest)} is left: select a point, or go over=axis")
    if not column.interval:
        return {key: _Measured(cell) for key, cell in flat.cells.items()}
    if "seed" not in value.axes:
        raise wrong("an interval needs a value for each seed")
    _, groups = value.groups("seed")
    return {key: _Measured(flat.cells[key], _half([v for _, v in seeds])) for key, seeds in groups.items()}


def _half(values: Sequence[Cell]) -> float | None:
    if any(value is None for value in values):
        return None
    interval = statistics.mean_interval([number(value) for value in values])
    return None if interval.upper is None else interval.upper - interval.mean


def _cell(column: Column, record: Record, bounds: Mapping[str, Bounds]) -> str:
    value = record[column.name]
    if value is None:
        return NONE
    shown = _shown(column, value, record.get(f"{column.name}_ci95"), bounds.get(column.name, UNBOUNDED))
    at = record.get(f"{column.name}_at")
    return f"{shown} ({column.at_form.replace('{}', show(at))})" if at is not None else shown


def _shown(column: Column, value: Cell, half: Cell, bounds: Bounds) -> str:
    if isinstance(value, (bool, str)) or value is None:
        return show(value)

    scale = 100 if column.percent else 1
    scaled = scale * value
    if half is not None:
        low, high = (scale * bound for bound in bounds)
        shown = spread_within(scaled, scale * number(half), low, high, column.digits)
    else:
        shown = show(scaled) if column.digits is None else f"{scaled:.{column.digits}f}"
    return f"{shown} %" if column.percent else shown
