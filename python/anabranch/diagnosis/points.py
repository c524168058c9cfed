"""Packets of captured connections for their charts, from a second pass over the capture."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from anabranch import _engine
from anabranch.diagnosis.diagnosis import Diagnosis, directions
from anabranch.diagnosis.document import Connection, DirectionName, EndName, Limit, Retransmission, Stall
from anabranch.errors import UserError
from anabranch.progress import Progress

MOST_POINTS = 20_000
"""Points of one kind and direction of a connection."""
MOST_STALLS = 30
"""The longest pauses of a direction that have a packet ladder."""
MOST_RETRANSMISSIONS = 120
"""Retransmissions of a direction that have a packet ladder: the first ones."""


class Thinned(TypedDict):
    """Points, evenly chosen; ``of`` is the number of all. `crates/diagnose/src/trace.rs` describes their values."""

    points: list[tuple[Any, ...]]
    of: int


class TracedWay(TypedDict):
    """The points of one direction of data, and its limits over time."""

    sent: Thinned
    acknowledged: Thinned
    sacked: Thinned
    round_trips: Thinned
    limits: list[tuple[float, float, Limit]]


Near = TypedDict(
    "Near",
    {
        "packet": int, "index": int, "time_s": float, "from": EndName, "seq": int | None, "bytes": int,
        "ack": int | None, "window": int | None, "flags": list[str], "sacks": list[tuple[int, int]],
    },
)  # fmt: skip
"""A packet near a frame that has a ladder."""


class Trace(TypedDict):
    """The points of a connection, and its packets near frames that have a ladder."""

    id: int
    a_to_b: TracedWay
    b_to_a: TracedWay
    packets: list[Near]


@dataclass(frozen=True)
class Pause:
    """A pause, and the frames around which its ladder is drawn."""

    direction: DirectionName
    row: Stall
    frames: tuple[int, ...]

    @property
    def time_s(self) -> float:
        """Its end."""
        return self.row["start_s"] + self.row["duration_s"]


@dataclass(frozen=True)
class Again:
    """A retransmission, and the frames around which its ladder is drawn."""

    direction: DirectionName
    row: Retransmission
    frames: tuple[int, ...]

    @property
    def time_s(self) -> float:
        """Its time."""
        return self.row["time_s"]


def moments(connection: Connection) -> list[Pause | Again]:
    """Pauses and retransmissions with a packet ladder, by time: the longest pauses, the first retransmissions."""
    made: list[Pause | Again] = []
    for name, way in directions(connection):
        longest = sorted(way["stalls"], key=lambda stall: -stall["duration_s"])[:MOST_STALLS]
        made += [Pause(name, stall, tuple(stall["packets"])) for stall in longest]
        for again in way["retransmissions"][:MOST_RETRANSMISSIONS]:
            frames = (again["earlier"], again["packet"]) if again["earlier"] else (again["packet"],)
            made.append(Again(name, again, frames))
    return sorted(made, key=lambda moment: moment.time_s)


def points(document: Diagnosis, connections: Iterable[Connection]) -> dict[int, Trace]:
    """The packets of some connections, by their numbers; the capture is read once more.

    Raises:
        UserError: The capture cannot be read any more.
    """
    chosen = list(connections)
    frames = {frame for one in chosen for moment in moments(one) for frame in moment.frames}
    numbers = [one["id"] for one in chosen]
    try:
        with Progress("charts", 1) as bar:
            found = _engine.diagnose_trace(document["file"], numbers, frames, MOST_POINTS, bar.update)
    except _engine.CaptureError as error:
        raise UserError(str(error), file=document["file"]) from None
    return {one["id"]: one for one in json.loads(found)}
