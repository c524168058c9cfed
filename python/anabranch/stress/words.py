"""A find in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anabranch.stress.goals import Measured
from anabranch.stress.scene import buffer_packets, final_rtt_ms, pulse_load, span

if TYPE_CHECKING:
    from anabranch.stress.genome import Event, Genome
    from anabranch.stress.judge import Pair


def sentence(goal: str, genome: Genome, own: Measured, reference: Measured, pair: Pair) -> str:
    """The find in one sentence: path, events, outcome, and the outcome of the run to compare with."""
    joint = ": " if genome.events else " "
    return f"{path_words(genome, pair)}{joint}{result_words(goal, genome, own, reference, pair)}"


def result_words(goal: str, genome: Genome, own: Measured, reference: Measured, pair: Pair) -> str:
    """The events, the outcome, and the outcome of the run to compare with."""
    outcome = _outcome(goal, genome, own, reference, pair)
    if not genome.events:
        return f"without events, {outcome.replace(' then ', ' ', 1)}."
    return f"if {listed([event_words(event, genome) for event in genome.events])}, {outcome}."


def path_words(genome: Genome, pair: Pair) -> str:
    """The path and the flows on it."""
    flows = {
        "alone": f"a flow of {pair.tested.label}",
        "twin": f"two flows of {pair.tested.label}",
        "neighbour": f"a flow of {pair.tested.label} beside one of {pair.reference.label}",
    }[genome.company]
    rtt = 2 * (1 + genome.delay)
    return f"With {flows} on {genome.rate:g} Mbit/s, {rtt:g} ms and a buffer of {buffer_packets(genome)} packets"


def event_words(event: Event, genome: Genome) -> str:
    """An event as a clause."""
    start = seconds(event.at)
    when = f"from {start} on" if event.lasts else f"from {start} for {duration(event.length)}"
    its = "its"
    words: dict[str, Callable[[], str]] = {
        "rate": lambda: f"the rate is {genome.rate * event.size:.3g} Mbit/s {when}",
        "delay": lambda: f"the {'access' if event.place == 'own' else 'shared'} delay is {event.size:g} ms {when}",
        "outage": lambda: f"{_holder(event)} is down {when}",
        "hold": lambda: f"{_holder(event)} holds its packets {when} and then releases them",
        "loss": lambda: f"{percent(event.size)} of {its} packets are lost {when}",
        "ack-gap": lambda: f"{its} acknowledgments are lost {when}",
        "ack-hold": lambda: f"{its} acknowledgments are held {when} and then released together",
        "ack-loss": lambda: f"{percent(event.size)} of {its} acknowledgments are lost {when}",
        "aggregation": lambda: f"{its} acknowledgments are released every {event.period} ms {when}",
        "ack-ratio": lambda: (
            f"{its} receiver acknowledges every {event.size:.0f} segments, after {event.period} ms at the latest"
        ),
        "reordering": lambda: f"{its} packets have random delays of {event.size:g} ms on average {when}",
        "pulses": lambda: (
            f"UDP bursts of {event.length} ms at {event.size:g} times the rate arrive every {event.period} ms {when} "
            f"({percent(pulse_load(genome))} of the rate)"
        ),
        "cross": lambda: f"a Reno flow crosses {when}",
    }
    return words[event.kind]()


def _holder(event: Event) -> str:
    return "its access link" if event.place == "own" else "the bottleneck"


def _outcome(goal: str, genome: Genome, own: Measured, reference: Measured, pair: Pair) -> str:
    tested, other = pair.tested.label, pair.reference.label
    length = f"{span(genome, whole=False).seconds:.3g} s"
    if goal == "unfair":
        return (
            f"they then have {percent(own.share)} and {percent(own.other)} of the rate over {length}, and two flows of "
            f"{other} {percent(reference.share)} and {percent(reference.other)}"
        )
    if goal == "harm":
        return f"that of {other} has {percent(own.other)} of the rate, and {percent(reference.other)} beside its equal"
    if goal == "queue":
        return f"the queue is {own.queue_ms:.3g} ms on average, and {reference.queue_ms:.3g} ms with {other}"
    if goal == "needless-retransmissions":
        return (
            f"{own.spurious} of {own.sent} packets are needless retransmissions, and {reference.spurious} of "
            f"{reference.sent} with {other}"
        )
    if goal == "losses":
        return f"the queue drops {percent(own.dropped)} of the packets, and {percent(reference.dropped)} with {other}"
    if goal == "low-rate":
        return (
            f"{tested} has {percent(own.share)} of the rate with {own.timeouts} timeouts in {length}, and "
            f"{percent(reference.share)} if the same load arrives evenly"
        )
    return (
        f"{tested} then has {percent(own.share)} of the rate over {length}, and {other} in its place "
        f"{percent(reference.share)}"
    )


def facts(genome: Genome, *, whole: bool) -> str:
    """The times of the measurement."""
    times = span(genome, whole=whole)
    rounds = 1000 * times.seconds / final_rtt_ms(genome)
    return f"Measured from {seconds(times.measured)} to {seconds(times.end)}, {rounds:.0f} round trips"


def percent(share: float) -> str:
    """A share in per cent with two significant digits."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def seconds(milliseconds: float) -> str:
    """A time in seconds."""
    return f"{milliseconds / 1000:g} s"


def duration(milliseconds: float) -> str:
    """A length of time."""
    return f"{milliseconds:g} ms" if milliseconds < 1000 else seconds(milliseconds)


def listed(clauses: list[str]) -> str:
    """Clauses joined with commas and "and"."""
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
