"""Retransmissions in the table of packets, and whether each was needed.

A retransmission was needed if part of what it carries was in no earlier packet that arrived: an earlier packet that was
still under way and arrived after all makes it needless, whatever its sender could know. Where earlier packets are
still under way when the run ends there is no telling. The engine works that out and records it in the table's column
``needed``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("flow", "direction", "packet_index", "sequence_bytes", "payload_bytes", "retransmission", "cause", "sent_s",
           "received_s", "fate", "where", "needed")  # fmt: skip
"""What is read of the table of packets."""

UNKNOWN_CAUSE = "unknown"


@dataclass(frozen=True)
class Retransmission:
    """A packet that was retransmitted.

    Attributes:
        flow: The flow, with its direction where that is the reverse one.
        time_s: When it was retransmitted.
        sequence_bytes: Its first byte.
        payload_bytes: How many bytes it carries.
        cause: What triggered it.
        needed: Whether part of what it carries was in no earlier packet that arrived; ``None`` where an earlier one is
            still under way at the end.
        original_s: When the bytes were sent before, the last time.
        original_fate: What became of that packet: delivered, dropped, lost or in-flight.
        original_where: The element that dropped or lost it.
        original_received_s: When it arrived.
        fate: What became of the retransmission itself.
    """

    flow: str
    time_s: float
    sequence_bytes: int
    payload_bytes: int
    cause: str
    needed: bool | None
    original_s: float | None
    original_fate: str | None
    original_where: str | None
    original_received_s: float | None
    fate: str

    @property
    def is_syn(self) -> bool:
        """Whether it is a SYN, or the answer to one: of what carries nothing, only these are recorded."""
        return self.payload_bytes == 0


def retransmissions(packets: pl.DataFrame) -> list[Retransmission]:
    """Every retransmission of a table of packets, in the order of its connections and of sending."""
    found: list[Retransmission] = []
    for rows in _connections(packets):
        before: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
        sent: list[Mapping[str, Any]] = []
        for row in rows:
            if row["retransmission"]:
                found.append(_retransmission(row, before[row["sequence_bytes"]], sent))
            before[row["sequence_bytes"]].append(row)
            sent.append(row)
    return found


def _connections(packets: pl.DataFrame) -> Iterator[list[Mapping[str, Any]]]:
    """The packets of each connection and direction; of a flow with many connections, their indices start over."""
    rows: list[Mapping[str, Any]] = []
    for row in packets.select(COLUMNS).iter_rows(named=True):
        if rows and (
            (row["flow"], row["direction"]) != (rows[-1]["flow"], rows[-1]["direction"])
            or row["packet_index"] <= rows[-1]["packet_index"]
        ):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _retransmission(
    row: Mapping[str, Any], same: Sequence[Mapping[str, Any]], sent: Sequence[Mapping[str, Any]]
) -> Retransmission:
    earlier = [other for other in same if _end(other) >= _end(row)]
    if not earlier:
        # Cut differently than before: look for all that overlaps.
        earlier = [o for o in sent if o["sequence_bytes"] < _end(row) and _end(o) > row["sequence_bytes"]]
    last = earlier[-1] if earlier else None
    reverse = row["direction"] != "forward"
    return Retransmission(
        flow=f"{row['flow']} ({row['direction']})" if reverse else row["flow"],
        time_s=row["sent_s"],
        sequence_bytes=row["sequence_bytes"],
        payload_bytes=row["payload_bytes"],
        cause=row["cause"] or UNKNOWN_CAUSE,
        needed=row["needed"],
        original_s=last["sent_s"] if last else None,
        original_fate=last["fate"] if last else None,
        original_where=last["where"] if last else None,
        original_received_s=last["received_s"] if last else None,
        fate=row["fate"],
    )


def _end(row: Mapping[str, Any]) -> int:
    return int(row["sequence_bytes"]) + int(row["payload_bytes"])
