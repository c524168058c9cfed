"""The copies of data that a receiver accepted, by its acknowledgments, and the retransmissions that were needed."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

ACK, SYN = 16, 2
_SACK = 5


@dataclass
class Sent:
    """A segment with data, in the order of sending; sequence offsets from 0."""

    start: int
    end: int
    arrived: float | None


@dataclass
class Acks:
    """The acknowledgments of a receiver, in order of sending."""

    times: list[float] = field(default_factory=list)
    found: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)

    def add(self, time: float, packet: bytes, first: int) -> None:
        """Add a packet of the receiver; `first` is the sequence number of the sender's first byte."""
        header = (packet[0] & 15) * 4
        _, ack, offset, flags = struct.unpack_from(">IIBB", packet, header + 4)
        if not flags & ACK:
            return
        options = packet[header + 20 : header + (offset >> 4) * 4]
        blocks = []
        at = 0
        while at + 1 < len(options) and options[at] != 0:
            if options[at] == 1:
                at += 1
                continue
            length = max(2, options[at + 1])
            if options[at] == _SACK:
                edges = struct.unpack_from(f">{(length - 2) // 4}I", options, at + 2)
                unwrapped = [(edge - first) % 2**32 for edge in edges]
                blocks += list(zip(unwrapped[::2], unwrapped[1::2], strict=True))
            at += length
        self.times.append(time)
        self.found.append(((ack - first) % 2**32, blocks))

    def has(self, start: int, end: int, after: float, before: float) -> bool | None:
        """Whether bytes were acknowledged in a time; ``None`` if it had too few acknowledgments to decide."""
        low, high = bisect.bisect_left(self.times, after), bisect.bisect_left(self.times, before - ROUNDED)
        for ack, blocks in self.found[low:high]:
            if ack < 2**31 and (ack >= end or any(a <= start and end <= b for a, b in blocks)):
                return True
        return False if high - low >= ENOUGH else None


ROUNDED = 1e-6
"""Rounding of times in captures: the answer to a segment may appear to precede it."""
ENOUGH = 3
"""Acknowledgments without the data that show that it was discarded: Linux may compress SACKs."""


def needed(segments: Sequence[Sent], acks: Acks) -> list[bool | None]:
    """For each segment whether it was a needed retransmission; ``None`` for an original or an undecided one.

    The receiver may discard a late original (RFC 7323 §5.3). The acknowledgments before the
    retransmission's arrival show whether it accepted one that arrived earlier.
    """
    verdicts: list[bool | None] = []
    copies: dict[int, list[Sent]] = {}
    highest = 0
    for one in segments:
        grains = range(one.start // GRAIN, (one.end - 1) // GRAIN + 1)
        verdict = None
        if one.start < highest:
            near = {id(copy): copy for grain in grains for copy in copies.get(grain, [])}
            before = [copy for copy in near.values() if copy.start < one.end and one.start < copy.end]
            verdict = _verdict(one, min(one.end, highest), before, acks)
        verdicts.append(verdict)
        for grain in grains:
            copies.setdefault(grain, []).append(one)
        highest = max(highest, one.end)
    return verdicts


GRAIN = 1024
"""Copies are indexed by the kibibytes that they overlap."""


def _verdict(one: Sent, end: int, before: list[Sent], acks: Acks) -> bool | None:
    """Whether a retransmission was needed, by the copies sent before it."""
    if _reach(one.start, [copy for copy in before if copy.arrived is not None]) < end:
        return True
    if one.arrived is None:
        return False
    taken = []
    for copy in before:
        if copy.arrived is None:
            continue
        if copy.arrived >= one.arrived:
            # The copy arrived after the retransmission, so the truth depends on the receiver.
            return None
        has = acks.has(max(copy.start, one.start), min(copy.end, end), copy.arrived, one.arrived)
        if has is None:
            return None
        if has:
            taken.append(copy)
    return _reach(one.start, taken) < end


def _reach(start: int, copies: list[Sent]) -> int:
    """The end of the contiguous coverage of copies from `start` on."""
    for copy in sorted(copies, key=lambda copy: copy.start):
        if copy.start <= start:
            start = max(start, copy.end)
    return start
