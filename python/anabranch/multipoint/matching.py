"""Which packet at one point is which packet at the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from anabranch.errors import UserError
from anabranch.multipoint.clocks import RESOLUTION_S, Clock, without
from anabranch.multipoint.listing import (
    HAS_ID,
    HAS_STAMPS,
    SYN,
    Flags,
    Indices,
    Numbers,
    Times,
    distinct,
    flagged,
    groups,
    has,
    is_among,
    mixed,
)
from anabranch.multipoint.sides import BACKWARD, FORWARD, NO_ACK, Side, in_common
from anabranch.multipoint.steps import Timed, steps_of

PRESERVED = 0.9
"""A field is the path's to identify packets by if it is equal at both points in this share of them."""
NONE = -1
MOST_COPIES = 2_000
"""Copies of one packet that are aligned; of more the first ones."""


@dataclass(frozen=True)
class Window:
    """The times for which both captures ran, by the first clock.

    Attributes:
        start_s: The later one of both starts.
        end_s: The earlier one of both ends.
    """

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Matched:
    """The packets of two points, by the clock of the first.

    Attributes:
        one: The packets at the first point.
        two: The packets at the second point.
        mate: The index in ``two`` of each packet of ``one``, or ``NONE``.
        mate_of_two: The index in ``one`` of each packet of ``two``, or ``NONE``.
        clock: The clock of the second point.
    """

    one: Side
    two: Side
    mate: Indices
    mate_of_two: Indices
    clock: Clock


def match(one: Side, two: Side, windows: tuple[Window, Window], streams: int) -> Matched:
    """Match the packets of two points, and fit the clock of the second.

    Args:
        one: The packets at the first point.
        two: The packets at the second point, with the times of its clock.
        windows: The times of both captures, by their clocks.
        streams: The number of streams.

    Raises:
        UserError: No packet is at both points.
    """
    left, right = in_common(one, two)
    if not len(left):
        raise UserError(
            "the captures have connections in common, and none of their packets",
            hint="give captures of the same connections at the same time",
        )
    frames = one.rows["frame"].astype(np.int64), two.rows["frame"].astype(np.int64)
    timed = Timed(one.time_s[left], two.time_s[right], one.way[left] == FORWARD, (frames[0][left], frames[1][right]))
    steps = steps_of(timed)
    clock = replace(timed.without(steps).fit(), first_steps=steps[0], steps=steps[1])
    one = replace(one, time_s=without(one.time_s, steps[0], frames[0]))
    two = replace(two, time_s=clock.steady_to_first(without(two.time_s, steps[1], frames[1])))
    here, there = one.at(left), two.at(right)
    is_kept = {name: _is_kept(field, here, there, streams) for name, field in FIELDS.items()}
    running = steady(windows[0], clock)
    capture = clock.to_first(np.array([windows[1].start_s, windows[1].end_s]))
    delays = _delays(here, there, clock, is_kept)
    possible_one = _passing(one, FORWARD, delays, Window(float(capture[0]), float(capture[1])))
    possible_two = _passing(two, BACKWARD, delays, running)
    mate, mate_of_two = _mates(one, two, (possible_one, possible_two), is_kept)
    return Matched(one, two, mate, mate_of_two, clock)


def steady(window: Window, clock: Clock) -> Window:
    """A time of the first capture, by its clock without its steps."""
    start, end = without(np.array([window.start_s, window.end_s]), clock.first_steps).tolist()
    return Window(start, end)


def _delays(here: Side, there: Side, clock: Clock, is_kept: dict[str, Flags]) -> tuple[float, dict[int, float]]:
    """The least delay between the points, and the largest one of each way, of packets that are certainly the same."""
    least = (clock.round_trip_s or 0.0) / 2
    every = np.arange(len(here))
    delay = _delay(here, there, every, every)
    is_same = _key(here, is_kept) == _key(there, is_kept)
    most = {way: float(delay[is_same & (here.way == way)].max(initial=least)) for way in (FORWARD, BACKWARD)}
    return least, most


def _passing(side: Side, onward: int, delays: tuple[float, dict[int, float]], capture: Window) -> Indices:
    """The packets that can have passed the other point while it captured; others have no mate.

    Args:
        side: The packets of a point.
        onward: The way on which they pass this point first.
        delays: The least delay, and the largest one of each way.
        capture: The time of the other point's capture.
    """
    least, most = delays
    is_onward = side.way == onward
    early = np.where(is_onward, side.time_s + least, side.time_s - most[1 - onward])
    late = np.where(is_onward, side.time_s + most[onward], side.time_s - least)
    slack = RESOLUTION_S + least
    return np.flatnonzero((late >= capture.start_s - slack) & (early <= capture.end_s + slack))


def _acknowledgment(side: Side) -> tuple[Numbers, Flags]:
    return mixed(side.ack), side.ack != NO_ACK


def _stamps(side: Side) -> tuple[Numbers, Flags]:
    return mixed(side.rows["ts_value"], side.rows["ts_echo"]), has(side.rows, HAS_STAMPS)


def _identification(side: Side) -> tuple[Numbers, Flags]:
    return mixed(side.rows["ip_id"]), has(side.rows, HAS_ID)


def _sack(side: Side) -> tuple[Numbers, Flags]:
    # Relative to the acknowledgment, as a device that changes sequence numbers must change both.
    rows = side.rows
    left, right = rows["sack_left"] - rows["ack"], rows["sack_right"] - rows["ack"]
    return mixed(rows["blocks"], left, right), rows["blocks"] > 0


def _window(side: Side) -> tuple[Numbers, Flags]:
    return mixed(side.rows["window"]), np.ones(len(side), np.bool_)


FIELDS: dict[str, Callable[[Side], tuple[Numbers, Flags]]] = {
    "acknowledgment": _acknowledgment,
    "timestamps": _stamps,
    "identification": _identification,
    "sack": _sack,
    "window": _window,
}
"""Fields by which copies of a packet differ, unless a device changes them: their value, and whether there is one."""


def _is_kept(field: Callable[[Side], tuple[Numbers, Flags]], one: Side, two: Side, streams: int) -> Flags:
    """The streams of whose packets both points have equal values of a field."""
    here, there = field(one), field(two)
    is_some = here[1] | there[1]
    is_equal = (here[0] == there[0]) & here[1] & there[1]
    some = np.bincount(one.stream[is_some], minlength=streams)
    equal = np.bincount(one.stream[is_equal], minlength=streams)
    return (some > 0) & (equal >= PRESERVED * some)


def _mates(
    one: Side, two: Side, possible: tuple[Indices, Indices], is_kept: dict[str, Flags]
) -> tuple[Indices, Indices]:
    mate = np.full(len(one), NONE, np.int64)
    mate_of_two = np.full(len(two), NONE, np.int64)
    # A piece of a super-segment has no identification, so its copies are compared without theirs.
    pieces = distinct(np.concatenate([side.core()[side.is_piece] for side in (one, two)]))
    keys = [_key(side, is_kept, pieces)[at] for side, at in zip((one, two), possible, strict=True)]
    both = np.concatenate(keys)
    order, begins = groups(both)
    if not len(order):
        return mate, mate_of_two
    cut = len(keys[0])
    of_first = np.add.reduceat(order < cut, begins[:-1])
    of_second = np.diff(begins) - of_first
    group = np.empty(len(both), np.int64)
    group[order] = np.repeat(np.arange(len(of_first)), np.diff(begins))
    # A stable sort keeps the order of time within a group: equal numbers of copies are in the same order.
    ranked = [np.argsort(group[:cut], kind="stable"), np.argsort(group[cut:], kind="stable")]
    is_even = of_first == of_second
    left = ranked[0][is_even[group[:cut][ranked[0]]]]
    right = ranked[1][is_even[group[cut:][ranked[1]]]]
    here, there = possible[0][left], possible[1][right]
    delay = _delay(one, two, here, there)
    is_early = delay < -RESOLUTION_S
    doubtful = distinct(group[left[is_early]])
    is_sure = ~is_among(group[left], doubtful)
    mate[here[is_sure]], mate_of_two[there[is_sure]] = there[is_sure], here[is_sure]
    uneven = np.flatnonzero((of_first > 0) & (of_second > 0) & ~is_even)
    usual = _UsualDelay(one, here[is_sure], delay[is_sure])
    starts = np.searchsorted(group[:cut][ranked[0]], np.arange(len(of_first) + 1))
    starts_two = np.searchsorted(group[cut:][ranked[1]], np.arange(len(of_first) + 1))
    for number in np.concatenate((uneven, doubtful)).tolist():
        some = possible[0][ranked[0][starts[number] : starts[number + 1]][:MOST_COPIES]]
        others = possible[1][ranked[1][starts_two[number] : starts_two[number + 1]][:MOST_COPIES]]
        for i, j in _aligned(one, two, some, others, usual):
            mate[i], mate_of_two[j] = j, i
    return mate, mate_of_two


def _key(side: Side, is_kept: dict[str, Flags], pieces: Numbers | None = None) -> Numbers:
    """A number that equal packets at both points have.

    Args:
        side: The packets.
        is_kept: By the name of a field: the streams of which the path preserves it.
        pieces: The ascending cores of pieces of super-segments; without them such packets have other numbers.
    """
    made = side.core()
    is_whole = np.ones(len(side), np.bool_) if pieces is None else ~is_among(made, pieces)
    is_syn = flagged(side.rows, SYN)
    for name, field in FIELDS.items():
        value, is_some = field(side)
        is_used = is_some & is_kept[name][side.stream] & ~is_syn
        if name == "identification":
            is_used &= is_whole
        made = mixed(made, np.where(is_used, value, np.uint64(0)))
    return made


def _delay(one: Side, two: Side, here: Indices, there: Indices) -> Times:
    """The time from one point to the other, in the direction of the packets."""
    later = two.time_s[there] - one.time_s[here]
    return np.where(one.way[here] == FORWARD, later, -later)


class _UsualDelay:
    """The delay of packets at about the same time, by their way."""

    def __init__(self, one: Side, here: Indices, delay: Times) -> None:
        self._known = []
        for way in (0, 1):
            own = one.way[here] == way
            time, late = one.time_s[here][own], delay[own]
            order = np.argsort(time, kind="stable")
            self._known.append((time[order], late[order]))

    def at(self, way: int, time_s: float) -> float:
        """The delay in s; 0 if none is known."""
        times, delays = self._known[way]
        return float(np.interp(time_s, times, delays)) if len(times) else 0.0


def _aligned(one: Side, two: Side, some: Indices, others: Indices, usual: _UsualDelay) -> list[tuple[int, int]]:
    """Mates among copies of a packet, in order, whose delays are nearest to the usual one."""
    way = int(one.way[some[0]])
    late = usual.at(way, float(one.time_s[some[0]]))
    sign = 1.0 if way == FORWARD else -1.0
    fewer, more = (some, others) if len(some) <= len(others) else (others, some)
    is_swapped = fewer is others
    made = []
    begin = 0
    for index, each in enumerate(fewer.tolist()):
        last = len(more) - (len(fewer) - index)
        candidates = more[begin : last + 1].tolist()
        best, least = None, float("inf")
        for place, other in enumerate(candidates):
            i, j = (other, each) if is_swapped else (each, other)
            delay = sign * float(two.time_s[j] - one.time_s[i])
            if delay >= -RESOLUTION_S and abs(delay - late) < least:
                best, least = place, abs(delay - late)
        if best is None:
            continue
        other = candidates[best]
        begin += best + 1
        made.append((other, each) if is_swapped else (each, other))
    return made
