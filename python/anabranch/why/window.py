"""Events of the congestion window: the table ``window_events``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.result.table import Table

COLUMNS = ("flow", "time_s", "event", "cwnd_before_packets", "cwnd_after_packets", "ssthresh_packets")

BEGINS = {
    "recovery-entered": "fast recovery",
    "rto": "timeout",
    "timer-rule": "restart by a timer rule",
}
"""Events that begin an episode, and the names of the episodes."""
ENDS = "recovery-left"
AFTERWARDS = frozenset({"undo", "tlp"})
"""Events that belong to the previous episode, even after its end."""


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """An event of the congestion window.

    Attributes:
        time_s: Time of the event.
        event: Its name: ``recovery-entered``, ``recovery-left``, ``rto``, ``timer-rule``, ``undo``, ``ecn``, ``tlp``
            (a probe has repaired a loss), …
        cwnd_before_packets: cwnd before.
        cwnd_after_packets: cwnd after.
        ssthresh_packets: ssthresh after; ``None`` before the first reduction.
    """

    time_s: float
    event: str
    cwnd_before_packets: float | None
    cwnd_after_packets: float | None
    ssthresh_packets: float | None


def window_events(table: Table) -> dict[str, list[WindowEvent]]:
    """The events of each flow, in order of time, which is the table's order."""
    found: dict[str, list[WindowEvent]] = {}
    for flow, *rest in table.select(*COLUMNS):
        found.setdefault(flow, []).append(WindowEvent(*rest))
    return found
