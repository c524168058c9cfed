"""Which packet at one point is which packet at the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from anabranch.multipoint.clocks import RESOLUTION_S, Clock, fit
from anabranch.multipoint.listing import (
    HAS_ID,
    HAS_STAMPS,
    SYN,
    Flags,
    Indices,
    Numbers,
    Times,
    flagged,
    groups,
    has,
    mixed,
)
from anabranch.multipoint.sides import FORWARD, NO_ACK, Side, unique

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
        is_kept: By the name of a field: the streams of which the path preserves it.
        compared: The packets of each stream by which ``is_kept`` was decided.
    """

    one: Side
    two: Side
    mate: Indices
    mate_of_two: Indices
    clock: Clock
    is_kept: dict[str, Flags]
    compared: Indices


def match(one: Side, two: Side, windows: tuple[Window, Window], streams: int) -> Matched:
    """Match the packets of two points, and fit the clock of the second.

    Args:
        one: The packets at the first point.
        two: The packets at the second point, with the times of its clock.
        windows: The times of both captures, by their clocks.
        streams: The number of streams.
    """
    left, right = unique(one.core(), two.core())
    clock = fit(one.time_s[left], two.time_s[right], one.way[left] == FORWARD)
    two = replace(two, time_s=clock.to_first(two.time_s))
    least = (clock.round_trip_s or 0.0) / 2
    is_kept = {name: _is_kept(field, one, two, left, right, streams) for name, field in FIELDS.items()}
    compared = np.bincount(one.stream[left], minlength=streams)
    start, end = clock.to_first(np.array([windows[1].start_s, windows[1].end_s]))
    # A packet that passed one point while the other did not capture has no mate.
    early = RESOLUTION_S + least
    from_first = one.way == FORWARD
    leaves = np.where(from_first, one.time_s + least, one.time_s - least)
    possible_one = np.flatnonzero((leaves >= start - early) & (leaves <= end + early))
    to_second = two.way == FORWARD
    came = np.where(to_second, two.time_s - least, two.time_s + least)
    possible_two = np.flatnonzero((came >= windows[0].start_s - early) & (came <= windows[0].end_s + early))
    mate, mate_of_two = _mates(one, two, (possible_one, possible_two), is_kept)
    return Matched(one, two, mate, mate_of_two, clock, is_kept, compared)


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


def _is_kept(
    field: Callable[[Side], tuple[Numbers, Flags]], one: Side, two: Side, left: Indices, right: Indices, streams: int
) -> Flags:
    """The streams of which both points have equal values of a field."""
    here, there = field(one.at(left)), field(two.at(right))
    is_some = here[1] | there[1]
    is_equal = (here[0] == there[0]) & here[1] & there[1]
    stream = one.stream[left]
    some = np.bincount(stream[is_some], minlength=streams)
    equal = np.bincount(stream[is_equal], minlength=streams)
    return (some > 0) & (equal >= PRESERVED * some)


def _mates(
    one: Side, two: Side, possible: tuple[Indices, Indices], is_kept: dict[str, Flags]
) -> tuple[Indices, Indices]:
    mate = np.full(len(one), NONE, np.int64)
    mate_of_two = np.full(len(two), NONE, np.int64)
    keys = [_key(side.at(at), is_kept) for side, at in zip((one, two), possible, strict=True)]
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
    doubtful = np.unique(group[left[is_early]])
    is_sure = ~np.isin(group[left], doubtful)
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


def _key(side: Side, is_kept: dict[str, Flags]) -> Numbers:
    """A number that equal packets at both points have."""
    made = side.core()
    is_syn = flagged(side.rows, SYN)
    for name, field in FIELDS.items():
        value, is_some = field(side)
        is_used = is_some & is_kept[name][side.stream] & ~is_syn
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
