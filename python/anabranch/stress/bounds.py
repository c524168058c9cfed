"""Bounds of realism of the search: every path and every event lies inside. ``docs/guides/stress.md`` shows the tables.

Lengths and periods are in milliseconds, rates in Mbit/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["own", "shared"]
"""``own``: the access link of the tested flow. ``shared``: the bottleneck, or traffic that crosses it."""


@dataclass(frozen=True)
class Range:
    """An interval.

    Attributes:
        low: The least value.
        high: The largest value.
        is_log: Whether values are drawn evenly on a logarithmic scale.
    """

    low: float
    high: float
    is_log: bool = True

    def clipped(self, value: float) -> float:
        """The nearest value inside."""
        return min(self.high, max(self.low, value))


@dataclass(frozen=True)
class Bound:
    """A quantity of the path, with the source of its range."""

    name: str
    unit: str
    range: Range
    source: str


PATH = {
    "rate": Bound(
        "Rate of the bottleneck", "Mbit/s", Range(2, 20), "Ready paths `adsl` to `cable` (reference/path.md)"
    ),
    "delay": Bound("One-way delay of the bottleneck", "ms", Range(5, 100), "RFC 5166 §2; transatlantic: 32.5 ms"),
    "buffer": Bound("Buffer of the bottleneck", "bdp", Range(0.25, 4), "RFC 7928 §4; RFC 8034: 10 bdp before AQM"),
}
"""Quantities of the path."""

ACCESS_MS = 1.0
"""One-way delay of the access links."""

LEAST_BUFFER_PACKETS = 10
"""Least buffer of the bottleneck: the initial window of a flow (RFC 6928)."""
PACKET_BYTES = 1500

FIRST_MS, LAST_MS = 1_000, 6_000
"""Times at which events begin."""

MOST_EVENTS = 6
"""Events of a candidate; a find has at most :data:`FOUND_EVENTS` after shrinking."""

FOUND_EVENTS = 5


@dataclass(frozen=True)
class Kind:
    """A kind of event.

    Attributes:
        title: Its name in tables.
        size: The range of its size.
        unit: The unit of the size.
        length: The range of its length in milliseconds.
        lasting: Whether it can last until the end of the run: ``"never"``, ``"also"`` or ``"always"``.
        places: The links on which it happens.
        period: The range of its period in milliseconds; of ``ack-ratio``: of the longest delay of an acknowledgment.
        most: The largest number in a list of events.
        source: The source of the bounds.
    """

    title: str
    size: Range
    unit: str
    length: Range | None
    lasting: Literal["never", "also", "always"]
    places: tuple[Place, ...]
    source: str
    period: Range | None = None
    most: int = 3


KINDS = {
    "rate": Kind("Rate change", Range(0.2, 5), "× the rate", Range(100, 3_000), "also", ("shared",),
                 "5G and LTE in a car differ by 5 (path `5g-drive`)"),
    "delay": Kind("Re-route: a new one-way delay", Range(2, 100), "ms", Range(50, 3_000), "also", ("own", "shared"),
                  "Starlink: 15 s intervals, up to 50 ms (path `starlink`); BGP changes"),
    "outage": Kind("Outage of both directions", Range(1, 1), "", Range(20, 1_000), "never", ("own", "shared"),
                   "Handover 100 ms (path `lte-drive`); a second of a layer-2 convergence"),
    "hold": Kind("Packets held, then released in order", Range(1, 1), "", Range(20, 3_000), "never", ("own", "shared"),
                 "RFC 3481 §2.4: delay spikes of several round trips; CC-Fuzz (HotNets 2022): gaps in the service"),
    "loss": Kind("Random loss of data", Range(0.005, 0.3), "of the packets", Range(50, 3_000), "never", ("own",),
                 "RFC 8511, RFC 5166 §2.3; bursts of Wi-Fi"),
    "ack-gap": Kind("Loss of all acknowledgments", Range(1, 1), "", Range(20, 1_000), "never", ("own",),
                    "CC-Fuzz (HotNets 2022); as an outage, in one direction"),
    "ack-hold": Kind("Acknowledgments held, then released together", Range(1, 1), "", Range(20, 1_000), "never",
                     ("own",), "RFC 3449 §2.3; a scheduler that grants late"),
    "ack-loss": Kind("Random loss of acknowledgments", Range(0.02, 0.5), "of the acknowledgments", Range(200, 3_000),
                     "also", ("own",), "RFC 3449 §2.2: contention on the return path"),
    "aggregation": Kind("Acknowledgments released together at an interval", Range(0.5, 0.9), "of the interval closed",
                        None, "always", ("own",), "Wi-Fi, DOCSIS and LTE: 2 to 60 ms (reference/path.md)",
                        Range(4, 60), 1),
    "ack-ratio": Kind("Segments per acknowledgment", Range(4, 44), "segments", None, "always", ("own",),
                      "GRO: 64 KiB are 44 segments; draft-ietf-quic-ack-frequency; delay: 25 ms (RFC 9000 §18.2) to "
                      "200 ms (usual in TCP; RFC 5681 §4.2: below 500 ms)", Range(25, 200), most=1),
    "reordering": Kind("Reordering of data: an exponential delay per packet", Range(0.2, 20), "ms on average",
                       Range(100, 3_000), "also", ("own",), "RFC 8985 §1; RFC 4737"),
    "pulses": Kind("Periodic bursts of UDP", Range(1, 4), "× the rate", Range(10, 300), "always", ("shared",),
                   "Kuzmanovic and Knightly, SIGCOMM 2003 §3", Range(100, 2_000), 1),
    "cross": Kind("A short TCP flow of Reno", Range(1, 1), "", Range(200, 3_000), "never", ("shared",),
                  "RFC 5166 §2: short flows", most=2),
}  # fmt: skip
"""Kinds of events. The length of ``pulses`` is that of a burst, and the period of ``ack-ratio`` the
longest delay of an acknowledgment."""
