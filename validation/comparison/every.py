"""Every comparison, by the name of its TOML file in ``validation/comparisons``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anabranch.toml_text import parse

from comparison import (
    linux_reordering,
    linux_single_flow,
    linux_two_flows,
    mixes,
    ns2_fairness,
    ns2_sack_delay,
    ns2_single_flow,
    ns3_reordering,
    ns3_single_flow,
    studies,
)
from comparison.oracle import ROOT
from comparison.pages import Comparison

FOLDER = ROOT / "validation" / "comparisons"

KINDS: dict[str, Callable[[str, Mapping[str, Any]], Comparison]] = {
    "study": studies.comparison,
}
"""What makes a comparison from its name and its file."""

OWN: dict[str, Callable[[], Comparison]] = {
    module.NAME: module.comparison
    for module in (
        linux_reordering,
        linux_single_flow,
        linux_two_flows,
        mixes,
        ns2_fairness,
        ns2_sack_delay,
        ns2_single_flow,
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


def comparison(name: str) -> Comparison:
    """Compare everything that a file names."""
    if name in OWN:
        return OWN[name]()
    described = spec(name)
    return KINDS[described["kind"]](name, described)
