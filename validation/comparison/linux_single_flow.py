"""Single flows of the Linux kernel: ``docs/validation/linux-single-flow.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing, judging
from comparison.judging import Errors, Measure, Verdict
from comparison.oracle import NOT_AVAILABLE, available, control, read
from comparison.pages import Comparison, verdict_table
from comparison.runs import SEEDS, Case, Spread, of_flow, simulate

NAME = "linux-single-flow"
LOSSY_INSIDE = 19
LOSSY_ROWS = 24
"""Of so many rows with random loss, so many have to be inside the range of the seeds."""


@dataclass(frozen=True)
class Route:
    """What differs between the rows of one congestion control."""

    rate_mbit_s: float
    base_rtt_ms: float
    queue_packets: int
    loss_rate: float


@dataclass(frozen=True)
class Theirs:
    """A row of the kernel's figures."""

    cc: str
    path: Route
    goodput: float
    retransmitted: float
    mean_rtt: float


@dataclass(frozen=True)
class Ours:
    """The same flow here, over the seeds."""

    goodput: Spread
    retransmitted: Spread
    mean_rtt: Spread


@dataclass(frozen=True)
class Row:
    """A row of the kernel's figures beside ours."""

    theirs: Theirs
    ours: Ours | None

    @property
    def lossy(self) -> bool:
        """Whether packets are lost at random."""
        return self.theirs.path.loss_rate > 0

    @property
    def inside(self) -> bool | None:
        """Whether the kernel's goodput is inside the range of our seeds; ``None`` without random loss."""
        if self.ours is None or not self.lossy:
            return None
        return self.ours.goodput.low <= self.theirs.goodput <= self.ours.goodput.high


def _answer(of: Callable[[Ours], Spread]) -> Callable[[Row], float | None]:
    return lambda row: None if row.ours is None else of(row.ours).mean


RTT = Measure[Row]("mean RTT", " ms", lambda row: row.theirs.mean_rtt, _answer(lambda ours: ours.mean_rtt))
RELATIVE_RTT = Measure[Row](
    "mean RTT, relative", "", lambda row: row.theirs.mean_rtt, _answer(lambda ours: ours.mean_rtt), relative=True
)
RETRANSMITTED = Measure[Row](
    "√ of packets sent again",
    "",
    lambda row: row.theirs.retransmitted,
    _answer(lambda ours: ours.retransmitted),
    math.sqrt,
)
MEASURES = (RTT, RELATIVE_RTT, RETRANSMITTED)


def table() -> list[Theirs]:
    """Read the kernel's figures."""
    return [
        Theirs(
            row["cc"],
            Route(
                float(row["rate_mbit_s"]),
                float(row["base_rtt_ms"]),
                int(row["queue_packets"]),
                float(row["loss_rate"]),
            ),
            float(row["goodput_mbit_s"]),
            float(row["retransmitted_packets"]),
            float(row["mean_rtt_ms"]),
        )
        for row in read(f"{NAME}.csv")
    ]


def case(cc: str, path: Route) -> Case:
    """Return what is run for a row."""
    sets = (
        f'link.bottleneck.rate="{path.rate_mbit_s:g} Mbit/s"',
        f'link.bottleneck.delay="{path.base_rtt_ms / 2:g} ms"',
        f'link.bottleneck.queue.limit="{path.queue_packets - 1} packets"',
        f"link.loss.forward.impair.0.rate={path.loss_rate}",
        f'flow.main.cc="{control(cc)}"',
    )
    return Case(f"{NAME}.toml", sets, SEEDS if path.loss_rate > 0 else 1)


def compare(rows: Sequence[Theirs]) -> list[Row]:
    """Set ours beside each of their rows; nothing beside rows of congestion controls that are not available."""
    cases = {(row.cc, row.path): case(row.cc, row.path) for row in rows if available("cc", control(row.cc))}
    runs = simulate(cases.values(), NAME)
    return [Row(row, _ours(runs[found]) if (found := cases.get((row.cc, row.path))) else None) for row in rows]


def _ours(runs: Sequence[dict[str, object]]) -> Ours:
    return Ours(
        Spread.of(runs, of_flow("main", "goodput_mbit_s")),
        Spread.of(runs, of_flow("main", "retransmitted_packets")),
        Spread.of(runs, of_flow("main", "mean_srtt_ms")),
    )


def errors(rows: Sequence[Row], measure: Measure[Row]) -> list[Errors | None]:
    """Each row's error in a measure, and that of the other congestion controls' rows."""
    return judging.errors(rows, measure, lambda row: row.theirs.path, lambda row: row.theirs.cc)


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge everything that is available."""
    found = [verdict for measure in MEASURES for verdict in judging.told_apart(measure, errors(rows, measure))]
    inside = [row.inside for row in rows if row.inside is not None]
    return [*found, _lossy(inside)]


def _lossy(inside: Sequence[bool]) -> Verdict:
    condition = (
        f"random loss: goodput inside the range of {SEEDS} seeds in at least {LOSSY_INSIDE} of {LOSSY_ROWS} rows"
    )
    count = sum(inside)
    if count >= LOSSY_INSIDE:
        held: bool | None = True
    else:
        # Rows that are not available may still hold, or not.
        held = False if count + LOSSY_ROWS - len(inside) < LOSSY_INSIDE else None
    return Verdict(condition, f"{count} of {len(inside)}", held)


def row_cells(row: Row, found: Sequence[Errors | None]) -> list[str]:
    """A row of the page's table; ``found`` are its errors in mean RTT and in packets sent again."""
    theirs, ours = row.theirs, row.ours
    path = theirs.path
    cells = [
        theirs.cc,
        f"{path.rate_mbit_s:g}",
        f"{path.base_rtt_ms:g} ms",
        str(path.queue_packets),
        f"{path.loss_rate:.1%}" if path.loss_rate else "0",
        f"{theirs.goodput:.3f}",
    ]
    if ours is None:
        return [*cells, NOT_AVAILABLE, "", f"{theirs.mean_rtt:.1f}", "", "", f"{theirs.retransmitted:.0f}", "", ""]
    inside = {None: "", True: "inside", False: "**outside**"}[row.inside]
    rtt, again = (_against(errors) for errors in found)
    return [
        *cells,
        ours.goodput.text(3),
        inside or f"{ours.goodput.mean / theirs.goodput - 1:+.1%}",
        f"{theirs.mean_rtt:.1f}",
        ours.mean_rtt.text(1),
        rtt,
        f"{theirs.retransmitted:.0f}",
        ours.retransmitted.text(0),
        again,
    ]


def _against(errors: Errors | None) -> str:
    if errors is None:
        return ""
    text = f"{errors.ours:.2f} / {errors.others:.2f}"
    return text if errors.closer else f"**{text}**"


HEAD = ["control", "Mbit/s", "RTT", "queue", "loss", "goodput there", "here", "", "mean RTT there", "here",
        "error / others'", "sent again there", "here", "error / others'"]  # fmt: skip


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Every row of the page's table."""
    by_row = zip(errors(rows, RTT), errors(rows, RETRANSMITTED), strict=True)
    return [row_cells(row, found) for row, found in zip(rows, by_row, strict=True)]


def comparison() -> Comparison:
    """Compare everything."""
    rows = compare(table())
    found = verdicts(rows)
    return Comparison(
        NAME,
        {"verdict": verdict_table(found), "rows": markdown.table(HEAD, lines(rows))},
        found,
        lambda: _figures(rows),
    )


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    answered = [(row, row.ours) for row in rows if row.ours is not None]
    points = [
        (
            drawing.Point(row.theirs.cc, _queueing(row, row.theirs.mean_rtt), _queueing(row, ours.mean_rtt.mean),
                          hollow=row.lossy),
            drawing.Point(row.theirs.cc, row.theirs.retransmitted, ours.retransmitted.mean, hollow=row.lossy),
        )
        for row, ours in answered
    ]  # fmt: skip
    goodput = [
        drawing.Point(row.theirs.cc, row.theirs.goodput, ours.goodput.mean, (ours.goodput.low, ours.goodput.high), True)
        for row, ours in answered
        if row.lossy
    ]
    panels = [
        drawing.Panel("Mean RTT above the base RTT (ms)", [rtt for rtt, _ in points], "log"),
        drawing.Panel("Retransmitted packets", [again for _, again in points], "counts"),
        drawing.Panel("Goodput under loss (Mbit/s)", goodput, "log", ratio=True),
    ]
    yield NAME, drawing.ours_over_theirs(panels, "Linux 6.18", hollow="random loss")
    labels = ("Mean RTT (ms)", "√ of retransmitted packets")
    yield (
        f"{NAME}-errors",
        drawing.errors(
            [
                (label, [(row.theirs.cc, e) for row, e in zip(rows, errors(rows, measure), strict=True) if e])
                for label, measure in zip(labels, (RTT, RETRANSMITTED), strict=True)
            ]
        ),
    )


def _queueing(row: Row, rtt: float) -> float:
    """What queues add to the base RTT, in ms; rounding in the figures can make it nothing."""
    return max(rtt - row.theirs.path.base_rtt_ms, 0.1)
