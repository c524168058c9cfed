"""Rows that compare the shares of flows: CAKE's isolation of flows and hosts, and its tins.

Every flow is ECN-capable and sends more than its share, so that the turns alone decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kernel.arrivals import MS, arrivals
from kernel.queue_rows import RATE, Row

HOSTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 3), (2, 4))
"""Source and destination of six flows: one source has three of the flows, and one destination two."""
ISOLATION = (
    "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate",
)  # fmt: skip
WARM_NS = 300 * MS
WITHIN = 0.005
"""Shares that differ by less agree: a packet of Linux's random rounding is more."""


class Left(Protocol):
    """Decisions of a queue."""

    @property
    def left(self) -> Mapping[int, float]:
        """Departure of each packet."""


def _isolation(mode: str) -> Row:
    queue = {"kind": "cake", "rate": RATE, "diffserv": "besteffort", "isolation": mode}
    return Row(f"cake bandwidth 12mbit besteffort {mode}", queue, "six", shapes=True, hosts=HOSTS)


def _tins(diffserv: str) -> Row:
    queue = {"kind": "cake", "rate": RATE, "diffserv": diffserv, "isolation": "flows"}
    return Row(f"cake bandwidth 12mbit {diffserv} flows", queue, "classes", shapes=True)


ROWS = (
    *map(_isolation, ISOLATION),
    *map(_tins, ("besteffort", "diffserv3", "diffserv4")),
    Row("cake unlimited diffserv4 flows", {"kind": "cake", "diffserv": "diffserv4", "isolation": "flows"}, "classes"),
)
HEAD = ("queue", "arrivals", "share of each flow: Linux", "here")


def shares(row: Row, decisions: Left) -> list[float]:
    """Each flow's share of the bytes that leave while all have a backlog."""
    packets = arrivals(row.shape)
    end = packets[-1].at_ns
    by_flow = [0] * (max(packet.flow for packet in packets) + 1)
    for number, at in decisions.left.items():
        if WARM_NS <= at < end:
            by_flow[packets[number].flow] += packets[number].size
    return [round(of / sum(by_flow), 3) for of in by_flow]


def cells(row: Row, linux: Sequence[float], ours: Sequence[float]) -> list[str]:
    """The cells of a row."""
    shown = (" ".join(f"{share:.1%}" for share in side) for side in (linux, ours))
    return [f"`{row.qdisc}`", row.shape, *shown]
