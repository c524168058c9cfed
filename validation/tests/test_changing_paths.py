"""Paths that fail or change beside Linux: the page, and the profile of the RFCs as a wrong system."""

from __future__ import annotations

import sys

import pytest
from anabranch import Scenario

from kernel.changing_paths import COMPARISON, Changing
from kernel.drawn_paths import LEAST, PROFILE, is_alike, simulated


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["changing_paths.py", "--check"])
    assert COMPARISON.main("") == 0, capsys.readouterr().err


@pytest.mark.long
def test_the_profile_of_the_rfcs_is_found() -> None:
    """Detects bounds that any TCP meets, and a profile of Linux that is no nearer to it than the RFCs."""
    rfc, linux = (_alike(stack) for stack in ("rfc", PROFILE))
    assert rfc < min(linux, LEAST * COMPARISON.count)


def _alike(stack: str) -> int:
    """The number of the page's paths on which a profile is alike."""
    pairs = zip(COMPARISON.drawn(), COMPARISON.kept(), strict=True)
    return sum(is_alike(simulated(path, stack), there) for path, there in pairs)


@pytest.mark.parametrize("number", range(3000, 3020))
def test_a_drawn_path_is_a_scenario(number: int) -> None:
    path = Changing.of(number)
    assert path.end >= 3
    Scenario.from_text(path.text(0.03))
