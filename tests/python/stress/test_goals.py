"""Goals: thresholds at their edges, and conditions on the run to compare with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.stress.genome import Event, Genome
from anabranch.stress.goals import GOALS, IDEAL, Case, Measured, measured

ALONE = Genome(10, 20, 1, "alone", ())
TWIN = Genome(10, 20, 1, "twin", ())
BESIDE = Genome(10, 20, 1, "neighbour", ())
PULSED = Genome(10, 20, 1, "alone", (Event(2_000, "pulses", 50, 2.0, 500, "shared"),))
RUN = Measured(share=0.9, other=0.4, queue_ms=10, sent=10_000, spurious=0, dropped=0.001, drops=10, timeouts=0)


def score(goal: str, genome: Genome, own: Measured, reference: Measured = RUN) -> float:
    """The score of a case."""
    return GOALS[goal].score(Case(genome, own, reference))


@pytest.mark.parametrize(
    ("goal", "genome", "found", "missed"),
    [
        ("stall", ALONE, replace(RUN, share=0.0099), replace(RUN, share=0.0101)),
        ("starvation", ALONE, replace(RUN, share=0.099), replace(RUN, share=0.101)),
        ("starvation", BESIDE, replace(RUN, share=0.049), replace(RUN, share=0.051)),
        ("slow", ALONE, replace(RUN, share=0.44), replace(RUN, share=0.46)),
        ("harm", BESIDE, replace(RUN, other=0.13), replace(RUN, other=0.14)),
        ("queue", ALONE, replace(RUN, queue_ms=21.5), replace(RUN, queue_ms=20.5)),
        ("needless-retransmissions", ALONE, replace(RUN, spurious=101), replace(RUN, spurious=99)),
        ("losses", ALONE, replace(RUN, dropped=0.011, drops=100), replace(RUN, dropped=0.009, drops=100)),
        ("low-rate", PULSED, replace(RUN, share=0.15, timeouts=20), replace(RUN, share=0.17, timeouts=20)),
    ],
)
def test_a_find_begins_at_the_threshold(goal: str, genome: Genome, found: Measured, missed: Measured) -> None:
    assert score(goal, genome, found) >= 1
    assert score(goal, genome, missed) < 1


def test_two_flows_are_unfair_if_those_of_the_reference_are_not() -> None:
    own, fair, unequal = replace(RUN, share=0.2, other=0.7), replace(RUN, share=0.4), replace(RUN, share=0.8)
    assert score("unfair", TWIN, own, fair) >= 1
    assert score("unfair", TWIN, own, replace(unequal, other=0.35)) < 1
    assert score("unfair", TWIN, replace(own, other=0.59), fair) < 1


@pytest.mark.parametrize("goal", ["stall", "starvation", "slow", "queue"])
def test_a_path_on_which_the_reference_fails_too_gives_no_find(goal: str) -> None:
    assert score(goal, ALONE, replace(RUN, share=0.0, queue_ms=500), replace(RUN, share=0.29)) < 1


def test_bursts_count_only_with_timeouts_and_a_small_load() -> None:
    own = replace(RUN, share=0.1, timeouts=20)
    assert score("low-rate", PULSED, own) >= 1
    assert score("low-rate", PULSED, replace(own, timeouts=5)) < 1
    dense = replace(PULSED, events=(Event(2_000, "pulses", 100, 2.0, 500, "shared"),))
    assert score("low-rate", dense, own) < 1
    assert score("low-rate", PULSED, own, replace(RUN, share=0.3)) < 1
    assert score("low-rate", ALONE, own) == 0


def test_a_control_equal_to_its_reference_has_no_find() -> None:
    for goal in GOALS.values():
        if not goal.even:
            for genome in (ALONE, TWIN, BESIDE):
                assert goal.score(Case(genome, RUN, RUN)) < 1


def test_the_ideal_reference_bounds_the_score() -> None:
    """The search leaves out the run to compare with by this bound."""
    own = replace(RUN, share=0.3, other=0.2, spurious=30, drops=200, dropped=0.02)
    for goal in GOALS.values():
        for genome in (ALONE, TWIN, BESIDE, PULSED):
            for reference in (RUN, replace(RUN, share=0.4, other=0.4), replace(RUN, queue_ms=0, spurious=0, dropped=0)):
                assert goal.score(Case(genome, own, reference)) <= goal.score(Case(genome, own, IDEAL)) + 1e-9


def test_figures_of_a_summary() -> None:
    flow = {"goodput_mbit_s": 5.0, "sent_packets": 100, "spurious_retransmissions": None, "timeouts": 3}
    queue = {"dropped_packets": 5, "sent_packets": 95, "mean_queue_packets": 10.0}
    run = measured({"flows": {"main": flow}, "links": {"bottleneck": {"forward": queue}}}, ALONE)
    assert run == Measured(0.5, 0.0, pytest.approx(12.0), 100, 0, 0.05, 5, 3)  # type: ignore[arg-type]
