"""``anabranch diagnose`` finds in captures the engine's record, and the labels of another analyser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diagnose import labels, simulated
from diagnose.simulated import LINKS, POINTS, SCENARIOS, Score

LABELLED = Path(os.environ.get("ANABRANCH_LABELLED_CAPTURES", "missing"))

EXPLAINED = {"reordering": "RFC 7323's PAWS discards the late original, so that its retransmission was needed"}
"""Scenarios in which the engine judges by arrival, and not by acceptance."""

UNLABELLED = {"fack015": "packet 235 "}
"""A retransmission without a label: that of the FIN in packet 232."""

LEAST_F1 = 0.995
LEAST_TIME = {"bbr": 0.94, "bbr-clean": 0.96, "tail-loss": 0.96}
"""Scenarios in which less than 97 % of the time is right.

BBR sometimes paces in the rhythm of acknowledgments, and a paced retransmission looks like one that
waits for the window. Between two short transfers the wait for the last acknowledgment may be
attributed to the application.
"""


LEAST_TIME_AT = {"request-response": 0.94}
"""The same for captures at three points."""

LEAST_F1_AT = {"acks-lost": 0.98, "request-response": 0.98}
"""Points where the last segment of a burst is lost upstream: its retransmission is indistinguishable there."""


def _is_right(told: Score, least_time: float, least_f1: float = LEAST_F1) -> None:
    assert told.time_right >= least_time, told.shares
    assert told.undecided <= max(1, len(told.pairs) // 50)
    for kind in (True, False):
        f1 = told.f1(kind=kind)
        assert f1 is None or f1 >= least_f1, (told.wrong, told.missed, told.extra)


@pytest.mark.parametrize("name", SCENARIOS)
def test_need_and_limits_match_the_engine(name: str) -> None:
    (told,) = simulated.score(name, SCENARIOS[name])
    assert not told.missed
    assert not told.extra
    if name in EXPLAINED:
        told.pairs = [pair for pair in told.pairs if None in pair or pair[0] == pair[1]]
    _is_right(told, LEAST_TIME.get(name, 0.97))


@pytest.mark.parametrize("name", POINTS)
def test_need_and_limits_are_right_at_each_capture_point(name: str) -> None:
    for told in simulated.score(name, POINTS[name], LINKS):
        _is_right(told, LEAST_TIME_AT.get(name, 0.97), LEAST_F1_AT.get(name, LEAST_F1))


@pytest.mark.skipif(
    not LABELLED.is_dir(), reason="ANABRANCH_LABELLED_CAPTURES names no folder with labels.csv and traces"
)
def test_labelled_retransmissions_are_found() -> None:
    rows = labels.labels(LABELLED)
    for trace in sorted((LABELLED / "traces").glob("*.pcap")):
        outcome = labels.compare(trace, rows.get(trace.stem, []))
        assert outcome.only_label == [], trace.stem
        assert [line for line in outcome.only_ours if not line.startswith(UNLABELLED.get(trace.stem, "none"))] == []
