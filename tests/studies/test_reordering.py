"""The shipped reordering study: quick mode, its verdicts, its controls, its stored robustness."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import pytest

from .documented import Outcome, Robust

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STUDY = "reordering"

pytestmark = pytest.mark.brief


class TestAsDocumented(Robust):
    claims: ClassVar = [*(f"R{n}" for n in range(1, 12)), "X1"]
    reproduced: ClassVar = {*(f"R{n}" for n in range(1, 12)), "X1"} - {"R4", "R9"}
    """R9 holds on the full grid. docs/studies/reordering.md has the traces that show why R4 does not hold."""


def test_the_open_parameters_choices_are_in_their_ranges(checkout: Path) -> None:
    study = tomllib.loads((checkout / "studies/reordering/study.toml").read_text(encoding="utf-8"))
    for parameter in study["open"]:
        if "range" in parameter:
            low, high = parameter["range"]
            assert low <= parameter["value"] <= high, parameter["name"]
        else:
            assert parameter["value"] in parameter["choices"], parameter["name"]


def test_remedies_have_a_separate_table_and_claim(outcome: Outcome) -> None:
    assert [claim["id"] for claim in outcome["claims"] if "section" in claim] == ["X1"]
    (table,) = outcome["tables"]
    assert table["id"] == "remedies"
    assert {row["variant"] for row in table["rows"]} >= {"unaided", "rack_undo", "bbr"}
