"""The directory of a sweep: its manifest and its tables, and reading them again."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from anabranch.errors import UserError
from anabranch.files import MAX_RESULT_BYTES, NoSuchFileError, read_bytes, read_head
from anabranch.output import read_manifest, to_json, write_manifest
from anabranch.output_file import HEAD_BYTES, write_whole
from anabranch.points import FOLDER
from anabranch.segments import segments
from anabranch.stored import StoredKind

if TYPE_CHECKING:
    import polars as pl

    from anabranch.sweep import SweepResult

FORMAT = 1
"""Of ``sweep.json``."""
SWEEP_FILE = "sweep.json"
"""What a sweep's directory says of its tables: see :meth:`anabranch.SweepResult.read`."""
TABLES = ("runs.parquet", "table.parquet", "runs.csv", SWEEP_FILE)
"""The files of a finished sweep beside its points."""
REPORT = "report.html"
"""The page that the command writes beside them."""
CSV_ROWS = 10_000
"""Rows of a table that are text at a time."""

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


def _other(content: Any) -> str:
    if not isinstance(content, dict) or content.get("kind") != "sweep":
        return "does not describe a sweep"
    return (
        "" if content.get("format") == FORMAT else f"has format {content.get('format')}; format {FORMAT} was expected"
    )


_SWEEP = StoredKind(SweepFile, "the description of a sweep", _AGAIN, other=_other)


class SweepDirectory:
    """What a sweep writes beside its points: a manifest and tables.

    Args:
        directory: Where; nowhere if ``None``.
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
        """Refuse files with names of ours that no sweep wrote here, before any work is done.

        Raises:
            UserError: There is one.
        """
        if self.directory is None:
            return
        for name in (*TABLES, REPORT):
            path = self.directory / name
            if os.path.lexists(path) and name not in self.ours and not (name == REPORT and _is_page(path)):
                # Another sweep may have finished here since.
                manifest = read_manifest(self.directory)
                if manifest is not None and name in manifest.files:
                    continue
                raise UserError(
                    f"{path} was not written by this sweep; it is left as it is",
                    hint="move it, or choose a new directory",
                )

    def note(self, planned: Iterable[str] = ()) -> None:
        """Write the manifest: our files, with those that are written next. Another sweep may write here, too."""
        if self.directory is not None:
            manifest = read_manifest(self.directory)
            listed = manifest.files if manifest is not None and manifest.kind == "sweep" else ()
            # A sweep that was killed could not list its segments any more.
            points = [f"{FOLDER}/{path.name}" for path in segments(self.directory / FOLDER)]
            files = self.ours.union(listed, points)
            known = {f for f in files if f in planned or (self.directory / f).is_file()}
            write_manifest(self.directory, "sweep", known)

    def finish(self, result: SweepResult) -> None:
        """Write the tables, what is needed to read them again, and the manifest."""
        if self.directory is None:
            return
        # It shows the earlier tables.
        self._remove(REPORT)
        # Listed before they are there: a sweep that is killed meanwhile recognises them the next time.
        self.ours.update(TABLES)
        self.note(TABLES)
        for name, frame in (("runs.parquet", result.frame), ("table.parquet", result.table())):
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd")
            self.add(name, [buffer.getvalue()])
        self.add("runs.csv", _csv(result.frame))
        # Last: it describes the tables, which are there then.
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
    """A page of ours, which `--report` has written here."""
    from anabranch.report.page import is_page_of_ours

    return path.is_file() and is_page_of_ours(read_head(path, HEAD_BYTES))


def _csv(frame: pl.DataFrame) -> Iterator[bytes]:
    for part in range(0, max(frame.height, 1), CSV_ROWS):
        yield frame.slice(part, CSV_ROWS).write_csv(include_header=part == 0).encode()


def read_sweep(directory: Path) -> SweepResult:
    """The finished sweep in ``directory``.

    Raises:
        UserError: There is none, or it has been changed.
    """
    import polars as pl

    from anabranch.sweep import SweepResult, SweptScenario

    try:
        about = _SWEEP.read(directory / SWEEP_FILE)
        content = read_bytes(directory / "runs.parquet", most=MAX_RESULT_BYTES)
    except NoSuchFileError as error:
        raise UserError(f"{error.message}; the sweep is not finished", hint=_AGAIN) from None
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except pl.exceptions.PolarsError:
        raise UserError(f"{directory / 'runs.parquet'} is not a whole Parquet table", hint=_AGAIN) from None
    axes = list(about["axes"])
    _check_columns(directory / "runs.parquet", frame, axes)
    is_sequential = about.get("intervals") == "confidence sequence"
    swept = SweptScenario(about["scenario"], about["set"], about["resolved_scenario"], is_sequential)
    return SweepResult(axes, frame, swept)


def _check_columns(path: Path, frame: pl.DataFrame, axes: Sequence[str]) -> None:
    """Refuse a table of runs that lacks columns or has other types.

    Raises:
        UserError: The table is not as it was written.
    """
    import polars as pl

    for name in (*axes, "seed", "digest"):
        if name not in frame.columns:
            raise UserError(f"{path} has no column {name}, which is expected", hint=_AGAIN)
    for name, kind in frame.schema.items():
        if name == "seed":
            is_right = kind.is_integer() and frame[name].null_count() == 0
        elif name == "digest":
            is_right = kind in (pl.String, pl.Null)
        else:
            is_right = name in axes or kind.is_numeric() or kind in (pl.Null, pl.Boolean)
        if not is_right:
            raise UserError(f"{path}: the column {name} has values of another kind ({kind})", hint=_AGAIN)
