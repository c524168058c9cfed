"""Ranges of options that are passed to the engine, checked before any run."""

from __future__ import annotations

import math
import os

from anabranch.errors import UserError
from anabranch.text import shown
from anabranch.text.spoken import argument

MAX_SEED = 2**63 - 1
"""Largest seed: the largest integer of TOML, and so of a scenario file."""

SAMPLES_MS = 10.0
"""Default sampling interval of written results, in milliseconds."""

MIN_SAMPLES_MS = 0.001
"""Shortest sampling interval, in milliseconds."""

MAX_JOBS = 1024
"""Largest permitted number of threads. A larger one is a typing mistake."""

JOBS_PER_CORE = 4
"""Threads started per core at most, whatever the option: more would only cost memory."""


def check_seed(seed: int | None) -> None:
    """Refuse a seed that is not 0 to :data:`MAX_SEED`.

    Raises:
        UserError: It is outside.
    """
    if seed is not None and (not _is_whole(seed) or not 0 <= seed <= MAX_SEED):
        raise UserError(f"{argument('seed', shown.python(seed))}: a whole number from 0 to {MAX_SEED} was expected")


def check_repeat(repeat: int | None) -> None:
    """Refuse an invalid number of seeds.

    Raises:
        UserError: It is below 1, or no whole number.
    """
    if repeat is not None and (not _is_whole(repeat) or repeat < 1):
        expected = "at least 1" if _is_whole(repeat) else "a whole number of at least 1"
        raise UserError(f"{argument('repeat', shown.python(repeat))}: {expected} was expected")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_samples(samples_ms: float | None) -> None:
    """Refuse a sampling interval that is not a time, or far too short.

    Raises:
        UserError: It is infinite, not a number, or below :data:`MIN_SAMPLES_MS`.
    """
    if samples_ms is None:
        return
    if not isinstance(samples_ms, (int, float)) or isinstance(samples_ms, bool):
        told = argument("samples_ms", shown.python(samples_ms))
        raise UserError(f"{told}: a number of milliseconds was expected", hint=argument("samples_ms", 10))
    if not math.isfinite(samples_ms) or samples_ms < MIN_SAMPLES_MS:
        raise UserError(
            f"{argument('samples_ms', f'{samples_ms:g}')}: a time of at least {MIN_SAMPLES_MS:g} ms was expected"
        )


def check_jobs(jobs: int | None) -> None:
    """Refuse a number of threads below 1 or above :data:`MAX_JOBS`.

    Raises:
        UserError: It is outside.
    """
    if jobs is not None and (not _is_whole(jobs) or jobs < 1):
        raise UserError(f"{argument('jobs', shown.python(jobs))}: at least 1 was expected")
    if jobs is not None and jobs > MAX_JOBS:
        raise UserError(
            f"{argument('jobs', jobs)}: at most {MAX_JOBS} was expected", hint="leave it out to use all cores"
        )


def thread_count(jobs: int | None, work: int) -> int:
    """Threads for ``work`` runs if ``jobs`` were requested: at most the runs, and at most a multiple of the cores."""
    cores = os.cpu_count() or 1
    return max(1, min(jobs or cores, JOBS_PER_CORE * cores, work))
