"""Runs scenarios without and with a component, with the same seeds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anabranch.errors import UserError
from anabranch.files import owner
from anabranch.result.result import RunResult
from anabranch.text import toml_text

MOST_SEEDS = 100

Progress = Callable[[int], None]


def check_seeds(seeds: int) -> None:
    """Refuse a number of seeds without an interval, or too large.

    Raises:
        UserError: It is out of range.
    """
    if not 2 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds {seeds}: a whole number from 2 to {MOST_SEEDS} was expected")


def simulate(
    scenarios: Mapping[str, Mapping[str, Any]],
    seeds: int,
    *,
    files: Mapping[str, bytes] | None = None,
    progress: Progress | None = None,
) -> dict[str, list[RunResult]]:
    """The runs of each scenario, one per seed.

    Args:
        scenarios: The scenarios, by name.
        seeds: Runs of each.
        files: Files that the scenarios name; a name with ``{seed}`` in a scenario has the seed's number.
        progress: Called with the number of finished runs.
    """
    from anabranch import _engine
    from anabranch.limits import thread_count

    with _folder(files or {}) as folder:
        jobs: list[tuple[str, str, list[str], int | None]] = []
        for name, scenario in scenarios.items():
            text = toml_text.write_document(dict(scenario))
            place = str(folder / f"{name}.toml")
            jobs += [(text.replace("{seed}", str(seed)), place, [], seed) for seed in range(1, seeds + 1)]
        runs = _engine.run_many(
            jobs, threads=thread_count(None, len(jobs)), digest=False, samples_ms=None, progress=progress
        )
    results = iter(runs)
    return {name: [RunResult(next(results)) for _ in range(seeds)] for name in scenarios}


@contextmanager
def _folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A temporary folder with these files; it is removed even if a signal ends the command at once."""
    folder = owner.beside(Path(tempfile.gettempdir()) / "plan")
    folder.mkdir(mode=0o700)
    try:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        owner.forget(folder)


def values(runs: list[RunResult], measure: Callable[[RunResult], float]) -> tuple[float, ...]:
    """A measure of each run."""
    return tuple(measure(run) for run in runs)
