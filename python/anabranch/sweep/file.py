"""The directory of a sweep: writing and reading its manifest and tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from anabranch.errors import UserError
from anabranch.extras import is_installed
from anabranch.files.files import NoSuchFileError, read_head
from anabranch.files.output import read_manifest, to_json, write_manifest
from anabranch.files.output_file import HEAD_BYTES, write_whole
from anabranch.files.stored import StoredKind
from anabranch.sweep.points import FOLDER
from anabranch.sweep.segments import segments

if TYPE_CHECKING:
    from anabranch.result.table import Table
    from anabranch.sweep.sweep import SweepResult

FORMAT = 1
"""Version of ``sweep.json``."""
SWEEP_FILE = "sweep.json"
"""The description of the tables in a sweep's directory: see :meth:`anabranch.SweepResult.read`."""
REPORT = "report.html"
"""The page that the command writes beside the tables."""
_PARQUET = ("runs.parquet", "table.parquet")
_PLAIN = ("table.csv",)


def table_files() -> tuple[str, ...]:
    """The files of a finished sweep beside its points: Parquet if polars is installed; ``runs.csv`` always."""
    return (*(_PARQUET if is_installed("polars") else _PLAIN), "runs.csv", SWEEP_FILE)


_AGAIN = "call the same `anabranch sweep … --out` again: it goes on where it stopped"


class _SweepKeys(TypedDict):
    kind: Literal["sweep"]
    format: Literal[1]
    scenario: str
    set: list[str]
    axes: dict[str, list[Any]]
    resolved_scenario: dict[str, Any]


class SweepFile(_SweepKeys, total=False):
    """``sweep.json``."""

    intervals: str
    engine: str


def _other(content: Any) -> str:
    if not isinstance(content, dict) or content.get("kind") != "sweep":
        return "does not describe a sweep"
    return (
        "" if content.get("format") == FORMAT else f"has format {content.get('format')}; format {FORMAT} was expected"
    )


_SWEEP = StoredKind(SweepFile, "the description of a sweep", _AGAIN, other=_other)


class SweepDirectory:
    """The files of a sweep beside its points: a manifest and tables.

    Args:
        directory: The directory; ``None`` writes nothing.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self.ours: set[str] = set()
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            manifest = read_manifest(directory)
            if manifest is None:
                self.note()
            else:
                self.ours.update(manifest.files)
            self._check_foreign()

    def _check_foreign(self) -> None:
        """Reject files with our names that no sweep has written here, before any work is done.

        Raises:
            UserError: There is such a file.
        """
        if self.directory is None:
            return
        for name in (*table_files(), REPORT):
            path = self.directory / name
            if os.path.lexists(path) and name not in self.ours and not (name == REPORT and _is_page(path)):
                # Another sweep may have finished here in the meantime.
                manifest = read_manifest(self.directory)
                if manifest is not None and name in manifest.files:
                    continue
                raise UserError(
                    f"{path} was not written by this sweep; it is left as it is",
                    hint="move it, or choose a new directory",
                )

    def note(self, planned: Iterable[str] = ()) -> None:
        """Write the manifest: our files and the planned ones. Another sweep may write into this directory, too."""
        if self.directory is not None:
            manifest = read_manifest(self.directory)
            listed = manifest.files if manifest is not None and manifest.kind == "sweep" else ()
            # A killed sweep could not list its segments.
            points = [f"{FOLDER}/{path.name}" for path in segments(self.directory / FOLDER)]
            files = self.ours.union(listed, points)
            known = {f for f in files if f in planned or (self.directory / f).is_file()}
            write_manifest(self.directory, "sweep", known)

    def finish(self, result: SweepResult) -> None:
        """Write the tables, their description, and the manifest."""
        from anabranch.result.table_file import csv_lines, parquet

        if self.directory is None:
            return
        # The report shows the earlier tables.
        self._remove(REPORT)
        # List the files before they exist, so that the next sweep recognises them if this one is killed.
        names = table_files()
        for name in self.ours.intersection(_PARQUET + _PLAIN).difference(names):
            # Files of an earlier sweep with polars, or without: a reader would attribute them to this one.
            (self.directory / name).unlink(missing_ok=True)
        self.ours.update(names)
        self.note(names)
        table = result.plain_table()
        if "runs.parquet" in names:
            self.add("runs.parquet", [parquet(result.plain)])
            self.add("table.parquet", [parquet(table)])
        else:
            self.add("table.csv", csv_lines(table))
        self.add("runs.csv", csv_lines(result.plain))
        # Last, because it describes the existing tables.
        self.add(SWEEP_FILE, [to_json(result.to_json())])
        self.note()

    def _remove(self, name: str) -> None:
        if self.directory is not None and name in self.ours:
            (self.directory / name).unlink(missing_ok=True)
            self.ours.discard(name)

    def add(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file of ours; :meth:`note` lists it."""
        if self.directory is not None:
            write_whole(self.directory / name, content)
            self.ours.add(name)


def _is_page(path: Path) -> bool:
    """Whether the file is a page of ours, written by `--report`."""
    from anabranch.report.page import is_page_of_ours

    return path.is_file() and is_page_of_ours(read_head(path, HEAD_BYTES))


def read_sweep(directory: Path) -> SweepResult:
    """The finished sweep in ``directory``.

    Raises:
        UserError: There is none, or it has been modified.
    """
    from anabranch.result.table_file import read_csv, read_parquet
    from anabranch.sweep.sweep import SweepResult, SweptScenario

    path = directory / "runs.parquet"
    try:
        about = _SWEEP.read(directory / SWEEP_FILE)
        axes = about["axes"]
        manifest = read_manifest(directory)
        # A sweep made without polars lists no Parquet; without polars, any sweep is read from CSV.
        has_parquet = manifest is None or path.name in manifest.files
        if is_installed("polars") and has_parquet:
            table = read_parquet(path, _AGAIN)
        else:
            path = path.with_suffix(".csv")
            texts = [axis for axis, values in axes.items() if all(isinstance(value, str) for value in values)]
            table = read_csv(path, _AGAIN, ("digest", *texts))
    except NoSuchFileError as error:
        raise UserError(f"{error.message}; the sweep is not finished", hint=_AGAIN) from None
    _check_columns(path, table, list(axes))
    is_sequential = about.get("intervals") == "confidence sequence"
    swept = SweptScenario(
        about["scenario"], about["set"], about["resolved_scenario"], is_sequential, about.get("engine", "sim")
    )
    return SweepResult(list(axes), table, swept)


def _check_columns(path: Path, table: Table, axes: Sequence[str]) -> None:
    """Reject a table of runs that lacks columns or has other types.

    Raises:
        UserError: The table has been modified.
    """
    for name in (*axes, "seed", "digest"):
        if name not in table:
            raise UserError(f"{path} has no column {name}, which is expected", hint=_AGAIN)
    for name in table.columns:
        column = table.column(name)
        is_empty = not table.has(name).any()
        if name == "seed":
            is_right = column.kind in ("i8", "u8", "u4") and bool(table.has(name).all())
        elif name == "digest":
            is_right = is_empty or column.kind == "text"
        else:
            is_right = name in axes or is_empty or column.kind not in ("text", "object")
        if not is_right:
            raise UserError(
                f"{path}: the column {name} has values of another kind ({_KINDS[column.kind]})", hint=_AGAIN
            )


_KINDS = {"f8": "numbers", "u8": "numbers", "u4": "numbers", "i8": "numbers", "?": "flags", "text": "text",
          "object": "lists"}  # fmt: skip
