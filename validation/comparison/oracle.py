"""The given figures, and what of them this version can answer."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

from anabranch import _engine as engine

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "validation" / "data"

NOT_AVAILABLE = "not available"

OURS = {"westwood": "westwood-plus"}
"""Their names of congestion controls where ours differ."""


def read(name: str) -> list[dict[str, str]]:
    """Read a file of figures."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def control(name: str) -> str:
    """Return what we call a congestion control."""
    return OURS.get(name, name)


def available(kind: str, name: str) -> bool:
    """Whether the engine has it."""
    return (kind, name) in _registered()


@cache
def _registered() -> frozenset[tuple[str, str]]:
    items: list[dict[str, Any]] = json.loads(engine.registry())
    names = {(item["kind"], item["name"]) for item in items}
    names.update((item["kind"], alias) for item in items for alias in item.get("details", {}).get("aliases", []))
    return frozenset(names)
