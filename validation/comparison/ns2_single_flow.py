"""Single flows of ns-2's TCP: ``docs/validation/ns2-single-flow.md``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing
from comparison.judging import Verdict
from comparison.oracle import NOT_AVAILABLE, available, control, read
from comparison.pages import Comparison, verdict_table
from comparison.runs import Case, simulate

NAME = "ns2-single-flow"
STACK = "ns2-sack1"
RATE_MBIT_S = 100.0
ON_THE_WIRE = 1510 / 1500
"""ns-2 counts 1,500 bytes of a packet that takes the time of 1,510."""
TOLERANCE = 0.02

CONTROLS = {"compound": '{ kind = "compound", gamma_tuning = false, low_window = "41 packets" }'}
"""Forms of controls that are not our defaults. The agent's code is older than the draft of Compound TCP (July
2007), which tunes gamma, so the rows are answered with the form of INFOCOM 2006."""


@dataclass(frozen=True)
class Theirs:
    """A row of ns-2's figures."""

    cc: str
    queue_packets: int
    base_rtt_ms: float
    goodput_20_60: float
    retransmitted: float
    timeouts: float

    @property
    def utilization(self) -> float:
        """The share of the bottleneck's rate that was used from 20 s on."""
        return self.goodput_20_60 * ON_THE_WIRE / RATE_MBIT_S


@dataclass(frozen=True)
class Ours:
    """The same flow here, from 20 s on."""

    utilization: float
    retransmitted: float
    timeouts: float


@dataclass(frozen=True)
class Row:
    """A row of ns-2's figures beside ours."""

    theirs: Theirs
    ours: Ours | None

    @property
    def inside(self) -> bool | None:
        """Whether the used shares are within the tolerance."""
        return None if self.ours is None else abs(self.ours.utilization - self.theirs.utilization) <= TOLERANCE


def table() -> list[Theirs]:
    """Read ns-2's figures."""
    return [
        Theirs(
            row["cc"],
            int(row["queue_packets"]),
            float(row["base_rtt_ms"]),
            float(row["goodput_20_60_mbit_s"]),
            float(row["retransmitted_packets"]),
            float(row["timeouts"]),
        )
        for row in read(f"{NAME}.csv")
    ]


def written(cc: str) -> str:
    """Return what stands in the scenario file for one of their controls."""
    return CONTROLS.get(cc, f'"{control(cc)}"')


def case(row: Theirs, stack: str = STACK) -> Case:
    """Return what is run for a row."""
    sets = (
        f'link.bottleneck.delay="{row.base_rtt_ms / 2:g} ms"',
        f'link.bottleneck.queue.limit="{row.queue_packets} packets"',
        f'flow.main.stack="{stack}"',
        f"flow.main.cc={written(row.cc)}",
    )
    return Case(f"{NAME}.toml", sets, 1)


def compare(rows: Sequence[Theirs], stack: str = STACK) -> list[Row]:
    """Set ours beside each of their rows; nothing where the stack or the congestion control is not available."""
    there = available("stack", stack)
    cases = {row: case(row, stack) for row in rows if there and available("cc", control(row.cc))}
    runs = simulate(cases.values(), NAME)
    return [Row(row, _ours(runs[cases[row]][0]) if row in cases else None) for row in rows]


def _ours(run: dict[str, Any]) -> Ours:
    flow = run["flows"]["main"]
    return Ours(flow["throughput_mbit_s"] / RATE_MBIT_S, flow["retransmitted_packets"], flow["timeouts"])


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge every row that is available."""
    inside = [row.inside for row in rows if row.inside is not None]
    condition = f"used share of the rate after 20 s within ± {TOLERANCE:.0%} in every row"
    return [Verdict(condition, f"{sum(inside)} of {len(inside)}", all(inside) if inside else None)]


HEAD = ["control", "RTT", "queue", "used share there", "here", "", "sent again there", "here, after 20 s",
        "timeouts there", "here, after 20 s"]  # fmt: skip


def row_cells(row: Row) -> list[str]:
    """A row of the page's table."""
    theirs, ours = row.theirs, row.ours
    head = [theirs.cc, f"{theirs.base_rtt_ms:g} ms", str(theirs.queue_packets), f"{theirs.utilization:.4f}"]
    again, timeouts = f"{theirs.retransmitted:.0f}", f"{theirs.timeouts:.0f}"
    if ours is None:
        return [*head, NOT_AVAILABLE, "", again, "", timeouts, ""]
    word = "inside" if row.inside else "**outside**"
    here = f"{ours.utilization:.4f}"
    return [*head, here, word, again, f"{ours.retransmitted:.0f}", timeouts, f"{ours.timeouts:.0f}"]


def comparison() -> Comparison:
    """Compare everything."""
    rows = compare(table())
    found = verdicts(rows)
    parts = {"verdict": verdict_table(found), "rows": markdown.table(HEAD, map(row_cells, rows))}
    return Comparison(NAME, parts, found, lambda: _figures(rows))


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    points = [
        drawing.Point(row.theirs.cc, row.theirs.utilization, row.ours.utilization)
        for row in rows
        if row.ours is not None
    ]
    if points:
        yield NAME, drawing.ours_over_theirs([drawing.Panel("Used share of the rate", points, "linear")], "ns-2")
