"""The pages of the reordering study are what its scripts print; what is judged is in ``tests/studies``."""

from __future__ import annotations

from comparison import ns3_reordering, pages, reordering_study
from comparison.judging import Verdict


def test_the_comparison_with_ns3_is_up_to_date() -> None:
    assert pages.stale(ns3_reordering.comparison()) == [], "run make compare"


def test_the_study_is_up_to_date() -> None:
    assert pages.stale(reordering_study.comparison()) == [], "run make compare"


def test_every_setting_is_judged() -> None:
    groups = ns3_reordering.groups()
    assert len(groups) == 8
    judged: list[Verdict] = ns3_reordering.verdicts(groups)
    for setting, control in groups:
        assert any(f"{setting}, {control}:" in verdict.condition for verdict in judged)


def test_a_row_out_of_range_is_told() -> None:
    script = ns3_reordering.study()
    row = script.Row("iw1-nodelack-sack", "Cubic", 30, {"3.37": 0.9}, {"3.37": 0.75}, {"3.37": 0}, {"3.37": 0})
    (verdict,) = ns3_reordering.verdicts({("iw1-nodelack-sack", "Cubic"): [row]})
    assert (verdict.found, verdict.held) == ("0 of 1", False)
