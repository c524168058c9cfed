"""A path between two network namespaces: captures, delays, a queue, faults and devices."""

from __future__ import annotations

import heapq
import math
import os
import random
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from diagnose import devices
from diagnose.devices import CE, ECT0, Segment

SENDER, RECEIVER, PORT = "10.9.1.1", "10.9.1.2", 5201
OUTSIDE = "10.9.1.3"
"""The sender's address behind a NAT."""
POINTS = ("sender", "middle", "receiver")
SNAPLEN = 96
SYN, FIN, RST, PSH, ACK = 2, 1, 4, 8, 16
MSS = 1448


@dataclass
class Packet:
    """A packet on the path."""

    number: int
    octets: bytes
    """As the sender's side of a device has it."""
    forward: bool
    sent: float
    delivered: float | None = None
    dropped: str | None = None
    passing: bytes = b""
    """As it is where it is now."""
    made: bytes = field(init=False)
    """As its host sent it."""
    is_refused: bool = False
    """Whether a device drops it."""

    def __post_init__(self) -> None:
        self.made = self.passing = self.passing or self.octets
        header = (self.octets[0] & 15) * 4
        (self.length,) = struct.unpack_from(">H", self.octets, 2)
        self.seq, self.ack, offset, self.flags = struct.unpack_from(">IIBB", self.octets, header + 4)
        (self.window,) = struct.unpack_from(">H", self.octets, header + 14)
        self.payload = self.length - header - (offset >> 4) * 4
        self.scale = _scale(self.octets[header + 20 : header + (offset >> 4) * 4]) if self.flags & SYN else 0


def _scale(options: bytes) -> int:
    """The window scale of a SYN's options (RFC 7323 §2.2)."""
    at = 0
    while at + 2 < len(options) and options[at] != 0:
        if options[at] == 3:
            return options[at + 2]
        at += 1 if options[at] == 1 else max(2, options[at + 1])
    return 0


Fault = Callable[["Wire", Packet], bool]


@dataclass
class Setup:
    """A path and the applications of both hosts."""

    rate: float = 20e6
    """Bit/s of the bottleneck, which is between the sender and the middle."""
    near: float = 0.010
    far: float = 0.010
    """Seconds one way, upstream and downstream of the middle."""
    queue: float = 1.0
    """In bandwidth-delay products."""
    duration: float = 4.0
    near_fault: Fault | None = None
    """Whether a packet of data is lost before the middle."""
    far_fault: Fault | None = None
    back_fault: Fault | None = None
    back_near_fault: Fault | None = None
    """The same for the receiver's packets, before and after the middle."""
    back_late: Callable[[Packet], float] = lambda _packet: 0.0
    """Additional delay of the receiver's packets after the middle; their order does not change."""
    thinned: float = 0.0
    """Interval in which the path forwards at most one pure acknowledgment, the last, before the middle."""
    late: Callable[[Packet], float] = lambda _packet: 0.0
    """Additional delay of a packet after the middle, so that others overtake it."""
    route: tuple[float, float] | None = None
    """Time of the route change, and the far part's delay from then on."""
    capture_drops: float = 0.0
    reset_at: float | None = None
    timestamps: bool = True
    """Whether the hosts use TCP timestamps (RFC 7323)."""
    ecn: bool = False
    """Whether the hosts negotiate ECN (RFC 3168)."""
    marks: float = math.inf
    """Queue in bandwidth-delay products from which ECN-capable packets are marked."""
    device: devices.Device | None = None
    is_device_first: bool = False
    """Whether the device is before the middle, as the sender sees it, or after it."""
    unseen_at: tuple[str, ...] = ()
    """Points whose capture cannot show the fault."""
    send: dict[str, Any] = field(default_factory=dict)
    receive: dict[str, Any] = field(default_factory=dict)

    @property
    def bdp(self) -> float:
        """Bytes that fill the path."""
        return self.rate / 8 * 2 * (self.near + self.far)


class Wire:
    """The path, which holds the other ends of both hosts' devices."""

    def __init__(self, setup: Setup, ends: tuple[int, int], rng: random.Random) -> None:
        self.setup, self.ends, self.rng = setup, ends, rng
        self.packets: list[Packet] = []
        self.order = count()
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.free = 0.0
        self.waiting = 0
        self.start = time.monotonic()
        self.epoch = time.time() - self.start
        self.files = {point: bytearray() for point in POINTS}
        self.frames: dict[str, list[int]] = {point: [] for point in POINTS}
        self.left = dict.fromkeys(POINTS, 0)
        self.held: Packet | None = None
        self.back_free = 0.0
        self.last: dict[bool, Packet] = {}
        self.has_reset = False
        for file in self.files.values():
            file.extend(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 101))

    def capture(self, point: str, packet: Packet, now: float) -> None:
        """Record a packet, unless the capture drops it."""
        drops = self.setup.capture_drops
        if drops and len(self.packets) > 20:
            if not self.left[point] and self.rng.random() < drops / 5:
                self.left[point] = 1 + int(self.rng.expovariate(1 / 5))
            if self.left[point]:
                self.left[point] -= 1
                return
        seconds, nanos = divmod(int((self.epoch + now) * 1e9), 10**9)
        kept = packet.passing[:SNAPLEN]
        self.files[point] += struct.pack("<IIII", seconds, nanos, len(kept), packet.length) + kept
        self.frames[point].append(packet.number)

    def at(self, when: float, what: Callable[[float], None]) -> None:
        """Schedule a call."""
        heapq.heappush(self.events, (when, next(self.order), what))

    def enter(self, octets: bytes, *, forward: bool) -> None:
        """Accept a packet from a host."""
        now = time.monotonic()
        if octets[0] >> 4 != 4 or octets[9] != socket.IPPROTO_TCP:
            return
        near = octets
        if not forward and self.setup.device is not None:
            near = self.setup.device.through(octets, forward=False) or b""
        packet = Packet(len(self.packets), near or octets, forward, now, passing=octets, is_refused=not near)
        self.packets.append(packet)
        self.last[forward] = packet
        if forward:
            self.forth(packet, now)
        else:
            self.back(packet, now)

    def forth(self, packet: Packet, now: float) -> None:
        """Carry a packet from the sender to the middle."""
        self.capture("sender", packet, now)
        setup = self.setup
        if setup.near_fault and setup.near_fault(self, packet):
            packet.dropped = "near"
            return
        if self.waiting > setup.queue * setup.bdp + 3000:
            packet.dropped = "queue"
            return
        if self.waiting > setup.marks * setup.bdp and packet.octets[1] & 3 == ECT0:
            marked = Segment(bytearray(packet.octets))
            marked.octets[1] |= CE
            packet.passing = marked.summed()
        self.waiting += packet.length
        self.free = max(now, self.free) + packet.length * 8 / setup.rate

        def leave(_now: float) -> None:
            self.waiting -= packet.length

        self.at(self.free, leave)
        self.at(self.free + setup.near, lambda now: self.middle(packet, now))

    def middle(self, packet: Packet, now: float) -> None:
        """Carry a packet from the middle to the receiver."""
        setup = self.setup
        if setup.reset_at is not None and now - self.start > setup.reset_at and not self.has_reset:
            self.reset(now)
        changed: bytes | None = packet.passing
        if setup.device is not None:
            changed = setup.device.through(packet.passing, forward=True)
        if not setup.is_device_first:
            self.capture("middle", packet, now)
        if changed is None:
            packet.dropped = "device"
            return
        packet.passing = changed
        if setup.is_device_first:
            self.capture("middle", packet, now)
        if setup.far_fault and setup.far_fault(self, packet):
            packet.dropped = "far"
            return
        self.at(now + self.far(now) + setup.late(packet), lambda now: self.deliver(packet, now))

    def far(self, now: float) -> float:
        """Delay of the far part."""
        route = self.setup.route
        return route[1] if route and now - self.start > route[0] else self.setup.far

    def deliver(self, packet: Packet, now: float) -> None:
        """Deliver a packet to the receiver."""
        self.capture("receiver", packet, now)
        packet.delivered = now
        with suppress(OSError):
            os.write(self.ends[1], packet.passing)

    def back(self, packet: Packet, now: float) -> None:
        """Carry a packet from the receiver to the middle."""
        self.capture("receiver", packet, now)
        setup = self.setup

        if setup.back_fault and setup.back_fault(self, packet):
            packet.dropped = "back"
            return
        is_pure = not packet.payload and packet.flags == ACK
        if not setup.thinned or not is_pure:
            self.at(now + self.far(now), lambda now: self.back_middle(packet, now))
        elif self.held is None:
            self.held = packet
            self.at(now + setup.thinned, self.release)
        else:
            self.held.dropped = "thinned"
            self.held = packet

    def release(self, now: float) -> None:
        """Forward the last acknowledgment of an interval."""
        packet, self.held = self.held, None
        if packet is not None:
            self.at(now + self.far(now), lambda now: self.back_middle(packet, now))

    def back_middle(self, packet: Packet, now: float) -> None:
        """Carry a packet from the middle to the sender."""
        setup = self.setup
        if setup.is_device_first:
            self.capture("middle", packet, now)
        if packet.is_refused:
            packet.dropped = "device"
            return
        packet.passing = packet.octets
        if not setup.is_device_first:
            self.capture("middle", packet, now)
        if setup.back_near_fault and setup.back_near_fault(self, packet):
            packet.dropped = "back"
            return
        self.back_free = max(self.back_free, now + setup.near + setup.back_late(packet))
        self.at(self.back_free, lambda now: self.to_sender(packet, now))

    def reset(self, now: float) -> None:
        """Send a RST to both hosts in the name of the other, as a middlebox does."""
        self.has_reset = True
        for forward in (True, False):
            like = self.last.get(forward)
            other = self.last.get(not forward)
            if like is None or other is None:
                continue
            header = (like.octets[0] & 15) * 4
            ip, tcp = bytearray(like.octets[:header]), bytearray(like.octets[header : header + 20])
            ip[8] = 255 if ip[8] < 200 else 61
            struct.pack_into(">HHH", ip, 2, header + 20, self.rng.randrange(2**16), 0)
            # The sequence number that the other host has acknowledged is the one it expects.
            struct.pack_into(">IIBBHHH", tcp, 4, other.ack, 0, 5 << 4, RST, 0, 0, 0)
            packet = Packet(len(self.packets), Segment(ip + tcp).summed(), forward, now)
            self.packets.append(packet)
            self.capture("middle", packet, now)
            if forward:
                self.at(now + self.far(now), lambda now, packet=packet: self.deliver(packet, now))  # type: ignore[misc]
            else:
                self.at(now + self.setup.near, lambda now, packet=packet: self.to_sender(packet, now))  # type: ignore[misc]

    def to_sender(self, packet: Packet, now: float) -> None:
        """Deliver a packet to the sender."""
        self.capture("sender", packet, now)
        packet.delivered = now
        with suppress(OSError):
            os.write(self.ends[0], packet.octets)

    def run(self, until: Callable[[float], bool]) -> None:
        """Carry packets."""
        poll = select.poll()
        for end in self.ends:
            poll.register(end, select.POLLIN)
        while True:
            now = time.monotonic()
            while self.events and self.events[0][0] <= now:
                _, _, what = heapq.heappop(self.events)
                what(time.monotonic())
            if until(now):
                return
            wait = min(0.02, self.events[0][0] - time.monotonic()) if self.events else 0.02
            for end, _ in poll.poll(max(0.0, wait * 1e3)):
                for _ in range(64):
                    try:
                        octets = os.read(end, 65536)
                    except BlockingIOError:
                        break
                    self.enter(octets, forward=end == self.ends[0])
