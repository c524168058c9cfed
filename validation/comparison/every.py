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
)
from comparison.oracle import COMPARISONS, spec
from comparison.pages import Comparison

KINDS: dict[str, Callable[[str, Mapping[str, Any]], Comparison]] = {
    "rows": rows.comparison,
    "study": studies.comparison,
}
"""What makes a comparison from its name and its file."""

OWN: dict[str, Callable[[], Comparison]] = {
    module.NAME: module.comparison
    for module in (linux_reordering, linux_two_flows, mixes, ns2_fairness, ns3_reordering, ns3_single_flow)
}
"""Those with a module of their own (``kind = "own"``), which reads its file itself."""


def names() -> list[str]:
    """Return what there is to compare."""
    return sorted(path.stem for path in COMPARISONS.glob("*.toml"))


def described(name: str) -> rows.Rows:
    """Return a comparison row by row."""
    return rows.Rows(name, spec(name))


def comparison(name: str) -> Comparison:
    """Compare everything that a file names."""
    content = spec(name)
    return OWN[name]() if content["kind"] == "own" else KINDS[content["kind"]](name, content)
