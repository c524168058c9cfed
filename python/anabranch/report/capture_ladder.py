"""The packet ladders of a captured connection: its packets at the capture point around a pause or retransmission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from anabranch.charts.capture import VERDICTS
from anabranch.diagnosis.diagnosis import directions
from anabranch.diagnosis.document import Connection, Transport
from anabranch.diagnosis.points import Again, Near, Pause, Trace
from anabranch.diagnosis.text import cause_text, frame_noun
from anabranch.text.lines import pause_length

AROUND = 6
"""Packets before and after a frame in a ladder."""


class Moments(TypedDict):
    """The moments of a connection with a ladder.

    Attributes:
        moments: Time (s), sequence (MB), a sentence, the marked frames, the rows of the ladder, in which a negative
            number is a number of omitted packets.
        rows: Frame, time (s), whether ``a`` sent it, its content, whether it is a retransmission.
    """

    a: str
    b: str
    moments: list[tuple[float, float, str, list[int], list[int]]]
    rows: list[tuple[int, float, bool, str, bool]]


def moment_data(connection: Connection, traced: Trace, chosen: Sequence[Pause | Again], origin: float) -> Moments:
    """The data for a click in the sequence chart: sentence and ladder."""
    rows = traced["packets"]
    place = {row["packet"]: i for i, row in enumerate(rows)}
    again = {one["packet"] for _, way in directions(connection) for one in way["retransmissions"]}
    made = []
    for moment in chosen:
        at = [place[frame] for frame in moment.frames if frame in place]
        last = rows[at[-1]] if at else None
        own = moment.row["seq"] if isinstance(moment, Again) else 0
        height = last["seq"] if last and last["seq"] is not None else own
        sentence = _sentence(connection, moment, origin)
        made.append((moment.time_s - origin, max(height, 0) / 1e6, sentence, list(moment.frames), _places(rows, at)))
    told = [
        (
            row["packet"],
            round(row["time_s"] - origin, 7),
            row["from"] == "a",
            _carried(row, connection["transport"]),
            row["packet"] in again,
        )
        for row in rows
    ]
    return {"a": connection["a"], "b": connection["b"], "moments": made, "rows": told}


_QUIC = {"SYN": "Initial", "FIN": "CONNECTION_CLOSE"}
"""The packets of QUIC that stand for flags of TCP."""


def _places(rows: Sequence[Near], marks: Sequence[int]) -> list[int]:
    """The rows around the given places; a negative number is a number of omitted packets."""
    made: list[int] = []
    for place in range(len(rows)):
        if not any(abs(place - mark) <= AROUND and _near(rows, place, mark) for mark in marks):
            continue
        if made and (gap := rows[place]["index"] - rows[made[-1]]["index"] - 1) > 0:
            made += [-gap, place]
        else:
            made.append(place)
    return made


def _near(rows: Sequence[Near], place: int, mark: int) -> bool:
    return abs(rows[place]["index"] - rows[mark]["index"]) <= AROUND


def _carried(row: Near, transport: Transport) -> str:
    """The content of a packet, in a few words."""
    is_quic = transport == "quic"
    parts = [_QUIC.get(flag, flag) if is_quic else flag for flag in row["flags"] if flag != "PSH"]
    if row["bytes"] and row["seq"] is not None:
        parts.append(f"{row['seq']:,} +{row['bytes']:,}")
    elif row["ack"] is not None and "RST" not in row["flags"]:
        parts.append(f"ack {row['ack']:,}")
    if row["sacks"]:
        parts.append(("and " if is_quic else "SACK ") + ", ".join(f"{start:,}–{end:,}" for start, end in row["sacks"]))
    if row["window"] == 0 and "RST" not in row["flags"]:
        parts.append("window 0")
    return " ".join(parts)


def _sentence(connection: Connection, moment: Pause | Again, origin: float) -> str:
    sender = connection["a" if moment.direction == "a_to_b" else "b"]
    noun = frame_noun(connection)
    if isinstance(moment, Pause):
        stall = moment.row
        return (
            f"Pause of {pause_length(stall['duration_s'])} of {sender}, from {stall['start_s'] - origin:.6f} s on, "
            f"between {noun}s {' and '.join(map(str, stall['packets']))}: {cause_text(stall)}."
        )
    row = moment.row
    verdict = VERDICTS[row["needed"]]
    place = "on the path" if connection["transport"] == "quic" else f"{row['lost']} the capture point"
    lost = f", lost {place}" if row["lost"] != "unknown" else ""
    earlier = f", earlier copy in {noun} {row['earlier']}" if row["earlier"] else ""
    octets = f"{row['seq']:,} to {row['seq'] + row['bytes']:,}"
    return (
        f"{noun.capitalize()} {row['packet']}, {row['time_s'] - origin:.6f} s: {sender} retransmits octets {octets}; "
        f"trigger {row['trigger']}, {verdict} ({row['evidence']}){lost}{earlier}."
    )
