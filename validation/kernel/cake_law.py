"""CAKE by published descriptions: COBALT on every flow, and turns of flows.

COBALT is described by its author (codel list, 24 May 2016; cake list, 24 October 2018): the
schedule of CoDel counts up with each signal above the target and down without signals below it, and
a queue's last packet is never dropped. The rest is measured: a new queue's first schedule begins at
once, a later one after an interval over the root of the count; no signal is sent below the time of
four packets; target and interval grow at low rates; a mark leaves no signals to catch up with.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel.arrivals import CE, NOT_ECT, Arrival
from kernel.codel_law import Root, exact

MTU = 1500
LEAST_QUANTUM, LONGEST_QUANTUM = 300, 1514
_EXACT_UP_TO = 15


def tabled(count: int, last: float) -> float:
    """Linux's inverse square root: exact for small counts, then one step of Newton's method."""
    return exact(count, last) if count <= _EXACT_UP_TO else last * (3 - count * last * last) / 2


@dataclass(frozen=True)
class Settings:
    """Parameters, in nanoseconds and bits per nanosecond.

    Attributes:
        spares_last: Whether a queue's last packet is never dropped.
    """

    rate: float
    rtt: float = 100_000_000
    root: Root = exact
    spares_last: bool = True

    @property
    def target(self) -> float:
        """The delay above which COBALT's schedule runs, ignoring the minimum of four packets."""
        return max(self.rtt / 20, 1.5 * MTU * 8 / self.rate)

    @property
    def interval(self) -> float:
        """CoDel's interval."""
        return max(self.rtt + self.target - self.rtt / 20, 2 * self.target)

    @property
    def above(self) -> float:
        """The delay above which signals are sent."""
        return max(self.target, 4 * MTU * 8 / self.rate)

    @property
    def quantum(self) -> int:
        """A flow's quantum: the bytes of a 4096th of a second."""
        return min(max(int(self.rate * 1e9 / 8) >> 12, LEAST_QUANTUM), LONGEST_QUANTUM)


@dataclass
class Cobalt:
    """The state of one flow."""

    settings: Settings
    line: deque[int] = field(default_factory=deque)
    deficit: int = 0
    count: int = 0
    dropping: bool = False
    next: float = 0.0
    last: float = 0.0
    margin: float = math.inf
    """The minimum distance in nanoseconds between a time and a threshold that it was compared with."""

    def signals(self, now: float, came: float) -> bool:
        """Whether a packet that arrived at ``came`` carries a signal if it leaves now."""
        above = now > came + self.settings.above
        self.margin = min(self.margin, abs(now - came - self.settings.above))
        due = self._is_due(now)
        if above and not self.dropping:
            self.next = now + self.settings.interval * self.last
            self.count = max(self.count, 1)
        self.dropping = above
        if due and above:
            self.count += 1
            self._advance()
            return True
        while due:
            self.count -= 1
            self._advance()
            due = self._is_due(now)
        return False

    def marked(self, now: float) -> None:
        """Clear the signals to catch up with: unlike a drop, a mark leaves none (measured)."""
        self.next = max(self.next, now)

    def _is_due(self, now: float) -> bool:
        if self.count == 0:
            return False
        self.margin = min(self.margin, abs(now - self.next))
        return now >= self.next

    def _advance(self) -> None:
        self.last = self.settings.root(self.count, self.last) if self.count else 1.0
        self.next += self.settings.interval * self.last


class Cake:
    """One tin with a queue for each flow."""

    def __init__(self, settings: Settings, arrivals: Sequence[Arrival]) -> None:
        self.marked: set[int] = set()
        self._settings, self._arrivals = settings, arrivals
        self._flows: dict[int, Cobalt] = {}
        self._new: deque[int] = deque()
        self._old: deque[int] = deque()

    @property
    def margin(self) -> float:
        """The minimum distance in nanoseconds of a decision from its threshold."""
        return min(flow.margin for flow in self._flows.values())

    def __len__(self) -> int:
        return sum(len(flow.line) for flow in self._flows.values())

    def enqueue(self, number: int) -> None:
        """Accept an arriving packet."""
        name = self._arrivals[number].flow
        flow = self._flows.setdefault(name, Cobalt(self._settings))
        flow.line.append(number)
        if name not in self._new and name not in self._old:
            self._new.append(name)
            flow.deficit = self._settings.quantum

    def dequeue(self, now: float) -> int | None:
        """Release a packet for the shaper."""
        while self._new or self._old:
            chosen = self._new or self._old
            flow = self._flows[chosen[0]]
            if flow.deficit <= 0:
                flow.deficit += self._settings.quantum
                self._old.append(chosen.popleft())
                continue
            number = self._take(flow, now)
            if number is not None:
                flow.deficit -= self._arrivals[number].size
                return number
            name = chosen.popleft()
            if chosen is self._new:
                self._old.append(name)
        return None

    def _take(self, flow: Cobalt, now: float) -> int | None:
        while flow.line:
            number = flow.line.popleft()
            signals, ecn = flow.signals(now, self._arrivals[number].at_ns), self._arrivals[number].ecn
            if signals and ecn != NOT_ECT:
                flow.marked(now)
                if ecn != CE:
                    self.marked.add(number)
            if not signals or ecn != NOT_ECT or (self._settings.spares_last and not flow.line):
                return number
        return None
