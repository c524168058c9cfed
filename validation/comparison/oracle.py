"""The given figures."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "validation" / "data"


def read(name: str) -> list[dict[str, str]]:
    """Read a file of figures."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
