"""Arrivals for queues: traffic shapes, each reproducible from a fixed seed.

A packet of 1,500 bytes takes 1 ms on the link of the comparison (12 Mbit/s).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

NOT_ECT, ECT1, ECT0, CE = range(4)
MS = 1_000_000
IDLE_NS = 5 * MS
"""After a gap of at least this length the link is idle, or departures are on the grid."""
SLOW = "slow-"
"""Prefix of shapes that are stretched to twice the time."""
MARGIN_NS = 8_000
"""Minimum distance of an arrival from the grid."""


class Arrival(NamedTuple):
    """The arrival of a packet.

    Attributes:
        at_ns: Nanoseconds.
        size: Bytes of the IP packet.
        flow: Its flow.
        ecn: Its ECN field.
        dscp: Its differentiated services code point.
    """

    at_ns: int
    size: int
    flow: int
    ecn: int
    dscp: int = 0


def _train(
    draw: random.Random, span_ms: tuple[float, float], every_us: float, packet: tuple[int, ...]
) -> Iterator[Arrival]:
    """Packets of one flow, ``every_us`` apart on average: each gap is 0.5 to 1.5 times that."""
    at, end = int(span_ms[0] * MS), int(span_ms[1] * MS)
    while True:
        at += round(every_us * draw.uniform(500, 1500))
        if at >= end:
            return
        yield Arrival(at, *packet)


def _overload(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1000), 750, (1500, 0, NOT_ECT))


def _capable(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1000), 750, (1500, 0, ECT0))


def _bursts(draw: random.Random) -> Iterator[Arrival]:
    for start in range(0, 1200, 120):
        yield from _train(draw, (start, start + 3), 3000 / draw.randint(20, 150), (1500, 0, NOT_ECT))


def _gaps(draw: random.Random) -> Iterator[Arrival]:
    for start, end in ((0, 300), (420, 640), (655, 900), (1400, 1700)):
        yield from _train(draw, (start, end), 720, (1500, 0, NOT_ECT))


def _two_flows(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1), 100, (1500, 0, NOT_ECT))
    yield from _train(draw, (0, 800), 1100, (1500, 0, NOT_ECT))
    yield from _train(draw, (0, 800), 900, (700, 1, NOT_ECT))


def _sparse(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1), 100, (1500, 0, NOT_ECT))
    yield from _train(draw, (0, 800), 1300, (1500, 0, NOT_ECT))
    yield from _train(draw, (0, 800), 1600, (1000, 1, ECT0))
    yield from _train(draw, (0, 800), 20_000, (200, 2, NOT_ECT))


def _ecn(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1), 100, (1500, 0, NOT_ECT))
    for flow, ecn in enumerate((NOT_ECT, ECT1, ECT0, CE)):
        yield from _train(draw, (0, 800), 3000, (1500, flow, ecn))


def _small(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1), 10, (100, 0, NOT_ECT))
    yield from _train(draw, (1, 90), 45, (100, 0, NOT_ECT))


def _crowd(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1), 100, (1500, 0, NOT_ECT))
    for flow in range(12):
        yield from _train(draw, (0, 1000), 15_500, (1500, flow, NOT_ECT if flow % 3 else ECT0))


def _sizes(draw: random.Random) -> Iterator[Arrival]:
    """Three packets at a time, of different sizes."""
    for start in range(0, 1200, 12):
        for size in draw.sample((100, 200, 700, 1000, 1500), 3):
            yield from _train(draw, (start, start + 0.1), 90, (size, 0, NOT_ECT))


def _dctcp(draw: random.Random) -> Iterator[Arrival]:
    """Bursts of two flows, with pauses in which the queue empties."""
    for start in range(0, 980, 70):
        for flow in range(2):
            yield from _train(draw, (start, start + 30), 1000, (1500, flow, ECT0))


def _six(draw: random.Random) -> Iterator[Arrival]:
    for flow in range(6):
        yield from _train(draw, (0, 1500), 3000, (1500, flow, ECT0))


def _classes(draw: random.Random) -> Iterator[Arrival]:
    for flow, dscp in enumerate((0, 8, 34, 46)):
        yield from _train(draw, (0, 1500), 1500, (1500, flow, ECT0, dscp))


def _flood(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 4000), 600, (1500, 0, ECT0))


def _light(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 1500), 5000, (1000, 0, NOT_ECT))


def _steady(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 4000), 900, (1500, 0, NOT_ECT))


def _even(draw: random.Random) -> Iterator[Arrival]:
    yield from _train(draw, (0, 3000), 2000, (1000, 0, NOT_ECT))


def _tens(draw: random.Random) -> Iterator[Arrival]:
    """Times are multiples of 10 µs."""
    for packet in _train(draw, (0, 1000), 750, (1500, 0, NOT_ECT)):
        yield packet._replace(at_ns=packet.at_ns // 10_000 * 10_000)


SHAPES: dict[str, Callable[[random.Random], Iterator[Arrival]]] = {
    "overload": _overload, "capable": _capable, "bursts": _bursts, "gaps": _gaps, "two-flows": _two_flows,
    "sparse": _sparse, "ecn": _ecn, "small": _small, "light": _light, "steady": _steady, "even": _even, "tens": _tens,
    "crowd": _crowd, "sizes": _sizes, "dctcp": _dctcp, "flood": _flood, "six": _six, "classes": _classes,
}  # fmt: skip


def arrivals(shape: str, seed: int = 1) -> list[Arrival]:
    """The packets of a shape, in order of time.

    Sizes are multiples of 100 bytes, so that departures after an idle time are on a grid of 1/15 ms
    from its first arrival. Other arrivals keep away from the grid, so that a microsecond does not
    decide whether the queue is full.
    """
    if shape.startswith(SLOW):
        return [packet._replace(at_ns=2 * packet.at_ns) for packet in arrivals(shape.removeprefix(SLOW), seed)]
    draw = random.Random(f"{shape} {seed}")  # noqa: S311 - arrivals are no secret
    if shape == "tens":
        return list(_tens(draw))
    made: list[Arrival] = []
    for packet in sorted(SHAPES[shape](draw)):
        step = packet.at_ns * 15 // MS
        idle = not made or packet.at_ns - made[-1].at_ns > IDLE_NS
        at = step * MS // 15 + (0 if idle else draw.randrange(MARGIN_NS, MS // 15 - MARGIN_NS, 1000))
        made.append(packet._replace(at_ns=at))
    return sorted(made)
