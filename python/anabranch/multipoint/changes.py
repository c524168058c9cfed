"""Header fields that a device between two points changed, by connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anabranch.diagnosis.document import EndName
from anabranch.multipoint.documents import Change
from anabranch.multipoint.listing import (
    ALL_OPTIONS,
    CE,
    CWR,
    ECE,
    HAS_MSS,
    HAS_SCALE,
    HAS_STAMPS,
    RST,
    SACK_PERMITTED,
    SYN,
    Flags,
    Indices,
    ecn,
    flagged,
    has,
)
from anabranch.multipoint.matching import NONE, PRESERVED, Matched
from anabranch.multipoint.pairing import Pair
from anabranch.multipoint.passage import Passage, kinds_of_added
from anabranch.multipoint.sides import FORWARD, Shift, Side

MOST_FRAMES = 4
"""Frames that a change names at each point."""
LEAST_ADDED_ACKS, ADDED_ACKS_SHARE = 10, 0.1
"""Acknowledgments that a device makes: as many, and as large a share of all that arrive."""
_OPTIONS = ((HAS_SCALE, "window-scale"), (SACK_PERMITTED, "sack-permitted"), (HAS_STAMPS, "timestamps"))


def sender_of(stream: int) -> EndName:
    """The end that sends the packets of a stream."""
    return "b" if stream % 2 else "a"


def changes(
    matched: Matched, pairs: Sequence[Pair], shifts: Sequence[Shift], passages: Sequence[Passage]
) -> list[list[Change]]:
    """The changes between two points, for each pair."""
    made: list[list[Change]] = [
        [*_addresses(pair), *_sequence(shift)] for pair, shift in zip(pairs, shifts, strict=True)
    ]
    for number, change in _of_syns(matched):
        made[number].append(change)
    for number, change in _of_fields(matched):
        made[number].append(change)
    for found in passages:
        for number, change in _of_added(found):
            made[number].append(change)
    return made


def _addresses(pair: Pair) -> Iterator[Change]:
    ends = (pair.second["b"], pair.second["a"]) if pair.is_flipped else (pair.second["a"], pair.second["b"])
    names: tuple[EndName, EndName] = ("a", "b")
    for name, before, after in zip(names, (pair.first["a"], pair.first["b"]), ends, strict=True):
        if before != after:
            yield _change("address", name, before, after)


def _sequence(shift: Shift) -> Iterator[Change]:
    if shift.of_a:
        yield _change("sequence-numbers", "a", 0, shift.of_a)
    if shift.of_b:
        yield _change("sequence-numbers", "b", 0, shift.of_b)


def _of_syns(matched: Matched) -> Iterator[tuple[int, Change]]:
    one, two = matched.one, matched.two
    at = np.flatnonzero(flagged(one.rows, SYN) & (matched.mate != NONE))
    # The first SYN of each stream.
    at = at[np.unique(one.stream[at], return_index=True)[1]]
    here, there = one.rows[at], two.rows[matched.mate[at]]
    is_whole = has(here, ALL_OPTIONS) & has(there, ALL_OPTIONS)
    for i, index in enumerate(at.tolist()):
        number, way = int(one.pair[index]), int(one.way[index])
        # In the order in which the packet passed the points.
        first, last = (here[i], there[i]) if way == FORWARD else (there[i], here[i])
        frames = [[int(here[i]["frame"]), int(there[i]["frame"])]]
        end = sender_of(int(one.sender[index]))
        mss = [int(row["mss"]) if row["bits"] & HAS_MSS else None for row in (first, last)]
        if is_whole[i] and mss[0] != mss[1]:
            yield number, _change("mss", end, mss[0], mss[1], 1, frames)
        for bit, name in _OPTIONS:
            present = [bool(row["bits"] & bit) for row in (first, last)]
            if is_whole[i] and present[0] != present[1]:
                kind = "option-removed" if present[0] else "option-added"
                yield number, _change(kind, end, name, None, 1, frames)
        shifts = [int(row["shift"]) for row in (first, last)]
        if first["bits"] & last["bits"] & HAS_SCALE and shifts[0] != shifts[1]:
            yield number, _change("window-scale", end, shifts[0], shifts[1], 1, frames)
        offers = [int(row["flags"]) & (ECE | CWR) for row in (first, last)]
        if offers[0] != offers[1]:
            yield number, _change("ecn-negotiation", end, offers[0], offers[1], 1, frames)


def _of_fields(matched: Matched) -> Iterator[tuple[int, Change]]:
    """Fields that differ in more than a tenth of a stream's packets."""
    one, two = matched.one, matched.two
    at = np.flatnonzero((matched.mate != NONE) & ~flagged(one.rows, SYN | RST) & ~one.is_piece)
    at = at[~two.is_piece[matched.mate[at]]]
    there = matched.mate[at]
    here_rows, there_rows = one.rows[at], two.rows[there]
    is_forward = one.way[at] == FORWARD
    ecn_before = np.where(is_forward, ecn(here_rows), ecn(there_rows))
    ecn_after = np.where(is_forward, ecn(there_rows), ecn(here_rows))
    compared = {
        "window": (here_rows["window"] != there_rows["window"], np.ones(len(at), np.bool_)),
        "timestamps": (
            (here_rows["ts_value"] != there_rows["ts_value"]) | (here_rows["ts_echo"] != there_rows["ts_echo"]),
            has(here_rows, HAS_STAMPS) & has(there_rows, HAS_STAMPS),
        ),
        "sack": (
            (here_rows["sack_left"] - here_rows["ack"]) != (there_rows["sack_left"] - there_rows["ack"]),
            (here_rows["blocks"] > 0) & (there_rows["blocks"] > 0),
        ),
        "ecn-cleared": (ecn_after == 0, ecn_before != 0),
        "ce-cleared": ((ecn_after != CE) & (ecn_after != 0), ecn_before == CE),
    }
    stream = one.stream[at]
    for name, (is_different, is_some) in compared.items():
        for number in _mostly(stream[is_some], is_different[is_some]).tolist():
            chosen = np.flatnonzero((stream == number) & is_different & is_some)
            way = int(one.way[at[chosen[0]]])
            frames = _frames(one, two, at[chosen], there[chosen])
            before, after = None, None
            if name == "window":
                rows = (here_rows[chosen], there_rows[chosen])
                windows = [int(np.median(each["window"])) for each in (rows if way == FORWARD else rows[::-1])]
                before, after = windows
            yield int(number) // 2, _change(name, sender_of(int(number)), before, after, len(chosen), frames)


def _mostly(streams: Indices, is_different: Flags) -> Indices:
    numbers, counts = np.unique(streams, return_counts=True)
    if not len(numbers):
        return numbers
    different = np.bincount(streams[is_different], minlength=int(numbers[-1]) + 1)[numbers]
    found: Indices = numbers[different > (1 - PRESERVED) * counts]
    return found


def _frames(one: Side, two: Side, here: Indices, there: Indices) -> list[list[int]]:
    pairs = zip(here[:MOST_FRAMES].tolist(), there[:MOST_FRAMES].tolist(), strict=True)
    return [[int(one.rows[i]["frame"]), int(two.rows[j]["frame"])] for i, j in pairs]


def _of_added(found: Passage) -> Iterator[tuple[int, Change]]:
    """Packets that a device made: a RST in the name of an end, acknowledgments before the data arrived."""
    stream = found.received.stream
    place = 1 if found.way == FORWARD else 0
    for number in np.unique(stream[found.is_added]).tolist():
        own = found.is_added & (stream == number)
        kinds = kinds_of_added(found, own)
        arrived = int((stream == number).sum())
        # A capture that lacks original data lacks retransmissions as well, and the octets of these are elsewhere in it.
        missed = int((found.is_missed & (stream == number)).sum())
        most = {"rst": 0, "data": missed, "ack": max(LEAST_ADDED_ACKS, ADDED_ACKS_SHARE * arrived) - 1}
        for kind in ("rst", "data", "ack"):
            count = kinds[kind]
            if count <= most[kind]:
                continue
            is_reset = flagged(found.received.rows, RST)
            has_data = found.received.length > 0
            chosen = own & (is_reset if kind == "rst" else ~is_reset & (has_data == (kind == "data")))
            frames = found.received.rows["frame"][chosen][:MOST_FRAMES].tolist()
            named = [[0, int(frame)] if place else [int(frame), 0] for frame in frames]
            yield number // 2, _change(f"{kind}-added", sender_of(number), None, None, count, named)


def _change(
    kind: str,
    end: EndName,
    before: str | int | None,
    after: str | int | None,
    packets: int = 0,
    frames: list[list[int]] | None = None,
) -> Change:
    return {"kind": kind, "of": end, "before": before, "after": after, "packets": packets, "frames": frames or []}
