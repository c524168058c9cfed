"""The document of a diagnosis of several captures, typed."""

from __future__ import annotations

from typing import TypedDict

from anabranch.diagnosis.document import Cause, DirectionName, EndName, Limit
from anabranch.multipoint.pairing import By


class Clock(TypedDict):
    """The clock of a point relative to the first point's.

    Attributes:
        offset_s: How far it is ahead in the middle of the comparison, before the first step of a clock, if the path is
            as long both ways.
        uncertain_s: The offset lies within this distance; ``null`` if packets of one way only passed both points.
        drift_ppm: How much faster it is.
        drift_low_ppm: The least drift that fits the packets, at 99.9 % probability.
        drift_high_ppm: The largest one.
        packets: The packets from which it was estimated.
    """

    offset_s: float
    uncertain_s: float | None
    drift_ppm: float
    drift_low_ppm: float
    drift_high_ppm: float
    packets: int


class ClockStep(TypedDict):
    """A clock that was set while it captured.

    Attributes:
        time_s: Its reading after the step.
        size_s: The step; positive if it was set forward.
    """

    time_s: float
    size_s: float


class Point(TypedDict):
    """A capture.

    Attributes:
        name: Its name.
        file: The capture.
        packets: Its frames.
        connections: Its TCP connections.
        start_s: The time of its first segment, by its clock.
        end_s: The time of its last segment.
        clock: Its clock; ``null`` for the first point.
        clock_steps: The steps of its clock, which the delays exclude.
        unpaired: Connections that no other point has.
        left_out: Segments beyond the bound, which are not compared.
    """

    name: str
    file: str
    packets: int
    connections: int
    start_s: float
    end_s: float
    clock: Clock | None
    clock_steps: list[ClockStep]
    unpaired: int
    left_out: int


class Delay(TypedDict):
    """One-way delays in ms.

    Attributes:
        min: The least one: half of the least round trip between the points, because clocks do not show more.
        median: The median.
        p95: The 95th percentile.
        max: The largest one.
    """

    min: float | None
    median: float | None
    p95: float | None
    max: float | None


class Way(TypedDict):
    """The packets of one way between two points.

    Attributes:
        packets: Packets that passed the point before, while the point after captured.
        data_packets: Those with data.
        lost: Packets that did not reach the point after.
        lost_data: Those with data.
        bursts: Runs of lost packets.
        unseen: Packets that arrived and that the capture of the point after lacks.
        missed: Packets that arrived and that the capture of the point before lacks.
        duplicated: Copies that arrived of a packet that was sent once.
        added: Packets that a device made, by kind.
        reordered: Packets that arrived after one sent later.
        delay_ms: One-way delays.
        lost_frames: The first lost packets, by their frames at the point before.
    """

    packets: int
    data_packets: int
    lost: int
    lost_data: int
    bursts: int
    unseen: int
    missed: int
    duplicated: int
    added: dict[str, int]
    reordered: int
    delay_ms: Delay
    lost_frames: list[int]


class Change(TypedDict):
    """A header field that a device changed.

    Attributes:
        kind: Its name.
        of: The end that sent the packets, or that has the address.
        before: The value before the device.
        after: The value after it.
        packets: The packets with a changed value.
        frames: Frames at both points; 0 for a point without the packet.
    """

    kind: str
    of: EndName
    before: str | int | None
    after: str | int | None
    packets: int
    frames: list[list[int]]


class Series(TypedDict):
    """One-way delays over time, in intervals of equal length.

    Attributes:
        start_s: The start of the first interval, from the start of the comparison.
        interval_s: The length of an interval.
        min_ms: The least delay; ``null`` without a packet.
        median_ms: The median.
        max_ms: The largest delay.
        packets: The packets that arrived.
        lost: The packets that were lost.
    """

    start_s: float
    interval_s: float
    min_ms: list[float | None]
    median_ms: list[float | None]
    max_ms: list[float | None]
    packets: list[int]
    lost: list[int]


Part = TypedDict(
    "Part",
    {
        "from": str, "to": str, "forward": Way, "backward": Way, "round_trip_ms": float | None,
        "hops_forward": int | None, "hops_backward": int | None, "delays_forward": Series | None,
        "delays_backward": Series | None,
    },
)  # fmt: skip
"""A part of the path between two points; ``forward`` is from the first to the second."""


class Outside(TypedDict):
    """The part of the path between a point and the end beyond it, from the diagnosis of that point alone.

    Attributes:
        lost_to_end: Segments that were lost after the point, on the way to the end.
        lost_from_end: Segments of the end that were lost before the point.
        answer_ms: The least time in which the end answered at the handshake.
    """

    lost_to_end: int
    lost_from_end: int
    answer_ms: float | None


class Pause(TypedDict):
    """A pause of a sender and the place that it belongs to.

    Attributes:
        direction: The direction of data that paused.
        start_s: Its start, by the clock of the first point.
        duration_s: Its length.
        own_s: The part of it in which the connection had no other pause that explains it.
        cause: Its cause.
        point: The point whose capture shows it.
        belongs_to: ``a`` or ``b`` (the ends), a part (the names of its points or end, joined by a dash), or ``null`` if
            undecided.
        evidence: Why.
        frames: Its frames at that point.
    """

    direction: DirectionName
    start_s: float
    duration_s: float
    own_s: float
    cause: Cause
    point: str
    belongs_to: str | None
    evidence: str
    frames: list[int]


class Compared(TypedDict):
    """A connection at several points.

    Attributes:
        id: Its number in the first capture.
        ids: Its numbers in all captures.
        a: The end that opened it, as the first point sees it.
        b: The other end.
        paired_by: The property by which it was found at each further point.
        parts: Its packets in each part of the path.
        changes: Changed header fields in each part.
        before: The part before the first point.
        beyond: The part beyond the last point.
        limits: The shares of the time by limit of the direction with more data, at the point next to its sender.
        lost_s: The time that it lost, there.
        next: The next step, there.
        pauses: Its pauses.
    """

    id: int
    ids: list[int]
    a: str
    b: str
    paired_by: list[By]
    parts: list[Part]
    changes: list[list[Change]]
    before: Outside
    beyond: Outside
    limits: dict[Limit, float]
    lost_s: float
    next: str | None
    pauses: list[Pause]


class Belonging(TypedDict):
    """The time of pauses that belongs to a place; simultaneous pauses of both ends count once.

    Attributes:
        place: The part of the path or the host; ``null`` if it is undecided.
        pauses: Their number.
        time_s: Their time.
    """

    place: str | None
    pauses: int
    time_s: float


class Document(TypedDict):
    """A diagnosis of several captures.

    Attributes:
        format: 1.
        points: The captures, in the order of the path.
        reordered_points: Whether that is another order than the given one.
        overlap_s: The time for which nothing shows that a capture did not run.
        span_s: The time from the first start to the last end.
        parts: The parts of the path, over all connections.
        before: The part before the first point.
        beyond: The part beyond the last point.
        belongs_to: The time of pauses by the place that they belong to.
        connections: The connections that all points have.
        summary: The diagnosis in a sentence each.
    """

    format: int
    points: list[Point]
    reordered_points: bool
    overlap_s: float
    span_s: float
    parts: list[Part]
    before: Outside
    beyond: Outside
    belongs_to: list[Belonging]
    connections: list[Compared]
    summary: list[str]
