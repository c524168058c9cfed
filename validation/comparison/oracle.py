"""The reference figures."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from anabranch.text.toml_text import parse

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "validation" / "data"
COMPARISONS = ROOT / "validation" / "comparisons"


def read(name: str) -> list[dict[str, str]]:
    """Read a file of figures."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def spec(name: str) -> dict[str, Any]:
    """Read the file of a comparison."""
    path = COMPARISONS / f"{name}.toml"
    return parse(path.read_text("utf-8"), path.name)
