"""Finished runs of a study on disk, so that an interrupted study resumes.

A run is stored like a run of a sweep (:mod:`anabranch.sweep.points`), under the same key, and is reused under the same
conditions. For a sampled run, the store has the study's extract instead of the whole summary.
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
"""Version of the stored form of a sampled run."""

Summarised = tuple[AnySummary, list[tuple[str, str]]]
"""The summary of a run, and the files that it read."""


class _OutcomeFile(TypedDict):
    figures: dict[str, float | None]
    digest: str | None
    demands: dict[str, float | Literal["inf", "nan"]]
    tables: dict[str, str]
    depends: list[tuple[str, str]]


class Kept:
    """The finished runs of a study in a directory, which is created with the first run.

    Args:
        directory: The directory of the study's results; without ``store`` it also contains the runs.
        folder: The directory of the study.
        remark: Called with a sentence for each unusable run.
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
        """The key of a run; ``more`` describes the data stored in addition to its summary."""
        if text not in self._keys:
            self._keys[text] = Keys(text, digest=True)
        return self._keys[text].of(sets, seed, *more)

    def summary(self, key: bytes) -> Summarised | None:
        """The summary of a run; ``None`` if it is not stored or unusable."""
        found = self._points.entry(key, AnySummary)
        return None if found is None else (found[0], sorted(found[1].items()))

    def outcome(self, key: bytes) -> Outcome | None:
        """The stored outcome of a sampled run; ``None`` if there is none or it is unusable."""
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
        """Report that a stored run is unusable and is made again."""
        self._points.reject(f"a run that was kept cannot be used: {why}; it is made again")

    def write(self, runs: Iterable[tuple[bytes, str | bytes, Depends]]) -> None:
        """Store runs, each as key, summary or :func:`content`, and the files that it read."""
        self._begin()
        self._points.write(runs)

    def said(self) -> None:
        """Report the number of unusable runs without a separate report."""
        self._points.said()

    def close(self) -> None:
        """Flush the stored runs to disk."""
        self._points.close()

    def _begin(self) -> None:
        if self._begun or self.directory is None:
            return
        self._begun = True
        self.directory.mkdir(parents=True, exist_ok=True)
        if read_manifest(self.directory) is None:
            write_manifest(self.directory, "study", (), is_complete=False)


def content(outcome: Outcome) -> bytes:
    """The stored form of a sampled run."""
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
    """Link the finished runs of this build in ``directory`` into the new results, so that the next call reuses them."""
    for path in segments(follow(directory) / FOLDER, build_name()):
        (aside / FOLDER).mkdir(exist_ok=True)
        try:
            os.link(path, aside / FOLDER / path.name)
        except OSError:
            # The file system has no links.
            shutil.copyfile(path, aside / FOLDER / path.name)


def _compact(value: Any) -> bytes:
    """The most compact JSON: a study may have ten thousand runs."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _text(table: Table) -> str:
    return base64.b64encode(zlib.compress(table.to_bytes())).decode()


def _table(text: str) -> Table:
    """A stored table.

    Raises:
        UserError: The text is no table.
    """
    try:
        return Table.from_bytes(zlib.decompress(base64.b64decode(text, validate=True)))
    except (ValueError, zlib.error):
        raise UserError("a table is not whole") from None
