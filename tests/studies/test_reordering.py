"""The reordering study as it ships: quick mode, its verdicts, its controls, what is kept of its robustness."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NOT_REPRODUCED = {"R4", "R11"}
"""Documented with the traces that show why, in docs/studies/reordering.md."""


@pytest.fixture(scope="module")
def outcome(run_quick: Callable[[str], tuple[dict[str, Any], float, int]]) -> tuple[dict[str, Any], float, int]:
    return run_quick("reordering")


def test_has_the_shape_of_the_contract(outcome: tuple[dict[str, Any], float, int]) -> None:
    document, _, status = outcome
    assert status == 0
    assert (document["study"], document["mode"], document["engine"]) == ("reordering", "quick", "sim")
    assert [claim["id"] for claim in document["claims"]] == [*(f"R{n}" for n in range(1, 12)), "X1"]
    assert [claim["id"] for claim in document["claims"] if "section" in claim] == ["X1"]
    (table,) = document["tables"]
    assert table["id"] == "remedies"
    assert {row["variant"] for row in table["rows"]} >= {"unaided", "rack_undo", "bbr"}
    for claim in document["claims"]:
        assert {"id", "claim", "published", "accept_if", "measured", "verdict", "robustness", "control"} <= set(claim)
        if claim["verdict"] != "reproduced":
            assert claim["why"]


def test_verdicts_are_those_documented(outcome: tuple[dict[str, Any], float, int]) -> None:
    verdicts = {claim["id"]: claim["verdict"] for claim in outcome[0]["claims"]}
    assert {name for name, verdict in verdicts.items() if not verdict.startswith("reproduced")} == NOT_REPRODUCED


def test_every_check_fails_on_its_wrong_system(outcome: tuple[dict[str, Any], float, int]) -> None:
    assert {claim["control"] for claim in outcome[0]["claims"]} == {"not reproduced"}


def test_robustness_is_kept_and_not_stale(outcome: tuple[dict[str, Any], float, int]) -> None:
    for claim in outcome[0]["claims"]:
        assert claim["robustness"] is not None, claim["id"]
        assert not claim.get("robustness_stale", False), f"{claim['id']}: run anabranch study reordering --robustness"


def test_quick_mode_is_quick(outcome: tuple[dict[str, Any], float, int]) -> None:
    assert outcome[1] < 20


def test_the_open_parameters_choices_lie_in_their_ranges(checkout: Path) -> None:
    study = tomllib.loads((checkout / "studies/reordering/study.toml").read_text(encoding="utf-8"))
    for parameter in study["open"]:
        if "range" in parameter:
            low, high = parameter["range"]
            assert low <= parameter["value"] <= high, parameter["name"]
        else:
            assert parameter["value"] in parameter["choices"], parameter["name"]


def test_the_study_runs_the_scenario_that_ships(checkout: Path) -> None:
    study = (checkout / "studies/reordering/reordering.toml").read_text(encoding="utf-8")
    assert study == (checkout / "scenarios/reordering.toml").read_text(encoding="utf-8")
