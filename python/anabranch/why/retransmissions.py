"""Retransmissions, and whether each was needed.

A retransmission is needed if part of its data was in no earlier packet that arrived. An earlier packet that was still
in flight and arrived later makes it spurious, whatever its sender could know. If earlier packets are still in flight
when the run ends, it is undecided. Bytes rebuilt by error correction count as arrived with the packet that first
carried them. A flow's ``spurious_retransmissions`` follows the same rule. The engine evaluates it, and finds the packet
that carried the same bytes before: the last that carried all of them from the same first byte, otherwise the last that
carried any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.result.table import Table

COLUMNS = ("flow", "direction", "time_s", "sequence_bytes", "payload_bytes", "cause", "needed", "original_s",
           "original_fate", "original_where", "original_received_s", "fate")  # fmt: skip
"""The columns that are read from the table of retransmissions."""

UNKNOWN_CAUSE = "unknown"


@dataclass(frozen=True, slots=True)
class Retransmission:
    """A packet that was retransmitted.

    Attributes:
        flow: The flow, with its direction if it is the reverse one.
        time_s: Time of the retransmission.
        sequence_bytes: Its first byte.
        payload_bytes: Number of bytes that it carries.
        cause: Its trigger.
        needed: Whether part of its data was in no earlier packet that arrived; ``None`` if an earlier packet is still
            in flight at the end.
        original_s: Time of the last transmission of the bytes before.
        original_fate: The outcome of that packet: delivered, refused, dropped, lost or in-flight.
        original_where: The element that dropped or lost it.
        original_received_s: Time of its arrival.
        fate: The outcome of the retransmission itself.
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
        """Whether it is a SYN or SYN-ACK: no other packets without data are recorded."""
        return self.payload_bytes == 0


def retransmissions(table: Table) -> list[Retransmission]:
    """Every retransmission of the table, in the order of its connections and of sending."""
    return [
        Retransmission(
            flow if direction == "forward" else f"{flow} ({direction})",
            time_s,
            sequence_bytes,
            payload_bytes,
            cause or UNKNOWN_CAUSE,
            *rest,
        )
        for flow, direction, time_s, sequence_bytes, payload_bytes, cause, *rest in table.select(*COLUMNS)
    ]
