"""TCP segments in the captures of live runs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SYN, ACK = 2, 16


@dataclass(frozen=True)
class Segment:
    """A TCP packet on entering the link, with the numbers of its header."""

    time_s: float
    seq: int
    ack: int
    flags: int
    payload: int
    source: int
    size: int
    window: int
    """The window field, unscaled."""
    sack: tuple[tuple[int, int], ...] = ()
    """SACK blocks, from the first sequence number to one past the last (RFC 2018)."""

    @property
    def end(self) -> int:
        """One past the sequence number of the last octet."""
        return self.seq + self.payload


def segments(capture: bytes) -> Iterator[Segment]:
    """The TCP segments over IPv4 of a pcapng file."""
    at = 0
    while at < len(capture):
        kind, size = struct.unpack_from("<II", capture, at)
        if kind == 6:
            high, low, kept = struct.unpack_from("<III", capture, at + 12)
            packet = capture[at + 28 : at + 28 + kept]
            ip, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
            source, _, seq, ack, offset, flags, window = struct.unpack_from(">HHIIBBH", packet, ip)
            payload = total - ip - (offset >> 4) * 4
            sack = tuple(_sack(packet[ip + 20 : ip + (offset >> 4) * 4]))
            yield Segment(((high << 32) | low) / 1e9, seq, ack, flags, payload, source, total, window, sack)
        at += size


def _sack(options: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(options) and options[at]:
        # Padding has no length field.
        size = 1 if options[at] == 1 else options[at + 1]
        if options[at] == 5:
            yield from struct.iter_unpack(">II", options[at + 2 : at + size])
        at += size
