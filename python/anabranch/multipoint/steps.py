"""Steps of a clock: a clock that is set while it captures changes the delays of both ways by opposite amounts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from anabranch.multipoint.clocks import Clock, Step, fit, without
from anabranch.multipoint.listing import Flags, Indices, Times

LEAST_S = 5e-3
"""The smallest step that is searched for: NTP slews smaller offsets."""
MOST = 8
"""Steps of a pair of clocks; of more the largest ones."""
BINS = 128
"""Groups of consecutive packets of which the least delays are compared."""
LEAST_PACKETS = 8
"""Packets of a group."""
AROUND = (4, 16, 48)
"""Groups before and after a step whose least delays are compared: as few as show it."""
ALIKE = 0.3
"""The changes of both ways differ by this share of the step at most."""
MOST_OUTLIERS = 0.02
"""The share of the packets around a step that contradict it."""
ROUNDS = 2
"""Estimates of the sizes of steps, each without the drift of the one before."""
NEIGHBOURS = 3
"""Packets of each way before and after a step whose delays are compared."""
GAIN = 0.5
"""Without the step the least round trip is shorter by this share of it: the least delays of both ways are then of
different sides of the step."""


@dataclass(frozen=True)
class Timed:
    """Packets that passed both points.

    Attributes:
        first_s: Their times at the first point.
        second_s: Their times at the second point.
        is_forward: They passed the first point first.
        frames: Their frames at each point.
    """

    first_s: Times
    second_s: Times
    is_forward: Flags
    frames: tuple[Indices, Indices]

    def fit(self) -> Clock:
        """The clock of the second point."""
        return fit(self.first_s, self.second_s, self.is_forward)

    def without(self, steps: Steps) -> Timed:
        """The packets by clocks without these steps."""
        first, second = (
            without(times, own, frames)
            for times, own, frames in zip((self.first_s, self.second_s), steps, self.frames, strict=True)
        )
        return Timed(first, second, self.is_forward, self.frames)

    def levels(self) -> Times:
        """The differences of both clocks, without offset and drift."""
        return self.second_s - self.first_s - self.fit().at(self.first_s)


Steps: TypeAlias = "tuple[list[Step], list[Step]]"
"""The steps of the clocks of two points."""


def steps_of(packets: Timed) -> Steps:
    """The steps of both clocks, in order."""
    if not packets.is_forward.any() or packets.is_forward.all():
        return [], []
    found: Steps = ([], [])
    for _ in range(MOST):
        step = _largest(packets, packets.without(found).levels())
        if step is None:
            break
        found[step[0]].append(step[1])
    if not any(found):
        return found
    for _ in range(ROUNDS):
        found = _refined(packets, found)
    proven = [[step for step in own if _gain_s(packets, found, step) >= GAIN * abs(step.size_s)] for own in found]
    return (sorted(proven[0], key=lambda one: one.frame), sorted(proven[1], key=lambda one: one.frame))


def _gain_s(packets: Timed, found: Steps, step: Step) -> float:
    """How much shorter the least round trip is without a step."""
    others = ([one for one in found[0] if one is not step], [one for one in found[1] if one is not step])
    trips = [packets.without(some).fit().round_trip_s for some in (found, others)]
    return (trips[0] or 0.0) - (trips[1] or 0.0)


def _refined(packets: Timed, found: Steps) -> Steps:
    """The steps with better sizes.

    The least delays of all packets up to the steps before and after give a size, if the least round trips on both sides
    of the step are equal. The packets next to the step give another, because queues change slowly. The one with the
    smaller error counts.
    """
    levels = packets.without(found).levels()
    made: Steps = ([], [])
    for point, own in enumerate(found):
        frames = packets.frames[point]
        bounds = [0, *sorted(one.frame for one in own), int(frames.max()) + 1]
        for step in own:
            at = bounds.index(step.frame)
            is_early = (frames >= bounds[at - 1]) & (frames < step.frame)
            is_late = (frames >= step.frame) & (frames < bounds[at + 1])
            found_by = [
                estimate(packets, levels, (is_early, is_late), frames) for estimate in (_by_least, _by_neighbours)
            ]
            rest, _ = min(found_by, key=lambda one: one[1])
            made[point].append(replace(step, size_s=step.size_s + (rest if point else -rest)))
    return made


def _by_least(packets: Timed, levels: Times, sides: tuple[Flags, Flags], frames: Indices) -> tuple[float, float]:
    """The change of the offset by the least delays, and its error."""
    del frames
    offsets, trips = [], []
    for side in sides:
        forward, backward = (levels[side & (packets.is_forward == way)] for way in (True, False))
        if not len(forward) or not len(backward):
            return 0.0, float("inf")
        offsets.append((float(forward.min()) + float(backward.max())) / 2)
        trips.append(float(forward.min()) - float(backward.max()))
    return offsets[1] - offsets[0], abs(trips[1] - trips[0]) / 2


def _by_neighbours(packets: Timed, levels: Times, sides: tuple[Flags, Flags], frames: Indices) -> tuple[float, float]:
    """The change of the offset by the packets next to the step, and its error."""
    changes, errors = [], []
    for way in (True, False):
        near = []
        for side, last in zip(sides, (True, False), strict=True):
            at = np.flatnonzero(side & (packets.is_forward == way))
            at = at[np.argsort(frames[at], kind="stable")]
            near.append(levels[at[-NEIGHBOURS:] if last else at[:NEIGHBOURS]])
        if not all(len(one) == NEIGHBOURS for one in near):
            return 0.0, float("inf")
        changes.append(float(np.median(near[1]) - np.median(near[0])))
        errors.append(max(float(np.ptp(one)) for one in near))
    return sum(changes) / 2, sum(errors) / 2


def _largest(packets: Timed, levels: Times) -> tuple[int, Step] | None:
    """The point whose clock has the largest step, and the step."""
    found: list[tuple[float, int, Step]] = []
    for point in (1, 0):
        order = np.argsort(packets.frames[point], kind="stable")
        times = (packets.first_s, packets.second_s)[point][order]
        sign = 1.0 if point else -1.0
        for around in AROUND:
            place = _place(levels[order], packets.is_forward[order], sign * times, around)
            if place is not None:
                frame = int(packets.frames[point][order[place.first]])
                found.append((place.gap_s, point, Step(frame, float(times[place.first]), sign * place.size_s)))
                break
    if not found:
        return None
    # The other capture would have had its step in a longer gap.
    _, point, step = min(found, key=lambda one: one[0])
    return point, step


class _Place(NamedTuple):
    """The first packet after a step, the step of the second clock, and the time between the packets around it."""

    first: int
    size_s: float
    gap_s: float


class _Lows(NamedTuple):
    """The change of both ways' least delays at a group of packets, and the lower ones of both sides."""

    group: int
    rise: float
    fall: float
    forward: float
    backward: float

    @property
    def is_step(self) -> bool:
        """Whether the change of one way is the opposite of the other's."""
        both = sorted((abs(self.rise), abs(self.fall)))
        return self.rise * self.fall > 0 and both[0] >= LEAST_S and both[1] - both[0] <= ALIKE * both[1]


def _place(levels: Times, is_forward: Flags, readings: Times, around: int) -> _Place | None:
    """The largest step of packets in the order of one capture.

    Args:
        levels: The difference of both clocks for each packet.
        is_forward: The way of each packet.
        readings: The times of the capture, negative ones at the first point.
        around: Groups before and after a step.
    """
    count = min(BINS, len(levels) // LEAST_PACKETS)
    if count < 2 * AROUND[0] + 1:
        return None
    begins = np.append(np.arange(count) * len(levels) // count, len(levels))
    forward = np.minimum.reduceat(np.where(is_forward, levels, np.inf), begins[:-1])
    backward = np.minimum.reduceat(np.where(is_forward, np.inf, -levels), begins[:-1])
    lows = []
    for at in range(AROUND[0], count - AROUND[0]):
        # The step may be within the group.
        sides = slice(max(0, at - around), at), slice(at + 1, at + 1 + around)
        (f_early, b_early), (f_late, b_late) = ((float(forward[s].min()), float(backward[s].min())) for s in sides)
        lows.append(_Lows(at, f_late - f_early, b_early - b_late, min(f_early, f_late), min(b_early, b_late)))
    possible = [one for one in lows if np.isfinite(one.rise + one.fall) and one.is_step]
    if not possible:
        return None
    best = max(possible, key=lambda one: abs(one.rise + one.fall))
    size = (best.rise + best.fall) / 2
    start, end = int(begins[best.group - AROUND[0]]), int(begins[best.group + 1 + AROUND[0]])
    # Forward delays are low before a step forward, and backward ones after it.
    limit = np.where(is_forward, best.forward, best.backward) + abs(size) / 2
    is_low = (np.where(is_forward, levels, -levels) < limit)[start:end]
    is_early = is_low & (is_forward[start:end] == (size > 0))
    early, late = (np.append(0, np.cumsum(flags)) for flags in (is_early, is_low & ~is_early))
    contradicting = late + early[-1] - early
    # A clock that was set leaves a gap in its capture, or readings that repeat.
    gaps = np.diff(readings[start - 1 : end]) if start else np.append(0.0, np.diff(readings[:end]))
    least = contradicting.min()
    gaps = np.where(contradicting[:-1] == least, gaps * np.sign(size), -np.inf)
    split = int(gaps.argmax())
    is_doubtful = float(least) > MOST_OUTLIERS * int(is_low.sum())
    # The clock of the first point was set by the opposite of the step.
    own = size if readings[-1] > readings[0] else -size
    gap = abs(size) - float(gaps[split]) if own < 0 else float(gaps[split]) - abs(size)
    if is_doubtful or not 0 < split < end - start or gap < -LEAST_S / 2:
        return None
    return _Place(start + split, size, gap)
