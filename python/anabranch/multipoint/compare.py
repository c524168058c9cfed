"""Comparison of captures of the same connections at several points of a path."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, cast

import numpy as np

from anabranch.diagnosis.diagnosis import DIRECTIONS, Diagnosis, main_direction, shares
from anabranch.diagnosis.document import Connection, Limit
from anabranch.errors import UserError
from anabranch.multipoint.changes import changes
from anabranch.multipoint.clocks import RESOLUTION_S, Clock, Step, without
from anabranch.multipoint.documents import Belonging, Change, ClockStep, Compared, Document, Outside, Part, Point
from anabranch.multipoint.listing import MOST_SEGMENTS, SYN, Flags, Indices, Listing, flagged, list_segments
from anabranch.multipoint.matching import NONE, Matched, Window, match, steady
from anabranch.multipoint.pairing import Pair, pair_connections
from anabranch.multipoint.parts import series, ways
from anabranch.multipoint.passage import Passage, passage
from anabranch.multipoint.pauses import PathView, PointView, pauses_of
from anabranch.multipoint.sides import BACKWARD, FORWARD, Shift, Side, answering_side, octets_zero, possible, sides_of
from anabranch.text import shown

Sides: TypeAlias = "tuple[Side, Side, Sequence[Shift], Flags]"
"""The packets of two points, the shifts of sequence numbers, and the pairs whose `a` is on the second one's side."""

LEAST_CAPTURES = 2
MOST_CAPTURES = 8
ENDS = ("a", "b")
"""The ends of a connection, as places."""
BETWEEN = "–"
"""What separates the points of a part in its name."""
LEAST_SHARE = 0.01
"""Limits with a smaller share of the time are left out."""


class Points(dict[str, Any]):
    """The document of ``anabranch diagnose CAPTURE CAPTURE --json``, and what charts and ladders need."""

    def __init__(self, document: Document, comparison: Comparison) -> None:
        super().__init__(document)
        self.comparison = comparison

    @property
    def content(self) -> Document:
        """The document, typed."""
        return cast("Document", self)


@dataclass(frozen=True)
class ComparedPart:
    """A part of the path: its matched packets and the ways between its points."""

    matched: Matched
    passages: tuple[Passage, Passage]
    changes: list[list[Change]]
    parts: list[Part]
    clock: Clock
    windows: tuple[Window, Window]


@dataclass(frozen=True)
class Comparison:
    """The captures in the order of the path, the connections that all have, and the parts between them."""

    listings: list[Listing]
    chains: list[Chain]
    parts: list[ComparedPart]
    is_inverted: list[bool]


@dataclass(frozen=True)
class Chain:
    """A connection at all points: its parts as captured, and whether their ends are exchanged."""

    connections: tuple[Connection, ...]
    flips: tuple[bool, ...]
    pairs: tuple[Pair, ...]


def diagnose_points(
    paths: Sequence[str | Path],
    *,
    names: Sequence[str] | None = None,
    any_expansion: bool = False,
    most: int | None = None,
    progress: Callable[[str, float], None] | None = None,
    chosen: Callable[[Diagnosis], Diagnosis] | None = None,
) -> Points:
    """Diagnose captures of the same connections at several points of a path, in the order of the path.

    Args:
        paths: The captures.
        names: The names of the points; by default those of the files.
        any_expansion: Whether compressed captures may expand to more than 256 times their size.
        most: Segments of each capture that are compared; by default ten million of all captures together, in equal
            parts.
        progress: Called with the name of the capture that is read and the share that has been read.
        chosen: Selects connections of the first capture; others are left out.

    Raises:
        UserError: A capture cannot be read or is empty, or the captures have no connection in common.
    """
    files = [Path(path) for path in paths]
    if not LEAST_CAPTURES <= len(files) <= MOST_CAPTURES:
        raise UserError(f"expected {LEAST_CAPTURES} to {MOST_CAPTURES} captures, and {len(files)} were given")
    labels = point_names(files, names)
    if most is None:
        # The packets of all parts stay in memory.
        most = LEAST_CAPTURES * MOST_SEGMENTS // len(files)
    listings = []
    for path, name in zip(files, labels, strict=True):
        report = None if progress is None else (lambda share, name=name: progress(name, share))
        listings.append(list_segments(path, name, any_expansion=any_expansion, most=most, progress=report))
    ordered, pairs, sides = _ordered(listings)
    chains = _chains(ordered, pairs)
    if not chains:
        raise _nothing_in_common(ordered)
    if chosen is not None:
        known = {one["id"] for one in chosen(ordered[0].diagnosis).content["connections"]}
        chains = [chain for chain in chains if chain.connections[0]["id"] in known]
        if not chains:
            raise UserError(
                f"the chosen connections of {ordered[0].name} are not in the other captures",
                hint="without the selection the command lists the connections that all captures have",
            )
    comparison = _compare(ordered, chains, sides if len(chains) == len(pairs[0]) else None)
    return Points(_document(comparison, is_reordered=ordered is not listings and ordered != listings), comparison)


def point_names(files: Sequence[Path], names: Sequence[str] | None) -> list[str]:
    """The names of the points, all different, none of them that of an end or of a part.

    Raises:
        UserError: There are more or fewer names than captures, two equal ones, or such a name.
    """
    if names is None:
        names = [shown.plain(file.name).partition(".")[0] or shown.plain(file.name) for file in files]
        names = [name.replace(BETWEEN, "-") for name in names]
        names = [f"{name}-{number}" if name in ENDS else name for number, name in enumerate(names, 1)]
        if len(set(names)) < len(names):
            names = [f"{name}-{number}" for number, name in enumerate(names, 1)]
        return list(names)
    given = shown.plain(f"--names {','.join(names)}")
    if len(names) != len(files):
        raise UserError(
            f"{given}: expected {len(files)} names, one for each capture",
            hint="for example --names "
            + ",".join(["client", "server", *(f"point-{i}" for i in range(3, 9))][: len(files)]),
        )
    if len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise UserError(f"{given}: expected different names")
    for name in names:
        if name.strip() in ENDS:
            raise UserError(f"{given}: {name.strip()} is an end of each connection", hint="expected another name")
        if BETWEEN in name:
            raise UserError(f"{given}: {BETWEEN} separates the names of a part's points", hint="expected another name")
    return [shown.plain(name) for name in names]


def _ordered(listings: list[Listing]) -> tuple[list[Listing], list[list[Pair]], Sides | None]:
    """The captures in the order of the path, from the side that opened most connections, and their pairs.

    Of two captures in that order the packets are returned as well.

    Raises:
        UserError: Two captures have no connection in common.
    """
    ordered = listings[:1]
    # Of each capture the connections whose end `a` is on the side of the first point.
    near: list[dict[int, bool]] = [{}]
    for listing in listings[1:]:
        at = len(ordered)
        while True:
            place = _placed(ordered[at - 1], listing, near[at - 1])
            if not place.is_before or at == 1:
                break
            at -= 1
        near[at - 1] = {**place.near, **near[at - 1]}
        at -= place.is_before
        ordered.insert(at, listing)
        near.insert(at, place.near_other)
    if all(one is other for one, other in zip(ordered, listings, strict=True)):
        ordered = listings
    if len(ordered) == LEAST_CAPTURES and ordered is listings:
        return ordered, [place.pairs], place.sides
    return ordered, [_paired(one, other) for one, other in itertools.pairwise(ordered)], None


def _paired(one: Listing, other: Listing) -> list[Pair]:
    pairs = pair_connections(one, other)
    pairs = [pair for pair, is_possible in zip(pairs, possible(one, other, pairs), strict=True) if is_possible]
    if not pairs:
        raise _nothing_in_common([one, other])
    return pairs


@dataclass(frozen=True)
class _Place:
    """Whether a capture precedes another one, and the connections of both whose `a` is on the first point's side."""

    is_before: bool
    near: dict[int, bool]
    near_other: dict[int, bool]
    pairs: list[Pair]
    sides: Sides


def _placed(one: Listing, listing: Listing, near: dict[int, bool]) -> _Place:
    """The position of a capture relative to one of the path, by the packets and the connections known so far.

    Without such connections the opening ends of most are on the side of the first point.
    """
    pairs = _paired(one, listing)
    sides = _sides(one, listing, pairs, int(one.rows["time_ns"][0]))
    inverted = sides[3].tolist()
    votes = [is_inverted == near.get(pair.first["id"], True) for pair, is_inverted in zip(pairs, inverted, strict=True)]
    is_before = sum(votes) * 2 > len(votes)
    own = {pair.first["id"]: is_inverted == is_before for pair, is_inverted in zip(pairs, inverted, strict=True)}
    other = {pair.second["id"]: own[pair.first["id"]] != pair.is_flipped for pair in pairs}
    return _Place(is_before, own, other, pairs, sides)


def _nothing_in_common(listings: Sequence[Listing]) -> UserError:
    told = []
    for listing in listings[:2]:
        connections = listing.diagnosis.content["connections"]
        example = f"{connections[0]['a']} to {connections[0]['b']}" if connections else "none"
        told.append(
            f"{listing.name} has {example}" + (f" and {len(connections) - 1:,} more" if len(connections) > 1 else "")
        )
    first, second = listings[0], listings[1]
    return UserError(
        f"{shown.plain(str(first.path))} and {shown.plain(str(second.path))} have no TCP connection in common",
        hint="; ".join(told) + "; give captures of the same connections at the same time",
    )


def _chains(listings: Sequence[Listing], pairs: Sequence[list[Pair]]) -> list[Chain]:
    """The connections that all captures have."""
    made = [
        Chain((pair.first, pair.second), (False, pair.is_flipped), (pair,))
        for pair in pairs[0]
    ]  # fmt: skip
    for further in pairs[1:]:
        by_first = {pair.first["id"]: pair for pair in further}
        longer = []
        for chain in made:
            pair = by_first.get(chain.connections[-1]["id"])
            if pair is None:
                continue
            flip = chain.flips[-1] != pair.is_flipped
            own = replace(pair, is_flipped=flip, first_is_flipped=chain.flips[-1])
            longer.append(Chain((*chain.connections, pair.second), (*chain.flips, flip), (*chain.pairs, own)))
        made = longer
    del listings
    return made


def _compare(listings: list[Listing], chains: list[Chain], sides: Sides | None) -> Comparison:
    origin_ns = int(listings[0].rows["time_ns"][0])
    made: list[ComparedPart] = []
    inverted: np.ndarray[Any, Any] | None = None
    to_first: list[Clock] = []
    # The steps of the first clock of a part that the part before has shown.
    known: Sequence[Step] = ()
    # Octets have the same numbers in all parts.
    octet_zero: Indices | None = None
    for index, (first, second) in enumerate(itertools.pairwise(listings)):
        pairs = [chain.pairs[index] for chain in chains]
        one, two, shifts, own_inverted = sides or _sides(first, second, pairs, origin_ns, octet_zero)
        octet_zero = octets_zero(one, two, shifts)
        inverted = own_inverted if inverted is None else inverted
        one, two = (_directed(side, inverted) for side in (one, two))
        one = replace(one, time_s=without(one.time_s, known, one.rows["frame"].astype(np.int64)))
        windows = (_window(first, origin_ns, known), _window(second, origin_ns))
        matched = match(one, two, windows, 2 * len(pairs))
        window_two = matched.clock.to_first(np.array([windows[1].start_s, windows[1].end_s]))
        by_first = [steady(windows[0], matched.clock), Window(float(window_two[0]), float(window_two[1]))]
        for clock in reversed(to_first):
            matched = replace(
                matched,
                one=replace(matched.one, time_s=clock.steady_to_first(matched.one.time_s)),
                two=replace(matched.two, time_s=clock.steady_to_first(matched.two.time_s)),
            )
            by_first = [
                Window(*(float(value) for value in clock.steady_to_first(np.array([each.start_s, each.end_s]))))
                for each in by_first
            ]
        to_first.append(matched.clock)
        known = matched.clock.steps
        both = _running(matched, (by_first[0], by_first[1]))
        passages = (passage(matched, FORWARD, both), passage(matched, BACKWARD, both))
        made.append(ComparedPart(
            matched, passages, changes(matched, pairs, shifts, passages),
            _parts((first.name, second.name), matched, passages, len(pairs)), matched.clock, both,
        ))  # fmt: skip
    return Comparison(listings, chains, made, [] if inverted is None else inverted.tolist())


def _sides(
    first: Listing, second: Listing, pairs: Sequence[Pair], origin_ns: int, octet_zero: Indices | None = None
) -> Sides:
    one, two, shifts = sides_of(first, second, pairs, origin_ns, octet_zero)
    return one, two, shifts, answering_side(one, two, len(pairs))


def _running(matched: Matched, windows: tuple[Window, Window]) -> tuple[Window, Window]:
    """The times for which nothing shows that a capture did not run.

    A capture without packets at an end of the time may not have run, or nothing reached it. It did not run if the other
    one has packets that must have passed its point then.
    """
    least = (matched.clock.round_trip_s or 0.0) / 2 + RESOLUTION_S
    made = []
    for own, other, side, mate, way in (
        (windows[0], windows[1], matched.two, matched.mate_of_two, FORWARD),
        (windows[1], windows[0], matched.one, matched.mate, BACKWARD),
    ):
        passed = side.time_s[(side.way == way) & (mate == NONE)]
        start, end = own.start_s, own.end_s
        if not len(passed) or passed.min() - least >= start - RESOLUTION_S:
            start = min(start, other.start_s)
        if not len(passed) or passed.max() - least <= end + RESOLUTION_S:
            end = max(end, other.end_s)
        made.append(Window(start, end))
    return made[0], made[1]


def _directed(side: Side, inverted: np.ndarray[Any, Any]) -> Side:
    return replace(side, way=side.sender ^ inverted[side.pair].astype(np.int64))


def _window(listing: Listing, origin_ns: int, steps: Sequence[Step] = ()) -> Window:
    times = np.array([listing.start_s - origin_ns / 1e9, listing.end_s - origin_ns / 1e9])
    start, end = without(times, steps).tolist()
    return Window(start, end)


def _parts(names: tuple[str, str], matched: Matched, passages: tuple[Passage, Passage], pairs: int) -> list[Part]:
    """The part for each pair, and for all pairs at the end, which has the delays over time."""
    both = [ways(found, pairs) for found in passages]
    hops = [_hops(found, pairs) for found in passages]
    whole = matched.clock.round_trip_s
    made: list[Part] = []
    for number in range(pairs + 1):
        forward, backward = both[0][number], both[1][number]
        least = (forward["delay_ms"]["min"], backward["delay_ms"]["min"])
        trip = None if whole is None or least[0] is None or least[1] is None else least[0] + least[1]
        is_all = number == pairs
        made.append({
            "from": names[0], "to": names[1], "forward": forward, "backward": backward, "round_trip_ms": trip,
            "hops_forward": hops[0][number], "hops_backward": hops[1][number],
            "delays_forward": series(passages[0]) if is_all else None,
            "delays_backward": series(passages[1]) if is_all else None,
        })  # fmt: skip
    return made


def _hops(found: Passage, pairs: int) -> list[int | None]:
    """Routers between the points, from the packets' hop limits: the most frequent number of each pair."""
    came = np.flatnonzero(found.mate != NONE)
    before = found.sent.rows["hops"][came].astype(np.int64)
    after = found.received.rows["hops"][found.mate[came]].astype(np.int64)
    both, counts = np.unique(found.sent.pair[came] * 1024 + (before - after) + 512, return_counts=True)
    order = np.argsort(counts, kind="stable")
    made: list[int | None] = [None] * (pairs + 1)
    for value in both[order].tolist():
        made[value // 1024] = value % 1024 - 512
    every, counts = np.unique(before - after, return_counts=True)
    made[pairs] = int(every[np.argmax(counts)]) if len(every) else None
    return made


def _document(comparison: Comparison, *, is_reordered: bool) -> Document:
    from anabranch.multipoint.text import summary

    listings, chains = comparison.listings, comparison.chains
    origin_s = int(listings[0].rows["time_ns"][0]) / 1e9
    shifts = [0.0]
    for part in comparison.parts:
        shifts.append(shifts[-1] + part.clock.offset_s)
    starts = [listing.start_s - shift for listing, shift in zip(listings, shifts, strict=True)]
    ends = [listing.end_s - shift for listing, shift in zip(listings, shifts, strict=True)]
    span = Window(min(starts), max(ends))
    running = [window for part in comparison.parts for window in part.windows]
    overlap = Window(max(one.start_s for one in running) + origin_s, min(one.end_s for one in running) + origin_s)
    answers = [_answers(listing) for listing in (listings[0], listings[-1])]
    sent_by_pair = [[_by_pair(way, len(chains)) for way in part.passages] for part in comparison.parts]
    made: list[Compared] = []
    for number, chain in enumerate(chains):
        is_inverted = comparison.is_inverted[number]
        parts = [part.parts[number] for part in comparison.parts]
        views = [
            PointView(listing.name, connection, flip)
            for listing, connection, flip in zip(listings, chain.connections, chain.flips, strict=True)
        ]
        names = [f"{part['from']}{BETWEEN}{part['to']}" for part in parts]
        sent = [(by_pair[0][number], by_pair[1][number]) for by_pair in sent_by_pair]
        before = _outside(views[0], answers[0], "b" if is_inverted else "a")
        beyond = _outside(views[-1], answers[1], "a" if is_inverted else "b")
        path = PathView(
            number, views, names, [part.passages for part in comparison.parts], sent, parts, is_inverted,
            [part.clock for part in comparison.parts], origin_s, (before["answer_ms"], beyond["answer_ms"]),
        )  # fmt: skip
        first = chain.connections[0]
        made.append({
            "id": first["id"], "ids": [one["id"] for one in chain.connections], "a": first["a"], "b": first["b"],
            "paired_by": [pair.by for pair in chain.pairs], "parts": parts,
            "changes": [part.changes[number] for part in comparison.parts],
            "before": before, "beyond": beyond, **_limits(views, is_inverted=is_inverted),
            "pauses": pauses_of(path),
        })  # fmt: skip
    document: Document = {
        "format": 1,
        "points": [_point(comparison, index, len(chains)) for index in range(len(listings))],
        "reordered_points": is_reordered,
        "overlap_s": max(0.0, min(overlap.end_s, span.end_s) - max(overlap.start_s, span.start_s)),
        "span_s": span.end_s - span.start_s,
        "parts": [part.parts[-1] for part in comparison.parts],
        "before": _total([one["before"] for one in made]),
        "beyond": _total([one["beyond"] for one in made]),
        "belongs_to": _belonging(made),
        "connections": made,
        "summary": [],
    }
    document["summary"] = list(summary(document))
    return document


def _by_pair(found: Passage, pairs: int) -> list[Indices]:
    """The indices of the sent packets of each pair."""
    order = np.argsort(found.sent.pair, kind="stable")
    begins = np.searchsorted(found.sent.pair[order], np.arange(pairs + 1))
    return [order[begins[number] : begins[number + 1]] for number in range(pairs)]


class _Limits(TypedDict):
    limits: dict[Limit, float]
    lost_s: float
    next: str | None


def _limits(views: Sequence[PointView], *, is_inverted: bool) -> _Limits:
    """The limits of the direction with more data, as the point next to its sender has them."""
    name, _ = main_direction(views[0].connection)
    view = views[0] if (name == "a_to_b") != is_inverted else views[-1]
    own = DIRECTIONS[(name == "b_to_a") != view.is_flipped]
    connection = view.connection
    found = shares(connection, connection["directions"][own])
    return {
        "limits": {limit: share for limit, share in found.items() if share >= LEAST_SHARE},
        "lost_s": connection["lost_s"],
        "next": connection["next"],
    }


def _point(comparison: Comparison, index: int, paired: int) -> Point:
    listing = comparison.listings[index]
    content = listing.diagnosis.content
    clock = comparison.parts[index - 1].clock if index else None
    count = len(content["connections"]) + content["omitted"]["connections"]
    return {
        "name": listing.name, "file": str(listing.path), "packets": content["packets"], "connections": count,
        "start_s": listing.start_s, "end_s": listing.end_s,
        "clock": None if clock is None else {
            "offset_s": sum(part.clock.offset_s for part in comparison.parts[:index]),
            "uncertain_s": _uncertain(comparison, index),
            "drift_ppm": sum(part.clock.drift for part in comparison.parts[:index]) * 1e6,
            "drift_low_ppm": sum(part.clock.drift_low for part in comparison.parts[:index]) * 1e6,
            "drift_high_ppm": sum(part.clock.drift_high for part in comparison.parts[:index]) * 1e6,
            "packets": clock.packets,
        },
        "clock_steps": _clock_steps(comparison, index),
        "unpaired": count - paired, "left_out": listing.left_out,
    }  # fmt: skip


def _clock_steps(comparison: Comparison, index: int) -> list[ClockStep]:
    """The steps of the clock of a point, by that clock."""
    start_s = int(comparison.listings[0].rows["time_ns"][0]) / 1e9
    before, after = comparison.parts[:index], comparison.parts[index:]
    own = [*(before[-1].clock.steps if before else ()), *(after[0].clock.first_steps if after else ())]
    return [{"time_s": start_s + one.reading_s, "size_s": one.size_s} for one in own]


def _uncertain(comparison: Comparison, index: int) -> float | None:
    trips = [part.clock.round_trip_s for part in comparison.parts[:index]]
    return None if any(trip is None for trip in trips) else sum(trip for trip in trips if trip is not None) / 2


def _answers(listing: Listing) -> dict[int, tuple[float | None, float | None]]:
    """The times in which both ends answered at the handshake of each connection, as the point has them: of a, of b."""
    rows = listing.rows
    early: dict[int, list[int]] = {}
    syns = np.flatnonzero(flagged(rows, SYN))
    for index in syns.tolist():
        early.setdefault(int(rows["connection"][index]), []).append(index)
    made: dict[int, tuple[float | None, float | None]] = {}
    # The first packet of `a` after the last SYN-ACK completes the handshake.
    position = np.arange(len(rows))
    is_from_a = (rows["bits"] & 1) != 0
    order = np.lexsort((position, rows["connection"]))
    numbers = rows["connection"][order]
    for number, indices in early.items():
        asked = [i for i in indices if is_from_a[i]]
        answered = [i for i in indices if not is_from_a[i]]
        of_a = of_b = None
        if len(asked) == 1 and len(answered) == 1:
            of_b = float(rows["time_ns"][answered[0]] - rows["time_ns"][asked[0]]) / 1e6
            begin, end = np.searchsorted(numbers, [number, number + 1])
            later = [i for i in order[begin : min(end, begin + 8)].tolist() if i > answered[0] and is_from_a[i]]
            if later:
                of_a = float(rows["time_ns"][later[0]] - rows["time_ns"][answered[0]]) / 1e6
        made[number] = (of_a, of_b)
    return made


def _outside(view: PointView, answers: dict[int, tuple[float | None, float | None]], end: str) -> Outside:
    """The part between a point and an end, ``a`` or ``b`` of the compared connection."""
    to_end = DIRECTIONS[1 if end == "a" else 0]
    from_end = DIRECTIONS[0 if end == "a" else 1]
    if view.is_flipped:
        to_end, from_end = from_end, to_end
    ways = view.connection["directions"]
    own = answers.get(view.connection["id"], (None, None))
    is_opener = (end == "a") != view.is_flipped
    return {
        "lost_to_end": sum(one["lost"] == "after" for one in ways[to_end]["retransmissions"]),
        "lost_from_end": sum(one["lost"] == "before" for one in ways[from_end]["retransmissions"]),
        "answer_ms": own[0] if is_opener else own[1],
    }


def _total(found: Sequence[Outside]) -> Outside:
    answers = [one["answer_ms"] for one in found if one["answer_ms"] is not None]
    return {
        "lost_to_end": sum(one["lost_to_end"] for one in found),
        "lost_from_end": sum(one["lost_from_end"] for one in found),
        "answer_ms": min(answers, default=None),
    }


def _belonging(connections: Sequence[Compared]) -> list[Belonging]:
    """The time of all pauses by place, the longest first."""
    times: dict[str | None, list[float]] = {}
    for connection in connections:
        for pause in connection["pauses"]:
            times.setdefault(pause["belongs_to"], []).append(pause["own_s"])
    ranked = sorted(times.items(), key=lambda one: -sum(one[1]))
    return [{"place": place, "pauses": len(own), "time_s": sum(own)} for place, own in ranked]
