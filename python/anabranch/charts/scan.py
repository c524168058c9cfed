"""One pass over the packets of a run for all charts: the whole table may not fit into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.charts.cloud import Cloud

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.result.result import RunResult
    from anabranch.result.table import Table

MAX_SHOWN = 12
"""Link directions, or flows with reordered packets, in one chart; more lines cannot be distinguished."""
LOST = ("dropped", "too-big", "lost")
"""Fates of a packet that did not arrive."""
_COLUMNS = ("flow", "payload_bytes", "retransmission", "sent_s", "received_s", "fate", "reordered",
            "reordering_extent_packets")  # fmt: skip


class Scan:
    """The packets of a run in short.

    Args:
        result: The run.
        losses_of: The flow whose lost packets are drawn.

    Attributes:
        retransmissions: Number of retransmissions of each flow, in the order of the table.
        first_loss_s: Time of the first lost packet's transmission.
        first_retransmission_s: Time of the first retransmission.
        lost_s: Times at which the lost packets with data of the flow ``losses_of`` were sent.
        late: Arrival and reordering extent of the reordered packets, by flow.
    """

    def __init__(self, result: RunResult, losses_of: str | None = None) -> None:
        import numpy as np

        self.retransmissions: dict[str, int] = {}
        self.first_loss_s: float | None = None
        self.first_retransmission_s: float | None = None
        self.late: dict[str, Cloud] = {}
        lost: list[NDArray[np.float64]] = []
        for part in result.plain_parts(_COLUMNS):
            sent, again, gone = part.numbers("sent_s"), part.flags("retransmission"), part.is_in("fate", *LOST)
            self._count(part)
            self.first_loss_s = _least(self.first_loss_s, sent[gone])
            self.first_retransmission_s = _least(self.first_retransmission_s, sent[again])
            if losses_of is not None:
                lost.append(sent[gone & part.is_in("flow", losses_of) & (part.numbers("payload_bytes") > 0)])
            self._add_late(part)
        self.lost_s = np.sort(np.concatenate(lost)) if lost else np.empty(0)

    def most_retransmitting(self) -> str | None:
        """The flow with most retransmissions, the first of several equal ones; ``None`` without packets."""
        counts = self.retransmissions
        return max(counts, key=counts.__getitem__) if counts else None

    def _count(self, part: Table) -> None:
        import numpy as np

        flows = part.column("flow")
        counts = np.bincount(flows.values, weights=part.flags("retransmission"), minlength=len(flows.names))
        for flow, count in zip(flows.names, counts, strict=True):
            self.retransmissions[flow] = self.retransmissions.get(flow, 0) + int(count)

    def _add_late(self, part: Table) -> None:
        late = part.flags("reordered") & part.has("received_s")
        if not late.any():
            return
        for (flow,), own in part.select("flow", "received_s", "reordering_extent_packets").take(late).parts("flow"):
            if flow in self.late or len(self.late) < MAX_SHOWN:
                cloud = self.late.setdefault(flow, Cloud())
                cloud.add(own.numbers("received_s"), own.numbers("reordering_extent_packets"))


def _least(known: float | None, values: NDArray[np.float64]) -> float | None:
    if not len(values):
        return known
    least = float(values.min())
    return least if known is None else min(known, least)
