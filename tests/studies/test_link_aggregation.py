"""The link-aggregation study as it ships: quick mode, its verdicts, its controls, every residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

REPRODUCED = {"L1", "L2", "L8"}
QUICK_S = 30.0
"""What quick mode may take on two cores that do nothing else."""


@pytest.fixture(scope="module")
def outcome(run_quick: Callable[[str], tuple[dict[str, Any], float, int]]) -> tuple[dict[str, Any], float, int]:
    return run_quick("link-aggregation")


def test_has_the_shape_of_the_contract(outcome: tuple[dict[str, Any], float, int]) -> None:
    document, elapsed_s, status = outcome
    assert status == 0
    assert [claim["id"] for claim in document["claims"]] == [f"L{n}" for n in range(1, 10)]
    # With room for a machine that others use as well.
    assert elapsed_s < 5 * QUICK_S
    for claim in document["claims"]:
        assert claim["verdict"].startswith("reproduced") or claim["why"]


def test_verdicts_are_those_documented(outcome: tuple[dict[str, Any], float, int]) -> None:
    verdicts = {claim["id"]: claim["verdict"] for claim in outcome[0]["claims"]}
    assert {name for name, verdict in verdicts.items() if verdict.startswith("reproduced")} == REPRODUCED


def test_every_check_fails_on_its_wrong_system(outcome: tuple[dict[str, Any], float, int]) -> None:
    assert {claim["control"] for claim in outcome[0]["claims"]} == {"not reproduced"}


def test_every_cell_has_its_residual(outcome: tuple[dict[str, Any], float, int]) -> None:
    for claim in outcome[0]["claims"][:5]:
        assert "residual off" in claim["measured"]
        assert "residual on" in claim["measured"]
