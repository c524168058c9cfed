"""CoDel and FQ-CoDel by the text of RFC 8289 and RFC 8290, with the arithmetic as a parameter.

If the kernel and the simulator differ, exchanging one mechanism of this model shows the cause. The
simulator takes the exact inverse square root. Linux takes one step of Newton's method from the
previous root, and counts time in units of 1,024 ns (measured).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from kernel.arrivals import CE, NOT_ECT, Arrival

Root = Callable[[int, float], float]
"""The inverse square root of a count, from the previous root."""

DROP_BATCH = 64
"""Packets dropped at once on overload (RFC 8290 §4.1)."""


def exact(count: int, _last: float) -> float:
    """The inverse square root (RFC 8289 §5.5)."""
    return 1 / math.sqrt(count)


def newton(count: int, last: float) -> float:
    """One step of Newton's method towards the inverse square root, in a fraction of 16 bits."""
    if count == 1:
        return 65535 / 65536
    root = round(last * 65536) << 16
    better = root * ((3 << 32) - count * (root * root >> 32)) >> 33
    return (better >> 16) % 65536 / 65536


def constant(_count: int, _last: float) -> float:
    """No square root: a signal each interval. A wrong CoDel for tests."""
    return 1.0


@dataclass(frozen=True)
class Settings:
    """Parameters, in nanoseconds and bytes.

    Attributes:
        unit: Nanoseconds to whose multiples the steps of the control law are truncated; 0 for none.
        overload_counts: Whether overload drops raise the count of their queue.
        whole_backlog: Whether each flow's CoDel compares ``mtu`` with the backlog of all flows
            instead of its own.
        half_of_bytes: Whether an overload drops half of the bytes of the fattest queue, instead of
            half of its packets.
    """

    interval: int = 100_000_000
    target: int = 5_000_000
    limit: int = 1000
    mtu: int = 1500
    ecn: bool = False
    ce_threshold: float = math.inf
    root: Root = exact
    unit: int = 0
    overload_counts: bool = False
    whole_backlog: bool = False
    half_of_bytes: bool = False


@dataclass
class Waiting:
    """One FIFO of packets with its control law, named as in RFC 8289 §5.2."""

    settings: Settings
    arrivals: Sequence[Arrival]
    marked: set[int]
    line: deque[int] = field(default_factory=deque)
    bytes: int = 0
    first_above: float = math.inf
    drop_next: float = -math.inf
    count: int = 0
    lastcount: int = 0
    dropping: bool = False
    last: float = 1.0
    others: Callable[[], int] = lambda: 0
    """Backlog of the other FIFOs in bytes."""
    margin: float = math.inf
    """The minimum distance in nanoseconds between a time and a threshold that it was compared with."""

    def push(self, number: int) -> None:
        """Append a packet."""
        self.line.append(number)
        self.bytes += self.arrivals[number].size

    def pop(self) -> int:
        """Remove the first packet."""
        number = self.line.popleft()
        self.bytes -= self.arrivals[number].size
        return number

    def _reached(self, now: float, at: float) -> bool:
        self.margin = min(self.margin, abs(now - at))
        return now >= at

    def _take(self, now: float) -> tuple[int | None, bool]:
        """The dequeue step of RFC 8289 §5.6."""
        if not self.line:
            self.first_above = math.inf
            return None, False
        number = self.pop()
        waited = self._reached(now, self.arrivals[number].at_ns + self.settings.target)
        if not waited or self.bytes + self.others() <= self.settings.mtu:
            self.first_above = math.inf
        elif self.first_above == math.inf:
            self.first_above = now + self.settings.interval
        else:
            return number, self._reached(now, self.first_above)
        return number, False

    def _control_law(self, at: float) -> float:
        interval, unit = self.settings.interval, self.settings.unit
        if unit:
            return at + math.floor(interval // unit * self.last) * unit
        return at + interval * self.last

    def _marks(self, number: int) -> bool:
        if not self.settings.ecn or self.arrivals[number].ecn == NOT_ECT:
            return False
        if self.arrivals[number].ecn != CE:
            self.marked.add(number)
        return True

    def dequeue(self, now: float) -> int | None:
        """Dequeue as in RFC 8289 §5.5, and mark above ``ce_threshold`` (RFC 8290 §5.2.7)."""
        number = self._controlled(now)
        if number is not None:
            arrival = self.arrivals[number]
            if now - arrival.at_ns > self.settings.ce_threshold and arrival.ecn not in (NOT_ECT, CE):
                self.marked.add(number)
        return number

    def _controlled(self, now: float) -> int | None:
        number, above = self._take(now)
        if number is None:
            self.dropping = False
        elif self.dropping:
            self.dropping = above
            while number is not None and self.dropping and self._reached(now, self.drop_next):
                self.count += 1
                self.last = self.settings.root(self.count, self.last)
                marked = self._marks(number)
                if not marked:
                    number, self.dropping = self._take(now)
                if self.dropping:
                    self.drop_next = self._control_law(self.drop_next)
                if marked:
                    break
        elif above:
            if not self._marks(number):
                number, _ = self._take(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = delta if delta > 1 and now - self.drop_next < 16 * self.settings.interval else 1
            self.last = self.settings.root(self.count, self.last)
            self.drop_next = self._control_law(now)
            self.lastcount = self.count
        return number


class Codel:
    """One queue (RFC 8289)."""

    def __init__(self, settings: Settings, arrivals: Sequence[Arrival]) -> None:
        self.marked: set[int] = set()
        self._waiting = Waiting(settings, arrivals, self.marked)

    def __len__(self) -> int:
        return len(self._waiting.line)

    @property
    def margin(self) -> float:
        """The minimum distance in nanoseconds of a decision from its threshold."""
        return self._waiting.margin

    def enqueue(self, number: int) -> None:
        """Accept an arriving packet."""
        if len(self) < self._waiting.settings.limit:
            self._waiting.push(number)

    def dequeue(self, now: float) -> int | None:
        """Dequeue a packet for the link."""
        return self._waiting.dequeue(now)


class FqCodel:
    """A queue for each flow (RFC 8290), without hash collisions."""

    def __init__(self, settings: Settings, arrivals: Sequence[Arrival], quantum: int = 1500) -> None:
        self.marked: set[int] = set()
        self._settings, self._arrivals, self._quantum = settings, arrivals, quantum
        self._flows: dict[int, Waiting] = {}
        self._deficits: dict[int, int] = {}
        self._new: deque[int] = deque()
        self._old: deque[int] = deque()

    def _others(self, flow: int) -> int:
        return sum(waiting.bytes for other, waiting in self._flows.items() if other != flow)

    def __len__(self) -> int:
        return sum(len(flow.line) for flow in self._flows.values())

    @property
    def margin(self) -> float:
        """The minimum distance in nanoseconds of a decision from its threshold."""
        return min(flow.margin for flow in self._flows.values())

    def enqueue(self, number: int) -> None:
        """Accept an arriving packet (RFC 8290 §4.1)."""
        flow = self._arrivals[number].flow
        if flow not in self._flows:
            self._flows[flow] = Waiting(self._settings, self._arrivals, self.marked)
            if self._settings.whole_backlog:
                self._flows[flow].others = partial(self._others, flow)
        waiting = self._flows[flow]
        waiting.push(number)
        if flow not in self._new and flow not in self._old:
            self._new.append(flow)
            self._deficits[flow] = self._quantum
        if len(self) > self._settings.limit:
            fattest = max(self._flows.values(), key=lambda flow: flow.bytes)
            half, dropped = fattest.bytes / 2, 0
            most = min(
                DROP_BATCH, len(fattest.line) if self._settings.half_of_bytes else max(len(fattest.line) // 2, 1)
            )
            while dropped < most and (half > 0 or not self._settings.half_of_bytes):
                half -= self._arrivals[fattest.pop()].size
                dropped += 1
            if self._settings.overload_counts:
                fattest.count += dropped

    def dequeue(self, now: float) -> int | None:
        """Dequeue a packet for the link (RFC 8290 §4.2)."""
        while self._new or self._old:
            chosen = self._new or self._old
            flow = chosen[0]
            if self._deficits[flow] <= 0:
                self._deficits[flow] += self._quantum
                self._old.append(chosen.popleft())
                continue
            number = self._flows[flow].dequeue(now)
            if number is not None:
                self._deficits[flow] -= self._arrivals[number].size
                return number
            chosen.popleft()
            if chosen is self._new and self._old:
                self._old.append(flow)
        return None


class Queue(Protocol):
    """A model of a queueing discipline."""

    marked: set[int]

    @property
    def margin(self) -> float:
        """The minimum distance in nanoseconds of a decision from its threshold."""

    def __len__(self) -> int: ...

    def enqueue(self, number: int) -> None:
        """Accept an arriving packet."""

    def dequeue(self, now: float) -> int | None:
        """Dequeue a packet for the link."""


def run(queue: Queue, arrivals: Sequence[Arrival], bits_per_ns: float, *, in_vain: bool) -> dict[int, float]:
    """Departure of each forwarded packet: the start of its transmission in nanoseconds.

    Args:
        queue: The model.
        arrivals: The packets.
        bits_per_ns: The rate of the link.
        in_vain: Whether the link dequeues from an empty queue. HTB and CAKE's shaper do not.
    """
    left: dict[int, float] = {}
    free, is_busy = 0.0, False

    def send(now: float) -> None:
        nonlocal free, is_busy
        number = queue.dequeue(now) if in_vain or len(queue) else None
        is_busy = number is not None
        if number is not None:
            left[number] = now
            free = now + arrivals[number].size * 8 / bits_per_ns

    for number, arrival in enumerate(arrivals):
        while is_busy and free < arrival.at_ns:
            send(free)
        queue.enqueue(number)
        if free <= arrival.at_ns:
            send(arrival.at_ns)
    while len(queue):
        send(free)
    return left
