"""Every comparison, by the name of its TOML file in ``validation/comparisons``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anabranch.toml_text import parse

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
from comparison.oracle import ROOT
from comparison.pages import Comparison

FOLDER = ROOT / "validation" / "comparisons"

KINDS: dict[str, Callable[[str, Mapping[str, Any]], Comparison]] = {
    "rows": rows.comparison,
    "study": studies.comparison,
}
"""What makes a comparison from its name and its file."""

OWN: dict[str, Callable[[], Comparison]] = {
    module.NAME: module.comparison
    for module in (
        linux_reordering,
        linux_two_flows,
        mixes,
        ns2_fairness,
        ns3_reordering,
        ns3_single_flow,
    )
}


def names() -> list[str]:
    """Return what there is to compare."""
    return [*OWN, *sorted(path.stem for path in FOLDER.glob("*.toml"))]


def spec(name: str) -> dict[str, Any]:
    """Read the file of a comparison."""
    path = FOLDER / f"{name}.toml"
    return parse(path.read_text("utf-8"), path.name)


def described(name: str) -> rows.Rows:
    """Return a comparison row by row."""
    return rows.Rows(name, spec(name))


def comparison(name: str) -> Comparison:
    """Compare everything that a file names."""
    if name in OWN:
        return OWN[name]()
    content = spec(name)
    return KINDS[content["kind"]](name, content)
