"""The guide of Cubic+ shows the kept result, and a row that differs is called so."""

from __future__ import annotations

import json
import sys

import pytest

import cubic_plus


def test_the_page_shows_the_kept_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a page that was changed by hand, and a result of another scenario or program."""
    monkeypatch.setattr(sys, "argv", ["cubic_plus.py", "--check"])
    assert cubic_plus.main() == 0


def test_the_simulator_still_answers_as_kept() -> None:
    """Detects a change of the engine that the page does not show."""
    rows = json.loads(cubic_plus.RESULT.read_text("utf-8"))["rows"]
    for row in rows:
        one = cubic_plus.scenario(row["sack"], row["interval"], row["control"])
        assert cubic_plus.figures(one.run(digest=False).flows["main"]) == row["simulator"]


@pytest.mark.parametrize(("simulated", "alike"), [(0.03, True), (0.049, True), (0.051, False), (0.009, False)])
def test_a_row_is_alike_within_a_percentage_point(simulated: float, alike: bool) -> None:
    kernel = [{"retransmitted_share": share} for share in (0.02, 0.04)]
    row = {"kernel": kernel, "simulator": {"retransmitted_share": simulated}}
    assert cubic_plus.is_alike(row) is alike
