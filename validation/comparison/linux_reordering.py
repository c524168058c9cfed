"""The reordering study's path with the Linux kernel: ``docs/validation/linux-reordering.md``."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing, judging, kernel_repeats
from comparison.judging import Errors, Measure, Verdict
from comparison.kernel_repeats import Repeat, Repeats, common
from comparison.oracle import read, spec
from comparison.pages import Comparison, verdict_table
from comparison.runs import SEEDS, Case, simulate

NAME = "linux-reordering"
SPEC = spec(NAME)
REPEATS = f"{NAME}-repeats.csv"
"""The same rows with SACK, several times each."""
GOODPUT: float = SPEC["goodput"]
NO_REORDERING: int = SPEC["no_reordering"]
STACKS: dict[str, list[str]] = SPEC["stacks"]


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
    lateness_us: float
    """Lateness of the bottleneck's packets, 99th percentile."""


@dataclass(frozen=True)
class Ours:
    """The same flow in the simulator: each figure's median over the seeds."""

    goodput: float
    retransmitted: float
    mean_rtt: float
    dropped: float
    fast_recoveries: float
    timeouts: float


@dataclass(frozen=True)
class Row:
    """A row of the kernel's figures, and ours."""

    theirs: Theirs
    ours: Ours

    @property
    def difference(self) -> float:
        """Relative difference of our goodput from the kernel's."""
        return self.ours.goodput / self.theirs.goodput - 1

    @property
    def inside(self) -> bool | None:
        """Whether goodput is within the tolerance; ``None`` if only the shape is compared."""
        return abs(self.difference) <= GOODPUT if self.theirs.stack == "sack" else None


RETRANSMITTED = Measure[Row](
    "√ of packets retransmitted",
    "",
    lambda row: row.theirs.retransmitted,
    lambda row: row.ours.retransmitted,
    math.sqrt,
)


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
            float(row["lateness_p99_us"]),
        )
        for row in read(f"{NAME}.csv")
    ]


def case(row: Theirs) -> Case:
    """Return the run for a row.

    The processing jitter of both hosts is the lateness of the kernel's packets, which was measured
    with the row.
    """
    late = f"{row.lateness_us:g} us"
    sets = (
        *STACKS[row.stack],
        f'flow.main.cc="{row.cc}"',
        f"link.bottleneck.forward.queue.reorder.interval={row.interval}",
        *(f'host.{host}.processing_jitter="{late}"' for host in ("S", "R")),
    )
    return Case(f"{NAME}.toml", sets, SEEDS)


def compare(rows: Sequence[Theirs]) -> list[Row]:
    """Compare ours with each of the kernel's rows."""
    cases = {row: case(row) for row in rows}
    runs = simulate(cases.values(), NAME)
    return [Row(row, _ours(runs[cases[row]])) for row in rows]


def _ours(runs: Sequence[dict[str, Any]]) -> Ours:
    def median(name: str) -> float:
        return statistics.median(float(run["flows"]["main"][name]) for run in runs)

    return Ours(
        goodput=median("goodput_mbit_s"),
        retransmitted=median("retransmitted_packets"),
        mean_rtt=median("mean_srtt_ms"),
        dropped=statistics.median(run["links"]["bottleneck"]["forward"]["dropped_packets"] for run in runs),
        fast_recoveries=median("fast_recoveries"),
        timeouts=median("timeouts"),
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
        all(inside),
    )
    return [goodput, *judging.told_apart(RETRANSMITTED, errors(sack, RETRANSMITTED))]


def answers(rows: Sequence[Row]) -> dict[kernel_repeats.Key, Repeat]:
    """Our rows with SACK, in the form of the kernel's repeats."""
    return {
        (row.theirs.interval, row.theirs.cc): Repeat(
            row.ours.goodput, row.ours.retransmitted, row.ours.mean_rtt, row.ours.dropped, row.theirs.lateness_us
        )
        for row in of_stack(rows, "sack")
    }


def by_the_kernel(rows: Sequence[Row], repeats: Repeats) -> list[list[Row]]:
    """The rows with SACK, with each repeat of the kernel in turn as the answer."""
    sack = of_stack(rows, "sack")
    return [
        [_answered(row, repeats[row.theirs.interval, row.theirs.cc][i]) for row in sack] for i in range(common(repeats))
    ]


def _answered(row: Row, repeat: Repeat) -> Row:
    return replace(row, ours=Ours(repeat.goodput, repeat.retransmitted, repeat.mean_rtt, repeat.dropped, 0, 0))


HEAD = ["control", "RI", "goodput there", "here", "difference", "", "retransmitted there", "here", "error / others'",
        "mean RTT there", "here", "dropped there", "here", "recoveries here", "timeouts here"]  # fmt: skip


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Every row of one of the page's tables."""
    return [_cells(row, found) for row, found in zip(rows, errors(rows, RETRANSMITTED), strict=True)]


def _cells(row: Row, found: Errors | None) -> list[str]:
    theirs, ours = row.theirs, row.ours
    interval = "none" if theirs.interval == NO_REORDERING else str(theirs.interval)
    head = [theirs.cc, interval, f"{theirs.goodput:.3f}"]
    again, rtt, dropped = f"{theirs.retransmitted:.0f}", f"{theirs.mean_rtt:.1f}", f"{theirs.dropped:.0f}"
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
    repeats = kernel_repeats.table(REPEATS)
    told = verdicts(rows)
    found = [*told, *kernel_repeats.verdicts(answers(rows), repeats, GOODPUT)]
    parts = {
        "verdict": verdict_table(found),
        "scores": kernel_repeats.scores(told, [verdicts(answered) for answered in by_the_kernel(rows, repeats)]),
        "lateness": kernel_repeats.lateness(REPEATS),
        "repeats": markdown.table(kernel_repeats.HEAD, kernel_repeats.lines(answers(rows), repeats)),
    }
    parts.update({stack: markdown.table(HEAD, lines(of_stack(rows, stack))) for stack in STACKS})
    return Comparison(NAME, parts, found, lambda: _figures(rows, repeats))


def _figures(rows: Sequence[Row], repeats: Repeats) -> Iterator[tuple[str, Figure]]:
    def lines_of(stack: str, theirs: Callable[[Row], float], ours: Callable[[Ours], float]) -> list[drawing.Curves]:
        found = []
        for cc in dict.fromkeys(row.theirs.cc for row in rows):
            some = [r for r in of_stack(rows, stack) if r.theirs.cc == cc and r.theirs.interval != NO_REORDERING]
            there = [(float(row.theirs.interval), theirs(row)) for row in some]
            here = [(float(row.theirs.interval), ours(row.ours)) for row in some]
            found.append(drawing.Curves(cc, there, here))
        return found

    def goodput(stack: str) -> list[drawing.Curves]:
        return lines_of(stack, lambda row: row.theirs.goodput, lambda ours: ours.goodput)

    def beside_repeats(curves: list[drawing.Curves], index: int) -> list[drawing.Curves]:
        figure = kernel_repeats.FIGURES[index]
        return [replace(c, spread=kernel_repeats.ranges(repeats, figure, c.control)) for c in curves]

    again = lines_of("sack", lambda row: row.theirs.retransmitted, lambda ours: ours.retransmitted)
    rtt = lines_of("sack", lambda row: row.theirs.mean_rtt, lambda ours: ours.mean_rtt)
    yield (
        NAME,
        drawing.by_control(
            [
                drawing.Over("SACK", "Goodput (Mbit/s)", beside_repeats(goodput("sack"), 0)),
                drawing.Over("SACK", "Retransmitted packets", beside_repeats(again, 1), "sqrt"),
                drawing.Over("SACK", "Mean RTT (ms)", beside_repeats(rtt, 2)),
                drawing.Over("no SACK", "Goodput (Mbit/s)", goodput("nosack")),
            ],
            "Linux 6.18",
        ),
    )
