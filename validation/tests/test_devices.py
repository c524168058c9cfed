"""The middleboxes of live and kernel runs change the named fields of a packet, and no others."""

from __future__ import annotations

import random
import socket
import struct

import pytest

from diagnose import devices
from diagnose.devices import ACK, CE, ECT0, SYN, Segment, checksum

HOSTS = ("10.0.0.1", "10.0.0.2")


def packet(
    *, seq: int = 1000, ack: int = 2000, flags: int = ACK, options: bytes = b"", payload: int = 0, forward: bool = True
) -> bytes:
    """A packet with right checksums."""
    options += bytes(-len(options) % 4)
    source, target = map(socket.inet_aton, HOSTS if forward else HOSTS[::-1])
    ports = (5000, 80) if forward else (80, 5000)
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) << 2, flags, 500, 0, 0)
    length = 20 + len(tcp) + len(options) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, ECT0, length, 1, 0, 64, 6, 0, source, target)
    return Segment(bytearray(ip + tcp + options + bytes(payload))).summed()


def is_sound(octets: bytes) -> bool:
    """Whether both checksums are right."""
    ip, tcp = octets[:20], octets[20:]
    pseudo = ip[12:20] + struct.pack(">BBH", 0, socket.IPPROTO_TCP, len(tcp))
    return checksum(ip) == 0 and checksum(pseudo + tcp) == 0


SYN_OPTIONS = bytes([2, 4, 5, 180, 4, 2, 8, 10, *bytes(8), 1, 3, 3, 7])


@pytest.mark.parametrize("cause", ["MSS clamp", "SACK removed", "timestamps removed", "window scale removed"])
def test_options_of_syns_are_changed_and_nothing_else(cause: str) -> None:
    device = devices.drawn(cause, random.Random(1), HOSTS)  # noqa: S311 - no secret
    assert device is not None
    syn = packet(flags=SYN, options=SYN_OPTIONS)
    changed = device.through(syn, forward=True)
    assert changed is not None
    assert is_sound(changed)
    kinds = {kind: length for _, kind, length in Segment(bytearray(syn)).options()}
    left = {kind: length for _, kind, length in Segment(bytearray(changed)).options()}
    gone = {"SACK removed": {4}, "timestamps removed": {8}, "window scale removed": {3}}.get(cause, set())
    assert set(kinds) - set(left) == gone
    data = packet(payload=100)
    assert device.through(data, forward=True) == data


def test_numbers_are_shifted_forth_and_back() -> None:
    device = devices.randomise(2**32 - 500)
    forth = device.through(packet(payload=10), forward=True)
    back = device.through(packet(ack=500, forward=False), forward=False)
    assert forth is not None
    assert back is not None
    assert is_sound(forth)
    assert is_sound(back)
    assert Segment(bytearray(forth)).number(4) == 500
    assert Segment(bytearray(back)).number(8) == 1000


def test_an_address_is_translated_and_back() -> None:
    device = devices.translate(HOSTS[0], "10.0.0.9", 1000)
    out = device.through(packet(), forward=True)
    assert out is not None
    assert is_sound(out)
    assert (out[12:16], struct.unpack(">H", out[20:22])) == (socket.inet_aton("10.0.0.9"), (6000,))
    answer = bytearray(packet(forward=False))
    answer[16:20], answer[22:24] = socket.inet_aton("10.0.0.9"), struct.pack(">H", 6000)
    back = device.through(Segment(answer).summed(), forward=False)
    assert back == packet(forward=False)


@pytest.mark.parametrize(("device", "field", "left"), [
    (devices.bleach(), ECT0, 0), (devices.bleach(), CE, 0), (devices.unmark(), CE, ECT0),
    (devices.unmark(), ECT0, ECT0),
])  # fmt: skip
def test_ecn_fields_are_cleared(device: devices.Device, field: int, left: int) -> None:
    octets = bytearray(packet(payload=10))
    octets[1] = field
    changed = device.through(Segment(octets).summed(), forward=True)
    assert changed is not None
    assert is_sound(changed)
    assert changed[1] == left


def test_data_beyond_the_unscaled_window_is_dropped() -> None:
    device = devices.Unscaled()
    assert device.through(packet(seq=1, payload=2000), forward=True) is not None
    device.through(packet(ack=1000, forward=False), forward=False)
    assert device.through(packet(seq=1000, payload=500), forward=True) is not None
    assert device.through(packet(seq=1000, payload=501), forward=True) is None
    assert device.through(packet(seq=500, payload=100), forward=True) is not None


def test_a_forgotten_connection_is_dropped_in_both_directions() -> None:
    device = devices.Forgetful(2)
    assert [device.through(packet(), forward=True) is None for _ in range(3)] == [False, False, True]
    assert device.through(packet(forward=False), forward=False) is None
