"""Tables in files: Parquet if polars is installed, CSV otherwise. Both can be read back."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError
from anabranch.extras import advice, is_installed
from anabranch.files.files import MAX_RESULT_BYTES, read_bytes
from anabranch.result.table import Table, column_of

if TYPE_CHECKING:
    import polars as pl

CSV_ROWS = 10_000
"""Rows of a table that are converted to text at a time."""


def file_name(table: str) -> str:
    """The name of a table's file."""
    return f"{table}.parquet" if is_installed("polars") else f"{table}.csv"


def write_table(directory: Path, name: str, table: Any) -> None:
    """Write a table to a file. Python does the writing, so that a full disk is an :class:`OSError` like any other.

    Args:
        directory: The directory of the file.
        name: The name of the table.
        table: A table, or an object with the Arrow interface.
    """
    path = directory / file_name(name)
    if path.suffix == ".parquet":
        path.write_bytes(parquet(table))
        return
    with path.open("wb") as file:
        file.writelines(csv_lines(Table.of_any(table)))


def write_parts(directory: Path, name: str, parts: Iterator[Any], rows: int) -> None:
    """Write a table to a file with only a few parts in memory at once. In Parquet, four parts are a row group.

    Args:
        directory: The directory of the file.
        name: The name of the table.
        parts: The table, in one part or more.
        rows: Rows of each part but the last.

    Raises:
        OSError: It cannot be written.
    """
    path = directory / file_name(name)
    if path.suffix == ".csv":
        with path.open("wb") as file:
            for number, part in enumerate(parts):
                file.writelines(csv_lines(Table.of_any(part), has_head=number == 0))
        return
    import re

    import polars as pl
    from polars.io.plugins import register_io_source

    frames = (pl.DataFrame(part) for part in parts)
    first = next(frames)
    if first.height < rows:
        path.write_bytes(parquet(first))
        return

    def source(*_asked: object) -> Iterator[pl.DataFrame]:
        # Polars passes a query's columns, rows and filter; this query has none.
        yield from chain([first], frames)

    whole = register_io_source(source, schema=first.schema)
    try:
        whole.sink_parquet(path, compression="zstd", row_group_size=4 * rows)
    except pl.exceptions.ComputeError as error:
        found = re.search(r"os error (\d+)", str(error))
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from None


def parquet(table: Any) -> bytes:
    """A table as the content of a Parquet file."""
    import polars as pl

    buffer = io.BytesIO()
    pl.DataFrame(table).write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def csv_lines(table: Table, *, has_head: bool = True) -> Iterator[bytes]:
    """A table as the content of a CSV file, some rows at a time."""
    import csv

    for start in range(0, max(table.height, 1), CSV_ROWS):
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, lineterminator="\n")
        if start == 0 and has_head:
            writer.writerow(table.columns)
        writer.writerows(map(_cells, table.take(slice(start, start + CSV_ROWS))))
        yield buffer.getvalue().encode()


def _cells(row: Sequence[Any]) -> list[Any]:
    return [str(cell).lower() if isinstance(cell, bool) else cell for cell in row]


def read_table(directory: Path, name: str, hint: str) -> Table | None:
    """A table of a directory, from Parquet or CSV; ``None`` if there is none.

    Args:
        directory: The directory of the file.
        name: The name of the table.
        hint: Advice if the file is damaged.

    Raises:
        UserError: The file is damaged, or is Parquet and polars is not installed.
    """
    path = directory / f"{name}.parquet"
    if path.is_file():
        return read_parquet(path, hint)
    path = path.with_suffix(".csv")
    return read_csv(path, hint) if path.is_file() else None


def read_parquet(path: Path, hint: str) -> Table:
    """A Parquet file.

    Raises:
        UserError: The file is damaged, or polars is not installed.
    """
    if not is_installed("polars"):
        raise UserError(f"{path}: reading Parquet needs polars, which is not installed", hint=advice("polars"))
    import polars as pl

    try:
        return Table.of_any(pl.read_parquet(io.BytesIO(read_bytes(path, most=MAX_RESULT_BYTES))))
    except pl.exceptions.PolarsError:
        raise UserError(f"{path} is not a whole Parquet table", hint=hint) from None


def read_csv(path: Path, hint: str, texts: Iterable[str] = ()) -> Table:
    """Read a CSV file of :func:`csv_lines`. A column has numbers or flags if all its cells do.

    Args:
        path: The file.
        hint: Advice if the file is damaged.
        texts: Columns of text, whatever their cells look like.

    Raises:
        UserError: The file is damaged.
    """
    import csv

    content = read_bytes(path, most=MAX_RESULT_BYTES)
    wrong = UserError(f"{path} is not a whole CSV table", hint=hint)
    try:
        rows = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise wrong from None
    if not rows or not content.endswith(b"\n") or any(len(row) != len(rows[0]) for row in rows):
        raise wrong
    head, *body = rows
    columns = zip(*body, strict=True) if body else [()] * len(head)
    found = {name: _read(cells, is_text=name in set(texts)) for name, cells in zip(head, columns, strict=True)}
    return Table({name: column_of(cells) for name, cells in found.items()}, len(body))


def _read(cells: Sequence[str], *, is_text: bool) -> list[Any]:
    if not is_text:
        for read in (int, float, _flag):
            try:
                return [read(cell) if cell else None for cell in cells]
            except ValueError:
                continue
    return [cell or None for cell in cells]


def _flag(cell: str) -> bool:
    try:
        return {"true": True, "false": False}[cell]
    except KeyError:
        raise ValueError(cell) from None
