"""Carry packets between two network namespaces with one planted fault: the kernel's TCP at both ends, three captures.

    python validation/diagnose/wire.py CAUSE SEED FOLDER

Writes ``sender.pcap``, ``middle.pcap`` and ``receiver.pcap`` into FOLDER, and ``truth.json``: the
outcome of each packet, and the sender's ``TCP_INFO``. It needs root. No traffic leaves the two
namespaces, which end with the process.
"""

from __future__ import annotations

import heapq
import json
import math
import multiprocessing
import os
import random
import select
import signal
import socket
import struct
import subprocess
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
from diagnose.truth import Acks, Sent, needed
from kernel import namespaces

SENDER, RECEIVER, PORT = "10.9.1.1", "10.9.1.2", 5201
OUTSIDE = "10.9.1.3"
"""The sender's address behind a NAT."""
POINTS = ("sender", "middle", "receiver")
SNAPLEN = 96
SYN, FIN, RST, PSH, ACK = 2, 1, 4, 8, 16
MSS = 1448
SO_MAX_PACING_RATE = 47
"""Constant of socket(7) that Python's module lacks."""
TIMESTAMPS = Path("/proc/sys/net/ipv4/tcp_timestamps")
ECN = Path("/proc/sys/net/ipv4/tcp_ecn")
GRACE = 60
"""Seconds that a host remains after its sender has ended; the parent process ends it sooner."""
_BUSY = struct.Struct("=168x3Q")
"""``tcpi_busy_time``, ``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` of tcp(7)'s ``TCP_INFO``, in microseconds."""


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


# The applications. Each has a keyword per behaviour.


def sending(
    connection: socket.socket, end: float, *, size: int = 0, pair: int = 0, pause: float = 0.0, serve: int = 0
) -> None:
    """Send as fast as the network allows, or with pauses, or two writes per answer, or a response to each request."""
    with suppress(OSError):
        while time.monotonic() < end:
            if serve:
                if not connection.recv(65536):
                    return
                connection.sendall(bytes(serve))
            else:
                if pair:
                    connection.sendall(bytes(pair))
                connection.sendall(bytes(size or 65536))
                if pair and not connection.recv(65536):
                    return
                if pause:
                    time.sleep(pause)


def receiving(
    connection: socket.socket,
    end: float,
    *,
    chunk: int = 262144,
    pause: float = 0.0,
    think: float = 0.0,
    want: int = 0,
    answer: int = 0,
) -> None:
    """Read all data, chunk by chunk with pauses; or request responses and think; or answer every `answer` bytes."""
    left = answer
    with suppress(OSError):
        while time.monotonic() < end:
            if want:
                connection.sendall(bytes(200))
                left = want
                while left > 0:
                    got = len(connection.recv(min(left, 65536)))
                    if not got:
                        return
                    left -= got
                time.sleep(think)
            else:
                got = len(connection.recv(chunk))
                if not got:
                    return
                left -= got
                if answer and left <= 0:
                    connection.sendall(b"done")
                    left += answer
                if pause:
                    time.sleep(pause)


def host(pipe: Any, parent: int, options: dict[str, Any], *, is_sender: bool, listens: bool, duration: float) -> None:
    """One host: opens or accepts the connection and runs its application."""
    namespaces.end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    habits = {key: value for key, value in options.items() if not key.startswith("so_")}
    if listens:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _set(listening, options)
        listening.bind((SENDER if is_sender else RECEIVER, PORT))
        listening.listen()
        pipe.send("ready")
        listening.settimeout(duration)
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            pipe.send(None)
            return
    else:
        pipe.recv()
        connection = socket.socket()
        _set(connection, options)
        connection.settimeout(duration)
        try:
            connection.connect((RECEIVER if is_sender else SENDER, PORT))
        except OSError:
            pipe.send(None)
            return
    connection.settimeout(duration + 2)
    end = time.monotonic() + duration
    # The reader continues until the process ends; otherwise its window would close at the end of
    # each run.
    (sending if is_sender else receiving)(connection, end + (0 if is_sender else GRACE), **habits)
    time.sleep(max(0.0, end - time.monotonic()))
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BUSY.size)
        pipe.send(_BUSY.unpack(raw) if len(raw) == _BUSY.size else None)
    except OSError:
        pipe.send(None)
    # Closing would reset a connection with unread data; the parent process ends it.
    time.sleep(GRACE)


def _set(of: socket.socket, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name == "so_rcvbuf":
            of.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, value)
        elif name == "so_sndbuf":
            of.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, value)
        elif name == "so_pacing":
            of.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, value)
        elif name == "so_control":
            of.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, value.encode())


# The causes.


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """A number with a uniformly distributed logarithm."""
    return float(low * (high / low) ** rng.random())


def bernoulli(rate: float) -> Fault:
    """Single losses of data."""
    return lambda wire, packet: packet.payload > 0 and wire.rng.random() < rate


def lost_acks(rate: float) -> Fault:
    """Losses of pure acknowledgments."""
    return lambda wire, packet: packet.flags == ACK and not packet.payload and wire.rng.random() < rate


def gilbert(rate: float, burst: float) -> Fault:
    """Bursts of losses."""
    state = {"bad": False}

    def lose(wire: Wire, packet: Packet) -> bool:
        if packet.payload == 0:
            return False
        leave = 1 / burst
        enter = rate * leave / (1 - rate)
        state["bad"] = wire.rng.random() < (1 - leave if state["bad"] else enter)
        return state["bad"]

    return lose


def tails(size: int, every: int, octets: int) -> Fault:
    """Lose the last bytes of every `every`-th response at their first transmission."""
    first: dict[str, int] = {}
    seen: set[int] = set()

    def lose(_wire: Wire, packet: Packet) -> bool:
        if packet.flags & SYN:
            first["seq"] = packet.seq + 1
        if not packet.payload or "seq" not in first:
            return False
        start = (packet.seq - first["seq"]) % 2**32
        response = start // size
        is_tail = start + packet.payload > (response + 1) * size - octets
        if response % every != every - 1 or not is_tail or start in seen:
            return False
        seen.add(start)
        return True

    return lose


def policer(rate: float, burst: float) -> Fault:
    """A token bucket without a queue; rate in bit/s, burst in bytes."""
    bucket = {"tokens": burst, "at": time.monotonic()}

    def lose(_wire: Wire, packet: Packet) -> bool:
        now = time.monotonic()
        bucket["tokens"] = min(burst, bucket["tokens"] + (now - bucket["at"]) * rate / 8)
        bucket["at"] = now
        if packet.length > bucket["tokens"]:
            return True
        bucket["tokens"] -= packet.length
        return False

    return lose


def first_syns(number: int) -> Fault:
    """Lose the first SYNs in this direction."""
    left = {"left": number}

    def lose(_wire: Wire, packet: Packet) -> bool:
        if packet.flags & SYN and left["left"]:
            left["left"] -= 1
            return True
        return False

    return lose


def plant_loss(cause: str, setup: Setup, rng: random.Random) -> bool:
    """Plant faults that hit single packets; return whether the cause is one of them."""
    where = rng.choice(["near_fault", "far_fault"])
    rtt = 2 * (setup.near + setup.far)
    if cause == "random loss":
        setattr(setup, where, bernoulli(rng.uniform(0.005, 0.02)))
    elif cause == "burst loss":
        setattr(setup, where, gilbert(rng.uniform(0.008, 0.02), rng.uniform(3, 6)))
    elif cause == "reordering":
        every, late = rng.randint(20, 60), rng.uniform(0.003, rtt / 3)
        setup.late = lambda packet: late if packet.payload and packet.number % every == 0 else 0.0
    elif cause == "SYN loss":
        setattr(setup, rng.choice(["far_fault", "back_fault"]), first_syns(1))
    elif cause == "MTU black hole":
        largest = rng.randint(1000, 1400)
        setattr(setup, where, lambda _wire, packet: packet.length > largest)
        setup.duration = 5
    elif cause == "capture drops":
        setup.capture_drops = rng.uniform(0.005, 0.02)
    elif cause == "RST by a middlebox":
        setup.reset_at = rng.uniform(1.5, 3)
    else:
        return False
    return True


def plant_acks(cause: str, setup: Setup, rng: random.Random) -> bool:
    """Plant faults of the path of acknowledgments; return whether the cause is one of them."""
    if not cause.endswith("acknowledgments"):
        return False
    setup.rate, setup.queue = log_uniform(rng, 4e6, 30e6), rng.uniform(0.5, 3)
    setup.near, setup.far = log_uniform(rng, 0.002, 0.06), log_uniform(rng, 0.002, 0.06)
    setup.timestamps = rng.random() < 0.7
    if cause == "lost acknowledgments":
        setattr(setup, rng.choice(["back_fault", "back_near_fault"]), lost_acks(rng.uniform(0.1, 0.9)))
    elif cause == "late acknowledgments":
        mean = log_uniform(rng, 0.002, 0.02)
        setup.back_late = lambda packet: rng.expovariate(1 / mean) if not packet.payload else 0.0
    else:
        setup.thinned = log_uniform(rng, 0.002, 0.03)
    return True


def plant_path(cause: str, setup: Setup, rng: random.Random) -> bool:
    """Plant faults of the path as a whole; return whether the cause is one of them."""
    if cause == "bufferbloat":
        setup.rate, setup.queue = rng.uniform(4e6, 10e6), rng.uniform(5, 10)
        setup.duration = 6
    elif cause == "policer":
        setup.rate, setup.duration = 40e6, 6
        setup.near_fault = policer(rng.uniform(3e6, 8e6), rng.uniform(20e3, 60e3))
    elif cause == "route change":
        setup.receive = {"so_rcvbuf": int(setup.bdp * 0.25)}
        setup.route = (rng.uniform(1.5, 2.5), setup.far * rng.choice([0.3, 2.0, 3.0]))
    else:
        return cause == "none"
    return True


def plant_buffer(cause: str, setup: Setup, rng: random.Random) -> bool:
    """Plant faults of a buffer or its reader; return whether the cause is one of them."""
    if cause == "small receive window":
        setup.rate, setup.near, setup.far = 20e6, 0.02, 0.02
        setup.receive = {"so_rcvbuf": rng.randint(8, 20) * 1024}
    elif cause == "small send buffer":
        setup.rate, setup.near, setup.far = 20e6, rng.uniform(0.01, 0.05), rng.uniform(0.01, 0.05)
        setup.send = {"so_sndbuf": int(setup.bdp * log_uniform(rng, 0.05, 0.2))}
    elif cause == "zero window":
        setup.queue = 20
        setup.receive = {"so_rcvbuf": rng.randint(20, 60) * 1024, "pause": rng.uniform(0.4, 1.0), "chunk": 1 << 20}
    elif cause == "slow reader":
        setup.queue = 20
        setup.receive = {"so_rcvbuf": rng.randint(100, 200) * 1024, "pause": 0.02, "chunk": rng.randint(3000, 8000)}
    else:
        return False
    return True


def plant_application(cause: str, setup: Setup, rng: random.Random) -> bool:
    """Plant behaviour of an application; return whether the cause is one of them."""
    if cause == "pacing":
        setup.send = {"so_pacing": int(setup.rate / 8 * rng.uniform(0.05, 0.6))}
    elif cause == "slow application":
        setup.send = {"size": rng.randint(500, 12000), "pause": rng.uniform(0.02, 0.1)}
    elif cause == "slow client":
        size = rng.randint(2, 40) * 1000
        setup.send, setup.receive = {"serve": size}, {"want": size, "think": rng.uniform(0.2, 0.8)}
    elif cause == "round trips":
        setup.near, setup.far = rng.uniform(0.01, 0.06), rng.uniform(0.01, 0.06)
        size = rng.randint(100, 6000)
        setup.send, setup.receive = {"serve": size}, {"want": size}
    elif cause == "tail loss":
        size = rng.randint(8, 30) * MSS
        setup.far_fault = tails(size, rng.randint(2, 4), rng.choice([100, MSS + 100]))
        setup.send, setup.receive = {"serve": size}, {"want": size, "think": rng.uniform(0.05, 0.15)}
    elif cause == "delayed ACK with Nagle":
        setup.near, setup.far = rng.uniform(0.001, 0.005), rng.uniform(0.001, 0.005)
        # Linux holds a small segment back while another small one is outstanding, and delays
        # acknowledgments if the application answers.
        pair, size = rng.randint(50, 600), rng.randint(50, 600)
        setup.send = {"pair": pair, "size": size, "pause": rng.uniform(0.02, 0.05)}
        setup.receive = {"answer": pair + size}
    else:
        return False
    return True


def plant_device(cause: str, setup: Setup, rng: random.Random) -> bool:
    """Plant a middlebox; return whether the cause is one."""
    device = devices.drawn(cause, rng, (SENDER, OUTSIDE))
    if device is None:
        return False
    # A mark is seen only between the queue and the device.
    setup.device, setup.is_device_first = device, rng.random() < 0.5 and cause != "CE cleared"
    before, behind = (POINTS[:1], POINTS[1:]) if setup.is_device_first else (POINTS[:2], POINTS[2:])
    if cause == "window scale removed":
        setup.rate, setup.near, setup.far = rng.uniform(15e6, 25e6), rng.uniform(0.02, 0.04), rng.uniform(0.02, 0.04)
    elif cause == "SACK not translated":
        setup.far_fault, setup.unseen_at = bernoulli(rng.uniform(0.003, 0.01)), behind
    elif cause == "ECN cleared":
        setup.ecn, setup.marks, setup.unseen_at = True, 0.5, before
    elif cause == "CE cleared":
        setup.ecn, setup.marks = True, 0.5
    elif cause in ("window scale ignored", "connection forgotten"):
        setup.duration, setup.unseen_at = 6, behind
    return True


def setup_of(cause: str, rng: random.Random) -> tuple[Setup, bool]:
    """The path and applications of a cause; whether the receiver opens the connection.

    Raises:
        SystemExit: There is no such cause.
    """
    setup = Setup(rate=rng.uniform(8e6, 20e6), near=rng.uniform(0.004, 0.02), far=rng.uniform(0.004, 0.02))
    kinds = (plant_loss, plant_acks, plant_path, plant_buffer, plant_application, plant_device)
    if not any(plant(cause, setup, rng) for plant in kinds):
        raise SystemExit(f"error: {cause!r} cannot be planted on a wire")
    setup.send["so_control"] = rng.choice(["cubic", "reno"])
    return setup, "serve" in setup.send


def needs(packets: list[Packet]) -> list[dict[str, Any]]:
    """Each packet of the sender with data, and whether it was a needed retransmission."""
    acks = sorted(packet.delivered for packet in packets if not packet.forward and packet.delivered is not None)
    first: int | None = None
    data, segments = [], []
    for packet in packets:
        if packet.forward and packet.flags & SYN:
            first = packet.seq + 1
        if packet.forward and packet.payload and first is not None:
            start = (packet.seq - first) % 2**32
            data.append(packet)
            segments.append(Sent(start, start + packet.payload, packet.delivered))
    # Acknowledgments and SACK blocks have the receiver's numbers. Its SYN-ACK acknowledges the sender's SYN.
    told, first = Acks(), None
    for packet in packets:
        if packet.forward:
            continue
        header = (packet.made[0] & 15) * 4
        if first is None and packet.flags & SYN:
            (first,) = struct.unpack_from(">I", packet.made, header + 8)
        if first is not None:
            told.add(packet.sent, packet.made, first)
    verdicts = needed(segments, told)
    rows = []
    position = highest = 0
    for packet, segment, verdict in zip(data, segments, verdicts, strict=True):
        while position < len(acks) and acks[position] <= packet.sent:
            position += 1
        rows.append(
            {"packet": packet.number, "seq": segment.start, "bytes": packet.payload, "again": segment.start < highest,
             "needed": verdict, "sent": packet.sent, "dropped": packet.dropped,
             "since_ack": packet.sent - acks[position - 1] if position else None}
        )  # fmt: skip
        highest = max(highest, segment.end)
    return rows


def unasked(packets: list[Packet]) -> float:
    """Seconds limited by the sender's application: all data acknowledged, window open, no packet sent.

    They count from the last packet that reached the host, so that the time before a request belongs
    to the peer.
    """
    back = sorted(
        (packet for packet in packets if not packet.forward and packet.delivered is not None),
        key=lambda packet: packet.delivered or 0.0,
    )
    waited = 0.0
    position = acked = end = scale = 0
    latest: Packet | None = None
    first: int | None = None
    for packet in packets:
        if not packet.forward:
            continue
        if packet.flags & SYN:
            first = packet.seq + 1
        while position < len(back) and (back[position].delivered or 0.0) <= packet.sent:
            latest = back[position]
            scale = latest.scale if latest.flags & SYN else scale
            if latest.flags & ACK and first is not None:
                acked = max(acked, (latest.ack - first) % 2**32)
            position += 1
        if not packet.payload or first is None:
            continue
        start = (packet.seq - first) % 2**32
        # A host does not send into less than a segment (RFC 9293 §3.8.6.2.1).
        if start >= end and acked >= end and latest is not None and latest.window << scale >= MSS:
            waited += packet.sent - (latest.delivered or packet.sent)
        end = max(end, start + packet.payload)
    return waited


def main() -> int:
    """Make the hosts, carry their packets, write the captures and the truth."""
    cause, seed, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    rng = random.Random(f"{cause} {seed}")
    namespaces.come_first()
    setup, asks = setup_of(cause, rng)
    pipes = [multiprocessing.Pipe() for _ in range(2)]
    ends = []
    children = []
    for is_sender in (True, False):
        namespaces.enter_new()
        own, peer = (SENDER, RECEIVER) if is_sender else (RECEIVER, SENDER)
        ends.append(namespaces.open_device(own, peer))
        TIMESTAMPS.write_text(str(int(setup.timestamps)))
        if setup.ecn:
            ECN.write_text("1")
        if not is_sender:
            subprocess.run(["ip", "route", "add", OUTSIDE, "dev", namespaces.DEVICE], check=True)
        options = setup.send if is_sender else setup.receive
        child = multiprocessing.Process(
            target=host,
            args=(pipes[0 if is_sender else 1][1], os.getpid(), options),
            kwargs={"is_sender": is_sender, "listens": is_sender == asks, "duration": setup.duration},
            daemon=True,
        )
        child.start()
        children.append(child)
    listener, opener = (pipes[0][0], pipes[1][0]) if asks else (pipes[1][0], pipes[0][0])
    listener.recv()
    wire = Wire(setup, (ends[0], ends[1]), rng)
    opener.send("go")
    info: list[Any] = []

    def over(now: float) -> bool:
        if not info and pipes[0][0].poll():
            info.append(pipes[0][0].recv())
        return bool(info) or now - wire.start > setup.duration + 4

    wire.run(over)
    for child in children:
        child.terminate()
    for point, content in wire.files.items():
        (folder / f"{point}.pcap").write_bytes(content)
    told = info[0] if info and info[0] else None
    truth = {
        "rows": needs(wire.packets),
        "frames": wire.frames,
        "tcp_info": dict(zip(("busy_us", "rwnd_us", "sndbuf_us"), told, strict=True)) if told else None,
        "duration_s": time.monotonic() - wire.start,
        "rtt_s": 2 * (setup.near + setup.far),
        "queue_bdp": setup.queue,
        "unasked_s": unasked(wire.packets),
        "unseen_at": setup.unseen_at,
    }
    (folder / "truth.json").write_text(json.dumps(truth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
