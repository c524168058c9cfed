"""Finished runs of a study on disk, so that one that was interrupted goes on where it stopped.

A run is kept as that of a sweep (:mod:`anabranch.sweep.points`), under the same key, and is used under the same
conditions. Of one that was sampled the store has what the study keeps, instead of the whole summary.
"""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from anabranch.errors import UserError
from anabranch.files.output import follow, read_manifest, write_manifest
from anabranch.result.summary import AnySummary
from anabranch.result.table import Table
from anabranch.sweep.points import FOLDER, Depends, Keys, Points, build_name, shared
from anabranch.sweep.segments import segments

if TYPE_CHECKING:
    from anabranch.study.results import Outcome

FORMAT = 3
"""Of what is kept of a sampled run."""

Summarised = tuple[AnySummary, list[tuple[str, str]]]
"""The summary of a run, and the files that it has read."""


class _OutcomeFile(TypedDict):
    figures: dict[str, float | None]
    digest: str | None
    demands: dict[str, float | Literal["inf", "nan"]]
    tables: dict[str, str]
    depends: list[tuple[str, str]]


class Kept:
    """The finished runs of a study in a directory, which is made with the first of them.

    Args:
        directory: Where the study's results go; without ``store`` they have the runs, too.
        folder: The directory of the study.
        remark: Called with a sentence for each run that cannot be used.
        store: A directory of runs that sweeps, studies and comparisons share.
    """

    def __init__(
        self,
        directory: Path | None,
        folder: Path,
        remark: Callable[[str], None] | None = None,
        store: Path | None = None,
    ) -> None:
        self.directory = None if directory is None or store is not None else follow(directory)
        self._points = shared(store, folder, remark) if store is not None else Points(self.directory, folder, remark)
        self._begun = self.directory is None
        self._keys: dict[str, Keys] = {}

    def key(self, text: str, sets: Sequence[str], seed: int | None, *more: Any) -> bytes:
        """The key of a run; ``more`` is what else is kept of it than its summary."""
        if text not in self._keys:
            self._keys[text] = Keys(text, digest=True)
        return self._keys[text].of(sets, seed, *more)

    def summary(self, key: bytes) -> Summarised | None:
        """The summary of a run; ``None`` if it is not kept, or cannot be used."""
        found = self._points.entry(key, AnySummary)
        return None if found is None else (found[0], sorted(found[1].items()))

    def outcome(self, key: bytes) -> Outcome | None:
        """What was kept of a sampled run; ``None`` if nothing was, or it cannot be used."""
        from anabranch.study.results import Outcome

        kept = self._points.read(key, _OutcomeFile)
        if kept is None:
            return None
        demands = {name: float(value) for name, value in kept["demands"].items()}
        try:
            tables = {name: _table(text) for name, text in kept["tables"].items()}
        except UserError as error:
            self.reject(error.message)
            return None
        depends = tuple((name, hashed) for name, hashed in kept["depends"])
        return Outcome(kept["figures"], kept["digest"], tables, demands, depends)

    def reject(self, why: str) -> None:
        """Say that a run that is kept cannot be used, and is made again."""
        self._points.reject(f"a run that was kept cannot be used: {why}; it is made again")

    def write(self, runs: Iterable[tuple[bytes, str | bytes, Depends]]) -> None:
        """Keep runs, each as key, summary or :func:`content`, and the files that it has read."""
        self._begin()
        self._points.write(runs)

    def said(self) -> None:
        """Say of how many runs nothing was said."""
        self._points.said()

    def close(self) -> None:
        """Write through to the disk what was kept."""
        self._points.close()

    def _begin(self) -> None:
        if self._begun or self.directory is None:
            return
        self._begun = True
        self.directory.mkdir(parents=True, exist_ok=True)
        if read_manifest(self.directory) is None:
            write_manifest(self.directory, "study", (), is_complete=False)


def content(outcome: Outcome) -> bytes:
    """What is kept of a sampled run."""
    kept = {
        "figures": dict(outcome.figures),
        "digest": outcome.digest,
        # JSON has neither infinity nor not-a-number.
        "demands": {name: v if math.isfinite(v) else str(v) for name, v in outcome.demands.items()},
        "tables": {name: _text(table) for name, table in outcome.tables.items()},
        "depends": [list(read) for read in outcome.depends],
    }
    return _compact(kept)


def carry_over(directory: Path, aside: Path) -> None:
    """Let new results have the finished runs of this build that ``directory`` has: the next call uses them."""
    for path in segments(follow(directory) / FOLDER, build_name()):
        (aside / FOLDER).mkdir(exist_ok=True)
        try:
            os.link(path, aside / FOLDER / path.name)
        except OSError:
            # A file system without links.
            shutil.copyfile(path, aside / FOLDER / path.name)


def _compact(value: Any) -> bytes:
    """JSON in as few bytes as there are: a study may have ten thousand runs."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _text(table: Table) -> str:
    return base64.b64encode(zlib.compress(table.to_bytes())).decode()


def _table(text: str) -> Table:
    """A stored table.

    Raises:
        UserError: It is none.
    """
    try:
        return Table.from_bytes(zlib.decompress(base64.b64decode(text, validate=True)))
    except (ValueError, zlib.error):
        raise UserError("a table is not whole") from None
