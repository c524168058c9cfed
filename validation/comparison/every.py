"""Every comparison, by the name of its TOML file in ``validation/comparisons``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from comparison import (
    linux_reordering,
    linux_two_flows,
    mixes,
    ns2_fairness,
    ns3_reordering,
    ns3_single_flow,
    rows,
    studies,
    unknown,
)
from comparison.oracle import COMPARISONS, spec
from comparison.pages import Comparison

KINDS: dict[str, Callable[[str, Mapping[str, Any]], Comparison]] = {
    "rows": rows.comparison,
    "study": studies.comparison,
}
"""Constructors of comparisons, from a name and its file."""

OWN: dict[str, Callable[[], Comparison]] = {
    module.NAME: module.comparison
    for module in (linux_reordering, linux_two_flows, mixes, ns2_fairness, ns3_reordering, ns3_single_flow, unknown)
}
"""Comparisons with a separate module (``kind = "own"``), which reads its file itself."""


def names() -> list[str]:
    """Return the names of all comparisons."""
    return sorted(path.stem for path in COMPARISONS.glob("*.toml"))


def described(name: str) -> rows.Rows:
    """Return a comparison row by row."""
    return rows.Rows(name, spec(name))


def comparison(name: str) -> Comparison:
    """Make the comparison that a file defines."""
    content = spec(name)
    return OWN[name]() if content["kind"] == "own" else KINDS[content["kind"]](name, content)
