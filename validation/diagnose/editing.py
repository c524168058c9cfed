"""Edit captures: remove frames as an overloaded capture would, end a connection as a middlebox would.

The captures are the simulator's: pcapng with raw IPv4, in order of time.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

ENHANCED_PACKET = 6
_COMMENT = re.compile(r"packet (\d+) of (\S+?)(, retransmission)?:")
_NUMBER = re.compile(rb"packet (\d+) of \S+?(?:, retransmission)?:")
# Captures have hundreds of thousands of packets.
_TWO_WORDS = struct.Struct("<II").unpack_from
_CAPTURED = struct.Struct("<I").unpack_from
_SEGMENT = struct.Struct(">BxH8x4s4s2s2sIIBB").unpack_from
_TCP_HEADER = struct.Struct(">2s2sIIBB").unpack_from
_TCP = 6
RST_ACK = 0x14


class Block(NamedTuple):
    """A block of a pcapng file."""

    kind: int
    content: bytes

    @property
    def packet(self) -> bytes:
        """The IP packet, up to its captured length."""
        (captured,) = _CAPTURED(self.content, 20)
        return self.content[28 : 28 + captured]

    @property
    def time(self) -> int:
        """In units of the interface's resolution."""
        high, low = _TWO_WORDS(self.content, 12)
        return int(high << 32 | low)

    @property
    def comment(self) -> re.Match[str] | None:
        """The simulator's comment on the packet."""
        (captured,) = _CAPTURED(self.content, 20)
        options = self.content[28 + (captured + 3) // 4 * 4 : -4]
        return _COMMENT.search(options.decode("utf-8", "replace"))

    @property
    def number(self) -> int | None:
        """The packet's number in its flow, from the simulator's comment."""
        (captured,) = _CAPTURED(self.content, 20)
        found = _NUMBER.search(self.content, 28 + (captured + 3) // 4 * 4)
        return None if found is None else int(found[1])


def blocks(content: bytes) -> Iterator[Block]:
    """The blocks of a file."""
    at = 0
    while at < len(content):
        kind, length = _TWO_WORDS(content, at)
        yield Block(kind, content[at : at + length])
        at += length


def frames(content: bytes) -> Iterator[tuple[int, Block]]:
    """The frames, numbered from 1."""
    number = 0
    for block in blocks(content):
        if block.kind == ENHANCED_PACKET:
            number += 1
            yield number, block


class Segment(NamedTuple):
    """Fields of a TCP segment."""

    source: bytes
    target: bytes
    seq: int
    ack: int
    flags: int
    payload: int

    @classmethod
    def of(cls, packet: bytes) -> Segment:
        """The segment of an IPv4 packet."""
        first, length, source, target, source_port, target_port, seq, ack, offset, flags = _SEGMENT(packet)
        header = (first & 15) * 4
        if header != 20:
            source_port, target_port, seq, ack, offset, flags = _TCP_HEADER(packet, header)
        payload = length - header - (offset >> 4) * 4
        return cls(source + source_port, target + target_port, seq, ack, flags, payload)


def tail(content: bytes, end: int, count: int) -> list[int]:
    """The numbers of the last packets with data below a stream offset, in a capture of one direction."""
    first: int | None = None
    found: list[tuple[int, int]] = []
    for number, block in frames(content):
        segment = Segment.of(block.packet)
        if segment.flags & 2:
            first = segment.seq + 1
        elif segment.payload and first is not None:
            found.append(((segment.seq - first) % 2**32, number - 1))
    if not any(start >= end for start, _ in found):
        return []
    below = [number for start, number in found if start < end]
    return below[-count:]


def drop(content: bytes, rng: random.Random) -> bytes:
    """Remove frames, singly or in runs, as a capture with a full buffer would; the handshake stays."""
    share, run = rng.uniform(0.002, 0.02), rng.uniform(1, 20)
    kept = bytearray()
    left = frame = 0
    for block in blocks(content):
        if block.kind == ENHANCED_PACKET:
            frame += 1
            if frame > 20 and left == 0 and rng.random() < share / run:
                left = 1 + int(rng.expovariate(1 / run))
            if left > 0:
                left -= 1
                continue
        kept += block.content
    return bytes(kept)


def reset(content: bytes, rng: random.Random) -> bytes:
    """End the connection by a RST that a middlebox sends in a host's name, with another TTL and identification."""
    all_frames = [block for _, block in frames(content)]
    at = rng.randrange(len(all_frames) // 3, len(all_frames) * 2 // 3)
    cut = all_frames[at]
    # Half of the RSTs answer the packet, with its ACK as sequence number. The others follow it in
    # the same direction.
    header = (cut.packet[0] & 15) * 4
    own = Segment.of(cut.packet)
    ip, tcp = bytearray(cut.packet[:header]), bytearray(cut.packet[header : header + 20])
    if rng.random() < 0.5:
        ip[12:16], ip[16:20] = ip[16:20], ip[12:16]
        tcp[0:2], tcp[2:4] = tcp[2:4], tcp[0:2]
        seq, ack = own.ack, own.seq + own.payload
    else:
        seq, ack = own.seq + own.payload, own.ack
    struct.pack_into(">IIBBHHH", tcp, 4, seq % 2**32, ack % 2**32, 5 << 4, RST_ACK, 0, 0, 0)
    ttl = ip[8] + rng.choice([-1, 1]) * rng.randint(2, 40)
    struct.pack_into(">HHHBBH", ip, 2, header + 20, rng.randrange(1, 2**16), 0, ttl % 256, _TCP, 0)
    struct.pack_into(">H", ip, 10, checksum(bytes(ip)))
    kept = bytearray()
    for block in blocks(content):
        kept += block.content
        if block is not cut and block.content != cut.content:
            continue
        kept += _frame(block, bytes(ip + tcp), block.time + 20_000)
        break
    return bytes(kept)


def checksum(header: bytes) -> int:
    """The checksum of RFC 1071, with a zeroed checksum field."""
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _frame(like: Block, packet: bytes, time: int) -> bytes:
    """A block for a packet on the same interface as another block's."""
    (interface,) = struct.unpack_from("<I", like.content, 8)
    padded = packet + bytes(-len(packet) % 4)
    length = 32 + len(padded)
    fixed = struct.pack(
        "<IIIIIII", ENHANCED_PACKET, length, interface, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet)
    )
    return fixed + padded + struct.pack("<I", length)
