"""``anabranch diagnose`` finds in captures what the engine knows, and what another analyser has found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diagnose import labels, simulated
from diagnose.simulated import SCENARIOS

LABELLED = Path(os.environ.get("ANABRANCH_LABELLED_CAPTURES", "missing"))

EXPLAINED = {"reordering": "RFC 7323's PAWS discards the late original, so that its retransmission was needed"}
"""Scenarios in which the engine's truth means arrival and not acceptance."""

UNLABELLED = {"fack015": "packet 235 "}
"""A retransmission that the labels lack: of the FIN in packet 232."""

LEAST_TIME = {"bbr": 0.94}
"""Where less than 97 % of the time is right: after a loss BBR conserves packets, which looks like a full window."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_need_and_limits_are_what_the_engine_knows(name: str) -> None:
    told = simulated.score(name, SCENARIOS[name])
    assert not told.missed
    assert not told.extra
    assert told.time_right >= LEAST_TIME.get(name, 0.97), told.shares
    if name not in EXPLAINED:
        for kind in (True, False):
            f1 = told.f1(kind=kind)
            assert f1 is None or f1 >= 0.995, told.wrong


@pytest.mark.skipif(
    not LABELLED.is_dir(), reason="ANABRANCH_LABELLED_CAPTURES names no folder with labels.csv and traces"
)
def test_labelled_retransmissions_are_found() -> None:
    rows = labels.labels(LABELLED)
    for trace in sorted((LABELLED / "traces").glob("*.pcap")):
        outcome = labels.compare(trace, rows.get(trace.stem, []))
        assert outcome.only_label == [], trace.stem
        assert [line for line in outcome.only_ours if not line.startswith(UNLABELLED.get(trace.stem, "none"))] == []
