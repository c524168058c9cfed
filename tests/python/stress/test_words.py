"""A find in one sentence."""

from __future__ import annotations

import pytest

from anabranch.stress.bounds import KINDS
from anabranch.stress.campaign import read_control
from anabranch.stress.genome import Event, Genome
from anabranch.stress.goals import GOALS, Measured
from anabranch.stress.judge import Pair
from anabranch.stress.words import event_words, sentence

PAIR = Pair(read_control("bbr", "control", "linux"), read_control("reno", "against", "linux"))
OWN = Measured(share=0.0123, other=0.8, queue_ms=31, sent=1_000, spurious=30, dropped=0.05, drops=50, timeouts=12)
REFERENCE = Measured(share=0.4, other=0.4, queue_ms=4, sent=1_000, spurious=2, dropped=0.001, drops=1, timeouts=0)


def test_a_sentence_has_path_events_and_both_outcomes() -> None:
    events = (Event(3_000, "ack-gap", 400, 1, 0, "own"), Event(4_000, "delay", 0, 80, 0, "shared"))
    assert sentence("stall", Genome(10, 20, 1, "alone", events), OWN, REFERENCE, PAIR) == (
        "With a flow of bbr on 10 Mbit/s, 42 ms and a buffer of 35 packets: if its acknowledgments are lost from 3 s "
        "for 400 ms and the shared delay is 80 ms from 4 s on, bbr then has 1.2 % of the rate over 16.2 s, and reno in "
        "its place 40 %."
    )


def test_a_find_without_events_says_so() -> None:
    assert sentence("starvation", Genome(10, 20, 1, "neighbour", ()), OWN, REFERENCE, PAIR) == (
        "With a flow of bbr beside one of reno on 10 Mbit/s, 42 ms and a buffer of 35 packets without events, bbr has "
        "1.2 % of the rate over 20 s, and reno in its place 40 %."
    )


@pytest.mark.parametrize("goal", GOALS)
def test_every_goal_has_an_outcome(goal: str) -> None:
    pulses = Event(3_000, "pulses", 50, 2, 500, "shared")
    told = sentence(goal, Genome(10, 20, 1, "twin", (pulses,)), OWN, REFERENCE, PAIR)
    assert told.endswith(".")
    assert "UDP bursts of 50 ms at 2 times the rate arrive every 500 ms from 3 s on (20 % of the rate)" in told
    assert any(word in told for word in ("bbr", "reno"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [0, 300])
def test_every_event_is_a_clause(kind: str, length: int) -> None:
    event = Event(2_500, kind, length, KINDS[kind].size.high, 100, KINDS[kind].places[0])
    assert "2.5 s" in event_words(event, Genome(10, 20, 1, "alone", ())) or kind == "ack-ratio"
