"""Packets of captured connections for their charts, from a second pass over the capture."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anabranch import _engine
from anabranch.diagnosis.diagnosis import Diagnosis, directions
from anabranch.diagnosis.document import Connection, DirectionName, Retransmission, Stall
from anabranch.errors import UserError
from anabranch.progress import Progress

MOST_POINTS = 20_000
"""Points of one kind and direction of a connection."""
MOST_STALLS = 30
"""The longest pauses of a direction that have a packet ladder."""
MOST_RETRANSMISSIONS = 120
"""Retransmissions of a direction that have a packet ladder: the first ones."""


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


def points(document: Diagnosis, connections: Iterable[Connection]) -> dict[int, dict[str, Any]]:
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
