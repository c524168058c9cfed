"""Live runs that are kept, so that an interrupted validation goes on where it stopped.

A file per run, named by what it depends on. Runs of another scenario, seed or kernel have another name.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.validate.measure import Figures


@dataclass(frozen=True)
class LiveRun:
    """What is left of a live run.

    Attributes:
        figures: What it gave.
        reasons: Why it is tainted; none if it is not.
        machine: The kernel's version, and how many processors.
    """

    figures: Figures
    reasons: list[str] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)


def path(directory: Path, name: str, resolved: object, seed: int, number: int) -> Path:
    """Where the ``number``-th live run of a scenario with a seed is kept."""
    import platform

    about = json.dumps([resolved, seed, platform.release()], sort_keys=True)
    return directory / f"{name}-{seed}-{number}-{hashlib.sha256(about.encode()).hexdigest()[:12]}.json"


def write(file: Path, run: LiveRun) -> None:
    """Keep a run; the file appears whole or not at all."""
    from anabranch.output import to_json, write_whole

    windows = {group: {str(at): value for at, value in bins.items()} for group, bins in run.figures.windows.items()}
    figures = {"values": run.figures.values, "windows": windows}
    write_whole(file, to_json({"reasons": run.reasons, "machine": run.machine, "figures": figures}))


def read(file: Path) -> LiveRun | None:
    """A run that was kept.

    Raises:
        UserError: The file is none of ours.
    """
    from anabranch.errors import UserError

    try:
        told = json.loads(file.read_bytes())
        windows = told["figures"]["windows"]
        figures = Figures(
            told["figures"]["values"],
            {group: {int(at): value for at, value in bins.items()} for group, bins in windows.items()},
        )
        return LiveRun(figures, list(told["reasons"]), dict(told["machine"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{file} is no live run that was kept", hint="remove it") from None
