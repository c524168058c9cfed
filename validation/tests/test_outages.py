"""Retransmissions after outages beside Linux: the page, and wrong timers."""

from __future__ import annotations

import sys

import pytest

from kernel import outages


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["outages.py", "--check"])
    assert outages.main() == 0, capsys.readouterr().err


@pytest.mark.parametrize("timers", ["rfc6298", "linux-2.6"])
def test_other_timers_are_found(timers: str) -> None:
    """Detects bounds that any timer meets: RFC 6298's, and Linux's before the timer wheel."""
    pairs = [
        (outages.simulated(outage, timers), there)
        for outage, there in zip(outages.drawn(), outages.kept(), strict=True)
    ]
    assert sum(outages.is_timed_alike(*pair) for pair in pairs) <= 12


def test_an_interval_may_differ_by_a_step_of_its_timer() -> None:
    there = [(0.4, 1), (1.2, 1)]
    assert outages.is_alike([(0.432, 1), (1.232, 1)], there)
    assert not outages.is_alike([(0.4, 1), (1.24, 1)], there)
    assert not outages.is_alike([(0.4, 1), (1.2, 2)], there)
    assert not outages.is_alike([(0.4, 1)], there)
