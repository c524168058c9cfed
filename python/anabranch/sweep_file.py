"""The directory of a sweep: its manifest and its tables, and reading them again."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError
from anabranch.files import MAX_RESULT_BYTES, NoSuchFileError, read_bytes, read_json
from anabranch.output import read_manifest, to_json, write_manifest, write_whole
from anabranch.points import FOLDER
from anabranch.segments import segments

if TYPE_CHECKING:
    import polars as pl

    from anabranch.sweep import SweepResult

FORMAT = 1
"""Of ``sweep.json``."""
SWEEP_FILE = "sweep.json"
"""What a sweep's directory says of its tables: see :meth:`anabranch.SweepResult.read`."""
CSV_ROWS = 10_000
"""Rows of a table that are text at a time."""

_AGAIN = "call the same `anabranch sweep … --out` again: it goes on where it stopped"


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

    def note(self) -> None:
        """Write the manifest: what we wrote and nothing else. Another sweep may write here at the same time."""
        if self.directory is not None:
            manifest = read_manifest(self.directory)
            listed = manifest.files if manifest is not None and manifest.kind == "sweep" else ()
            # A sweep that was killed could not list its segments any more.
            points = [f"{FOLDER}/{path.name}" for path in segments(self.directory / FOLDER)]
            files = self.ours.union(listed, points)
            write_manifest(self.directory, "sweep", {f for f in files if (self.directory / f).is_file()})

    def finish(self, result: SweepResult) -> None:
        """Write the tables, what is needed to read them again, and the manifest."""
        if self.directory is None:
            return
        for name, frame in (("runs.parquet", result.frame), ("table.parquet", result.table())):
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd")
            self._add(name, [buffer.getvalue()])
        self._add("runs.csv", _csv(result.frame))
        # Last: it describes the tables, which are there then.
        self._add(SWEEP_FILE, [to_json(result.to_json())])
        self.note()

    def _add(self, name: str, content: Iterable[bytes]) -> None:
        if self.directory is not None:
            write_whole(self.directory / name, content)
            self.ours.add(name)


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
        about = _about(directory / SWEEP_FILE)
        content = read_bytes(directory / "runs.parquet", most=MAX_RESULT_BYTES)
    except NoSuchFileError as error:
        raise UserError(f"{error.message}; the sweep is not finished", hint=_AGAIN) from None
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except pl.exceptions.PolarsError:
        raise UserError(f"{directory / 'runs.parquet'} is not a whole Parquet table", hint=_AGAIN) from None
    axes = list(about["axes"])
    missing = [name for name in (*axes, "seed", "digest") if name not in frame.columns]
    if missing:
        raise UserError(f"{directory / 'runs.parquet'} has no column {missing[0]}, which is expected", hint=_AGAIN)
    is_sequential = about.get("intervals") == "confidence sequence"
    swept = SweptScenario(about["scenario"], about["set"], about["resolved_scenario"], is_sequential)
    return SweepResult(axes, frame, swept)


def _about(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict) or content.get("kind") != "sweep":
        raise UserError(f"{path} does not describe a sweep")
    if content.get("format") != FORMAT:
        raise UserError(f"{path} has format {content.get('format')}; format {FORMAT} was expected")
    for key, kind in (("scenario", str), ("set", list), ("axes", dict), ("resolved_scenario", dict)):
        if not isinstance(content.get(key), kind):
            raise UserError(f'{path} lacks "{key}"', hint=_AGAIN)
    return content
