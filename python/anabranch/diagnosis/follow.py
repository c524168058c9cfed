"""``anabranch diagnose --follow``: captures and diagnoses an interface continuously, in bounded memory.

A ring keeps the packets of the last minutes. It is diagnosed repeatedly, and new events are printed.
When a chosen cause occurs, the ring is saved as a capture.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from anabranch import _engine, interrupt
from anabranch.diagnosis.diagnosis import Diagnosis, diagnose, directions
from anabranch.diagnosis.interface import SNAP, Interface
from anabranch.errors import RunFailedError, UserError, nearest
from anabranch.text.lines import wrapped

MOST_BYTES = 256 << 20
"""Octets of the ring, regardless of its time."""
CHUNK_S = 1.0
FIRST_CHECK_S = 0.5
CHECK_S = 3.0
"""Least time between two diagnoses, except at the start; diagnoses take at most a tenth of the time."""
MOST_SAVED = 100
"""Captures that one command saves."""
MOST_REMEMBERED = 10_000
"""Connections and causes that are remembered, so that each is reported once."""

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 24 * 3600.0
_NANOSECOND_PCAP = 0xA1B23C4D
_MARGIN = " " * 13
"""Margin of lines below an event, as wide as its time."""
PATIENCE_S = 0.08
"""Seconds that Ctrl-C leaves for a diagnosis of the last packets; then the last finished one is shown."""
LIMIT_S = 0.15
"""Seconds after which Ctrl-C ends the process unconditionally."""


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
    """Values of ``--save-on``: limits, which are the causes of pauses, and findings."""
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
        self._latest = 0
        self._shift = 0
        self.octets = 0
        self.packets = 0
        self.seen = 0
        self.left_out = 0
        """Packets that were removed early because of the ring's size."""

    def add(self, nanoseconds: int, length: int, captured: bytes | memoryview) -> None:
        """Add a packet, and remove packets that are too old.

        A time far before the last packet's comes from a clock that was set back. The ring's time
        then continues from the last packet: otherwise all following packets would be in one chunk,
        or older than their predecessors.
        """
        nanoseconds += self._shift
        if self._latest - nanoseconds > CHUNK_S * 1e9:
            self._shift += self._latest - nanoseconds
            nanoseconds = self._latest
        self._latest = max(self._latest, nanoseconds)
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
            # The last chunk stays, whatever its size, if removing earlier chunks makes enough room.
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
        """The diagnosis of the ring, which is not written to a disk."""
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


@dataclass(frozen=True)
class Event:
    """A cause of slowness that a connection shows."""

    ends: tuple[str, str]
    cause: str
    text: str


def events(found: Diagnosis) -> Iterator[Event]:
    """Events to report: findings, and the causes of pauses."""
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


class _Check:
    """A diagnosis of the ring in a thread, which is abandoned when its result is no longer needed."""

    def __init__(self, ring: Ring, name: str) -> None:
        self.packets = ring.packets
        self.begin = time.monotonic()
        self.taken = 0.0
        self.found: Diagnosis | BaseException | None = None
        self._ring = ring
        self._name = name
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_over(self, wait_s: float = 0.0) -> bool:
        """Whether it has ended, within this time."""
        if wait_s > 0:
            self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        # The main thread reports every exception.
        try:
            self.found = self._ring.diagnose(self._name)
        except BaseException as error:
            self.found = error
        self.taken = time.monotonic() - self.begin


@dataclass(frozen=True)
class Summary:
    """The last finished diagnosis.

    Attributes:
        found: The diagnosis.
        packets: Packets in it.
        behind_s: Seconds before the end that it does not cover.
    """

    found: Diagnosis
    packets: int
    behind_s: float


class _StoppedError(Exception):
    """The user ended following while a capture was written."""


@dataclass
class Follower:
    """Follows an interface.

    Attributes:
        interface: The interface.
        ring: Its last packets.
        save_on: The cause at which the ring is saved; none when ``None``.
        save_to: The directory of saved captures.
        say: Takes each line for the user.
    """

    interface: Interface
    ring: Ring
    save_on: str | None
    save_to: Path
    say: Callable[[str], None]
    _said: dict[tuple[tuple[str, str], str], None] = field(default_factory=dict)
    _saved: int = 0
    _stopped_at: float | None = None
    _number: int = signal.SIGINT
    _wake: tuple[int, int] = field(default_factory=os.pipe)
    _last: _Check | None = None

    def stop(self, number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
        """End :meth:`follow` soon; a handler of signals.

        The second signal ends the process at once, and so does a timeout: the reader of the output
        may have stopped reading.
        """
        if self._stopped_at is not None:
            interrupt.end(self._number)
            return
        self._number = number
        self._stopped_at = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S, LIMIT_S)
        os.write(self._wake[1], b"s")

    def close(self) -> None:
        """Close the pipe that :meth:`stop` writes to."""
        for end in self._wake:
            os.close(end)

    def follow(self) -> Summary:
        """Follow until stopped. Returns the diagnosis of the ring, or the last finished one.

        Raises:
            RunFailedError: The interface is gone, a diagnosis fails, or a capture cannot be saved.
            KeyboardInterrupt: It is stopped before the first diagnosis is finished.
        """
        start = time.monotonic()
        check: _Check | None = None
        due = start + FIRST_CHECK_S
        while self._stopped_at is None:
            self.interface.read(self.ring, 0.1, self._wake[0])
            now = time.monotonic()
            if check is None and now >= due and self.ring.packets:
                check = self._begin()
            elif check is not None and check.is_over():
                self._take(check, now - start)
                due = time.monotonic() + max(min(CHECK_S, now - start), 10 * check.taken)
                check = None
        self._finish(check, start)
        if self._last is None or not isinstance(self._last.found, dict):
            raise KeyboardInterrupt
        behind = self._stopped_at - self._last.begin
        return Summary(self._last.found, self._last.packets, max(behind, 0.0))

    def _finish(self, check: _Check | None, start: float) -> None:
        """Diagnose the last packets, if there is time."""
        until = (self._stopped_at or 0.0) + PATIENCE_S
        if check is None:
            check = self._begin()
        while check.is_over(until - time.monotonic()):
            self._take(check, time.monotonic() - start)
            left = until - time.monotonic()
            if check.begin >= (self._stopped_at or 0.0) or check.taken > left:
                return
            check = self._begin()

    def _begin(self) -> _Check:
        try:
            return _Check(self.ring, self.interface.name)
        except RuntimeError as error:
            raise RunFailedError(f"--follow {self.interface.name}: {error}") from None

    def _take(self, check: _Check, since: float) -> None:
        """Report a finished diagnosis."""
        found = check.found
        if not isinstance(found, dict):
            raise RunFailedError(f"--follow {self.interface.name}: {str(found) or type(found).__name__}")
        self._last = check
        try:
            self._tell(found, since)
        except _StoppedError:
            self.say("interrupted: the capture is not saved")

    def _tell(self, found: Diagnosis, since: float) -> None:
        for event in events(found):
            key = (event.ends, event.cause)
            if key in self._said:
                continue
            self._said[key] = None
            if len(self._said) > MOST_REMEMBERED:
                del self._said[next(iter(self._said))]
            for line in wrapped(f"{since:9.1f} s  {event.cause}: {event.text}", _MARGIN):
                self.say(line)
            if event.cause == self.save_on and self._saved < MOST_SAVED:
                self._save(event.cause)

    def _save(self, cause: str) -> None:
        from anabranch.files.output_file import output_file

        while True:
            self._saved += 1
            target = self.save_to / f"{self.interface.name}-{cause}-{self._saved}.pcap"
            if not os.path.lexists(target):
                break
        packets = self.ring.packets
        output_file(target).write(self._until_stopped(self.ring.capture()))
        for line in wrapped(f"wrote {target}: {packets:,} packets", "  ", whole=(str(target),)):
            self.say(line)

    def _until_stopped(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        for part in parts:
            if self._stopped_at is not None and time.monotonic() > self._stopped_at + PATIENCE_S:
                raise _StoppedError
            yield part


@contextlib.contextmanager
def until_interrupted(follower: Follower) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM stop only the follower, not the command."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = {number: signal.signal(number, follower.stop) for number in numbers}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def check_cause(cause: str) -> None:
    """Refuse an unknown cause.

    Raises:
        UserError: There is no such cause.
    """
    known = causes()
    if cause not in known:
        raise UserError(f"--save-on {cause}: there is no such cause", hint=nearest(cause, known) or ", ".join(known))
