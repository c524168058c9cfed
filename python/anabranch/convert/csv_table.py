"""Writes CSV: the samples of a run, or the table that another program's results give."""

from __future__ import annotations

from anabranch.convert.content import Names, Notes, Run, Table, Written


def write(content: Run | Table, _names: Names, _notes: Notes) -> Written:
    """The table: a line of column names, then a row per time and flow."""
    import polars as pl

    frame = content.table("samples") if isinstance(content, Run) else pl.DataFrame(dict(content.columns))
    return Written(frame.write_csv().encode())
