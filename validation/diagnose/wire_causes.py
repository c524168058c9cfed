"""The causes that a path and its hosts can be given."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from diagnose import devices
from diagnose.causes import log_uniform
from diagnose.wire_path import ACK, MSS, OUTSIDE, POINTS, SENDER, SYN, Fault, Packet, Setup, Wire


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
