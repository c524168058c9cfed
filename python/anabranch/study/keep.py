"""Finished runs of a study on disk, so that one that was interrupted goes on where it stopped.

A run's file is as that of a sweep's point (:mod:`anabranch.points`) and is used under the same conditions. It has what
the study keeps of the run, not the whole summary.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.build import fingerprint
from anabranch.output import STUDY_POINT, follow, read_manifest, write_manifest
from anabranch.points import FOLDER, Points

if TYPE_CHECKING:
    import polars as pl

    from anabranch.study.results import Outcome

FORMAT = 1
"""Of what is kept of a run."""


class Kept:
    """The finished runs of a study in a directory, which is made with the first of them.

    Args:
        directory: Where the study's results go.
        folder: The directory of the study.
        remark: Called with a sentence for each run that cannot be used.
    """

    def __init__(self, directory: Path, folder: Path, remark: Callable[[str], None] | None = None) -> None:
        self.directory = follow(directory)
        self._points = Points(self.directory, folder, remark, content="figures", suffix=f"-{_build()}", encode=_compact)
        self._begun = False

    def read(self, key: str) -> Outcome | None:
        """What was kept of a run; ``None`` if nothing was, or it cannot be used."""
        from anabranch.study.results import Outcome

        kept = self._points.read(key)
        if kept is None:
            return None
        demands = {name: float(value) for name, value in kept["demands"].items()}
        tables = {name: _frame(text) for name, text in kept["tables"].items()}
        return Outcome(kept["figures"], kept["digest"], tables, demands, tuple(map(tuple, kept["depends"])))

    def write(self, key: str, outcome: Outcome, depends: Sequence[tuple[str, str]]) -> None:
        """Keep what a run gave; ``depends`` are the files that it has read."""
        self._begin()
        kept = {
            "figures": dict(outcome.figures),
            "digest": outcome.digest,
            # JSON has neither infinity nor not-a-number.
            "demands": {name: v if math.isfinite(v) else str(v) for name, v in outcome.demands.items()},
            "tables": {name: _text(frame) for name, frame in outcome.tables.items()},
            "depends": [list(read) for read in outcome.depends],
        }
        self._points.write(key, kept, depends)

    def said(self) -> None:
        """Say of how many runs nothing was said."""
        self._points.said()

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        self.directory.mkdir(parents=True, exist_ok=True)
        if read_manifest(self.directory) is None:
            write_manifest(self.directory, "study", (), is_complete=False)


def key(job: tuple[str, list[str], int], samples_ms: float | None, tables: Sequence[str], distributions: bool) -> str:
    """A hash of all that the outcome of a run depends on and that is known before it is made.

    Args:
        job: The scenario's text, what is set over it, and the seed.
        samples_ms: How often samples were recorded.
        tables: Which tables are kept.
        distributions: Whether the distributions of reordering are.
    """
    content = json.dumps([FORMAT, fingerprint(), *job, samples_ms, list(tables), distributions])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def carry_over(directory: Path, aside: Path) -> None:
    """Let new results have the finished runs of this build that ``directory`` has: the next call uses them."""
    for path in sorted((follow(directory) / FOLDER).glob(f"*-{_build()}.json")):
        if STUDY_POINT.fullmatch(path.name):
            (aside / FOLDER).mkdir(exist_ok=True)
            try:
                os.link(path, aside / FOLDER / path.name)
            except OSError:
                # A file system without links.
                shutil.copyfile(path, aside / FOLDER / path.name)


def _build() -> str:
    """The build of the engine, in few characters: points of others are not carried over."""
    return hashlib.sha256(fingerprint().encode()).hexdigest()[:8]


def _compact(value: Any) -> bytes:
    """JSON in as few bytes as there are: a study may have ten thousand runs."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _text(frame: pl.DataFrame) -> str:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return base64.b64encode(buffer.getvalue()).decode()


def _frame(text: str) -> pl.DataFrame:
    import polars as pl

    return pl.read_parquet(io.BytesIO(base64.b64decode(text)))
