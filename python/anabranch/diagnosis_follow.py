"""``anabranch diagnose --follow``: an interface is captured and diagnosed while it goes on, in bounded memory.

The last minutes of packets are kept in a ring. The ring is diagnosed again and again; what is new is said, and when a
cause of choice occurs the ring is saved as a capture.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from anabranch import _engine
from anabranch.diagnosis import Diagnosis, diagnose, directions
from anabranch.errors import RunFailedError, UserError, nearest

SNAP = 160
"""Octets of each packet that are kept: link, network and TCP headers."""
MOST_BYTES = 256 << 20
"""Of the ring, whatever its time."""
RING_S = 120.0
CHUNK_S = 1.0
CHECK_S = 3.0
"""Between two diagnoses at least; a diagnosis takes a tenth of the time at most."""
MOST_SAVED = 100
"""Captures that one command saves."""
MOST_REMEMBERED = 10_000
"""Connections and causes that are not said again."""

_ETH_P_ALL = 3
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_OUTGOING = 4
_BUFFER = 32 << 20
_LINK_TYPES = {1: 1, 772: 1, 65534: 101}
"""Hardware types of Linux (if_arp.h) and what a capture calls them: Ethernet, loopback, raw IP."""
_LOOPBACK = 772
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 24 * 3600.0
_NANOSECOND_PCAP = 0xA1B23C4D


def ring_seconds(text: str) -> float:
    """The time that ``--ring`` names.

    Raises:
        UserError: It is no time, or out of range.
    """
    found = _TIME.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 1.0 <= seconds <= _LONGEST_S:
        raise UserError(f"--ring {text}: expected a time from 1 s to 24 h", hint='for example "90s" or "2min"')
    return seconds


def causes() -> tuple[str, ...]:
    """What ``--save-on`` may name: limits, which are the causes of pauses, and findings."""
    terms = json.loads(_engine.diagnose_terms())
    return tuple(dict.fromkeys(one["name"] for kind in terms.values() for one in kind))


@dataclass
class Chunk:
    """Packets of about a second, as records of a capture."""

    first: float
    content: bytearray = field(default_factory=bytearray)
    packets: int = 0


class Ring:
    """The records of the last packets, bounded in time and in octets.

    Args:
        seconds: How long packets are kept.
        link_type: The link type of the capture.
        most: Octets that are kept at most.
    """

    def __init__(self, seconds: float, link_type: int, most: int = MOST_BYTES) -> None:
        self._seconds = seconds
        self._head = struct.pack("<IHHiIII", _NANOSECOND_PCAP, 2, 4, 0, 0, SNAP, link_type)
        self._most = most
        self._chunks: deque[Chunk] = deque()
        self._lock = threading.Lock()
        self.octets = 0
        self.packets = 0
        self.seen = 0
        self.left_out = 0
        """Packets that went before their time, because there were too many."""

    def add(self, nanoseconds: int, length: int, captured: bytes | memoryview) -> None:
        """Add a packet, and let go of what is too old."""
        now = nanoseconds / 1e9
        record = struct.pack("<IIII", *divmod(nanoseconds, 1_000_000_000), len(captured), length)
        with self._lock:
            if not self._chunks or now - self._chunks[-1].first > CHUNK_S:
                self._chunks.append(Chunk(now))
            chunk = self._chunks[-1]
            chunk.content += record
            chunk.content += captured
            chunk.packets += 1
            self.octets += len(record) + len(captured)
            self.packets += 1
            self.seen += 1
            # The packets of the last second stay, whatever they take: those of the one before are enough.
            while len(self._chunks) > 1:
                oldest = self._chunks[0]
                is_old = now - oldest.first > self._seconds + CHUNK_S
                if not is_old and self.octets <= self._most:
                    break
                self.left_out += 0 if is_old else oldest.packets
                self.octets -= len(oldest.content)
                self.packets -= oldest.packets
                self._chunks.popleft()
            if self.octets > self._most:
                self.left_out += chunk.packets
                self.octets = self.packets = 0
                self._chunks.clear()

    def capture(self) -> Iterator[bytes]:
        """The ring as a capture in parts."""
        with self._lock:
            parts = [bytes(chunk.content) for chunk in self._chunks]
        yield self._head
        yield from parts

    def diagnose(self, name: str) -> Diagnosis:
        """What the ring shows; nothing of it is written to a disk."""
        with contextlib.ExitStack() as stack:
            descriptor = os.memfd_create("anabranch-ring")
            stack.callback(os.close, descriptor)
            for part in self.capture():
                view = memoryview(part)
                while view:
                    view = view[os.write(descriptor, view) :]
            found = diagnose(f"/proc/self/fd/{descriptor}")
        found["file"] = name
        return found


class Interface:
    """A raw socket at an interface: what passes there, both ways.

    Raises:
        UserError: There is no such interface, or its frames cannot be read.
        RunFailedError: The user may not capture.
    """

    def __init__(self, name: str) -> None:
        present = sorted(other for _, other in socket.if_nameindex())
        if name not in present:
            hint = nearest(name, present) or f"there are: {', '.join(present)}"
            raise UserError(f"--follow {name}: there is no such interface", hint=hint)
        kind = int((Path("/sys/class/net") / name / "type").read_text(encoding="ascii"))
        if kind not in _LINK_TYPES:
            raise UserError(
                f"--follow {name}: frames of hardware type {kind} are not read", hint="expected Ethernet or IP"
            )
        self.name = name
        self.link_type = _LINK_TYPES[kind]
        # The loopback interface has each packet twice: as it is sent, and as it arrives.
        self._is_loopback = kind == _LOOPBACK
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        except PermissionError:
            raise RunFailedError(
                f"--follow {name}: capturing is not permitted; it takes CAP_NET_RAW (run it as root)"
            ) from None
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        with contextlib.suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self._socket.bind((name, 0))
        self._socket.setblocking(False)
        self._buffer = bytearray(SNAP)
        self.missed = 0
        """Packets for which the socket had no room."""

    def read(self, ring: Ring, wait_s: float) -> None:
        """Wait for packets, and add those that are there.

        Raises:
            RunFailedError: The interface is gone or down.
        """
        if not select.select([self._socket], [], [], wait_s)[0]:
            return
        for _ in range(4096):
            try:
                length, control, _, address = self._socket.recvmsg_into([self._buffer], 64, socket.MSG_TRUNC)
            except BlockingIOError:
                return
            except OSError as error:
                raise RunFailedError(f"--follow {self.name}: {error.strerror or error}") from None
            if self._is_loopback and address[2] == _PACKET_OUTGOING:
                continue
            ring.add(_stamp(control), length, memoryview(self._buffer)[: min(length, SNAP)])

    def statistics(self) -> int:
        """Packets that were missed so far."""
        found = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        # Reading sets the kernel's counters to zero.
        self.missed += struct.unpack("II", found)[1]
        return self.missed

    def close(self) -> None:
        """Stop capturing."""
        self._socket.close()


def _stamp(control: list[tuple[int, int, bytes]]) -> int:
    """When the kernel saw the packet, in nanoseconds."""
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(value) >= 16:
            seconds, nanoseconds = struct.unpack_from("qq", value)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return time.time_ns()


@dataclass(frozen=True)
class Event:
    """A cause that a connection shows, and since when."""

    ends: tuple[str, str]
    cause: str
    text: str


def events(found: Diagnosis) -> Iterator[Event]:
    """What stands out: findings, and the causes of pauses."""
    for connection in found["connections"]:
        ends = (connection["a"], connection["b"])
        told = set()
        for finding in connection["findings"]:
            told.add(finding["cause"])
            yield Event(ends, finding["cause"], finding["text"])
        for name, way in directions(connection):
            sender, receiver = ends if name == "a_to_b" else ends[::-1]
            for stall in way["stalls"]:
                if stall["cause"] not in told:
                    told.add(stall["cause"])
                    pause = f"{sender} to {receiver}: a pause of {stall['duration_s'] * 1e3:.0f} ms"
                    yield Event(ends, stall["cause"], f"{pause}, cause {stall['cause'].replace('-', ' ')}.")


@dataclass
class Follower:
    """Follows an interface.

    Attributes:
        interface: Where.
        ring: What is kept.
        save_on: The cause at which the ring is saved; none when ``None``.
        save_to: The directory for what is saved.
        say: Takes each line that there is to say.
    """

    interface: Interface
    ring: Ring
    save_on: str | None
    save_to: Path
    say: Callable[[str], None]
    _said: dict[tuple[tuple[str, str], str], None] = field(default_factory=dict)
    _saved: int = 0
    _stopped: bool = False

    def stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """End :meth:`follow` soon; a handler of signals."""
        self._stopped = True

    def follow(self) -> Diagnosis:
        """Follow until it is stopped; the diagnosis of what the ring has then.

        Raises:
            RunFailedError: The interface is gone, or a capture cannot be saved.
        """
        start = time.monotonic()
        worker: threading.Thread | None = None
        due = start + CHECK_S
        results: list[tuple[float, Any]] = []
        while not self._stopped:
            self.interface.read(self.ring, 0.1)
            now = time.monotonic()
            if worker is None and now >= due and self.ring.packets:
                worker = threading.Thread(target=self._check, args=(results,), daemon=True)
                worker.start()
            elif worker is not None and not worker.is_alive():
                worker = None
                taken, found = results.pop()
                due = time.monotonic() + max(CHECK_S, 10 * taken)
                self._tell(found, now - start)
        if worker is not None:
            worker.join()
        found = self.ring.diagnose(self.interface.name)
        self._tell(found, time.monotonic() - start)
        return found

    def _check(self, results: list[tuple[float, Any]]) -> None:
        begin = time.monotonic()
        try:
            found: Any = self.ring.diagnose(self.interface.name)
        except (OSError, UserError) as error:
            found = error
        results.append((time.monotonic() - begin, found))

    def _tell(self, found: Any, since: float) -> None:
        if isinstance(found, Exception):
            raise RunFailedError(f"--follow {self.interface.name}: {found}")
        for event in events(found):
            key = (event.ends, event.cause)
            if key in self._said:
                continue
            self._said[key] = None
            if len(self._said) > MOST_REMEMBERED:
                del self._said[next(iter(self._said))]
            self.say(f"{since:9.1f} s  {event.cause}: {event.text}")
            if event.cause == self.save_on and self._saved < MOST_SAVED:
                self._save(event.cause)

    def _save(self, cause: str) -> None:
        from anabranch.output import write_whole

        while True:
            self._saved += 1
            target = self.save_to / f"{self.interface.name}-{cause}-{self._saved}.pcap"
            if not target.exists():
                break
        try:
            write_whole(target, self.ring.capture())
        except OSError as error:
            raise RunFailedError(f"{target}: cannot be written: {error.strerror or error}") from None
        self.say(f"wrote {target}: {self.ring.packets:,} packets")


@contextlib.contextmanager
def until_interrupted(follower: Follower) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end following, not the command."""
    before = {number: signal.signal(number, follower.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_cause(cause: str) -> None:
    """Refuse what is no cause.

    Raises:
        UserError: There is no such cause.
    """
    known = causes()
    if cause not in known:
        raise UserError(f"--save-on {cause}: there is no such cause", hint=nearest(cause, known) or ", ".join(known))
