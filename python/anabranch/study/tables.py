"""The tables of a study, made from its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.errors import UserError
from anabranch.study.definition import Column, Definition, Table
from anabranch.study.expression import Expression
from anabranch.study.results import Results
from anabranch.study.series import Cell, NoValueError, Series, number
from anabranch.study.verdict import show

NONE = "–"
Record: TypeAlias = "dict[str, Cell]"


@dataclass(frozen=True)
class StudyTable:
    """A table that was made.

    Attributes:
        table: What was made.
        columns: Its columns that the grid has points for.
        records: A row each: what the row is called, then the value of each column, and where that is as ``NAME_at``.
    """

    table: Table
    columns: tuple[Column, ...]
    records: Sequence[Record]
    first: str

    def head(self) -> list[str]:
        """The headings."""
        return [self.first, *(column.title for column in self.columns)]

    def rows(self) -> list[list[str]]:
        """The rows as text for people."""
        return [[str(record["label"]), *(_cell(column, record) for column in self.columns)] for record in self.records]


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
                record[name] = values.get(row)
    first = "" if table.rows == "variant" else definition.axes[table.rows].label
    return StudyTable(table, columns, records, first)


def _rows(results: Results, table: Table) -> list[Cell]:
    if table.rows == "variant":
        return list(table.variants)
    return sorted({key[0] for key in results.axis(table.rows, table.experiment).cells}, key=number)


def _label(definition: Definition, table: Table, row: Cell) -> str:
    return definition.variants[str(row)].label if table.rows == "variant" else show(row)


def _values(
    results: Results, table: Table, column: Column, expression: Expression, rows: Sequence[Cell]
) -> dict[Cell, Cell]:
    def wrong(reason: str) -> UserError:
        where = f'[[table]] {table.id}, column "{column.name}": {expression.text}'
        return UserError(f"{where}: {reason}", file=str(results.definition.directory / "study.toml"))

    try:
        value = expression.evaluate(results, {}, table.experiment)
    except NoValueError as error:
        raise wrong(str(error)) from None
    if not isinstance(value, Series):
        return dict.fromkeys(rows, value)
    flat = value.collapsed()
    if flat.axes == ():
        return dict.fromkeys(rows, flat.cells[()])
    if flat.axes != (table.rows,):
        rest = ", ".join(axis for axis in flat.axes if axis != table.rows) or "nothing"
        raise wrong(f"a value for each {table.rows} was expected; {rest} is left: select a point, or go over=axis")
    missing = [row for row in rows if (row,) not in flat.cells]
    if missing:
        raise wrong(f"no value at {table.rows} {show(missing[0])}")
    return {row: flat.cells[row,] for row in rows}


def _cell(column: Column, record: Record) -> str:
    value = record[column.name]
    if value is None:
        return NONE
    shown = _shown(column, value)
    at = record.get(f"{column.name}_at")
    return f"{shown} ({column.at_form.replace('{}', show(at))})" if at is not None else shown


def _shown(column: Column, value: Cell) -> str:
    if isinstance(value, (bool, str)) or value is None:
        return show(value)
    scaled = 100 * value if column.percent else value
    text = show(scaled) if column.digits is None else f"{scaled:.{column.digits}f}"
    return f"{text} %" if column.percent else text
