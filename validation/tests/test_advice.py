"""Advice and the effect of its remedy: the arithmetic, and the remedy on the true path."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from anabranch import Scenario

from diagnose import advice
from diagnose.causes import CAUSES

ONE = advice.Judged("random loss", 1, "bbr", True, 10.0, 9.5, 4.0, 50.0, 51.0)


def test_a_remedy_is_applied_to_the_bottleneck_of_the_true_path() -> None:
    text = CAUSES[0].text(random.Random("any"))  # noqa: S311 - no secret
    changes = {"link.path.forward.queue": {"kind": "codel"}, "flow.main.cc": "bbr"}
    plain, same, other = (
        Scenario.from_text(one, file="true.toml").run(seed=1)
        for one in (text, advice.remedied(text, {}), advice.remedied(text, changes))
    )
    assert plain.digest == same.digest
    assert other.flows["main"]["goodput_mbit_s"] > plain.flows["main"]["goodput_mbit_s"]


@pytest.mark.parametrize(("predicted", "share"), [(9.5, 1.0), (10.4, 1.0), (10.5, 0.0), (0.0, 0.0)])
def test_the_bar_is_a_tenth_of_what_the_remedy_gave(predicted: float, share: float) -> None:
    assert advice.within([replace(ONE, predicted=predicted)]) == share


def test_a_run_without_goodput_is_an_error() -> None:
    assert replace(ONE, given=0.0).error == 1.0


def test_the_table_has_a_row_for_each_cause() -> None:
    rows = list(advice.table([ONE, replace(ONE, predicted=12.0), replace(ONE, cause="none", remedy="nothing")]))
    assert rows[2] == "| random loss | 2 | bbr 2 | 15.8% | 26.3% | 50% |"
    assert rows[3] == "| none | 1 | nothing 1 | 5.3% | 5.3% | 100% |"
