"""Copies of the sample study with fewer runs: its jitter alone has 500 of 551."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

SAMPLE = Path(__file__).parent / "data" / "sample-study"
_GRID = "quick = [4, 8, 15, 30, 50, 70, 95, 100]"
_JITTER = '[jitter]\nset = { "flow.main.start_spread" = "1.2 ms" }\nseeds = 20\n'


def copied(target: Path, intervals: Sequence[int] = (4, 15, 50, 70, 95), *, has_jitter: bool = False) -> Path:
    """A writable copy with these reorder intervals in quick mode."""
    shutil.copytree(SAMPLE, target)
    path = target / "study.toml"
    text = path.read_text(encoding="utf-8")
    assert _GRID in text
    assert _JITTER in text
    text = text.replace(_GRID, f"quick = {list(intervals)}")
    path.write_text(text if has_jitter else text.replace(_JITTER, ""), encoding="utf-8")
    return target
