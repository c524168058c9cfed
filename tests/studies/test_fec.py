"""The study of error correction as it ships: quick mode, its verdicts, its controls, each figure drawn twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import Study

REPRODUCED_ON_THE_QUICK_GRID = {"C1", "C2", "C3", "C5"}
QUICK_S = 30.0
"""What quick mode is to take on two cores that do nothing else."""


@pytest.fixture(scope="module")
def outcome(run_quick: Callable[[str], tuple[dict[str, Any], float, int]]) -> tuple[dict[str, Any], float, int]:
    return run_quick("fec")


@pytest.fixture(scope="module")
def tables(outcome: tuple[dict[str, Any], float, int]) -> dict[str, list[dict[str, Any]]]:
    return {table["id"]: table["rows"] for table in outcome[0]["tables"]}


def test_has_the_shape_of_the_contract(outcome: tuple[dict[str, Any], float, int]) -> None:
    document, elapsed_s, status = outcome
    assert status == 0
    assert (document["study"], document["mode"]) == ("fec", "quick")
    assert [claim["id"] for claim in document["claims"]] == [f"C{n}" for n in range(1, 12)]
    # With room for a machine that others use as well.
    assert elapsed_s < 5 * QUICK_S
    for claim in document["claims"]:
        assert claim["verdict"].startswith("reproduced") or claim["why"] or claim["verdict"] == "inconclusive"


def test_verdicts_are_those_documented(outcome: tuple[dict[str, Any], float, int]) -> None:
    verdicts = {claim["id"]: claim["verdict"] for claim in outcome[0]["claims"]}
    assert {
        name for name, verdict in verdicts.items() if verdict.startswith("reproduced")
    } == REPRODUCED_ON_THE_QUICK_GRID


def test_every_check_fails_on_its_wrong_system(outcome: tuple[dict[str, Any], float, int]) -> None:
    judged = [claim for claim in outcome[0]["claims"] if claim["verdict"] != "inconclusive"]
    assert {claim["control"] for claim in judged} == {"not reproduced"}


def test_a_flow_that_hears_of_repaired_losses_takes_less(tables: dict[str, list[dict[str, Any]]]) -> None:
    """RFC 9265: what is repaired was lost all the same. Without error correction there is nothing to hear of."""
    for hidden, heard in zip(tables["throughput"], tables["heard"], strict=True):
        if hidden["loss"] < 0.0005:
            continue
        for variant in ("fec", "fec+fmax10", "fec+fmax40"):
            assert heard[variant] < hidden[variant], (variant, hidden["loss"])


def test_every_figure_is_drawn_with_repaired_losses_heard_of_and_not(checkout: Path) -> None:
    names = {figure.id for figure in Study.load(checkout / "studies" / "fec").definition.figures}
    for name in ("5a", "5b", "6a", "6b", "7", "8", "9", "10", "11"):
        assert f"figure-{name}" in names
        assert f"figure-{name}-heard" in names
