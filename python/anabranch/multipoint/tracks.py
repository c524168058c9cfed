"""The packets of a connection with their times at all points, and the moments that a ladder shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict

from anabranch.multipoint.compare import ComparedPart, Points
from anabranch.multipoint.documents import Compared, Pause
from anabranch.multipoint.listing import ACK, FIN, RST, SYN
from anabranch.multipoint.matching import NONE
from anabranch.multipoint.passage import Passage
from anabranch.multipoint.sides import FORWARD, Side

MOST_MOMENTS = 40
"""Pauses, and losses, of a connection with a ladder."""
AROUND = 6
"""Packets before and after one that a ladder shows."""
_FLAGS = ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST"))


class Track(TypedDict):
    """A packet at all points; ``null`` for a point that it did not pass.

    Attributes:
        times: Its times, in s since the start of the comparison by the first clock.
        frames: Its frames.
        isForward: It goes from the first point to the last.
        isFromA: ``a`` sent it.
        isAgain: Its octets passed a point before.
        lost: It was lost between two points.
        text: Its content.
    """

    times: list[float | None]
    frames: list[int | None]
    isForward: bool
    isFromA: bool
    isAgain: bool
    lost: bool
    text: str


class Moment(TypedDict):
    """A moment with a ladder.

    Attributes:
        told: A sentence.
        pause_s: The length of the pause; 0 for a loss.
        marks: The marked rows.
        places: The shown rows; a negative number omits packets.
    """

    told: str
    pause_s: float
    marks: list[int]
    places: list[int]


def tracks(found: Points, number: int) -> list[Track]:
    """The packets of the connection of a pair, in the order of their first times."""
    comparison = found.comparison
    made: list[Track] = []
    known: dict[tuple[int, int, int], Track] = {}
    for index, part in enumerate(comparison.parts):
        _add(part, index, number, len(comparison.listings), made, known)
    made.sort(key=lambda one: min(time for time in one["times"] if time is not None))
    seen: set[tuple[bool, str]] = set()
    for one in made:
        key = (one["isFromA"], one["text"])
        one["isAgain"] = key in seen and "+" in one["text"]
        seen.add(key)
    return made


def _add(
    part: ComparedPart,
    index: int,
    number: int,
    points: int,
    made: list[Track],
    known: dict[tuple[int, int, int], Track],
) -> None:
    matched = part.matched
    lost = {_place(found.sent, i) for found in part.passages for i in _own_lost(found, number)}
    for i in (matched.one.pair == number).nonzero()[0].tolist():
        frame, start = _place(matched.one, i)
        track = known.get((index, frame, start)) or _track(matched.one, i, index, points, made)
        known[index, frame, start] = track
        track["lost"] |= track["isForward"] and (frame, start) in lost
        mate = int(matched.mate[i])
        if mate != NONE:
            _mark(track, matched.two, mate, index + 1)
            frame, start = _place(matched.two, mate)
            known[index + 1, frame, start] = track
    for j in ((matched.two.pair == number) & (matched.mate_of_two == NONE)).nonzero()[0].tolist():
        frame, start = _place(matched.two, j)
        track = _track(matched.two, j, index + 1, points, made)
        known[index + 1, frame, start] = track
        track["lost"] |= not track["isForward"] and (frame, start) in lost


def _own_lost(found: Passage, number: int) -> Iterator[int]:
    yield from (found.is_lost & (found.sent.pair == number)).nonzero()[0].tolist()


def _place(side: Side, index: int) -> tuple[int, int]:
    return int(side.rows["frame"][index]), int(side.start[index])


def _track(side: Side, index: int, point: int, points: int, made: list[Track]) -> Track:
    track: Track = {
        "times": [None] * points, "frames": [None] * points, "isForward": int(side.way[index]) == FORWARD,
        "isFromA": int(side.sender[index]) == 0, "isAgain": False, "lost": False, "text": _text(side, index),
    }  # fmt: skip
    _mark(track, side, index, point)
    made.append(track)
    return track


def _mark(track: Track, side: Side, index: int, point: int) -> None:
    track["times"][point] = round(float(side.time_s[index]), 7)
    track["frames"][point] = int(side.rows["frame"][index])


def _text(side: Side, index: int) -> str:
    """The content of a packet, in a few words; octets count from the first packet of the first capture."""
    row = side.rows[index]
    parts = [name for flag, name in _FLAGS if int(row["flags"]) & flag]
    length = int(side.end[index] - side.start[index])
    if length:
        parts.append(f"{int(side.start[index]):,} +{length:,}")
    elif int(row["flags"]) & ACK and "RST" not in parts:
        parts.append(f"ack {int(side.ack[index]) - (1 << 40):,}")
    if row["blocks"]:
        parts.append("SACK")
    if not row["window"] and "RST" not in parts:
        parts.append("window 0")
    return " ".join(parts)


def moments(
    connection: Compared, rows: Sequence[Track], start_s: float, pause_text: Callable[[Pause], str]
) -> list[Moment]:
    """The longest pauses and the first losses of a connection, by time."""
    by_frame = [
        {frame: i for i, row in enumerate(rows) if (frame := row["frames"][point]) is not None}
        for point in range(len(rows[0]["times"]) if rows else 0)
    ]
    made: list[tuple[float, Moment]] = []
    pauses = sorted(connection["pauses"], key=lambda one: -one["duration_s"])[:MOST_MOMENTS]
    for pause in pauses:
        for frames in by_frame:
            marks = [frames[frame] for frame in pause["frames"] if frame in frames]
            times = [time for mark in marks for time in rows[mark]["times"] if time is not None]
            if len(marks) == len(pause["frames"]) and any(
                abs(time + start_s - pause["start_s"]) < 0.5 for time in times
            ):
                break
        else:
            continue
        made.append(
            (
                pause["start_s"] - start_s,
                {
                    "told": pause_text(pause),
                    "pause_s": pause["duration_s"],
                    "marks": marks,
                    "places": _places(len(rows), marks),
                },
            )
        )
    lost = [i for i, row in enumerate(rows) if row["lost"]]
    for place in lost[:MOST_MOMENTS]:
        row = rows[place]
        time = next(one for one in row["times"] if one is not None)
        sender = connection["a" if row["isFromA"] else "b"]
        made.append(
            (
                time,
                {
                    "told": f"At {time:.4f} s a packet of {sender} was lost: {row['text']}.",
                    "pause_s": 0.0,
                    "marks": [place],
                    "places": _places(len(rows), [place]),
                },
            )
        )
    return [moment for _, moment in sorted(made, key=lambda one: one[0])]


def _places(count: int, marks: Sequence[int]) -> list[int]:
    shown = sorted({i for mark in marks for i in range(max(0, mark - AROUND), min(count, mark + AROUND + 1))})
    made: list[int] = []
    for i in shown:
        last = next((one for one in reversed(made) if one >= 0), None)
        if last is not None and i - last > 1:
            made.append(last - i + 1)
        made.append(i)
    return made
