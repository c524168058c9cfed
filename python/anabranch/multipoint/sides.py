"""The packets of paired connections at two points, in the sequence numbers and directions of the first point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from anabranch.multipoint.clocks import RESOLUTION_S, fit
from anabranch.multipoint.listing import (
    ACK,
    CONTROL_BITS,
    FIN,
    FROM_A,
    HAS_ID,
    HAS_STAMPS,
    PSH,
    RST,
    SYN,
    Flags,
    Indices,
    Listing,
    Numbers,
    Rows,
    Times,
    distinct,
    flagged,
    has,
    is_among,
    mixed,
)
from anabranch.multipoint.pairing import Pair

FORWARD, BACKWARD = 0, 1
"""The ways of packets along the path: from the first point to the second, and back."""
MOST_PIECES = 256
"""Pieces of a super-segment; a longer one (64 KiB of segments of 256 octets) stays whole."""


@dataclass(frozen=True)
class Side:
    """The packets of paired connections at one point. All columns are of the same length.

    Attributes:
        rows: The records.
        pair: The number of the pair.
        sender: 0 if the end ``a`` sent it, 1 for ``b``, as the first point of the path names them.
        way: ``FORWARD`` if it passes the first point before the second, or ``BACKWARD``.
        time_s: Time since the start of the comparison, by the clock of the point.
        start: The first octet, unwrapped, in the sequence numbers of the first point.
        end: One past the last octet.
        ack: The acknowledgment number, likewise; -1 without one.
        is_piece: It is a part of a super-segment.
    """

    rows: Rows
    pair: Indices
    sender: Indices
    way: Indices
    time_s: Times
    start: Indices
    end: Indices
    ack: Indices
    is_piece: Flags

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def stream(self) -> Indices:
        """A number for the pair and the sender."""
        return self.pair * 2 + self.sender

    @property
    def other_stream(self) -> Indices:
        """The number of the opposite direction."""
        return self.pair * 2 + 1 - self.sender

    @property
    def length(self) -> Indices:
        """Octets of data."""
        return self.end - self.start

    def at(self, chosen: Indices | Flags) -> Side:
        """Some of the packets."""
        return Side(
            self.rows[chosen], self.pair[chosen], self.sender[chosen], self.way[chosen], self.time_s[chosen],
            self.start[chosen], self.end[chosen], self.ack[chosen], self.is_piece[chosen],
        )  # fmt: skip

    def core(self) -> Numbers:
        """A number for the direction, the octets and the control bits, which every device must preserve."""
        bits = self.rows["flags"] & np.uint16(SYN | FIN | RST)
        # A segment without data is identified by its acknowledgment.
        ack = np.where((self.length == 0) & (bits == 0), self.ack, 0)
        return mixed(self.stream, self.start, self.length, bits, ack)


@dataclass(frozen=True)
class Shift:
    """The numbers that a device adds to the sequence numbers of both ends of a pair; 0 for unchanged ones."""

    of_a: int
    of_b: int


def sides_of(
    first: Listing, second: Listing, pairs: Sequence[Pair], origin_ns: int, octet_zero: Indices | None = None
) -> tuple[Side, Side, Sequence[Shift]]:
    """The packets of pairs at both points, and the shifts of sequence numbers between the points.

    Args:
        first: The capture of the first point.
        second: The capture of the second one.
        pairs: The connections.
        origin_ns: The start of the comparison.
        octet_zero: The sequence number of octet 0 of each stream at the first point, from the part before; by default
            its first captured number.
    """
    one = _plain(first.rows, [pair.first["id"] for pair in pairs], [pair.first_is_flipped for pair in pairs], origin_ns)
    two = _plain(second.rows, [pair.second["id"] for pair in pairs], [pair.is_flipped for pair in pairs], origin_ns)
    shifts = _shifts(one, two, len(pairs))
    zero = _first_numbers(one, two, shifts) if octet_zero is None else octet_zero
    one, two = _placed(one, zero, np.zeros_like(shifts)), _placed(two, zero, shifts)
    if octet_zero is not None:
        streams, at = np.unique(one.stream, return_index=True)
        late = np.zeros_like(shifts)
        late[streams] = one.start[at] - (one.rows["seq"][at].astype(np.int64) - octet_zero[streams])
        one = _moved(one, late)
    two = _moved(two, _laps(one, two, len(shifts)))
    one, two = _split(one, two), _split(two, one)
    return one, two, [Shift(int(shifts[2 * i]), int(shifts[2 * i + 1])) for i in range(len(pairs))]


def octets_zero(one: Side, two: Side, shifts: Sequence[Shift]) -> Indices:
    """The sequence number of octet 0 of each stream at the second point, as a whole number.

    Args:
        one: The packets at the first point.
        two: The packets at the second point.
        shifts: What the path adds to the sequence numbers of each pair.
    """
    added = np.array([value for shift in shifts for value in (shift.of_a, shift.of_b)], np.int64)
    zero = np.zeros_like(added)
    for side, delta in ((one, added), (two, np.zeros_like(added))):
        streams, at = np.unique(side.stream, return_index=True)
        zero[streams] = side.rows["seq"][at].astype(np.int64) - side.start[at] + delta[streams]
    return zero


def _first_numbers(one: Side, two: Side, shifts: Indices) -> Indices:
    """The first captured sequence number of each stream, as the first point has it."""
    made = np.zeros_like(shifts)
    for side, delta in ((two, shifts), (one, np.zeros_like(shifts))):
        streams, at = np.unique(side.stream, return_index=True)
        made[streams] = (side.rows["seq"][at].astype(np.int64) - delta[streams]) & _LAST
    return made


def _moved(side: Side, octets: Indices) -> Side:
    """The packets with their octets reduced by a number for each stream."""
    if not octets.any():
        return side
    start = side.start - octets[side.stream]
    ack = np.where(side.ack == NO_ACK, NO_ACK, side.ack - octets[side.other_stream])
    return replace(side, start=start, end=start + side.length, ack=ack)


def _laps(one: Side, two: Side, streams: int) -> Indices:
    """The multiple of 2**32 by which the octets of each stream at the second point are too large.

    A capture that begins long after the other one does not show how often the numbers have begun again. Packets with
    equal numbers and lengths do, with timestamps if there are some: the most frequent difference counts.
    """
    made = np.zeros(streams, np.int64)
    is_open = np.ones(streams, np.bool_)
    for kind in (_lap_by_stamps, _lap_by_sequence, _lap_by_ack):
        keyed = [kind(side, is_open) for side in (one, two)]
        left, right = unique(keyed[0][0], keyed[1][0])
        stream = keyed[0][1][left]
        laps = ((keyed[1][2][right] - keyed[0][2][left]) >> 32) + _MOST_LAPS
        both, counts = np.unique(stream * (2 * _MOST_LAPS) + laps, return_counts=True)
        both = both[np.argsort(counts, kind="stable")]
        found = both // (2 * _MOST_LAPS)
        made[found] = (both % (2 * _MOST_LAPS) - _MOST_LAPS) << 32
        is_open[found] = False
    return made


_LAST = 0xFFFFFFFF
_MOST_LAPS = 1 << 12
_Keyed: TypeAlias = "tuple[Numbers, Indices, Indices]"
"""Keys, and the stream and octet of each."""


def _lap_by_sequence(side: Side, is_open: Flags) -> _Keyed:
    return _lap_by_octets(side, is_open[side.stream], stamped=False)


def _lap_by_stamps(side: Side, is_open: Flags) -> _Keyed:
    return _lap_by_octets(side, is_open[side.stream] & has(side.rows, HAS_STAMPS), stamped=True)


def _lap_by_octets(side: Side, chosen: Flags, *, stamped: bool) -> _Keyed:
    at = np.flatnonzero(chosen & ((side.length > 0) | flagged(side.rows, SYN)))
    streams, octets, rows = side.stream[at], side.start[at], side.rows[at]
    stamps = (rows["ts_value"], rows["ts_echo"]) if stamped else ()
    return mixed(streams, octets & _LAST, side.length[at], *stamps), streams, octets


def _lap_by_ack(side: Side, is_open: Flags) -> _Keyed:
    at = np.flatnonzero(is_open[side.other_stream] & (side.ack != NO_ACK) & (side.length == 0))
    return mixed(side.other_stream[at], side.ack[at] & _LAST), side.other_stream[at], side.ack[at]


def _plain(rows: Rows, ids: Sequence[int], flips: Sequence[bool], origin_ns: int) -> Side:
    numbers = np.array(ids, np.int64)
    order = np.argsort(numbers)
    connections = rows["connection"].astype(np.int64)
    at = np.minimum(np.searchsorted(numbers[order], connections), len(numbers) - 1)
    is_paired = numbers[order][at] == connections
    rows, pair = rows[is_paired], order[at[is_paired]]
    sender = (~(has(rows, FROM_A) ^ np.array(flips, np.bool_)[pair])).astype(np.int64)
    none = np.zeros(len(rows), np.int64)
    times = (rows["time_ns"] - origin_ns) / 1e9
    return Side(rows, pair, sender, sender, times, none, none, none, np.zeros(len(rows), np.bool_))


def _shifts(one: Side, two: Side, pairs: int) -> Indices:
    """The number that a device adds to the sequence numbers of each stream, modulo 2**32.

    The SYNs show it; without them segments with equal numbers, timestamps or identifications, and lengths, do.
    """
    shifts = np.zeros(2 * pairs, np.int64)
    is_open = np.ones(2 * pairs, np.bool_)
    for kind in (_by_syn, _by_sequence, _by_stamps, _by_identification):
        some = [np.flatnonzero(is_open[side.stream]) for side in (one, two)]
        if not all(len(at) for at in some):
            break
        keyed = [kind(side, at) for side, at in zip((one, two), some, strict=True)]
        left, right = (_first_of_unique(key, at) for key, at in keyed)
        _, here, there = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
        here, there = left[1][here], right[1][there]
        streams = one.stream[here]
        delta = (two.rows["seq"][there].astype(np.int64) - one.rows["seq"][here].astype(np.int64)) & 0xFFFFFFFF
        # The most frequent difference of each stream that has none yet.
        both, counts = np.unique(streams * (1 << 32) + delta, return_counts=True)
        order = np.argsort(counts, kind="stable")
        stream, value = both[order] >> 32, both[order] & 0xFFFFFFFF
        shifts[stream] = value
        is_open[stream] = False
    return shifts


def _by_sequence(side: Side, some: Indices) -> tuple[Numbers, Indices]:
    at = some[(side.rows["bytes"][some] > 0) | flagged(side.rows[some], SYN)]
    rows = side.rows[at]
    return mixed(side.stream[at], rows["seq"], rows["bytes"]), at


def _by_syn(side: Side, some: Indices) -> tuple[Numbers, Indices]:
    at = some[(side.rows["flags"][some] & np.uint16(SYN)) != 0]
    # Retransmitted SYNs have the same number: the first one serves.
    _, first = np.unique(side.stream[at], return_index=True)
    return mixed(side.stream[at[first]]), at[first]


def _by_stamps(side: Side, some: Indices) -> tuple[Numbers, Indices]:
    at = some[has(side.rows[some], HAS_STAMPS)]
    rows = side.rows[at]
    return mixed(side.stream[at], rows["ts_value"], rows["ts_echo"], rows["bytes"], rows["flags"] & CONTROL_BITS), at


def _by_identification(side: Side, some: Indices) -> tuple[Numbers, Indices]:
    at = some[has(side.rows[some], HAS_ID) & (side.rows["ip_id"][some] != 0)]
    rows = side.rows[at]
    return mixed(side.stream[at], rows["ip_id"], rows["bytes"]), at


def _first_of_unique(keys: Numbers, at: Indices) -> tuple[Numbers, Indices]:
    found, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return found[counts == 1], at[first[counts == 1]]


def _placed(side: Side, base: Indices, shifts: Indices) -> Side:
    """The packets with their octets unwrapped, relative to the first number of their stream."""
    seq = side.rows["seq"].astype(np.int64) - shifts[side.stream] - base[side.stream]
    ack = side.rows["ack"].astype(np.int64) - shifts[side.other_stream] - base[side.other_stream]
    has_ack = flagged(side.rows, ACK)
    is_steady = ~flagged(side.rows, RST)
    start = _unwrapped(side.stream, seq, is_steady)
    # Acknowledged octets are within 2**31 of the first captured ones.
    near = np.zeros(len(base), np.int64)
    streams, at = np.unique(side.stream[is_steady], return_index=True)
    near[streams] = start[is_steady][at]
    there = _unwrapped(side.other_stream, ack - near[side.other_stream], has_ack & is_steady)
    there = np.where(has_ack, there + near[side.other_stream] + ACK_ZERO, NO_ACK)
    return replace(side, start=start, end=start + side.rows["bytes"].astype(np.int64), ack=there)


ACK_ZERO = 1 << 40
"""The acknowledgment of octet 0: numbers before the first captured octet stay positive."""
NO_ACK = -1


def _unwrapped(streams: Indices, numbers: Indices, is_steady: Flags) -> Indices:
    """Numbers modulo 2**32 as whole numbers, each within 2**31 of the last steady one of its stream."""
    order = np.argsort(streams, kind="stable")
    ordered, small, steady = streams[order], numbers[order] & 0xFFFFFFFF, is_steady[order]
    if not len(order):
        return small
    is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    last = np.maximum.accumulate(np.where(steady, np.arange(len(order)), -1))
    filled = np.where(last >= first, small[np.maximum(last, 0)], 0)
    steps = _signed(np.diff(filled, prepend=0))
    begin = _signed(filled)
    total = np.cumsum(steps)
    line = total - total[first] + begin[first]
    made = np.empty_like(line)
    made[order] = line + _signed(small - filled)
    return made


def _signed(numbers: Indices) -> Indices:
    return ((numbers + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def _split(side: Side, other: Side) -> Side:
    """The packets, with super-segments cut where the other point has boundaries of segments.

    A capture on a host that leaves segmentation to its network card (TSO), or joins what it receives (GRO), has
    segments that no other point has.
    """
    edges = _edges(other)
    begin = np.searchsorted(edges, _on_line(side.stream, side.start), side="right")
    stop = np.searchsorted(edges, _on_line(side.stream, side.end), side="left")
    cuts = np.where(side.length > 1, stop - begin, 0)
    cuts[(cuts < 0) | (cuts >= MOST_PIECES)] = 0
    if not cuts.any():
        return side
    of = np.repeat(np.arange(len(side)), cuts + 1)
    place = np.arange(len(of)) - np.repeat(np.cumsum(cuts + 1) - cuts - 1, cuts + 1)
    made = side.at(of)
    inner = edges[np.minimum(begin[of] + place, len(edges) - 1)] - _on_line(made.stream, np.zeros_like(made.start))
    before = edges[np.maximum(begin[of] + place - 1, 0)] - _on_line(made.stream, np.zeros_like(made.start))
    is_last = place == cuts[of]
    start = np.where(place == 0, made.start, before)
    end = np.where(is_last, made.end, inner)
    rows = made.rows.copy()
    # PSH and FIN are on the last piece.
    rows["flags"] = np.where(is_last, rows["flags"], rows["flags"] & ~np.uint16(PSH | FIN))
    rows["bits"] = np.where(cuts[of] > 0, rows["bits"] & ~np.uint8(HAS_ID), rows["bits"])
    rows["bytes"] = (end - start).astype(np.uint32)
    return replace(made, rows=rows, start=start, end=end, is_piece=cuts[of] > 0)


_LINE = 1 << 42
"""Room of a stream on the line of all octets; its middle is octet 0."""


def _on_line(streams: Indices, octets: Indices) -> Indices:
    return streams * _LINE + (_LINE >> 1) + octets


def _edges(side: Side) -> Indices:
    """First octets and ends of segments with data, on the line of all octets."""
    at = side.length > 0
    return distinct(
        np.concatenate((_on_line(side.stream[at], side.start[at]), _on_line(side.stream[at], side.end[at])))
    )


def covers(side: Side, streams: Indices, starts: Indices, ends: Indices) -> Flags:
    """Whether the side has a segment with some of the octets of each range."""
    at = side.length > 0
    begins = _on_line(side.stream[at], side.start[at])
    order = np.argsort(begins, kind="stable")
    begins = begins[order]
    reach = np.maximum.accumulate(_on_line(side.stream[at], side.end[at])[order]) if len(order) else begins
    index = np.searchsorted(begins, _on_line(streams, ends), side="left") - 1
    found = np.zeros(len(streams), np.bool_)
    is_some = index >= 0
    found[is_some] = reach[index[is_some]] > _on_line(streams, starts)[is_some]
    return found


def answering_side(one: Side, two: Side, pairs: int) -> Flags:
    """The pairs whose end ``a`` is on the side of the second point.

    Two packets of opposite directions that follow each other passed both points within little time, so that the clocks'
    offset is the same: the sum of their delays is a round trip between the points if ``a`` is on the first point's
    side, and the negative round trip otherwise.
    """
    left, right = in_common(one, two)
    order = np.lexsort((one.time_s[left], one.pair[left]))
    left, right = left[order], right[order]
    later = two.time_s[right] - one.time_s[left]
    is_turn = (one.pair[left][1:] == one.pair[left][:-1]) & (one.sender[left][1:] != one.sender[left][:-1])
    # The delay of a packet from ``a``, minus the negative one of a packet from ``b``.
    sums = np.where(one.sender[left][1:] == 1, later[:-1] - later[1:], later[1:] - later[:-1])[is_turn]
    sign = np.bincount(one.pair[left][1:][is_turn], weights=np.sign(sums), minlength=pairs)
    found: Flags = sign < 0
    return found


def unique(one: Numbers, two: Numbers) -> tuple[Indices, Indices]:
    """The rows whose keys occur once on both sides."""
    sides = []
    for keys in (one, two):
        found, first, counts = np.unique(keys, return_index=True, return_counts=True)
        sides.append((found[counts == 1], first[counts == 1]))
    _, left, right = np.intersect1d(sides[0][0], sides[1][0], assume_unique=True, return_indices=True)
    return sides[0][1][left], sides[1][1][right]


def in_common(one: Side, two: Side) -> tuple[Indices, Indices]:
    """Rows that are one packet at both points: those whose core occurs once on both sides.

    Without such rows, copies differ by fields that a device may change; without a difference their rank or their
    being first does.
    """
    cores = one.core(), two.core()
    left, right = unique(*cores)
    if not len(left):
        left, right = unique(*(_with_fields(side, core) for side, core in zip((one, two), cores, strict=True)))
    return (left, right) if len(left) else _by_rank(*cores)


def _with_fields(side: Side, core: Numbers) -> Numbers:
    rows = side.rows
    return mixed(core, side.ack, rows["ip_id"], rows["ts_value"], rows["ts_echo"])


def _by_rank(one: Numbers, two: Numbers) -> tuple[Indices, Indices]:
    """Rows with equal keys, of the most frequent numbers of copies: by rank if these are equal, or the first ones.

    Other numbers have copies that were lost, or repeated.
    """
    found = [np.unique(keys, return_index=True, return_counts=True) for keys in (one, two)]
    _, left, right = np.intersect1d(found[0][0], found[1][0], assume_unique=True, return_indices=True)
    if not len(left):
        return left, right
    counts = np.stack((found[0][2][left], found[1][2][right]))
    numbers, inverse, times = np.unique(counts, axis=1, return_inverse=True, return_counts=True)
    usual = int(np.argmax(times))
    is_usual = inverse.ravel() == usual
    if numbers[0, usual] != numbers[1, usual]:
        return found[0][1][left[is_usual]], found[1][1][right[is_usual]]
    # A stable sort keeps the order of time among equal keys.
    some = [
        np.flatnonzero(is_among(keys, each[0][at[is_usual]]))
        for keys, each, at in zip((one, two), found, (left, right), strict=True)
    ]
    here, there = (at[np.argsort(keys[at], kind="stable")] for keys, at in zip((one, two), some, strict=True))
    return here, there


STRONG = ("sequence-numbers", "timestamps")
"""Properties that two connections do not share by chance."""


def possible(first: Listing, second: Listing, pairs: Sequence[Pair]) -> list[bool]:
    """Which pairs can be one connection: from one point to the other and back takes no negative time.

    Connections of equal addresses or sizes may be different ones, whose packets have unrelated times.
    """
    weak = [i for i, pair in enumerate(pairs) if pair.by not in STRONG and not pair.is_by_sequence]
    made = [True] * len(pairs)
    if not weak:
        return made
    chosen = [pairs[i] for i in weak]
    one, two, _ = sides_of(first, second, chosen, int(first.rows["time_ns"][0]))
    inverted = answering_side(one, two, len(chosen))
    left, right = unique(one.core(), two.core())
    way = one.sender[left] ^ inverted[one.pair[left]]
    for number, index in enumerate(weak):
        own = one.pair[left] == number
        clock = fit(one.time_s[left[own]], two.time_s[right[own]], way[own] == FORWARD) if own.any() else None
        made[index] = clock is not None and (clock.round_trip_s is None or clock.round_trip_s >= -2 * RESOLUTION_S)
    return made
