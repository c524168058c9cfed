"""Writes CSV: the samples of a run, or the table of another program's results."""

from __future__ import annotations

from anabranch.convert.content import Names, Notes, Run, Table, Written
from anabranch.result import table as columns
from anabranch.result.table_file import csv_lines


def write(content: Run | Table, _names: Names, _notes: Notes) -> Written:
    """The table: a line of column names, then a row per time and flow."""
    table = content.table("samples") if isinstance(content, Run) else columns.Table.of(content.columns)
    return Written(b"".join(csv_lines(table)))
