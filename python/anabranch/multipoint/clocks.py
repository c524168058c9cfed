"""Offset and drift of two points' clocks, from packets that passed both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from anabranch.multipoint.listing import Flags, Indices, Times

MOST_DRIFT = 500e-6
"""Largest difference of the rates of two clocks: RFC 5905 takes no oscillator to be worse."""
STEPS = 60
"""Steps of the search for the drift: each leaves 0.618 of the interval."""
RESOLUTION_S = 2e-6
"""The error of a time: captures have microseconds."""
INTERVALS = 4096
"""Intervals of time of which each way's least delay counts."""
ROUNDS = 4
"""Estimates of the drift: each selects the least delays without the drift of the one before."""
LEAST_WAYS = 2
"""Packets of a way that a drift takes."""
NEAREST = 10
"""The packets of a way with the least delays, by which the error of a least delay is estimated."""
LEAST_LIKELY = 9.2
"""The logarithm of the likelihood of the best drift over that of the ends of the interval. The likelihood falls
exponentially on both sides of the best drift, and ``(1 + 9.2) * exp(-9.2)`` is 0.001."""


@dataclass(frozen=True)
class Step:
    """A step of the clock of a capture.

    Attributes:
        frame: The first frame after it.
        reading_s: The reading of the clock after it.
        size_s: The step; positive if the clock was set forward.
    """

    frame: int
    reading_s: float
    size_s: float


def without(times: Times, steps: Sequence[Step], frames: Indices | None = None) -> Times:
    """Times of a clock without its steps. Without frames, times that a step back repeats are not told apart."""
    rest = times
    for step in steps:
        is_after = times >= step.reading_s if frames is None else frames >= step.frame
        rest = np.where(is_after, rest - step.size_s, rest)
    return rest


@dataclass(frozen=True)
class Clock:
    """The clock of a second point relative to the first: ``second = first + offset + drift * (first - middle)``.

    Attributes:
        offset_s: The offset in the middle of the comparison, if the path between the points takes equally long both
            ways.
        drift: The difference of the rates; positive if the second clock is faster.
        drift_low: The low end of the drifts that fit the packets, at 99.9 % probability.
        drift_high: The high end.
        middle_s: The middle of the comparison, by the first clock.
        round_trip_s: The least time from the first point to the second and back. The offset is certain to half of it.
            ``None`` if packets of one way only passed both points: the least delay of that way then counts as 0.
        packets: The packets from which it was estimated.
        steps: The steps of the second clock. The offset is that before the first step.
        first_steps: The steps of the first clock.
    """

    offset_s: float
    drift: float
    drift_low: float
    drift_high: float
    middle_s: float
    round_trip_s: float | None
    packets: int
    steps: Sequence[Step] = ()
    first_steps: Sequence[Step] = ()

    def at(self, first_s: Times) -> Times:
        """The offset at times of the first clock."""
        return self.offset_s + self.drift * (first_s - self.middle_s)

    def to_first(self, second_s: Times) -> Times:
        """Times of the second clock by the first clock, both without steps."""
        return self.steady_to_first(without(second_s, self.steps))

    def steady_to_first(self, second_s: Times) -> Times:
        """Times of the second clock without its steps by the first clock."""
        return (second_s - self.offset_s + self.drift * self.middle_s) / (1.0 + self.drift)


def fit(first_s: Times, second_s: Times, is_forward: Flags) -> Clock:
    """The clock of the second point, from the times of packets at both.

    For a drift r the least of ``second - first - r t`` is the offset plus the least forward delay, and the least of
    ``first - second + r t`` the least backward delay minus the offset. A wrong drift makes their sum smaller, because
    one packet at an end of the time then lies below the others: the drift is the one with the largest sum. Queues
    change only delays above the least ones, so that they do not matter while some packets meet no queue. If 0 fits,
    the drift is 0.
    """
    middle = float((first_s.min() + first_s.max()) / 2)
    t = first_s - middle
    delays = [(t[is_forward], (second_s - first_s)[is_forward], -1.0)]
    delays += [(t[~is_forward], (first_s - second_s)[~is_forward], 1.0)]
    drift = low = high = 0.0
    lines = [_lowest(*delay, drift) for delay in delays]
    if first_s.max() > first_s.min() and max(len(x) for x, _, _ in delays) >= LEAST_WAYS:
        weighed = [_Weighed(*line, 0.0, 1.0) for line in lines if len(line[0])]
        for _ in range(ROUNDS):
            best = _largest(_likelihood(weighed), -MOST_DRIFT, MOST_DRIFT)
            lines = [_lowest(*delay, best) for delay in delays]
            weighed = [_weighed(line, best) for line in lines if len(line[0])]
        ends = [_drifts(weighed), _level_drifts(lines, best)]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        drift = 0.0 if low <= 0.0 <= high else best
        lines = [_lowest(*delay, drift) for delay in delays]
    forward, backward = (_least(line, drift) for line in lines)
    if all(len(x) for x, _, _ in delays):
        offset, round_trip = (forward - backward) / 2, forward + backward
    else:
        offset, round_trip = forward - backward, None
    return Clock(offset, drift, low, high, middle, round_trip, len(first_s))


_Line: TypeAlias = "tuple[Times, Times, float]"
"""Times, differences of both clocks, and the sign with which a drift changes them."""


def _lowest(x: Times, y: Times, sign: float, drift: float) -> _Line:
    """The lowest point of each of many intervals of time, without the drift."""
    if len(x) <= INTERVALS:
        return x, y, sign
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    begins = np.arange(INTERVALS) * len(x) // INTERVALS
    level = y + sign * drift * x
    interval = np.repeat(np.arange(INTERVALS), np.diff(np.append(begins, len(x))))
    least = np.minimum.reduceat(level, begins)
    at = np.flatnonzero(level <= least[interval])
    at = at[np.unique(interval[at], return_index=True)[1]]
    return x[at], y[at], sign


def _least(line: _Line, drift: float) -> float:
    x, y, sign = line
    return float((y + sign * drift * x).min()) if len(x) else 0.0


class _Weighed(NamedTuple):
    """The packets of a way, the middle of the times of those with the least delays, and the least delay's error."""

    x: Times
    y: Times
    sign: float
    middle: float
    error_s: float

    def likelihood(self, drift: float) -> float:
        """The logarithm of the likelihood of a drift.

        No delay is below the least one. Delays just above it are evenly spread, with a mean distance of ``error_s``, so
        that the chance of none below a line falls exponentially with the line's distance from the lowest delays.
        """
        return float((self.y + self.sign * drift * (self.x - self.middle)).min()) / self.error_s


def _weighed(line: _Line, drift: float) -> _Weighed:
    x, y, sign = line
    level = y + sign * drift * x
    count = min(NEAREST, len(x))
    nearest = np.argpartition(level, count - 1)[:count]
    # The line touches the lowest two.
    spread = float(np.ptp(level[nearest])) / max(count - 2, 1)
    return _Weighed(x, y, sign, float(x[nearest].mean()), spread + RESOLUTION_S)


def _likelihood(lines: list[_Weighed]) -> Callable[[float], float]:
    return lambda drift: sum(line.likelihood(drift) for line in lines)


def _drifts(lines: list[_Weighed]) -> tuple[float, float]:
    """The least and the largest drift that are likely."""
    value = _likelihood(lines)
    best = _largest(value, -MOST_DRIFT, MOST_DRIFT)
    return _ends(value, best, LEAST_LIKELY)


def _level_drifts(lines: list[_Line], best: float) -> tuple[float, float]:
    """The least and the largest drift at which the least delays of both ways have the same sum.

    Where a way meets a queue after its first packets, only one end of the time bounds the drift: many drifts fit
    equally, and the nearest packets, which waited behind each other, do not show it.
    """

    def total(rate: float) -> float:
        return sum(_least(line, rate) for line in lines)

    highest = _largest(total, -MOST_DRIFT, MOST_DRIFT)
    spacing = sum(_spacing(line, best) for line in lines)
    return _ends(total, highest, 2 * RESOLUTION_S + spacing)


def _spacing(line: _Line, drift: float) -> float:
    """How far the second least delay lies above the least one: the error of the least delay."""
    x, y, sign = line
    if len(x) < 2:
        return 0.0
    ordered = np.partition(y + sign * drift * x, 1)
    return float(ordered[1] - ordered[0])


def _ends(value: Callable[[float], float], best: float, less: float) -> tuple[float, float]:
    """The ends of the drifts at which a concave function is at most ``less`` below its largest value."""
    enough = value(best) - less

    def holds(rate: float) -> bool:
        return value(rate) >= enough

    return _edge(holds, best, -MOST_DRIFT), _edge(holds, best, MOST_DRIFT)


def _largest(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is largest, by golden section."""
    ratio = (5**0.5 - 1) / 2
    for _ in range(STEPS):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        if value(one) < value(two):
            low = one
        else:
            high = two
    return (low + high) / 2


def _edge(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last point towards ``outside`` at which a condition holds."""
    if holds(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside
