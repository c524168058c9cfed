"""ns-2's TCP with SACK over a long lossy link: ``docs/validation/ns2-sack-delay.md``."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing
from comparison.judging import Verdict
from comparison.oracle import read
from comparison.pages import Comparison, verdict_table
from comparison.runs import Case, simulate

NAME = "ns2-sack-delay"
SEEDS = 30
SHARE = 0.05
"""Difference of means that is accepted in any case, as a share of theirs."""
ON_THE_WIRE = 1500 / 1460
"""ns-2 counts whole packets."""

QUEUES = {"hb50": "48 packets", "hb1e6": "unlimited"}
"""Their names of the sending host's queue, and ours; the page says why 48 stands for 50."""


@dataclass(frozen=True)
class Theirs:
    """A row of ns-2's figures: means over ``seeds`` runs, and the standard deviation of the throughput."""

    loss_on: str
    queue: str
    delay_ms: float
    loss_percent: float
    seeds: int
    throughput: float
    sd: float
    retransmission_rate: float
    timeouts: float
    fast_recoveries: float

    @property
    def key(self) -> tuple[str, str, float]:
        """What names the row: where packets are lost, the queue, the delay of the middle link."""
        return (self.loss_on, self.queue, self.delay_ms)


@dataclass(frozen=True)
class Ours:
    """The same flow here: likewise over ``seeds`` runs."""

    seeds: int
    throughput: float
    sd: float
    retransmission_rate: float
    timeouts: float
    fast_recoveries: float


@dataclass(frozen=True)
class Row:
    """A row of ns-2's figures beside ours."""

    theirs: Theirs
    ours: Ours

    @property
    def accepted(self) -> float:
        """How far apart the means may be: 5 %, or twice the standard error of their difference if that is more."""
        error = math.sqrt(self.theirs.sd**2 / self.theirs.seeds + self.ours.sd**2 / self.ours.seeds)
        return max(SHARE * self.theirs.throughput, 2 * error)

    @property
    def inside(self) -> bool:
        """Whether they are no further apart."""
        return abs(self.ours.throughput - self.theirs.throughput) <= self.accepted


def table() -> list[Theirs]:
    """Read ns-2's figures."""
    return [_theirs(row) for row in read(f"{NAME}.csv")]


def _theirs(row: dict[str, str]) -> Theirs:
    loss_on, queue = row["variant"].split("_")
    return Theirs(
        loss_on,
        queue,
        float(row["delay_ms"]),
        float(row["loss_percent"]),
        int(row["seeds"]),
        float(row["throughput_mbit_s"]),
        float(row["sd"]),
        float(row["retransmission_rate"]),
        float(row["timeouts"]),
        float(row["fast_recoveries"]),
    )


def case(row: Theirs, seeds: int = SEEDS, transport: Sequence[str] = ()) -> Case:
    """Return what is run for a row; ``transport`` has switches to change, such as ``recovery_pace="pipe"``."""
    loss = row.loss_percent / 100
    sets = (
        f'link.middle.delay="{row.delay_ms:g} ms"',
        f"link.middle.forward.impair.0.rate={loss if row.loss_on != 'rev' else 0.0}",
        f"link.middle.reverse.impair.0.rate={loss if row.loss_on != 'fwd' else 0.0}",
        f'link.sending.queue.limit="{QUEUES[row.queue]}"',
        *(f"flow.main.transport.{switch}" for switch in transport),
    )
    return Case(f"{NAME}.toml", sets, seeds)


def compare(rows: Sequence[Theirs], seeds: int = SEEDS, transport: Sequence[str] = ()) -> list[Row]:
    """Set ours beside each of their rows."""
    cases = {row: case(row, seeds, transport) for row in rows}
    runs = simulate(cases.values(), NAME)
    return [Row(row, _ours([run["flows"]["main"] for run in runs[cases[row]]])) for row in rows]


def _ours(flows: Sequence[dict[str, Any]]) -> Ours:
    throughput = [flow["goodput_mbit_s"] * ON_THE_WIRE for flow in flows]
    return Ours(
        len(flows),
        statistics.fmean(throughput),
        statistics.stdev(throughput),
        statistics.fmean(flow["retransmitted_packets"] / flow["sent_packets"] for flow in flows),
        statistics.fmean(flow["timeouts"] for flow in flows),
        statistics.fmean(flow["fast_recoveries"] for flow in flows),
    )


LOSS = {"fwd": "data", "both": "both ways", "rev": "acknowledgments"}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge by where packets are lost and by the queue."""
    found = []
    for loss_on, queue in dict.fromkeys((row.theirs.loss_on, row.theirs.queue) for row in rows):
        some = [row.inside for row in rows if (row.theirs.loss_on, row.theirs.queue) == (loss_on, queue)]
        condition = f"loss of {LOSS[loss_on]}, {QUEUES[queue]} in the host's queue: mean throughput as ns-2's"
        found.append(Verdict(condition, f"{sum(some)} of {len(some)} rows", all(some)))
    return found


HEAD = ["loss of", "host's queue", "delay", "throughput there", "here", "difference", "accepted", "",
        "sent again there", "here", "timeouts there", "here", "fast recoveries there", "here"]  # fmt: skip


def row_cells(row: Row) -> list[str]:
    """A row of the page's table."""
    theirs, ours = row.theirs, row.ours
    return [
        LOSS[theirs.loss_on],
        QUEUES[theirs.queue],
        f"{theirs.delay_ms:g} ms",
        f"{theirs.throughput:.3f} ({theirs.sd:.3f})",
        f"{ours.throughput:.3f} ({ours.sd:.3f})",
        f"{ours.throughput / theirs.throughput - 1:+.1%}",
        f"± {row.accepted / theirs.throughput:.1%}",
        "inside" if row.inside else "**outside**",
        f"{theirs.retransmission_rate:.4%}",
        f"{ours.retransmission_rate:.4%}",
        f"{theirs.timeouts:.1f}",
        f"{ours.timeouts:.1f}",
        f"{theirs.fast_recoveries:.1f}",
        f"{ours.fast_recoveries:.1f}",
    ]


def surprises(rows: Sequence[Row], outliers: frozenset[tuple[str, str, float]]) -> list[str]:
    """Return what the page does not say: rows outside without a reason, and reasons without a row."""
    return [
        f"{NAME} {row.theirs.key}: {row.ours.throughput:.3f} Mbit/s is {'inside' if row.inside else 'outside'}"
        for row in rows
        if row.inside == (row.theirs.key in outliers)
    ]


OUTLIERS: frozenset[tuple[str, str, float]] = frozenset()
"""Rows known to be outside; the page says why."""


def comparison() -> Comparison:
    """Compare everything."""
    rows = compare(table())
    found = verdicts(rows)
    parts = {"verdict": verdict_table(found), "rows": markdown.table(HEAD, map(row_cells, rows))}
    return Comparison(NAME, parts, found, lambda: _figures(rows), surprises(rows, OUTLIERS))


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    panels = []
    for loss_on, queue in dict.fromkeys((row.theirs.loss_on, row.theirs.queue) for row in rows):
        points = [
            drawing.Point(
                "reno",
                row.theirs.throughput,
                row.ours.throughput,
                accepted=(row.theirs.throughput - row.accepted, row.theirs.throughput + row.accepted),
            )
            for row in rows
            if (row.theirs.loss_on, row.theirs.queue) == (loss_on, queue)
        ]
        label = f"Loss of {LOSS[loss_on]}, queue {QUEUES[queue]}: throughput (Mbit/s)"
        panels.append(drawing.Panel(label, points, "log", ratio=True))
    yield NAME, drawing.ours_over_theirs(panels, "ns-2")
