"""A redundancy that chooses itself, as it ships: quick mode, its controls, and what must be so whatever comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

QUICK_S = 15.0
"""What quick mode may take on two cores that do nothing else."""
LINE_MBIT_S = 100.0
SHARED_MBIT_S = 20.0


@pytest.fixture(scope="module")
def outcome(run_quick: Callable[[str], tuple[dict[str, Any], float, int]]) -> tuple[dict[str, Any], float, int]:
    return run_quick("fec-frontier")


@pytest.fixture(scope="module")
def tables(outcome: tuple[dict[str, Any], float, int]) -> dict[str, list[dict[str, Any]]]:
    return {table["id"]: table["rows"] for table in outcome[0]["tables"]}


def test_has_the_shape_of_the_contract(outcome: tuple[dict[str, Any], float, int]) -> None:
    document, elapsed_s, status = outcome
    assert status == 0
    assert (document["study"], document["mode"]) == ("fec-frontier", "quick")
    assert [claim["id"] for claim in document["claims"]] == ["F1", "F2", "F3"]
    # With room for a machine that others use as well.
    assert elapsed_s < 5 * QUICK_S


def test_verdicts_are_those_documented(outcome: tuple[dict[str, Any], float, int]) -> None:
    assert {claim["verdict"] for claim in outcome[0]["claims"]} == {"reproduced"}


def test_every_check_fails_on_its_wrong_system(outcome: tuple[dict[str, Any], float, int]) -> None:
    assert {claim["control"] for claim in outcome[0]["claims"]} == {"not reproduced"}


def test_figures_are_possible(tables: dict[str, list[dict[str, Any]]]) -> None:
    for name in ("reno", "cubic", "rack", "bbr"):
        for row in tables[name]:
            assert all(0 < row[variant] < LINE_MBIT_S for variant in ("sack", "fmax10", "adaptive")), (name, row)
    for name in ("heard", "not_heard"):
        for row in tables[name]:
            assert all(0 < row[variant] < SHARED_MBIT_S for variant in ("sack", "fmax10", "adaptive")), (name, row)


def test_without_error_correction_there_is_nothing_to_hear_of(tables: dict[str, list[dict[str, Any]]]) -> None:
    for heard, not_heard in zip(tables["heard"], tables["not_heard"], strict=True):
        assert heard["sack"] == not_heard["sack"]
