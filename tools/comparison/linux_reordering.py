"""The reordering study's path with the Linux kernel: ``docs/validation/linux-reordering.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from comparison import drawing, judging
from comparison.judging import Errors, Measure, Verdict
from comparison.oracle import NOT_AVAILABLE, available, control, read
from comparison.pages import Comparison, verdict_table
from comparison.runs import Case, simulate
from reference import markdown

NAME = "linux-reordering"
GOODPUT = 0.04
"""Share by which goodput may differ, with SACK."""
NO_REORDERING = 1000
"""The interval that stands for a path that does not reorder."""

STACKS = {
    "sack": (),
    "nosack": ("flow.main.transport.sack=false", 'flow.main.transport.recovery="new-reno"'),
}
"""What is set for the kernel's defaults, and for its ``tcp_sack``, ``tcp_recovery`` and ``tcp_early_retrans`` at 0."""


@dataclass(frozen=True)
class Theirs:
    """A row of the kernel's figures; one sample."""

    stack: str
    interval: int
    cc: str
    goodput: float
    retransmitted: float
    mean_rtt: float
    dropped: float
    moved: float


@dataclass(frozen=True)
class Ours:
    """The same flow here; nothing is left to chance, so there is one run."""

    goodput: float
    retransmitted: float
    mean_rtt: float
    dropped: float
    fast_recoveries: float
    timeouts: float


@dataclass(frozen=True)
class Row:
    """A row of the kernel's figures beside ours."""

    theirs: Theirs
    ours: Ours | None

    @property
    def difference(self) -> float | None:
        """How far our goodput is above theirs, as a share."""
        return None if self.ours is None else self.ours.goodput / self.theirs.goodput - 1

    @property
    def inside(self) -> bool | None:
        """Whether goodput is within the tolerance; ``None`` where only the shape is compared."""
        if self.difference is None or self.theirs.stack != "sack":
            return None
        return abs(self.difference) <= GOODPUT


def _answer(of: Callable[[Ours], float]) -> Callable[[Row], float | None]:
    return lambda row: None if row.ours is None else of(row.ours)


RETRANSMITTED = Measure[Row](
    "√ of packets sent again",
    "",
    lambda row: row.theirs.retransmitted,
    _answer(lambda ours: ours.retransmitted),
    math.sqrt,
)
RTT = Measure[Row]("mean RTT", " ms", lambda row: row.theirs.mean_rtt, _answer(lambda ours: ours.mean_rtt))


def table() -> list[Theirs]:
    """Read the kernel's figures."""
    return [
        Theirs(
            row["stack"],
            int(row["reorder_interval"]),
            row["cc"],
            float(row["goodput_mbit_s"]),
            float(row["retransmitted_packets"]),
            float(row["mean_rtt_ms"]),
            float(row["dropped_packets"]),
            float(row["moved_packets"]),
        )
        for row in read(f"{NAME}.csv")
    ]


def case(row: Theirs) -> Case:
    """Return what is run for a row."""
    sets = (
        *STACKS[row.stack],
        f'flow.main.cc="{control(row.cc)}"',
        f"link.bottleneck.forward.queue.reorder.interval={row.interval}",
    )
    return Case(f"{NAME}.toml", sets, 1)


def compare(rows: Sequence[Theirs]) -> list[Row]:
    """Set ours beside each of their rows; nothing beside rows of congestion controls that are not available."""
    cases = {row: case(row) for row in rows if available("cc", control(row.cc))}
    runs = simulate(cases.values(), NAME)
    return [Row(row, _ours(runs[cases[row]][0]) if row in cases else None) for row in rows]


def _ours(run: dict[str, Any]) -> Ours:
    flow = run["flows"]["main"]
    return Ours(
        goodput=flow["goodput_mbit_s"],
        retransmitted=flow["retransmitted_packets"],
        mean_rtt=flow["mean_srtt_ms"],
        dropped=run["links"]["bottleneck"]["forward"]["dropped_packets"],
        fast_recoveries=flow["fast_recoveries"],
        timeouts=flow["timeouts"],
    )


def of_stack(rows: Sequence[Row], stack: str) -> list[Row]:
    """Rows with or without SACK."""
    return [row for row in rows if row.theirs.stack == stack]


def errors(rows: Sequence[Row], measure: Measure[Row]) -> list[Errors | None]:
    """Each row's error in a measure, and that of the other congestion controls' rows."""
    return judging.errors(rows, measure, lambda row: (row.theirs.stack, row.theirs.interval), lambda row: row.theirs.cc)


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge the rows with SACK; without it the kernel's own figures are chaotic."""
    sack = of_stack(rows, "sack")
    inside = [row.inside for row in sack if row.inside is not None]
    goodput = Verdict(
        f"SACK: goodput within ± {GOODPUT:.0%} in every row",
        f"{sum(inside)} of {len(inside)}",
        all(inside) if inside else None,
    )
    return [goodput, *judging.told_apart(RETRANSMITTED, errors(sack, RETRANSMITTED))]


HEAD = ["control", "RI", "goodput there", "here", "difference", "", "sent again there", "here", "error / others'",
        "mean RTT there", "here", "dropped there", "here", "recoveries here", "timeouts here"]  # fmt: skip


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Every row of one of the page's tables."""
    return [_cells(row, found) for row, found in zip(rows, errors(rows, RETRANSMITTED), strict=True)]


def _cells(row: Row, found: Errors | None) -> list[str]:
    theirs, ours = row.theirs, row.ours
    interval = "none" if theirs.interval == NO_REORDERING else str(theirs.interval)
    head = [theirs.cc, interval, f"{theirs.goodput:.3f}"]
    again, rtt, dropped = f"{theirs.retransmitted:.0f}", f"{theirs.mean_rtt:.1f}", f"{theirs.dropped:.0f}"
    if ours is None or row.difference is None:
        return [*head, NOT_AVAILABLE, "", "", again, "", "", rtt, "", dropped, "", "", ""]
    error = ""
    if found is not None and theirs.stack == "sack":
        error = f"{found.ours:.2f} / {found.others:.2f}"
        error = error if found.closer else f"**{error}**"
    return [
        *head,
        f"{ours.goodput:.3f}",
        f"{row.difference:+.1%}",
        {None: "", True: "inside", False: "**outside**"}[row.inside],
        again,
        f"{ours.retransmitted:.0f}",
        error,
        rtt,
        f"{ours.mean_rtt:.1f}",
        dropped,
        f"{ours.dropped:.0f}",
        f"{ours.fast_recoveries:.0f}",
        f"{ours.timeouts:.0f}",
    ]


def comparison() -> Comparison:
    """Compare everything."""
    rows = compare(table())
    found = verdicts(rows)
    parts = {"verdict": verdict_table(found)}
    parts.update({stack: markdown.table(HEAD, lines(of_stack(rows, stack))) for stack in STACKS})
    return Comparison(NAME, parts, found, lambda: _figures(rows))


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    def lines_of(stack: str, theirs: Callable[[Row], float], ours: Callable[[Ours], float]) -> list[drawing.Curves]:
        found = []
        for cc in dict.fromkeys(row.theirs.cc for row in rows):
            some = [r for r in of_stack(rows, stack) if r.theirs.cc == cc and r.theirs.interval != NO_REORDERING]
            there = [(float(row.theirs.interval), theirs(row)) for row in some]
            here = [(float(row.theirs.interval), ours(row.ours)) for row in some if row.ours is not None]
            found.append(drawing.Curves(cc, there, here))
        return found

    def goodput(stack: str) -> list[drawing.Curves]:
        return lines_of(stack, lambda row: row.theirs.goodput, lambda ours: ours.goodput)

    again = lines_of("sack", lambda row: row.theirs.retransmitted, lambda ours: ours.retransmitted)
    yield (
        NAME,
        drawing.over_interval(
            [
                ("SACK: goodput (Mbit/s)", goodput("sack"), "linear"),
                ("SACK: packets sent again", again, "sqrt"),
                ("No SACK: goodput (Mbit/s)", goodput("nosack"), "linear"),
            ]
        ),
    )
