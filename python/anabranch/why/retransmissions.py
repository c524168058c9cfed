"""Retransmissions, and whether each was needed.

A retransmission was needed if part of what it carries was in no earlier packet that arrived: an earlier packet that was
still under way and arrived after all makes it needless, whatever its sender could know. Where earlier packets are
still under way when the run ends there is no telling. Bytes that error correction rebuilds have arrived by the packet
that carried them first. A flow's ``spurious_retransmissions`` counts by the same rule. The engine works that out, and
finds the packet that carried the same bytes before: the last that carried all of them from the same first byte, or else
the last that carried any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.result.table import Table

COLUMNS = ("flow", "direction", "time_s", "sequence_bytes", "payload_bytes", "cause", "needed", "original_s",
           "original_fate", "original_where", "original_received_s", "fate")  # fmt: skip
"""What is read of the table of retransmissions."""

UNKNOWN_CAUSE = "unknown"


@dataclass(frozen=True, slots=True)
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
