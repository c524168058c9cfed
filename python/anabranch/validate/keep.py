"""Stored live runs, so that an interrupted validation resumes.

There is one file per run, named by its dependencies: the name changes with the scenario, the content of the files that
it names, the seed, the limits, the kernel, and our build.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from anabranch.files.files import content_hash
from anabranch.files.stored import StoredKind
from anabranch.live import Machine
from anabranch.validate.measure import METRICS, Figures

if TYPE_CHECKING:
    from anabranch.live import Limits
    from anabranch.result.summary import Resolved


class _FiguresFile(TypedDict):
    values: dict[str, dict[str, float | None]]
    windows: dict[str, dict[str, float]]


class _LiveRunFile(TypedDict):
    reasons: list[str]
    machine: Machine
    figures: _FiguresFile


_KEPT = StoredKind(_LiveRunFile, "a live run that was kept", "remove it")


@dataclass(frozen=True)
class LiveRun:
    """The stored part of a live run.

    Attributes:
        figures: Its figures.
        reasons: Why it is tainted; empty if it is not.
        machine: The kernel's version, and the number of processors.
    """

    figures: Figures
    reasons: list[str] = field(default_factory=list)
    machine: Machine = field(default_factory=Machine)


@cache
def build() -> list[str]:
    """The build that made the runs and their figures: our version, and hashes of the engine and the measuring code."""
    from anabranch import __version__, _engine

    parts = [Path(str(_engine.__file__)), Path(__file__).with_name("measure.py")]
    return [__version__, *map(content_hash, parts)]


def about(described: Resolved, limits: Limits | None, kernel: str | None = None) -> dict[str, object]:
    """All dependencies of a live run except the machine's load.

    Args:
        described: The scenario with the run's seed.
        limits: A run beyond them is tainted.
        kernel: Release and recipe of a kernel in virtual time; default: this machine's.

    Raises:
        UserError: A file that the scenario names no longer exists.
    """
    import platform

    from anabranch.live import Limits

    files = {name: content_hash(name) for name in described["files"]}
    return {
        "scenario": described["resolved_scenario"],
        "files": files,
        "limits": asdict(limits if limits is not None else Limits()),
        "kernel": kernel or platform.release(),
        "build": build(),
    }


def path(directory: Path, name: str, about: object, seed: int, number: int) -> Path:
    """The file of the ``number``-th live run of a scenario with a seed; ``about`` has its other dependencies."""
    told = json.dumps([about, seed], sort_keys=True)
    return directory / f"{name}-{seed}-{number}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.json"


def write(file: Path, run: LiveRun) -> None:
    """Store a run; the file appears whole or not at all."""
    from anabranch.files.output import to_json
    from anabranch.files.output_file import write_whole

    windows = {group: {str(at): value for at, value in bins.items()} for group, bins in run.figures.windows.items()}
    figures = {"values": run.figures.values, "windows": windows}
    write_whole(file, to_json({"reasons": run.reasons, "machine": run.machine, "figures": figures}))


def read(file: Path) -> LiveRun | None:
    """A stored run.

    Raises:
        UserError: The file is none of ours.
    """
    from anabranch.errors import UserError
    from anabranch.files.files import NoSuchFileError

    try:
        kept = _KEPT.read(file)
        windows = kept["figures"]["windows"]
        bins = {group: {int(at): value for at, value in one.items()} for group, one in windows.items()}
    except NoSuchFileError:
        return None
    except UserError as error:
        raise UserError(f"{file} is no live run that was kept: {error.message}", hint="remove it") from None
    except ValueError:
        raise UserError(f"{file} is no live run that was kept: a bin is no number", hint="remove it") from None
    missing = sorted({metric.name for metric in METRICS} - kept["figures"]["values"].keys())
    if missing:
        raise UserError(f"{file} is no live run that was kept: it lacks {missing[0]}", hint="remove it")
    return LiveRun(Figures(kept["figures"]["values"], bins), kept["reasons"], kept["machine"])
