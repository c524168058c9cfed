"""The place that each pause of a sender belongs to: an end, or a part of the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.diagnosis.diagnosis import DIRECTIONS
from anabranch.diagnosis.document import Connection, DirectionName, Stall
from anabranch.multipoint.clocks import Clock, without
from anabranch.multipoint.documents import Part, Pause
from anabranch.multipoint.listing import FIN, SYN, Indices, flagged
from anabranch.multipoint.matching import NONE
from anabranch.multipoint.passage import Passage
from anabranch.multipoint.sides import ACK_ZERO, BACKWARD, FORWARD

MOST_PAUSES = 200
"""Pauses of a connection that are attributed, the longest ones."""
MOST_IDLE = 2.0
"""A wait for an answer is no pause if the answer's data fill all of it but this many (long) round trips."""
MOST_EXCESS = 0.5
"""A part owns a delay if it adds at least this share of the delay above the least one."""
_REPAIR = ("retransmission-timeout", "fast-recovery", "handshake")
_OF_RECEIVER = ("zero-window", "receive-window", "delayed-ack-nagle")
_OF_SENDER = ("pacing", "send-buffer")
_ON_PATH = ("bottleneck", "congestion-window", "round-trips")


@dataclass(frozen=True)
class PointView:
    """A connection as a point has it.

    Attributes:
        name: The name of the point.
        connection: The connection in its capture.
        is_flipped: Its ``a`` is ``b`` of the compared connection.
    """

    name: str
    connection: Connection
    is_flipped: bool


@dataclass(frozen=True)
class PathView:
    """A connection in all parts of the path.

    Attributes:
        number: The number of the pair.
        points: The points in order.
        names: The parts' names.
        passages: The ways of each part: forward, backward.
        sent: The indices of the connection's sent packets, of each part and way.
        parts: The parts' counts and delays of the connection.
        is_inverted: The end ``a`` is beyond the last point.
        clocks: The clock of each further point, relative to the point before it.
        origin_s: The start of the comparison, by the first clock.
        answers_ms: The times in which the ends before the first point and beyond the last one answer.
    """

    number: int
    points: Sequence[PointView]
    names: Sequence[str]
    passages: Sequence[tuple[Passage, Passage]]
    sent: Sequence[tuple[Indices, Indices]]
    parts: Sequence[Part]
    is_inverted: bool
    clocks: Sequence[Clock]
    origin_s: float
    answers_ms: tuple[float | None, float | None]

    def own(self, index: int, way: int) -> Indices:
        """The indices of the connection's packets among those sent on a way of a part."""
        return self.sent[index][way]

    def by_first(self, at: int, time_s: float) -> float:
        """A time of a point by the first clock."""
        time = np.array([time_s - self.origin_s])
        time = without(time, self.clocks[at - 1].steps if at else self.clocks[0].first_steps)
        for clock in reversed(self.clocks[:at]):
            time = clock.steady_to_first(time)
        return float(time[0]) + self.origin_s


def pauses_of(path: PathView) -> list[Pause]:
    """The pauses of both senders, each as the point next to its sender has it."""
    found = [pause for name in DIRECTIONS for pause in _of_direction(path, name) if not _is_answered(path, pause)]
    found.sort(key=lambda one: -one["duration_s"])
    found = sorted(found[:MOST_PAUSES], key=lambda one: one["start_s"])
    for pause, own in zip(found, uncovered_s(found), strict=True):
        pause["own_s"] = own
    return found


def _is_answered(path: PathView, pause: Pause) -> bool:
    """Whether the other end sent its answer, with no pause of a round trip, for the whole of a wait for it."""
    if pause["cause"] != "round-trips":
        return False
    is_forward = (pause["direction"] == "a_to_b") != path.is_inverted
    # The other end's data, as the point next to it has them.
    way, index = (BACKWARD, len(path.names) - 1) if is_forward else (FORWARD, 0)
    sent, own = path.passages[index][way].sent, path.own(index, way)
    start_s = pause["start_s"] - path.origin_s
    times = np.sort(sent.time_s[own[sent.length[own] > 0]])
    times = times[(times >= start_s) & (times <= start_s + pause["duration_s"])]
    if len(times) < 2:
        return False
    trips = [view.connection["directions"][name]["rtt_ms"]["p95"] for view in path.points for name in DIRECTIONS]
    longest_s = max((trip for trip in trips if trip is not None), default=0.0) / 1e3
    idle_s = pause["duration_s"] - float(times[-1] - times[0])
    return idle_s <= MOST_IDLE * longest_s


def _of_direction(path: PathView, name: DirectionName) -> Iterator[Pause]:
    """The pauses of the sender of a direction."""
    is_forward = (name == "a_to_b") != path.is_inverted
    at = 0 if is_forward else len(path.points) - 1
    view = path.points[at]
    other: DirectionName = "b_to_a" if name == "a_to_b" else "a_to_b"
    own = view.connection["directions"][other if view.is_flipped else name]
    for found in sorted(own["stalls"], key=lambda one: -one["duration_s"])[:MOST_PAUSES]:
        # The packets of all points have the times of the first clock.
        stall: Stall = {**found, "start_s": path.by_first(at, found["start_s"])}
        place, why = _place(path, name, is_forward, stall)
        yield {
            "direction": name,
            "start_s": stall["start_s"],
            "duration_s": stall["duration_s"],
            "own_s": 0.0,
            "cause": stall["cause"],
            "point": view.name,
            "belongs_to": place,
            "evidence": why,
            "frames": list(stall["packets"]),
        }


def _place(path: PathView, name: DirectionName, is_forward: bool, stall: Stall) -> tuple[str | None, str]:
    sender, receiver = ("a", "b") if name == "a_to_b" else ("b", "a")
    cause = stall["cause"]
    if cause == "application":
        side = receiver if stall["side"] == "receiver" else sender
        return side, "its application sent nothing"
    if cause in _OF_RECEIVER:
        return receiver, "its window or its acknowledgment was waited for"
    if cause in _OF_SENDER:
        return sender, "it held data back"
    if cause == "reordering":
        late = [(part["forward"] if is_forward else part["backward"])["reordered"] for part in path.parts]
        at = max(range(len(late)), key=late.__getitem__)
        is_seen = late[at] > 0
        return (path.names[at], "packets overtook each other there") if is_seen else (None, "no part reorders packets")
    if cause in _REPAIR:
        return _of_loss(path, is_forward, stall, sender, receiver)
    if cause in _ON_PATH:
        return _of_delay(path, name, is_forward, stall, receiver)
    return None, "the capture does not show the cause"


def _of_loss(
    path: PathView,
    is_forward: bool,
    stall: Stall,
    sender: str,
    receiver: str,
) -> tuple[str | None, str]:
    """The part in which the packet was lost whose repair ends a pause, or its acknowledgment."""
    way = FORWARD if is_forward else BACKWARD
    order = range(len(path.names)) if is_forward else range(len(path.names) - 1, -1, -1)
    start_s = stall["start_s"] - path.origin_s
    end_s = start_s + stall["duration_s"]
    octets: tuple[int, int] | None = None
    last_s = first_s = start_s
    for step, index in enumerate(order):
        found = path.passages[index][way]
        own = path.own(index, way)
        if octets is None:
            ending = own[found.sent.rows["frame"][own] == stall["packets"][-1]]
            if not len(ending):
                return None, "the frame that ends it was not compared"
            octets = (
                int(found.sent.start[ending[0]]),
                max(int(found.sent.end[ending[-1]]), int(found.sent.start[ending[0]]) + 1),
            )
            last_s = float(found.sent.time_s[ending[0]])
        copies = _copies(found, own, octets, last_s)
        if not step and not len(copies):
            octets = _probed(found, own, octets, last_s)
            copies = _copies(found, own, octets, last_s)
        if not len(copies):
            if step == 0:
                return _outer(path, sender, is_first=is_forward), "no earlier copy passed the point"
            return None, "no point has an earlier copy"
        lost = copies[found.is_lost[copies]]
        if len(lost) == len(copies):
            return path.names[index], f"lost there: frame {int(found.sent.rows['frame'][lost[-1]])}"
        came = found.received.time_s[found.mate[copies[found.mate[copies] != NONE]]]
        if not len(came):
            return None, "the next point did not capture then"
        last_s, first_s = float(came.max()) + 1e-9, float(came.min())
    if octets is None:
        return None, "the frame that ends it was not compared"
    # A later acknowledgment crossed the packet that ends the pause.
    outside_ms = path.answers_ms[0 if is_forward else 1] or 0.0
    to_sender_ms = outside_ms + sum(part["round_trip_ms"] or 0.0 for part in path.parts) / 2
    return _of_answer(path, is_forward, octets, (first_s, end_s - to_sender_ms / 1e3), (sender, receiver))


def _probed(found: Passage, own: Indices, octets: tuple[int, int], before_s: float) -> tuple[int, int]:
    """The octet before new data: a tail loss probe may send new data (RFC 8985 §7.3) when the data before is lost."""
    earlier = own[(found.sent.time_s[own] < before_s) & (found.sent.length[own] > 0)]
    is_new = len(earlier) > 0 and int(found.sent.end[earlier].max()) == octets[0]
    return (octets[0] - 1, octets[0]) if is_new else octets


def _outer(path: PathView, end: str, *, is_first: bool) -> str:
    """The part between an end and the point next to it."""
    return f"{end}–{path.points[0].name}" if is_first else f"{path.points[-1].name}–{end}"


def _copies(found: Passage, own: Indices, octets: tuple[int, int], before_s: float) -> Indices:
    """Earlier packets of a connection with some of these octets, or with the same SYN or FIN."""
    start, end = octets
    ends = np.maximum(found.sent.end[own], found.sent.start[own] + 1)
    is_same = (found.sent.start[own] < end) & (ends > start) & (found.sent.time_s[own] < before_s)
    has_octets = (found.sent.length[own] > 0) | flagged(found.sent.rows[own], SYN | FIN)
    copies: Indices = own[is_same & has_octets]
    return copies


def _of_answer(
    path: PathView,
    is_forward: bool,
    octets: tuple[int, int],
    times: tuple[float, float],
    ends: tuple[str, str],
) -> tuple[str | None, str]:
    """The part in which the acknowledgment of octets was lost, that had passed the point next to their receiver."""
    way = BACKWARD if is_forward else FORWARD
    order = range(len(path.names) - 1, -1, -1) if is_forward else range(len(path.names))
    sender, receiver = ends
    for step, index in enumerate(order):
        found = path.passages[index][way]
        own = path.own(index, way)
        sent = found.sent
        is_answer = (
            (sent.ack[own] - ACK_ZERO >= octets[1]) & (sent.time_s[own] >= times[0]) & (sent.time_s[own] <= times[1])
        )
        answers = own[is_answer]
        if not len(answers) and not step:
            told = "an earlier copy passed the last point, and no acknowledgment came back"
            return _outer(path, receiver, is_first=not is_forward), told
        if not len(answers) or found.is_lost[answers].all():
            return path.names[index], "the acknowledgment was lost there"
    return _outer(path, sender, is_first=is_forward), "the acknowledgment passed all points"


def _of_delay(
    path: PathView,
    name: DirectionName,
    is_forward: bool,
    stall: Stall,
    receiver: str,
) -> tuple[str | None, str]:
    """The part that has most of the round trip, or of the queue that makes it longer; or the part beyond.

    The round trip is the sender's, as the point next to it measures it.
    """
    view = path.points[0 if is_forward else -1]
    other: DirectionName = "b_to_a" if name == "a_to_b" else "a_to_b"
    trip = view.connection["directions"][other if view.is_flipped else name]["rtt_ms"]
    if trip["min"] is None or trip["median"] is None:
        return None, "no round trip was measured"
    extra = [_excess(path, index, stall) for index in range(len(path.parts))]
    base = [part["round_trip_ms"] or 0.0 for part in path.parts]
    if stall["cause"] == "bottleneck":
        own, whole, told = extra, max(trip["median"] - trip["min"], sum(extra)), "packets waited {:.1f} ms more there"
    else:
        own = [one + more for one, more in zip(base, extra, strict=True)]
        whole, told = max(trip["median"], sum(own)), "a round trip there takes {:.1f} ms"
    at = max(range(len(own)), key=own.__getitem__)
    if whole > 0 and own[at] >= MOST_EXCESS * whole:
        return path.names[at], told.format(own[at])
    if whole > 0 and sum(own) < MOST_EXCESS * whole:
        return _outer(path, receiver, is_first=not is_forward), f"{whole - sum(own):.1f} of {whole:.1f} ms are there"
    return None, "no part has most of the delay"


def _excess(path: PathView, index: int, stall: Stall) -> float:
    """How much longer than at least packets took in a part during a pause and as long before, both ways, in ms."""
    start_s = stall["start_s"] - path.origin_s - stall["duration_s"]
    end_s = stall["start_s"] - path.origin_s + stall["duration_s"]
    total = 0.0
    for way in (FORWARD, BACKWARD):
        found = path.passages[index][way]
        own = path.own(index, way)
        near = own[(found.mate[own] != NONE) & (found.sent.time_s[own] >= start_s) & (found.sent.time_s[own] <= end_s)]
        least = path.parts[index]["forward" if way == FORWARD else "backward"]["delay_ms"]["min"]
        if len(near) and least is not None:
            total += float(np.median(found.delay_s[near])) * 1e3 - least
    return total


def uncovered_s(pauses: Sequence[Pause]) -> list[float]:
    """The time of each pause that no other pause with a cause covers.

    An end that waits for data pauses because the other one does: `round-trips` come last, then shorter ones.
    """
    order = sorted(range(len(pauses)), key=lambda i: (pauses[i]["cause"] == "round-trips", -pauses[i]["duration_s"]))
    covered: list[tuple[float, float]] = []
    made = [0.0] * len(pauses)
    for index in order:
        start = pauses[index]["start_s"]
        end = start + pauses[index]["duration_s"]
        inside = sorted((max(low, start), min(high, end)) for low, high in covered if low < end and high > start)
        made[index] = end - start - sum(high - low for low, high in inside)
        covered = _joined(covered, start, end)
    return made


def _joined(covered: Sequence[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    """Separate intervals, with one more."""
    apart = [one for one in covered if one[1] < start or one[0] > end]
    touching = [one for one in covered if not (one[1] < start or one[0] > end)]
    low = min([start, *(one[0] for one in touching)])
    high = max([end, *(one[1] for one in touching)])
    return [*apart, (low, high)]
