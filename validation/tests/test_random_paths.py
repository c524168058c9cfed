"""Random paths beside Linux: the page, and the profile of the RFCs as a wrong system."""

from __future__ import annotations

import sys

import pytest

from kernel import random_paths as paths


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["random_paths.py", "--check"])
    assert paths.main() == 0, capsys.readouterr().err


def test_the_profile_of_the_rfcs_is_found() -> None:
    """Detects bounds that any TCP meets."""
    ours = [paths.simulated(path, "rfc") for path in paths.drawn()]
    assert "does not hold" in paths.parts(ours, paths.kept())["verdict"]


@pytest.mark.parametrize(("found", "alike"), [(1.0, True), (1.049, True), (1.06, False), (0.91, True), (0.89, False)])
def test_a_path_is_alike_near_the_mean_or_within_the_range(found: float, alike: bool) -> None:
    there = [{"goodput": value} for value in (0.9, 1.05, 1.05)]
    assert paths.is_alike([{"goodput": found}] * 3, there) is alike
