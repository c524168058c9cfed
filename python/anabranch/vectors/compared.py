"""Compares the trace of another stack with a vector, aligned by the reductions of the window.

Two stacks do not send at the same microsecond, so equal times are not compared. The reductions are: the first of one
with the first of the other, and so on; and between two reductions the growth, at ten points of the phase.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.errors import UserError
from anabranch.vectors.scenarios import RTT_S

FALL = 0.05
"""A smaller fall of the window is no reduction: a share of it."""
TIME_RTTS = 2.0
"""Tolerance of a reduction's time: round trips without a queue …"""
TIME_SHARE = 0.1
"""… or this share of the time since the start of the trace, if that is more."""
WINDOW_SHARE = 0.1
"""Tolerance of a window: this share of it …"""
WINDOW_PACKETS = 2.0
"""… or packets, if that is more."""
FACTOR = 0.05
"""Tolerance of a reduction's factor, after ÷ before."""
POINTS = 10
"""Points of a phase at which the growth is compared."""
_SETTLED_S = 3 * RTT_S
"""Falls that follow each other within this time are one reduction."""


@dataclass(frozen=True)
class Reduction:
    """A reduction of the window.

    Attributes:
        time_s: When it begins.
        end_s: When the window has its new value.
        before: The window before it, in packets.
        after: The window after it.
    """

    time_s: float
    end_s: float
    before: float
    after: float


@dataclass(frozen=True)
class Check:
    """A compared figure.

    Attributes:
        what: The figure.
        expected: Of the vector.
        actual: Of the trace.
        tolerance: The largest accepted difference.
        unit: The unit.
    """

    what: str
    expected: float
    actual: float
    tolerance: float
    unit: str

    @property
    def holds(self) -> bool:
        """Whether the difference is within the tolerance."""
        return abs(self.actual - self.expected) <= self.tolerance


Series = tuple[Sequence[float], Sequence[float]]
"""Times, in seconds, and windows, in packets."""


def reductions(series: Series) -> list[Reduction]:
    """The reductions of a window: falls below the largest one of the last 120 ms, at once or in steps."""
    times, windows = series
    found: list[Reduction] = []
    # Rows whose window was in force within that time, without those below a later one: the first has the largest.
    recent = deque([0])
    for at in range(1, len(windows)):
        after = windows[at]
        while recent and times[recent[0] + 1] < times[at] - _SETTLED_S:
            recent.popleft()
        goes_on = found and times[at] - found[-1].end_s <= _SETTLED_S and after < found[-1].before
        if goes_on and after < windows[at - 1]:
            # The same reduction goes on, as with PRR, or falls again.
            found[-1] = Reduction(found[-1].time_s, times[at], found[-1].before, min(found[-1].after, after))
            recent.clear()
        elif recent and after < (1 - FALL) * windows[recent[0]]:
            top = recent[0]
            found.append(Reduction(times[top + 1], times[at], windows[top], after))
            recent.clear()
        while recent and windows[recent[-1]] <= after:
            recent.pop()
        recent.append(at)
    return found


def compare(expected: Series, actual: Series) -> list[Check]:
    """All compared figures, in order of time.

    Raises:
        UserError: The trace ends before the vector.
    """
    ends_at, ended = expected[0][-1], actual[0][-1]
    if ended < ends_at - max(TIME_RTTS * RTT_S, TIME_SHARE * ends_at):
        raise UserError(
            f"the trace ends after {ended:.3g} s; the vector has {ends_at:.3g} s", hint="record the whole scenario"
        )
    one, other = reductions(expected), reductions(actual)
    checks = [Check("reductions of the window", len(one), len(other), 0, "")]
    starts = [(0.0, 0.0), *((a.end_s, b.end_s) for a, b in zip(one, other, strict=False))]
    ends = [(a.time_s, b.time_s) for a, b in zip(one, other, strict=False)]
    if len(one) == len(other):
        last = min(expected[0][-1] - starts[-1][0], actual[0][-1] - starts[-1][1])
        ends.append((starts[-1][0] + last, starts[-1][1] + last))
    for number, (start, end) in enumerate(zip(starts, ends, strict=False), 1):
        checks.append(_growth(number, (expected, actual), start, end))
        if number <= min(len(one), len(other)):
            checks += _reduction(number, one[number - 1], other[number - 1])
    return checks


def _reduction(number: int, expected: Reduction, actual: Reduction) -> list[Check]:
    name = f"reduction {number}"
    time = max(TIME_RTTS * RTT_S, TIME_SHARE * expected.time_s)
    return [
        Check(f"{name}: time", expected.time_s, actual.time_s, time, "s"),
        Check(f"{name}: window before", expected.before, actual.before, _window(expected.before), "packets"),
        Check(f"{name}: after ÷ before", expected.after / expected.before, actual.after / actual.before, FACTOR, ""),
    ]


def _growth(number: int, series: tuple[Series, Series], start: tuple[float, float], end: tuple[float, float]) -> Check:
    """The largest difference of the windows in a phase, whose time is stretched from 0 to 1."""
    pairs = []
    for point in range(1, POINTS + 1):
        # The end of a phase is the reduction itself.
        share = point / (POINTS + 1)
        pairs.append([_at(one, a + share * (b - a)) for one, a, b in zip(series, start, end, strict=True)])
    worst = max(pairs, key=lambda pair: abs(pair[0] - pair[1]) / _window(pair[0]))
    return Check(f"phase {number}: growth", worst[0], worst[1], _window(worst[0]), "packets")


def _window(expected: float) -> float:
    return max(WINDOW_SHARE * expected, WINDOW_PACKETS)


def _at(series: Series, time: float) -> float:
    """The window at a time: that of the last row up to it."""
    import bisect

    times, windows = series
    return windows[max(0, bisect.bisect_right(times, time) - 1)]
