"""Qlogs of a QUIC connection that sends what a simulated TCP connection sent, and is acknowledged as it was.

The run is captured near both ends: the capture near the receiver shows which packets had arrived when an
acknowledgment left. Each data segment is a packet with a STREAM frame, each acknowledgment a packet with an ACK frame.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from .two_points import ACK, FIN, SYN, Packet

Event = tuple[float, str, dict[str, Any]]
"""A time in milliseconds, a name without its category, and the data."""

OVERHEAD = 24
"""Octets of a QUIC packet besides its data, so that its IP packet has as many as the segment's (28 of IPv4 and UDP)."""
FULL = 1448 + OVERHEAD
"""Octets of a full packet."""


def events(
    near: list[Packet],
    far: list[Packet],
    *,
    of_receiver: bool = False,
    windows: Iterable[tuple[float, float, float]] = (),
) -> Iterator[Event]:
    """The log of the sender, or of the receiver, in the order of time.

    ``windows`` are times in seconds, congestion windows in packets and smoothed round trips in milliseconds, from which
    the log has the rate of a pacer as RFC 9002 §7.7 suggests; 0 for none.
    """
    sender = next(one.source for one in near if one.flags & SYN)
    numbers = _numbers(near, sender)
    log = far if of_receiver else near
    outgoing = "packet_received" if of_receiver else "packet_sent"
    incoming = "packet_sent" if of_receiver else "packet_received"
    first = next(one.seq for one in near if one.source == sender and one.flags & SYN)
    scale = _scale(near, sender)
    received = iter(_received(far, sender, numbers))
    acknowledged: defaultdict[bytes, deque[list[list[int]]]] = defaultdict(deque)
    for key, ranges in received:
        acknowledged[key].append(ranges)
    start = log[0].time_ns
    limit = 0
    acks = 0
    begun: set[tuple[str, int]] = set()
    known = deque(windows)
    lost: dict[int, list[int]] = {}
    for one in log:
        at = (one.time_ns - start) / 1e6
        while known and known[0][0] * 1e9 <= one.time_ns:
            _, cwnd, srtt_ms = known.popleft()
            metrics = {"congestion_window": round(cwnd * FULL)}
            if srtt_ms:
                metrics["pacing_rate"] = round(1.25 * cwnd * FULL * 8000 / srtt_ms)
            yield at, "metrics", metrics
        if one.flags & SYN:
            frames = [{"frame_type": "crypto", "offset": 0, "length": 300}]
            name = outgoing if one.source == sender else incoming
            yield at, name, _packet("initial", len(begun), frames, 1200)
            begun.add(one.source)
        elif one.source == sender:
            if not one.payload and not one.flags & FIN:
                continue
            offset = (one.seq - first - 1) & 0xFFFFFFFF
            if not of_receiver:
                for number in lost.pop(one.seq, ()):
                    yield at, "packet_lost", {"header": {"packet_type": "1RTT", "packet_number": number}}
                lost[one.seq] = [numbers[key_of(one)]]
            frame = {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": one.payload}
            if one.flags & FIN:
                frame["fin"] = True
            yield at, outgoing, _packet("1RTT", numbers[key_of(one)], [frame], one.payload + OVERHEAD)
        elif one.flags & ACK and acknowledged[key_of(one)]:
            ranges = acknowledged[key_of(one)].popleft()
            made: list[dict[str, Any]] = (
                [{"frame_type": "ack", "ack_delay": 0, "acked_ranges": ranges}] if ranges else []
            )
            window = int.from_bytes(one.tcp[14:16], "big") << scale
            edge = ((one.ack - first - 1) & 0xFFFFFFFF) + window
            if edge > limit:
                limit = edge
                made.append({"frame_type": "max_data", "maximum": limit})
            yield at, incoming, _packet("1RTT", acks, made, 45)
            acks += 1


def _packet(kind: str, number: int, frames: list[dict[str, Any]], length: int) -> dict[str, Any]:
    header = {"packet_type": kind, "packet_number": number}
    return {"header": header, "raw": {"length": length}, "frames": frames}


def key_of(one: Packet) -> bytes:
    """A packet's identification and TCP header: the same at both points."""
    return one.octets[4:6] + one.tcp[: (one.tcp[12] >> 4) * 4]


def _numbers(near: list[Packet], sender: tuple[str, int]) -> dict[bytes, int]:
    data = [one for one in near if one.source == sender and not one.flags & SYN and (one.payload or one.flags & FIN)]
    return {key_of(one): number for number, one in enumerate(data)}


def _received(
    far: list[Packet], sender: tuple[str, int], numbers: dict[bytes, int]
) -> Iterator[tuple[bytes, list[list[int]]]]:
    """The receiver's acknowledgments, and the ranges of packets that had arrived before each."""
    arrived: list[list[int]] = []
    for one in far:
        if one.source == sender:
            if key_of(one) in numbers:
                _add(arrived, numbers[key_of(one)])
        elif not one.flags & SYN:
            yield key_of(one), [[a, b] if a != b else [a] for a, b in reversed(arrived[-64:])]


def _add(ranges: list[list[int]], number: int) -> None:
    for at in range(len(ranges) - 1, -1, -1):
        if ranges[at][1] == number - 1:
            ranges[at][1] = number
            if at + 1 < len(ranges) and ranges[at + 1][0] == number + 1:
                ranges[at][1] = ranges.pop(at + 1)[1]
            return
        if ranges[at][0] == number + 1:
            ranges[at][0] = number
            if at and ranges[at - 1][1] == number - 1:
                ranges[at - 1][1] = ranges.pop(at)[1]
            return
        if ranges[at][1] < number:
            ranges.insert(at + 1, [number, number])
            return
    ranges.insert(0, [number, number])


def _scale(near: list[Packet], sender: tuple[str, int]) -> int:
    for one in near:
        if one.flags & SYN and one.source != sender:
            return next((content[0] for _, kind, content in one.options() if kind == 3), 0)
    return 0


def _name(name: str, *, new: bool = False) -> str:
    """The name with its category: of version 0.3, or of the later drafts."""
    if name == "metrics":
        return "quic:recovery_metrics_updated" if new else "recovery:metrics_updated"
    return f"quic:{name}" if new else f"transport:{name}"


def sequential(found: Iterable[Event], *, vantage: str = "client", version: str = "0.3") -> bytes:
    """JSON-SEQ: of version 0.3 or 0.4, or with the schema that followed."""
    new = version not in ("0.3", "0.4")
    header: dict[str, Any] = {"title": "test", "trace": {"vantage_point": {"type": vantage}}}
    if new:
        header |= {"file_schema": version, "serialization_format": "application/qlog+json-seq"}
    else:
        header |= {"qlog_version": version, "qlog_format": "JSON-SEQ"}
        header["trace"]["common_fields"] = {"time_format": "relative", "reference_time": 0}
    lines = [header] + [{"time": at, "name": _name(name, new=new), "data": data} for at, name, data in found]
    return b"".join(b"\x1e" + json.dumps(line).encode() + b"\n" for line in lines)


def contained(found: Iterable[Event], *, late: bool = False) -> bytes:
    """One object of JSON; ``late`` writes the fields of the trace after its events."""
    trace: dict[str, Any] = {"vantage_point": {"type": "client"}, "common_fields": {"time_format": "relative"}}
    rows = [{"time": at, "name": _name(name), "data": data} for at, name, data in found]
    trace = {"events": rows, **trace} if late else {**trace, "events": rows}
    return json.dumps({"qlog_version": "0.3", "qlog_format": "JSON", "traces": [trace]}, indent=1).encode()


def columns(found: Iterable[Event], *, vantage: str = "client") -> bytes:
    """Rows of columns with times in microseconds, as in draft-01."""
    rows = [[round(at * 1000), *_name(name).split(":"), data] for at, name, data in found]
    trace = {
        "vantage_point": {"type": vantage},
        "configuration": {"time_units": "us"},
        "event_fields": ["relative_time", "category", "event", "data"],
        "common_fields": {"reference_time": "0"},
        "events": rows,
    }
    return json.dumps({"qlog_version": "draft-01", "traces": [trace]}).encode()
