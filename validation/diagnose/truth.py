"""Which copies of data a receiver takes, and so which retransmissions were needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass
class Sent:
    """A segment with data, in the order of sending."""

    start: int
    end: int
    stamp: float
    """When it was sent, in the milliseconds of its ``TSval``."""
    arrived: float | None
    taken: bool | None = None
    """Whether the receiver took it, new or not; ``None`` if that cannot be told."""


WINDOW = 1
"""By how many milliseconds a timestamp may be older, in Linux (``TCP_PAWS_WINDOW``)."""


def take(segments: Iterable[Sent]) -> None:
    """Decide for each segment that arrived whether PAWS discards it: R1 of RFC 7323 §5.3.

    ``TS.Recent`` follows segments that begin at or before what was acknowledged last (RFC 7323 §4.3).
    """
    reached = 0
    beyond: list[tuple[int, int]] = []
    recent = float("-inf")
    arrived = sorted((one for one in segments if one.arrived is not None), key=lambda one: one.arrived or 0.0)
    for one in arrived:
        behind = recent - one.stamp
        one.taken = True if behind <= WINDOW else False if behind > WINDOW + 1 else None
        if behind > WINDOW:
            continue
        if one.start <= reached:
            recent = max(recent, one.stamp)
        beyond.append((one.start, one.end))
        beyond.sort()
        while beyond and beyond[0][0] <= reached:
            reached = max(reached, beyond.pop(0)[1])


def needed(segments: list[Sent]) -> list[bool | None]:
    """For each segment whether it was a retransmission that was needed; ``None`` for no retransmission, or undecided."""
    take(segments)
    verdicts: list[bool | None] = []
    copies: dict[int, list[Sent]] = {}
    highest = 0
    for one in segments:
        if one.start >= highest:
            verdicts.append(None)
        else:
            verdicts.append(_verdict(one, highest, copies))
        for octet in range(one.start // GRAIN, (one.end - 1) // GRAIN + 1):
            copies.setdefault(octet, []).append(one)
        highest = max(highest, one.end)
    return verdicts


GRAIN = 1024
"""Copies are found by the kibibytes that they touch."""


def _verdict(one: Sent, highest: int, copies: dict[int, list[Sent]]) -> bool | None:
    near = {id(copy): copy for grain in range(one.start // GRAIN, (one.end - 1) // GRAIN + 1) for copy in copies.get(grain, [])}
    overlapping = sorted((c for c in near.values() if c.start < one.end and one.start < c.end), key=lambda c: c.start)
    for sure in (True, False):
        reach = one.start
        for copy in overlapping:
            if (copy.taken is True or (not sure and copy.taken is None and copy.arrived is not None)) and copy.start <= reach:
                reach = max(reach, copy.end)
        is_needed = reach < min(one.end, highest)
        if sure and not is_needed:
            return False
        if not sure:
            return True if is_needed else None
    return None
