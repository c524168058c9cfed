"""Captures of a run at two points, with clocks and devices applied to their packets."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from anabranch import Scenario
from anabranch.result.result import RunResult

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_RAW = 101
_EPB = 6


@dataclass(frozen=True)
class Packet:
    """A captured IPv4 packet with TCP: its time in ns, its octets as captured, its length on the wire."""

    time_ns: int
    octets: bytes
    length: int

    @property
    def source(self) -> tuple[str, int]:
        """Address and port of the sender."""
        return str(ipaddress.ip_address(self.octets[12:16])), int.from_bytes(self.tcp[0:2], "big")

    @property
    def target(self) -> tuple[str, int]:
        """Address and port of the receiver."""
        return str(ipaddress.ip_address(self.octets[16:20])), int.from_bytes(self.tcp[2:4], "big")

    @property
    def header(self) -> int:
        """Octets of the IP header."""
        return (self.octets[0] & 15) * 4

    @property
    def tcp(self) -> bytes:
        """The TCP header and what follows."""
        return self.octets[self.header :]

    @property
    def seq(self) -> int:
        """The sequence number."""
        return int.from_bytes(self.tcp[4:8], "big")

    @property
    def ack(self) -> int:
        """The acknowledgment number."""
        return int.from_bytes(self.tcp[8:12], "big")

    @property
    def flags(self) -> int:
        """The control bits."""
        return self.tcp[13]

    @property
    def payload(self) -> int:
        """Octets of data."""
        return self.length - self.header - (self.tcp[12] >> 4) * 4

    def changed(self, at: int, value: bytes) -> Packet:
        """The packet with other octets in its TCP header."""
        at += self.header
        return replace(self, octets=self.octets[:at] + value + self.octets[at + len(value) :])

    def options(self) -> Iterable[tuple[int, int, bytes]]:
        """Position in the TCP header, kind and content of each option."""
        at, end = 20, (self.tcp[12] >> 4) * 4
        while at < end:
            kind = self.tcp[at]
            if kind == 0:
                return
            size = 1 if kind == 1 else self.tcp[at + 1]
            if kind != 1:
                yield at, kind, self.tcp[at + 2 : at + size]
            at += size


Change = Callable[[Packet], Packet | None]
"""A change of a packet by a device, or of its record; ``None`` removes it."""


def packets(content: bytes) -> list[Packet]:
    """The packets of a pcapng that a run wrote, in the order of time."""
    made = []
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        if kind == _EPB:
            _, high, low, kept, length = struct.unpack_from("<IIIII", content, at + 8)
            made.append(Packet((high << 32) | low, content[at + 28 : at + 28 + kept], length))
        at += size
    return sorted(made, key=lambda one: one.time_ns)


def write(file: Path, content: Iterable[Packet]) -> Path:
    """A pcap with times in nanoseconds."""
    out = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, _RAW))
    for one in content:
        seconds, nanos = divmod(one.time_ns, 10**9)
        out += struct.pack("<IIII", seconds, nanos, len(one.octets), one.length) + one.octets
    file.write_bytes(out)
    return file


def through(content: Iterable[Packet], *devices: Change) -> list[Packet]:
    """The packets after some devices."""
    made = []
    for one in content:
        packet: Packet | None = one
        for device in devices:
            if packet is None:
                break
            packet = device(packet)
        if packet is not None:
            made.append(packet)
    return made


def clock(offset_s: float, drift: float = 0.0, start_ns: int = 0) -> Change:
    """The clock of a point: its offset at the start, and how much faster it is."""

    def change(one: Packet) -> Packet:
        return replace(one, time_ns=one.time_ns + round(offset_s * 1e9 + drift * (one.time_ns - start_ns)))

    return change


def set_clock(at_s: float, by_s: float) -> Change:
    """A clock that is set once, at a time since the start of the run."""

    def change(one: Packet) -> Packet:
        is_after = one.time_ns >= START_NS + round(at_s * 1e9)
        return replace(one, time_ns=one.time_ns + (round(by_s * 1e9) if is_after else 0))

    return change


START_NS = 1_795_874_600 * 10**9
"""2026-11-28 14:03:20 UTC."""


def real(one: Packet, salt: int = 0) -> Packet:
    """Numbers as hosts choose them: other sequence numbers, timestamps and a time of day for each connection."""
    made = replace(one, time_ns=one.time_ns + START_NS)
    ends = [made.source, made.target]
    for host, peer, at in ((ends[0], ends[1], 4), (ends[1], ends[0], 8)):
        key = ((host[1] * 65536 + peer[1] + salt * 7919) * 2654435761) & 0xFFFFFFFF
        number = (int.from_bytes(made.tcp[at : at + 4], "big") + key) & 0xFFFFFFFF
        if at == 4 or made.flags & ACK:
            made = made.changed(at, number.to_bytes(4, "big"))
        for place, kind, content in list(made.options()):
            if kind == 8:
                offset = 0 if at == 4 else 4
                stamp = int.from_bytes(content[offset : offset + 4], "big")
                if stamp or at == 4:
                    stamp = (stamp + key * 7) & 0xFFFFFFFF
                    made = made.changed(place + 2 + offset, stamp.to_bytes(4, "big"))
            if kind == 5 and at == 8:
                blocks = [int.from_bytes(content[i : i + 4], "big") for i in range(0, len(content), 4)]
                moved = b"".join(((block + key) & 0xFFFFFFFF).to_bytes(4, "big") for block in blocks)
                made = made.changed(place + 2, moved)
    return made


def nat(inside: str, outside: str, ports: int = 0) -> Change:
    """Translate an address, and add a number to its ports."""
    old, new = (ipaddress.ip_address(one).packed for one in (inside, outside))

    def change(one: Packet) -> Packet:
        octets = bytearray(one.octets)
        for address, port in ((12, 0), (16, 2)):
            if octets[address : address + 4] == old:
                octets[address : address + 4] = new
                at = one.header + port
                octets[at : at + 2] = (int.from_bytes(octets[at : at + 2], "big") + ports).to_bytes(2, "big")
        return replace(one, octets=bytes(octets))

    return change


def randomised(host: str, added: int, *, sacks: bool = True) -> Change:
    """Add a number to the sequence numbers of a host; its peers' SACK blocks may be forgotten."""

    def change(one: Packet) -> Packet:
        at = 4 if one.source[0] == host else 8
        number = int.from_bytes(one.tcp[at : at + 4], "big")
        made = one.changed(at, ((number + added) & 0xFFFFFFFF).to_bytes(4, "big"))
        if at == 8 and not made.flags & ACK:
            return one
        if at == 8 and sacks:
            for place, kind, content in list(made.options()):
                if kind == 5:
                    blocks = [int.from_bytes(content[i : i + 4], "big") for i in range(0, len(content), 4)]
                    moved = b"".join(((block + added) & 0xFFFFFFFF).to_bytes(4, "big") for block in blocks)
                    made = made.changed(place + 2, moved)
        return made

    return change


def without_option(*kinds: int) -> Change:
    """Replace options by padding."""

    def change(one: Packet) -> Packet:
        made = one
        for place, kind, content in list(one.options()):
            if kind in kinds:
                made = made.changed(place, b"\x01" * (len(content) + 2))
        return made

    return change


def clamped(mss: int) -> Change:
    """Reduce the MSS of SYNs."""

    def change(one: Packet) -> Packet:
        made = one
        for place, kind, content in list(one.options()):
            if kind == 2 and int.from_bytes(content, "big") > mss:
                made = made.changed(place + 2, mss.to_bytes(2, "big"))
        return made

    return change


def stripped_identification(one: Packet) -> Packet:
    """Identification 0."""
    return replace(one, octets=one.octets[:4] + b"\0\0" + one.octets[6:])


def joined(content: list[Packet], host: str, most: int = 10) -> list[Packet]:
    """Segments of a host that follow each other within 50 µs as one super-segment (TSO)."""
    made: list[Packet] = []
    count = 1
    for one in content:
        last = made[-1] if made else None
        if (
            last is not None and one.source == last.source and one.source[0] == host and one.target == last.target
            and one.payload and last.payload and one.seq == (last.seq + last.payload) & 0xFFFFFFFF
            and one.ack == last.ack and one.time_ns - last.time_ns < 50_000 and count < most
            and one.tcp[14:16] == last.tcp[14:16] and one.tcp[20:32] == last.tcp[20:32]
        ):  # fmt: skip
            octets = bytearray(last.octets)
            length = last.length + one.payload
            octets[2:4] = length.to_bytes(2, "big")
            octets[last.header + 13] |= one.flags
            made[-1] = replace(last, octets=bytes(octets), length=length)
            count += 1
            continue
        made.append(one)
        count = 1
    return made


@dataclass(frozen=True)
class Taps:
    """The packets at two points of a run, and the run."""

    client: list[Packet]
    server: list[Packet]
    run: RunResult


def only_from(host: str, *devices: Change) -> Change:
    """Devices through which only the packets of a host pass."""

    def change(one: Packet) -> Packet | None:
        made: Packet | None = one
        for device in devices if one.source[0] == host else ():
            made = device(made) if made is not None else None
        return made

    return change


@lru_cache(maxsize=4)
def taps(text: str, seed: int = 1, client: str = "near", server: str = "far", salt: int = 0) -> Taps:
    """Run a scenario with taps at two links. Tests may read the result, but not write."""
    run = Scenario.from_text(text, file="points.toml").run(seed=seed, captures=[client, server])
    one, other = (through(packets(run.pcapng(name)), lambda one: real(one, salt)) for name in (client, server))
    return Taps(one, other, run)
