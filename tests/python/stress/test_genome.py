"""Candidates: bounds, and the scenario that each of them is."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from anabranch import Scenario
from anabranch.stress.bounds import FIRST_MS, KINDS, LAST_MS, MOST_EVENTS, PATH, Place
from anabranch.stress.genome import Company, Event, Genome, Space, clash, cross, draw, is_clear, mutate, space
from anabranch.stress.scene import Control, buffer_packets, final_rate, final_rtt_ms, pulse_load, span, text

RENO, CUBIC = Control("reno", '"reno"'), Control("cubic", '"cubic"')
EVERYTHING = Space(("alone", "twin", "neighbour"), tuple(KINDS))


def of(*events: Event, rate: float = 10, delay: float = 20, company: Company = "alone") -> Genome:
    """A candidate with these events."""
    return Genome(rate, delay, 1, company, events)


def is_inside(genome: Genome) -> bool:
    """Whether a candidate is inside the bounds."""
    path = all(bound.range.low <= getattr(genome, name) <= bound.range.high for name, bound in PATH.items())
    for event in genome.events:
        kind = KINDS[event.kind]
        sized = kind.size.low <= event.size <= kind.size.high and event.place in kind.places
        long = kind.length is None or event.length == 0 or kind.length.low <= event.length <= kind.length.high
        ends = event.length > 0 or kind.lasting != "never"
        timed = FIRST_MS <= event.at <= LAST_MS
        path = path and sized and long and ends and timed
    return path and len(genome.events) <= MOST_EVENTS


def test_every_candidate_is_inside_the_bounds_and_is_a_valid_scenario() -> None:
    random = Random(5)  # noqa: S311
    pool = [draw(random, EVERYTHING) for _ in range(40)]
    for _ in range(120):
        pool.append(mutate(random, random.choice(pool), EVERYTHING))
        pool.append(cross(random, random.choice(pool), random.choice(pool), EVERYTHING))
    for genome in pool:
        assert is_inside(genome), genome
        for event in genome.events:
            assert sum(other.kind == event.kind for other in genome.events) <= KINDS[event.kind].most
        assert is_clear(genome.events), genome
    for genome in pool[::10]:
        Scenario.from_text(text(genome, CUBIC, RENO, whole=False)).resolve()


HOLD, AGGREGATION = Event(2_000, "ack-hold", 500, 1, 0, "own"), Event(2_200, "aggregation", 0, 0.7, 20, "own")
GAP, OUTAGE = Event(2_000, "ack-gap", 500, 1, 0, "own"), Event(1_900, "outage", 300, 1, 0, "own")


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (HOLD, AGGREGATION, True),
        (HOLD, replace(AGGREGATION, at=2_600), False),
        (GAP, OUTAGE, True),
        (GAP, replace(OUTAGE, at=2_501), False),
        (GAP, replace(OUTAGE, place="shared"), False),
        (GAP, HOLD, False),
        (Event(2_000, "rate", 0, 0.5, 0, "shared"), Event(3_000, "rate", 500, 2, 0, "shared"), True),
        (Event(2_000, "rate", 500, 0.5, 0, "shared"), Event(2_100, "rate", 0, 2, 0, "shared"), True),
        (Event(2_000, "rate", 0, 0.5, 0, "shared"), Event(3_000, "rate", 0, 2, 0, "shared"), False),
        (Event(2_000, "hold", 500, 1, 0, "shared"), Event(2_100, "rate", 500, 2, 0, "shared"), True),
        (Event(2_000, "hold", 500, 1, 0, "own"), Event(2_100, "rate", 500, 2, 0, "shared"), False),
        (Event(2_000, "hold", 500, 1, 0, "own"), Event(2_100, "hold", 500, 1, 0, "own"), True),
        (Event(2_000, "delay", 500, 50, 0, "own"), Event(2_100, "delay", 500, 50, 0, "shared"), False),
        (Event(2_000, "cross", 500, 1, 0, "shared"), Event(2_100, "cross", 500, 1, 0, "shared"), False),
    ],
)
def test_an_event_that_undoes_another_is_refused(one: Event, other: Event, found: bool) -> None:
    assert clash(one, other) is clash(other, one) is found


def test_all_events_of_a_goal_about_recovery_end() -> None:
    random = Random(6)  # noqa: S311
    passing = space(("alone",), list(KINDS), (), passes=True)
    assert not {"pulses", "aggregation", "ack-ratio"} & set(passing.kinds)
    parent = draw(random, passing)
    for _ in range(200):
        other = draw(random, passing)
        parent = mutate(random, cross(random, parent, other, passing), passing)
        assert not any(event.lasts for event in parent.events)


def test_the_path_after_the_last_change() -> None:
    slow = Event(2_000, "rate", 0, 0.5, 0, "shared")
    short = Event(3_000, "rate", 500, 2.0, 0, "shared")
    assert final_rate(of(slow)) == 5
    assert final_rate(of(slow, short)) == 10
    far = Event(2_000, "delay", 0, 80.0, 0, "own")
    assert final_rtt_ms(of(far)) == 2 * (80 + 20)
    assert final_rtt_ms(of(Event(2_000, "delay", 300, 80.0, 0, "own"))) == 42
    assert buffer_packets(of(rate=2, delay=5)) == 10


def test_the_measurement_begins_after_the_repair_of_the_longest_interruption() -> None:
    gap = Event(2_000, "ack-gap", 800, 1, 0, "own")
    times = span(of(gap), whole=False)
    assert (times.last, times.measured, times.end) == (2_800, 2_800 + 3_000 + 1_600, 17_400)
    assert span(of(gap), whole=True).measured == 0


def test_two_flows_converge_before_the_measurement() -> None:
    gap = Event(2_000, "ack-gap", 800, 1, 0, "own")
    times = span(of(gap, company="twin"), whole=False)
    assert (times.last, times.measured, times.end) == (2_800, 7_400 + 20_000, 7_400 + 40_000)
    far = span(of(gap, delay=99, company="neighbour"), whole=False)
    assert (far.measured, far.end) == (7_400 + 40_000, 7_400 + 80_000)


def test_the_load_of_bursts() -> None:
    assert pulse_load(of(Event(2_000, "pulses", 50, 2.0, 400, "shared"))) == pytest.approx(0.25)
    assert pulse_load(of()) == 0


def test_held_acknowledgments_arrive_together() -> None:
    """Without the hold the receiver's data goes on; with it the sender stops, and has no timeout."""
    hold = of(Event(2_000, "ack-hold", 150, 1, 0, "own"))
    run = Scenario.from_text(text(hold, RENO, RENO, whole=True)).run(samples_ms=10)
    samples = run.plain("samples")
    times = zip(samples["time_s"], samples["delivered_bytes"], strict=True)
    during = [octets for time, octets in times if 2.12 <= time <= 2.15]
    assert len(set(during)) == 1
    assert run.flows["main"]["timeouts"] == 0


@pytest.mark.parametrize("place", ["own", "shared"])
def test_held_packets_arrive_after_the_hold(place: Place) -> None:
    hold = replace(of(Event(3_000, "hold", 150, 1, 0, place)), buffer=0.25)
    run = Scenario.from_text(text(hold, CUBIC, RENO, whole=True)).run(samples_ms=10)
    samples = run.plain("samples")
    times = list(zip(samples["time_s"], samples["delivered_bytes"], strict=True))
    during = {octets for time, octets in times if 3.06 <= time <= 3.14}
    after = {octets for time, octets in times if 3.18 <= time <= 3.21}
    assert len(during) == 1 < len(after)
    assert run.flows["main"]["timeouts"] == 0


def test_the_longest_delay_of_an_acknowledgment_is_that_of_the_event() -> None:
    ratio = of(Event(3_000, "ack-ratio", 0, 40, 120, "own"))
    assert 'delayed_ack = { segments = 40, timeout = "120 ms" }' in text(ratio, CUBIC, RENO, whole=False)


def test_a_genome_survives_a_file() -> None:
    genome = draw(Random(9), EVERYTHING)  # noqa: S311
    assert Genome.from_json(genome.to_json()) == genome
