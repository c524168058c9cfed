"""Random paths beside Linux: the page, and the profile of the RFCs as a wrong system."""

from __future__ import annotations

import sys

import pytest

from kernel import drawn_paths as paths
from kernel.random_paths import COMPARISON


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["random_paths.py", "--check"])
    assert COMPARISON.main("") == 0, capsys.readouterr().err


def test_the_profile_of_the_rfcs_is_found() -> None:
    """Detects bounds that any TCP meets, and a profile of Linux that is no nearer to it than the RFCs."""
    rfc, linux = (_alike(stack) for stack in ("rfc", paths.PROFILE))
    assert rfc < min(linux, paths.LEAST * COMPARISON.count)


def _alike(stack: str) -> int:
    """The number of the page's paths on which a profile is alike."""
    pairs = zip(COMPARISON.drawn(), COMPARISON.kept(), strict=True)
    return sum(paths.is_alike(paths.simulated(path, stack), there) for path, there in pairs)


@pytest.mark.parametrize(("found", "alike"), [(1.0, True), (1.049, True), (1.06, False), (0.91, True), (0.89, False)])
def test_a_path_is_alike_near_the_mean_or_within_the_range(found: float, alike: bool) -> None:
    there = [{"goodput": value} for value in (0.9, 1.05, 1.05)]
    assert paths.is_alike([{"goodput": found}] * 3, there) is alike
