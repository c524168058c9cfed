"""Middleboxes: devices on the path of ``wire.py`` that change or drop packets."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

SYN, RST, ACK = 2, 4, 16
MSS, SCALE, SACK_PERMITTED, TIMESTAMPS = 2, 3, 4, 8
CE, ECT0 = 3, 2


class Device(Protocol):
    """A device between the sender's and the receiver's side."""

    def through(self, octets: bytes, *, forward: bool) -> bytes | None:
        """The IPv4 packet as it leaves the device; ``None`` if the device drops it."""


@dataclass
class Segment:
    """A TCP segment in an IPv4 packet, to be changed."""

    octets: bytearray

    @property
    def tcp(self) -> int:
        """The place of the TCP header."""
        return (self.octets[0] & 15) * 4

    @property
    def flags(self) -> int:
        """The control bits."""
        return self.octets[self.tcp + 13]

    @property
    def payload(self) -> int:
        """Octets of data."""
        return len(self.octets) - self.tcp - (self.octets[self.tcp + 12] >> 4) * 4

    def number(self, at: int) -> int:
        """The 32-bit number at a place of the TCP header."""
        (value,) = struct.unpack_from(">I", self.octets, self.tcp + at)
        return int(value)

    def add(self, at: int, value: int) -> None:
        """Add to a 32-bit number of the TCP header."""
        struct.pack_into(">I", self.octets, self.tcp + at, (self.number(at) + value) % 2**32)

    def options(self) -> Iterator[tuple[int, int, int]]:
        """Place in the TCP header, kind and length of each option."""
        at, end = 20, (self.octets[self.tcp + 12] >> 4) * 4
        while at + 1 < end and (kind := self.octets[self.tcp + at]) != 0:
            length = 1 if kind == 1 else max(2, self.octets[self.tcp + at + 1])
            if kind != 1:
                yield at, kind, length
            at += length

    def summed(self) -> bytes:
        """The packet with its checksums (RFC 1071)."""
        ip, tcp = self.octets[: self.tcp], self.octets[self.tcp :]
        struct.pack_into(">H", ip, 10, 0)
        struct.pack_into(">H", ip, 10, checksum(bytes(ip)))
        pseudo = bytes(ip[12:20]) + struct.pack(">BBH", 0, socket.IPPROTO_TCP, len(tcp))
        struct.pack_into(">H", tcp, 16, 0)
        struct.pack_into(">H", tcp, 16, checksum(pseudo + bytes(tcp)))
        return bytes(ip + tcp)


def checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = octets + bytes(len(octets) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass(frozen=True)
class Rewriting:
    """A device that changes segments one by one."""

    change: Callable[[Segment, bool], bool]
    """Change a segment that goes forward or back; whether it did."""

    def through(self, octets: bytes, *, forward: bool) -> bytes | None:
        """Change the segment."""
        segment = Segment(bytearray(octets))
        return segment.summed() if self.change(segment, forward) else octets


def clamp(most: int) -> Device:
    """Reduce the MSS of SYNs."""

    def change(segment: Segment, _forward: bool) -> bool:
        for at, kind, _ in segment.options() if segment.flags & SYN else ():
            if kind == MSS:
                struct.pack_into(">H", segment.octets, segment.tcp + at + 2, most)
                return True
        return False

    return Rewriting(change)


def without(option: int) -> Device:
    """Replace an option of SYNs by padding."""

    def change(segment: Segment, _forward: bool) -> bool:
        for at, kind, length in segment.options() if segment.flags & SYN else ():
            if kind == option:
                place = segment.tcp + at
                segment.octets[place : place + length] = b"\x01" * length
                return True
        return False

    return Rewriting(change)


def randomise(added: int) -> Device:
    """Shift the sequence numbers of the sender, but not the SACK blocks that the receiver reports of them."""

    def change(segment: Segment, forward: bool) -> bool:
        if forward:
            segment.add(4, added)
        elif segment.flags & ACK:
            segment.add(8, -added)
        return True

    return Rewriting(change)


def translate(inside: str, outside: str, ports: int) -> Device:
    """Give the sender another address, and shift its port."""

    def change(segment: Segment, forward: bool) -> bool:
        address, port = (12, 0) if forward else (16, 2)
        segment.octets[address : address + 4] = socket.inet_aton(outside if forward else inside)
        at = segment.tcp + port
        (old,) = struct.unpack_from(">H", segment.octets, at)
        struct.pack_into(">H", segment.octets, at, (old + (ports if forward else -ports)) % 2**16)
        return True

    return Rewriting(change)


def bleach() -> Device:
    """Clear the ECN field of data."""

    def change(segment: Segment, forward: bool) -> bool:
        is_capable = forward and bool(segment.octets[1] & 3)
        segment.octets[1] &= ~3 & 0xFF
        return is_capable

    return Rewriting(change)


def unmark() -> Device:
    """Replace congestion marks by ECT(0)."""

    def change(segment: Segment, forward: bool) -> bool:
        is_marked = forward and segment.octets[1] & 3 == CE
        if is_marked:
            segment.octets[1] = segment.octets[1] & ~3 & 0xFF | ECT0
        return is_marked

    return Rewriting(change)


@dataclass
class Unscaled:
    """A device that takes the receiver's window without its scale, and drops data beyond it."""

    edge: int | None = None

    def through(self, octets: bytes, *, forward: bool) -> bytes | None:
        """Drop a segment that ends beyond the window."""
        segment = Segment(bytearray(octets))
        if forward:
            end = (segment.number(4) + segment.payload) % 2**32
            is_beyond = self.edge is not None and segment.payload and 0 < (end - self.edge) % 2**32 < 2**31
            return None if is_beyond else octets
        if segment.flags & ACK and not segment.flags & RST:
            (window,) = struct.unpack_from(">H", segment.octets, segment.tcp + 14)
            self.edge = (segment.number(8) + window) % 2**32
        return octets


@dataclass
class Forgetful:
    """A firewall that forgets the connection after some packets, and then drops its packets without a reply."""

    after: int
    passed: int = field(default=0)

    def through(self, octets: bytes, *, forward: bool) -> bytes | None:
        """Count and forward, or drop."""
        self.passed += forward
        return octets if self.passed <= self.after else None


def drawn(cause: str, rng: random.Random, addresses: tuple[str, str]) -> Device | None:
    """The device that is a cause, with values drawn at random; `addresses` are the sender's before and after a NAT."""
    made: dict[str, Callable[[], Device]] = {
        "MSS clamp": lambda: clamp(rng.randint(900, 1360)),
        "SACK removed": lambda: without(SACK_PERMITTED),
        "timestamps removed": lambda: without(TIMESTAMPS),
        "window scale removed": lambda: without(SCALE),
        "SACK not translated": lambda: randomise(rng.randrange(2**28, 2**32 - 2**28)),
        "ECN cleared": bleach,
        "CE cleared": unmark,
        "NAT": lambda: translate(*addresses, rng.randint(1000, 20000)),
        "window scale ignored": Unscaled,
        "connection forgotten": lambda: Forgetful(rng.randint(200, 800)),
    }
    return made[cause]() if cause in made else None
