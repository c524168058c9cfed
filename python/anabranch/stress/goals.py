"""Goals of the search: what counts as a failure. Thresholds are fixed here, before any run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.stress.bounds import PACKET_BYTES
from anabranch.stress.genome import Company, Genome
from anabranch.stress.scene import final_rate, pulse_load, span

_PACKET_BITS = PACKET_BYTES * 8


@dataclass(frozen=True)
class Measured:
    """Figures of one run over the time of the measurement.

    Attributes:
        share: Goodput of the tested flow, as a share of the bottleneck's rate.
        other: The same of the twin or neighbour; 0 without one.
        queue_ms: Mean delay of the bottleneck's queue.
        sent: Packets with data of the tested flow.
        spurious: Its needless retransmissions.
        dropped: Packets that the bottleneck's queue dropped, as a share of the packets that arrived there.
        drops: The same as a number.
        timeouts: Expiries of its retransmission timer.
    """

    share: float
    other: float
    queue_ms: float
    sent: int
    spurious: int
    dropped: float
    drops: int
    timeouts: int


IDEAL = Measured(share=1.0, other=1.0, queue_ms=0.0, sent=1, spurious=0, dropped=0.0, drops=0, timeouts=0)
"""A run to compare with that makes every score as high as possible."""


def measured(summary: Mapping[str, Any], genome: Genome) -> Measured:
    """The figures of a run's summary."""
    rate = final_rate(genome)
    flows, queue = summary["flows"], summary["links"]["bottleneck"]["forward"]
    main = flows["main"]
    other = flows.get("twin") or flows.get("neighbour") or {}
    drops = int(queue["dropped_packets"] or 0)
    return Measured(
        share=(main["goodput_mbit_s"] or 0.0) / rate,
        other=(other.get("goodput_mbit_s") or 0.0) / rate,
        queue_ms=(queue["mean_queue_packets"] or 0.0) * _PACKET_BITS / rate / 1000,
        sent=int(main["sent_packets"] or 0),
        spurious=int(main["spurious_retransmissions"] or 0),
        dropped=drops / max(1, drops + int(queue["sent_packets"] or 0)),
        drops=drops,
        timeouts=int(main["timeouts"] or 0),
    )


@dataclass(frozen=True)
class Case:
    """A candidate and its runs.

    Attributes:
        genome: The candidate.
        own: The run with the tested control.
        reference: The run to compare with.
    """

    genome: Genome
    own: Measured
    reference: Measured

    @property
    def fair(self) -> float:
        """The fair share of the tested flow, as a share of the rate."""
        return 1.0 if self.genome.company == "alone" else 0.5


@dataclass(frozen=True)
class Goal:
    """A goal.

    Attributes:
        name: Its name on the command line.
        definition: The failure, in a sentence.
        source: The source of the definition or of its thresholds.
        whole: Whether the measurement is the entire run; otherwise it begins after the events.
        companies: Possible companies of the tested flow.
        score: 1 or more: a find. Below, the distance to one.
        needs: Kinds of events that a candidate has.
        passes: Whether all events end, so that the path is as before.
        even: Whether the run to compare with has the tested control, and even traffic in place of bursts; otherwise it
            has the reference control.
        nearby: Whether a find holds on neighbouring paths, too. A flow that is alone has no phase effect between flows,
            so that one path suffices for a stall on a path that is as before.
    """

    name: str
    definition: str
    source: str
    whole: bool
    companies: tuple[Company, ...]
    score: Callable[[Case], float]
    needs: tuple[str, ...] = ()
    even: bool = False
    passes: bool = False
    nearby: bool = True


_TINY = 1e-6
STALL_SHARE = 0.01
STARVED_SHARE = 0.1
SLOW_SHARE = 0.5
HEALTHY_SHARE = 0.3
"""Least part of the fair share that the run to compare with reaches: otherwise the path itself is the cause."""
UNFAIR_RATIO, FAIR_RATIO = 1 / 3, 1 / 2
HARMED_RATIO = 1 / 3
QUEUE_FACTOR, LEAST_QUEUE_MS = 2.0, 5.0
NEEDLESS_FACTOR, LEAST_NEEDLESS, NEEDLESS_SHARE = 2.0, 10, 0.01
LOSS_FACTOR, LEAST_LOSSES, LOSS_SHARE = 3.0, 20, 0.01
PULSE_LOAD = 0.3
PULSED_SHARE = 0.2
EVEN_SHARE = 0.5
EXPIRIES_PER_S = 1.0


def _joined(excess: float, *conditions: float) -> float:
    """The excess over a threshold if all conditions are at least 1; otherwise below 1, and larger if nearer."""
    if all(condition >= 1 for condition in conditions):
        return excess
    score = min(excess, 0.99)
    for condition in conditions:
        score *= min(1.0, max(0.0, condition))
    return score


def _left(case: Case, threshold: float, healthy: float) -> float:
    own, reference = case.own.share / case.fair, case.reference.share / case.fair
    return _joined(threshold / max(own, _TINY), reference / healthy)


def _stall(case: Case) -> float:
    return _left(case, STALL_SHARE, HEALTHY_SHARE)


def _starvation(case: Case) -> float:
    return _left(case, STARVED_SHARE, HEALTHY_SHARE)


def _slow(case: Case) -> float:
    own = case.own.share / max(case.reference.share, _TINY)
    return _joined(SLOW_SHARE / max(own, _TINY), case.reference.share / case.fair / HEALTHY_SHARE)


def _ratio(run: Measured) -> float:
    low, high = sorted((run.share, run.other))
    return low / max(high, _TINY)


def _unfair(case: Case) -> float:
    used = (case.own.share + case.own.other) / HEALTHY_SHARE
    return _joined(UNFAIR_RATIO / max(_ratio(case.own), _TINY), _ratio(case.reference) / FAIR_RATIO, used)


def _harm(case: Case) -> float:
    kept = case.own.other / max(case.reference.other, _TINY)
    return _joined(HARMED_RATIO / max(kept, _TINY), case.reference.other / case.fair / HEALTHY_SHARE)


def _queue(case: Case) -> float:
    # Half a millisecond avoids a ratio of two empty queues.
    excess = case.own.queue_ms / (QUEUE_FACTOR * (case.reference.queue_ms + 0.5))
    return _joined(excess, case.own.queue_ms / LEAST_QUEUE_MS, case.reference.share / case.fair / HEALTHY_SHARE)


def _needless(case: Case) -> float:
    allowed = NEEDLESS_FACTOR * case.reference.spurious + LEAST_NEEDLESS
    return _joined(case.own.spurious / allowed, case.own.spurious / max(1, case.own.sent) / NEEDLESS_SHARE)


def _losses(case: Case) -> float:
    allowed = LOSS_FACTOR * case.reference.dropped
    excess = case.own.dropped / max(allowed, _TINY) if case.own.drops else 0.0
    return _joined(min(excess, 1e3), case.own.drops / LEAST_LOSSES, case.own.dropped / LOSS_SHARE)


def _low_rate(case: Case) -> float:
    load = pulse_load(case.genome)
    if load <= 0:
        return 0.0
    left = 1 - load
    own, even = case.own.share / left, case.reference.share / left
    expiries = case.own.timeouts / span(case.genome, whole=False).seconds
    return _joined(PULSED_SHARE / max(own, _TINY), PULSE_LOAD / load, even / EVEN_SHARE, expiries / EXPIRIES_PER_S)


_ANY: tuple[Company, ...] = ("alone", "alone", "twin", "neighbour")

GOALS = {
    goal.name: goal
    for goal in (
        Goal(
            "stall",
            "All events have ended, and the path is as before. From 3 s later on, the flow delivers less than 1 % of "
            "its fair share for 10 s and 100 round trips or longer, where the reference delivers 30 % or more.",
            "CC-Fuzz (HotNets 2022) §4: BBR; 10 s are fifty times Linux's minimum RTO",
            False, ("alone",), _stall, passes=True, nearby=False,
        ),
        Goal(
            "starvation",
            "From 3 s after the last change on, the flow delivers less than 10 % of its fair share for 10 s and 100 "
            "round trips or longer, where the reference delivers 30 % or more.",
            "Arun, Alizadeh and Balakrishnan, Starvation in End-to-End Congestion Control (SIGCOMM 2022)",
            False, _ANY, _starvation,
        ),
        Goal(
            "slow",
            "From 3 s after the last event on, the flow has less than half of the goodput of the reference, which has "
            "30 % of its fair share or more.",
            "RFC 9743 §5.1; the reference control in the same scenario",
            False, _ANY, _slow,
        ),
        Goal(
            "unfair",
            "After the events, one of two flows of the control has less than a third of the goodput of the other, "
            "where two flows of the reference have a half or more. Only one of them has the events on its access link.",
            "RFC 5166 §2.3; Jain's index 0.8 and 0.9",
            False, ("twin",), _unfair,
        ),
        Goal(
            "harm",
            "After the events, a flow of the reference control has less than a third of the goodput that it has beside "
            "a flow of its own control.",
            "Ware et al., Beyond Jain's Fairness Index (HotNets 2019); RFC 9743 §5.2",
            False, ("neighbour",), _harm,
        ),
        Goal(
            "queue",
            "After the events, the mean delay of the bottleneck's queue is more than twice that of the reference, and "
            "more than 5 ms.",
            "RFC 7928 §4; the reference control in the same scenario",
            False, ("alone", "twin"), _queue,
        ),
        Goal(
            "needless-retransmissions",
            "Retransmissions of data that had arrived exceed twice those of the reference by 10, and 1 % of the "
            "packets.",
            "RFC 8985 §1; the reference control in the same scenario",
            True, ("alone",), _needless,
        ),
        Goal(
            "losses",
            "After the events, the bottleneck's queue drops three times the share of packets that it drops with the "
            "reference, more than 1 % and 20 packets.",
            "RFC 5166 §2.1; the reference control in the same scenario",
            False, ("alone", "twin"), _losses,
        ),
        Goal(
            "low-rate",
            "Periodic bursts of at most 30 % of the rate on average leave the flow less than a fifth of the rest; the "
            "same load without bursts leaves it half or more. Its retransmission timer expires once "
            "a second or more often.",
            "Kuzmanovic and Knightly, Low-Rate TCP-Targeted Denial of Service Attacks (SIGCOMM 2003)",
            False, ("alone",), _low_rate, ("pulses",), True,
        ),
    )
}  # fmt: skip
"""Goals by name."""
