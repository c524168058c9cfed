"""The outcome of each packet between two points: arrived, lost, not captured, duplicated, added, reordered, delayed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.multipoint.clocks import RESOLUTION_S
from anabranch.multipoint.listing import (
    ACK,
    HAS_ID,
    RST,
    SYN,
    Flags,
    Indices,
    Times,
    distinct,
    flagged,
    has,
    is_among,
    mixed,
)
from anabranch.multipoint.matching import NONE, Matched, Window
from anabranch.multipoint.sides import ACK_ZERO, FORWARD, NO_ACK, Side, covers


@dataclass(frozen=True)
class Passage:
    """One way between two points. Masks are over the packets of ``sent`` or of ``received``.

    Attributes:
        way: ``FORWARD`` or ``BACKWARD``.
        sent: The packets at the point that they pass first.
        received: The packets at the other point.
        mate: The index in ``received`` of each packet of ``sent``, or ``NONE``.
        is_due: Packets that the other point must have seen if they arrived.
        is_lost: Packets that did not reach the other point.
        is_unseen: Packets that arrived, and that the capture of the other point lacks.
        is_duplicate: Received copies of a packet that was sent once.
        is_added: Received packets that nobody sent past the first point.
        is_missed: Received packets that the capture of the first point lacks.
        is_reordered: Received packets that were sent before one that arrived earlier (RFC 4737).
        delay_s: The delay of each packet of ``sent`` that arrived; NaN otherwise.
    """

    way: int
    sent: Side
    received: Side
    mate: Indices
    is_due: Flags
    is_lost: Flags
    is_unseen: Flags
    is_duplicate: Flags
    is_added: Flags
    is_missed: Flags
    is_reordered: Flags
    delay_s: Times


def passage(matched: Matched, way: int, windows: tuple[Window, Window]) -> Passage:
    """One way between two points.

    Args:
        matched: The packets of the points.
        way: The way.
        windows: The times of both captures, by the first clock.
    """
    is_forward = way == FORWARD
    up, down = (matched.one, matched.two) if is_forward else (matched.two, matched.one)
    mates = (matched.mate, matched.mate_of_two) if is_forward else (matched.mate_of_two, matched.mate)
    up_window, down_window = windows if is_forward else windows[::-1]
    at, there = np.flatnonzero(up.way == way), np.flatnonzero(down.way == way)
    place = np.full(len(down) + 1, NONE, np.int64)
    place[there] = np.arange(len(there))
    sent, received = up.at(at), down.at(there)
    mate = place[mates[0][at]]
    is_mated = mates[1][there] != NONE
    delay = np.full(len(sent), np.nan)
    came = mate != NONE
    delay[came] = received.time_s[mate[came]] - sent.time_s[came]
    least = float(np.nanmin(delay)) if came.any() else 0.0
    most = float(np.nanmax(delay)) if came.any() else 0.0
    is_due = (sent.time_s + least >= down_window.start_s - RESOLUTION_S) & (
        sent.time_s + most <= down_window.end_s + RESOLUTION_S
    )
    is_gone = is_due & ~came
    is_unseen = _arrived(sent, received, down, is_gone)
    is_expected = (received.time_s - most >= up_window.start_s - RESOLUTION_S) & (
        received.time_s - least <= up_window.end_s + RESOLUTION_S
    )
    is_extra = is_expected & ~is_mated
    is_duplicate, is_missed = _extra(sent, received, up, is_extra, is_mated, least)
    is_added = is_extra & ~is_duplicate & ~is_missed
    return Passage(
        way, sent, received, mate, is_due, is_gone & ~is_unseen, is_unseen, is_duplicate, is_added, is_missed,
        _reordered(sent, received, mate), delay,
    )  # fmt: skip


def _arrived(sent: Side, received: Side, down: Side, is_gone: Flags) -> Flags:
    """Data that is not in the other capture, although its receiver acknowledged it there."""
    highest = np.full(int(max(sent.stream.max(initial=0), down.other_stream.max(initial=0))) + 1, NO_ACK, np.int64)
    has_ack = down.ack != NO_ACK
    np.maximum.at(highest, down.other_stream[has_ack], down.ack[has_ack] - ACK_ZERO)
    is_acknowledged = (sent.length > 0) & (sent.end <= highest[sent.stream])
    found = is_gone & is_acknowledged & ~covers(received, sent.stream, sent.start, sent.end)
    # A sender repeats octets that did not arrive: of several copies the last one arrived.
    at = np.flatnonzero(found)[::-1]
    _, last = np.unique(mixed(sent.stream[at], sent.start[at]), return_index=True)
    made = np.zeros(len(sent), np.bool_)
    made[at[last]] = True
    return made


def _extra(
    sent: Side, received: Side, up: Side, is_extra: Flags, is_mated: Flags, least_s: float
) -> tuple[Flags, Flags]:
    """Packets without an original: the duplicates among them, and the packets that the first capture lacks."""
    core = received.core()
    is_copy = is_among(core, distinct(core[is_mated])) & ((received.length > 0) | flagged(received.rows, SYN))
    # An acknowledgment without data is repeated by its sender too: only the identification shows a duplicate.
    has_id = has(received.rows, HAS_ID) & (received.rows["ip_id"] != 0)
    named = core ^ received.rows["ip_id"].astype(np.uint64)
    is_copy |= is_among(named, distinct(named[is_mated & has_id])) & has_id
    is_duplicate = is_extra & is_copy & ~flagged(received.rows, RST)
    # Octets that the first capture has nowhere, or an acknowledgment that passed it in no packet.
    is_new = (received.length > 0) & ~covers(sent, received.stream, received.start, received.end)
    return is_duplicate, is_extra & ~is_duplicate & is_new & _may_have_passed(up, received, least_s)


def _may_have_passed(up: Side, received: Side, least_s: float) -> Flags:
    """Data whose acknowledgment the first capture has, or would have after its last packet."""
    streams = int(max(received.stream.max(initial=0), up.other_stream.max(initial=0))) + 1
    highest = np.full(streams, NO_ACK, np.int64)
    latest = np.full(streams, -np.inf)
    has_ack = up.ack != NO_ACK
    np.maximum.at(highest, up.other_stream[has_ack], up.ack[has_ack] - ACK_ZERO)
    np.maximum.at(latest, up.other_stream[has_ack], up.time_s[has_ack])
    is_last = received.time_s + least_s > latest[received.stream]
    found: Flags = (received.end <= highest[received.stream]) | is_last
    return found


def _reordered(sent: Side, received: Side, mate: Indices) -> Flags:
    """Received packets that were sent before a packet of the same stream that arrived earlier."""
    made = np.zeros(len(received), np.bool_)
    index = np.full(len(received), NONE, np.int64)
    came = mate != NONE
    index[mate[came]] = np.flatnonzero(came)
    known = np.flatnonzero(index != NONE)
    order = known[np.lexsort((known, received.time_s[known], received.stream[known]))]
    line = received.stream[order] * (len(sent) + 1) + index[order]
    if len(line):
        made[order] = line < np.maximum.accumulate(line)
    return made


def kinds_of_added(found: Passage, chosen: Flags) -> dict[str, int]:
    """Numbers of added packets by kind: ``rst``, ``data``, ``ack``, ``other``."""
    rows = found.received.rows[chosen]
    is_reset = flagged(rows, RST)
    is_data = ~is_reset & (rows["bytes"] > 0)
    is_ack = ~is_reset & ~is_data & flagged(rows, ACK) & ~flagged(rows, SYN)
    counts = {"rst": is_reset, "data": is_data, "ack": is_ack, "other": ~(is_reset | is_data | is_ack)}
    return {name: int(mask.sum()) for name, mask in counts.items()}


def bursts(found: Passage, chosen: Flags) -> int:
    """Runs of lost packets of a stream, in the order in which they were sent."""
    due = np.flatnonzero(found.is_due & chosen)
    order = due[np.argsort(found.sent.stream[due], kind="stable")]
    lost = found.is_lost[order]
    before = np.concatenate(([False], lost[:-1] & (found.sent.stream[order[1:]] == found.sent.stream[order[:-1]])))
    return int((lost & ~before[: len(lost)]).sum())
