"""The entries: for each its claims, the rows of its table, and its picture."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from anabranch.plot.study import Drawing
from matplotlib.figure import Figure

from comparison import pages, scripts
from comparison.oracle import ROOT
from comparison.unknown import drawing, sources
from comparison.unknown.drawing import LINUX, OTHER, OURS, OURS_TOO, PUBLISHED, THEIRS, Row

LINKS, QUEUES, ORDER, ROUTES, PARITY = "link-aggregation", "fairness", "reordering", "multipath", "fec"
VARIANTS = {"ctcp": "CTCP", "cubic": "CUBIC", "westwood": "Westwood+", "newreno": "NewReno", "vegas": "Vegas"}
"""Of the study of link aggregation, in the order of its table 1."""


@dataclass(frozen=True)
class Made:
    """The content of an entry.

    Attributes:
        head: The head of its table.
        rows: The rows of its table.
        draw: Draws its picture.
        drawn: Values of the picture that are not in the table; a hash of them marks the page.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    draw: Callable[[], Figure]
    drawn: Sequence[float] = ()


@dataclass(frozen=True)
class Entry:
    """An entry of the page.

    Attributes:
        name: Its name on the command line, in the page's parts and in the picture's file.
        study: The study.
        claims: Its claims, each with the part of the study's page that has its row.
        missing: The fact that the paper did not have, in one line.
        make: Makes the content.
    """

    name: str
    study: str
    claims: Mapping[str, str]
    missing: str
    make: Callable[[], Made]


def _results(*claims: str) -> dict[str, str]:
    return dict.fromkeys(claims, "results")


def _runs_of(study: str, witness: str) -> str:
    """The label of stored runs of another implementation."""
    found = sources.definition(study).witnesses[witness]
    return f"{found.title}, stored runs of {found.date}"


@cache
def _ns2() -> Any:
    """The module of the stored runs of link aggregation in ns-2, and these runs."""
    module = scripts.load("studies/link-aggregation/ns2.py")
    return module, module.Witness(module.read())


def _linux_off() -> sources.OnLinux | None:
    """Throughput in Linux with all links on, by variant."""
    found = sources.on_linux(LINKS, "L6")
    if found is None:
        return None
    return sources.OnLinux(found.label, {name: found.measures[f"{name}_mbit_s"] for name in VARIANTS})


def _linux_loses() -> sources.OnLinux | None:
    """The share that the control costs in Linux, by variant, in per cent."""
    found = sources.on_linux(LINKS, "L7")
    if found is None:
        return None
    return sources.OnLinux(found.label, {name: found.measures[f"{name}_loses_percent"] for name in VARIANTS})


def _linux_westwood() -> tuple[str, float, float] | None:
    """Westwood+ in Linux, with all links on and with the control."""
    found = sources.on_linux(LINKS, "L3")
    if found is not None:
        return found.label, found.measures["off_mbit_s"], found.measures["on_mbit_s"]
    off, loses = _linux_off(), _linux_loses()
    if off is None or loses is None:
        return None
    before = off.measures["westwood"]
    return off.label, before, before * (1 - loses.measures["westwood"] / 100)


def westwood() -> Made:
    """L3: throughput of Westwood+ in table 1, in ns-2, here and in Linux."""
    module, runs = _ns2()
    ours = sources.judged(LINKS, "L3").measures
    rows = [
        Row("published", PUBLISHED, (module.PUBLISHED_OFF["westwood"], module.PUBLISHED_ON["westwood"])),
        Row("ns-2", THEIRS, tuple(runs.throughput("westwood", some) for some in (module.ALL_ON, module.SCHEDULE))),
        Row("Anabranch", OURS, (ours["off"], ours["on"])),
    ]
    labels = ["published, table 1", _runs_of(LINKS, "ns2"), "Anabranch, `westwood-plus` as in Linux"]
    if (linux := _linux_westwood()) is not None:
        rows.append(Row("Linux, 30 s", LINUX, linux[1:]))
        labels.append(linux[0])
    return Made(
        ["Westwood+, throughput (Mbit/s)", "all links on", "with the control"],
        [[label, *(f"{value:.1f}" for value in row.values)] for label, row in zip(labels, rows, strict=True)],
        lambda: drawing.dots(("All links on", "With control"), rows, "Throughput of Westwood+ (Mbit/s)"),
    )


def _by_variant(rows: Sequence[Row], labels: Sequence[str], head: str, axis: str, *, left: float = 0) -> Made:
    """A table and a picture with a column for each variant of link aggregation."""
    return Made(
        [head, *VARIANTS.values()],
        [[label, *(f"{value:.1f}" for value in row.values)] for label, row in zip(labels, rows, strict=True)],
        lambda: drawing.dots(tuple(VARIANTS.values()), rows, axis, left=left),
    )


def order() -> Made:
    """L6: throughput of the five variants with all links on."""
    module, runs = _ns2()
    ours = sources.judged(LINKS, "L6").measures
    rows = [
        Row("published", PUBLISHED, [module.PUBLISHED_OFF[name] for name in VARIANTS]),
        Row("ns-2", THEIRS, [runs.throughput(name, module.ALL_ON) for name in VARIANTS]),
        Row("Anabranch", OURS, [ours[name] for name in VARIANTS]),
    ]
    labels = ["published, table 1", _runs_of(LINKS, "ns2"), "Anabranch"]
    if (linux := _linux_off()) is not None:
        rows.append(Row("Linux, 30 s", LINUX, [linux.measures[name] for name in VARIANTS]))
        labels.append(linux.label)
    axis = "Throughput, all links on (Mbit/s)"
    return _by_variant(rows, labels, axis, axis)


def control() -> Made:
    """L7: the share of its throughput that the control costs each variant."""
    module, runs = _ns2()
    ours = sources.judged(LINKS, "L7").measures
    best = module.Control("peaks", 2, 300, 90, module.UP_MS)
    rows = [
        Row(
            "published",
            PUBLISHED,
            [100 * (1 - module.PUBLISHED_ON[name] / module.PUBLISHED_OFF[name]) for name in VARIANTS],
        ),
        Row("ns-2, our decisions", THEIRS, [runs.loss(name, module.SCHEDULE) for name in VARIANTS]),
        Row("ns-2, a fitted control", replace(THEIRS, marker="v"), [runs.loss(name, best) for name in VARIANTS]),
        Row("Anabranch", OURS, [ours[f"{name} loses"] for name in VARIANTS]),
    ]
    labels = [
        "published, table 1",
        f"{_runs_of(LINKS, 'ns2')}, the decisions of the control in our runs",
        "the same, a section of 2 ms, an interval of 300 ms, percentile 90",
        "Anabranch",
    ]
    if (linux := _linux_loses()) is not None:
        rows.append(Row("Linux, 30 s", LINUX, [linux.measures[name] for name in VARIANTS]))
        labels.append(linux.label)
    least = min(0.0, *(value for row in rows for value in row.values))
    head = "throughput lost with the control (%)"
    return _by_variant(rows, labels, head, "Throughput lost with the control (%)", left=1.2 * least)


def delay() -> Made:
    """L1 to L5: residuals of table 1 with 1 ms and with 5 ms between the switches."""
    both = [sources.corrected(LINKS, f"L{place}") for place in range(1, 6)]
    pairs: list[tuple[str, str, drawing.Look, int]] = [
        ("1 ms, all links on", "residual off", OTHER, 0),
        ("1 ms, with control", "residual on", replace(OTHER, marker="v"), 0),
        ("5 ms, all links on", "residual off", OURS, 1),
        ("5 ms, with control", "residual on", OURS_TOO, 1),
    ]
    rows = [Row(label, look, [change[when].measures[name] for change in both]) for label, name, look, when in pairs]

    def draw() -> Figure:
        figure = drawing.dots(tuple(VARIANTS.values()), rows, "Difference from table 1 (%)", left=-30, names_at=4)
        (ax,) = figure.axes
        ax.axvspan(-5, 5, color="#000000", alpha=0.1, linewidth=0)
        ax.annotate("grey: within 5 %", (-29, 4.3), fontsize=8)
        ax.axvline(0, color=drawing.GREY, linewidth=0.8)
        return figure

    return Made(
        ["difference from table 1 (%)", *VARIANTS.values()],
        [[row.label, *(f"{value:.1f}" for value in row.values)] for row in rows],
        draw,
    )


QUEUE = "link.bottleneck.forward.queue"
MULTIPLIERS = (10, 20, 40, 60)
SEEDS = 3


def static() -> Made:
    """F4 and F5: the static method over the round-trip time, and over its multiplier with windows that do not limit."""
    rtts, shares, _ = sources.column(QUEUES, "ratio", "Static")
    live = {float(name): float(cell["Static"].split(" / ")[1]) for name, cell in _live_ratio().items()}

    def proof(multiplier: int) -> list[float]:
        def changed(study: Any) -> Any:
            ten = study.variants["ten_times"]
            queue = {**ten.set[QUEUE], "multiplier": multiplier}
            own = replace(ten, set={**ten.set, QUEUE: queue})
            return replace(study, variants={**study.variants, "ten_times": own})

        made = sources.run(
            QUEUES,
            lambda job: (
                (job.experiment, job.variant, job.point) == ("response", "ten_times", (32,)) and job.seed <= SEEDS
            ),
            changed=changed,
        )
        compound, cubic = (made.results.quantity(name, "response").cells for name in ("compound", "cubic"))
        return [float(str(compound[key])) / float(str(cubic[key])) for key in sorted(compound)]

    proofs = {multiplier: proof(multiplier) for multiplier in MULTIPLIERS}

    def draw() -> Figure:
        figure, (over_rtt, over_n) = drawing.panels([2.5, 2.4])
        drawing.band(over_rtt, 0.8, 1.2, (1, 32), "published up to 32 ms; beyond, near 1")
        over_rtt.plot([32, 128], [1, 1], color="#000000", linewidth=0.9, linestyle=(0, (1, 1)))
        drawing.curve(over_rtt, rtts, shares, OURS)
        drawing.note(over_rtt, "Anabranch", (1, shares[0]), OURS, (2, 7))
        drawing.curve(over_rtt, list(live), list(live.values()), LINUX)
        first = next(iter(live))
        drawing.note(over_rtt, "Linux, real time", (first, live[first]), LINUX, (-4, 6))
        drawing.log_axis(over_rtt, "x", {rtt: f"{rtt:g}" for rtt in [*rtts, 200]})
        over_rtt.set_xlabel("Round-trip time (ms), n = 10")
        drawing.band(over_n, 0.8, 1.2, (8.7, 11.5), "published")
        over_n.axhline(1, color="#000000", linewidth=0.9, linestyle=(0, (1, 1)))
        drawing.curve(over_n, MULTIPLIERS, [statistics.fmean(proofs[n]) for n in MULTIPLIERS], OURS)
        for n in MULTIPLIERS:
            over_n.plot([n, n], [min(proofs[n]), max(proofs[n])], color=OURS.colour, linewidth=0.9)
        drawing.note(over_n, "Anabranch, 32 ms, windows unlimited", (10, statistics.fmean(proofs[10])), OURS, (10, -12))
        drawing.log_axis(over_n, "x", {n: str(n) for n in MULTIPLIERS})
        over_n.set_xlabel("n: drop probability of CUBIC over that of Compound TCP")
        for ax in (over_rtt, over_n):
            ax.set_ylim(0, 1.5)
            ax.set_ylabel("Compound TCP ÷ CUBIC")
        return figure

    up_to_32 = [share for rtt, share in zip(rtts, shares, strict=True) if rtt <= 32]
    return Made(
        ["Compound TCP ÷ CUBIC, static", "up to 32 ms", "at every round-trip time"],
        [
            ["published, n = 10", "0.8 to 1.2", "near 1"],
            ["Anabranch, n = 10", _span(up_to_32), _span(shares)],
            ["Linux's CUBIC and Compound TCP as eBPF, real time, n = 10",
             _span([value for rtt, value in live.items() if rtt <= 32]), _span(list(live.values()))],
            *(
                [f"Anabranch, 32 ms, windows unlimited, n = {n}, {SEEDS} seeds", _span(values), "–"]
                for n, values in proofs.items()
            ),
        ],
        draw,
        sources.rounded([value for values in proofs.values() for value in values]),
    )  # fmt: skip


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _live_ratio() -> dict[str, dict[str, str]]:
    """The ratios of the live runs: simulator / live."""
    lines = pages.shown(sources.page(QUEUES), "live")
    start = next(i for i, line in enumerate(lines) if line.startswith("| Round-trip time (ms) | Tail drop"))
    head, _, *rows = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[start : start + 5])
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


FIXED = 65_536
"""dummynet's unit of a drop probability for each packet of the average queue."""


def slope() -> Made:
    """F7: drop probabilities as printed, and as dummynet's integers make them."""
    queues = {
        "RED, and dynamic": (0.2, 1, 9999),
        "static, one flow each": (0.5, 2500, 9999),
        "static, sixteen flows each": (0.15, 4000, 9999),
    }
    used = {name: int(p * FIXED / (high - low)) * (high - low) / FIXED for name, (p, low, high) in queues.items()}

    def draw() -> Figure:
        figure, (ax,) = drawing.panels([2.9])
        for name, (p, low, high) in queues.items():
            for value, look in ((p, PUBLISHED), (used[name], THEIRS)):
                ax.plot([low, high], [0, value], color=look.colour, linestyle=look.line, linewidth=1.2)
            short = name.removesuffix(" each").replace("static, sixteen flows", "static, 16 flows")
            drawing.note(ax, short, (high, (p + used[name]) / 2), PUBLISHED, (4, 0))
        drawing.note(ax, "as printed", (7000, 0.5 * 4500 / 7499), PUBLISHED, (-6, 4), "right")
        drawing.note(
            ax, "in dummynet's\nintegers", (8300, used["static, one flow each"] * 5800 / 7499), THEIRS, (2, -34)
        )
        ax.set_xlim(0, 13_800)
        ax.set_xticks([0, 2500, 5000, 7500, 10_000])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("Average queue (packets)")
        ax.set_ylabel("Drop probability")
        return figure

    return Made(
        ["max_p", *queues],
        [
            ["as printed", *(f"{p:g}" for p, _, _ in queues.values())],
            ["in dummynet's integers", *(f"{value:.3f}" for value in used.values())],
        ],
        draw,
    )


RATIO = "normalised[cubic, ri <= 95] / normalised[newreno, ri <= 95]"
SHARE = "share(normalised[cubic, 4 <= ri <= 95] < normalised[newreno, 4 <= ri <= 95])"
LARGEST = "max(throughput[cubic_plus] / throughput[cubic])"
COLLAPSE = "mean(cwnd[cubic, ri == 70, 1 <= time_s <= 3]) / mean(cwnd[cubic_plus, ri == 70, 1 <= time_s <= 3])"
"""Measures of R4, R9 and R11."""
STRICT = "RFC 6582's condition for a further fast retransmit"


@cache
def _at_every_interval(*, inclusive: bool) -> Drawing:
    """The reordering study's runs; a fast retransmit may follow another at once, or as RFC 6582 says."""
    return sources.run(
        ORDER, lambda job: job.experiment in ("reordering", "plain"), opens=(("recover_inclusive", inclusive),)
    )


def _single(made: Drawing, expression: str) -> float:
    (value,) = made.series(expression, "reordering").cells.values()
    return float(str(value))


def below() -> Made:
    """R4: CUBIC over NewReno at each interval, here and in Linux."""
    intervals, ours = _at_every_interval(inclusive=True).line(RATIO, "ri", "reordering")
    strict = _at_every_interval(inclusive=False)
    _, other = strict.line(RATIO, "ri", "reordering")
    linux = _linux_ratio([int(ri) for ri in intervals])
    panels = (
        (ours, OURS, "Anabranch, the study's setting"),
        (other, OTHER, f"Anabranch, {STRICT}"),
        (linux, LINUX, "Linux 6.12"),
    )

    def draw() -> Figure:
        figure, axes = drawing.panels([1.9] * len(panels))
        for ax, (values, look, name) in zip(axes, panels, strict=True):
            ax.axhspan(0.25, 1, facecolor="#dddddd", edgecolor=drawing.GREY, hatch="////", linewidth=0, alpha=0.5,
                       zorder=0)  # fmt: skip
            drawing.curve(ax, intervals, values, look, width=0.8)
            drawing.log_axis(ax, "y", {0.5: "0.5", 1: "1", 2: "2"})
            ax.set_ylim(0.25, 3)
            ax.set_ylabel("CUBIC ÷ NewReno", fontsize=8)
            ax.annotate(name, (0.99, 0.88), xycoords="axes fraction", ha="right", fontsize=8, color=look.colour)
        axes[0].annotate("published: below 1 nearly everywhere", (0.02, 0.05), xycoords="axes fraction", fontsize=8,
                         bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
        axes[-1].set_xlabel("Reorder interval (packets)")
        return figure

    witness = sources.witnessed(ORDER, "R4").measures["share below"]
    return Made(
        ["CUBIC below NewReno", "share of the intervals 4 to 95"],
        [
            ["published", "nearly all; the check asks for 0.8"],
            ["Anabranch", f"{sources.judged(ORDER, 'R4').measures['share below']:.2f}"],
            [f"Anabranch, {STRICT}", f"{_single(strict, SHARE):.2f}"],
            [_runs_of(ORDER, "linux"), f"{witness:.2f}"],
        ],
        draw,
        sources.rounded([*ours, *other, *linux]),
    )


def _linux_ratio(intervals: Sequence[int]) -> list[float]:
    """The same ratio in the stored runs of the kernel."""
    file = ROOT / "studies" / ORDER / "linux.csv"
    lines = [line.split(",") for line in file.read_text("utf-8").splitlines()[1:]]
    rate = {(experiment, variant, ri): float(value) for experiment, variant, ri, value in lines}

    def normalised(variant: str, ri: int) -> float:
        return rate["reordering", variant, str(ri)] / rate["plain", variant, ""]

    return [normalised("cubic", ri) / normalised("newreno", ri) for ri in intervals]


def least_timeout() -> Made:
    """R9 and R11: two values of the least retransmission timeout."""

    def windows(timeout: str, variant: str) -> tuple[list[float], list[float]]:
        made = sources.run(
            ORDER,
            lambda job: (job.experiment, job.variant, job.point) == ("reordering", variant, (70,)),
            opens=(("min_rto", timeout),),
        )
        return made.line(f"cwnd[{variant}, ri == 70, time_s <= 5]", "time_s", "reordering")

    lines = {
        "CUBIC, 1 s": (OTHER, windows("1 s", "cubic")),
        "CUBIC, 200 ms": (OURS, windows("200 ms", "cubic")),
        "Cubic+, 200 ms": (OURS_TOO, windows("200 ms", "cubic_plus")),
    }

    def draw() -> Figure:
        figure, axes = drawing.panels([1.5, 1.5, 1.5])
        for ax, (name, (look, (times, cwnd))) in zip(axes, lines.items(), strict=True):
            ax.axvspan(1, 3, color="#000000", alpha=0.1, linewidth=0)
            ax.plot(times, cwnd, color=look.colour, linestyle=look.line, linewidth=1.2)
            within = [value for time, value in zip(times, cwnd, strict=True) if 1 <= time <= 3]
            ax.annotate(f"mean {statistics.fmean(within):.0f}", (2, 205), ha="center", fontsize=8)
            ax.annotate(name, (0.99, 0.82), xycoords="axes fraction", ha="right", fontsize=8, color=look.colour)
            ax.set_ylim(0, 240)
            ax.set_ylabel("cwnd (packets)", fontsize=8)
        axes[-1].set_xlabel("Time (s), reorder interval 70; grey: the period of R11")
        return figure

    (nine, nine_now), (eleven, eleven_now) = (sources.corrected(ORDER, claim) for claim in ("R9", "R11"))
    linux = sources.witnessed(ORDER, "R9").measures["largest ratio"]
    strict = _at_every_interval(inclusive=False)

    def row(label: str, ratio: float, collapse: float | None) -> list[str]:
        return [label, f"{ratio:.2f}", "–" if collapse is None else f"{collapse:.2f}"]

    return Made(
        ["least timeout", "R9: largest Cubic+ ÷ CUBIC", "R11: cwnd of CUBIC ÷ Cubic+, 1 to 3 s"],
        [
            ["published", "more than 2", "collapses; the check asks for less than 0.6"],
            row("Anabranch, 1 s", nine.measures["largest ratio"], eleven.measures["cwnd ratio"]),
            row("Anabranch, 200 ms", nine_now.measures["largest ratio"], eleven_now.measures["cwnd ratio"]),
            row(f"Anabranch, 200 ms, {STRICT}", _single(strict, LARGEST), _single(strict, COLLAPSE)),
            row(_runs_of(ORDER, "linux"), linux, None),
        ],
        draw,
        sources.rounded([value for _, (_, cwnd) in lines.values() for value in cwnd]),
    )  # fmt: skip


def jitter() -> Made:
    """M1: one route with 200 ms of jitter, over the jitter of the other."""
    columns = {name: sources.column(ROUTES, "other-route", f"Method {name} (Mbit/s)") for name in ("A", "B")}
    judged = sources.judged(ROUTES, "M1").measures
    second = sources.judged(ROUTES, "M1b", "second-reading").measures

    def draw() -> Figure:
        figure, (ax,) = drawing.panels([3.0])
        for (name, (x, y, half)), look in zip(columns.items(), (OURS, OURS_TOO), strict=True):
            drawing.band(ax, 0.85 * y[-1], 1.15 * y[-1], (0, 200), "")
            ax.errorbar(x, y, half, **look.style(), markersize=4.5, capsize=2, elinewidth=0.8)
            drawing.note(ax, f"method {name}", (x[2], y[2]), look, (0.1, 9))
        level = columns["B"][1][-1]
        ax.annotate(
            "as published: within 15 %\nof both at 200 ms",
            (4, 1.15 * level),
            (0, 3),
            textcoords="offset points",
            fontsize=8,
        )
        ax.set_xlim(-6, 206)
        ax.set_ylim(0, 0.27)
        ax.set_xlabel("Jitter of route 1 (ms), route 2 at 200 ms")
        ax.set_ylabel("Throughput (Mbit/s)")
        return figure

    return Made(
        ["both methods", "method A", "method B", "asked for"],
        [
            ["within 15 % of both routes at the larger jitter (M1), share of the points",
             f"{judged['near A']:.2f}", f"{judged['near B']:.2f}", "0.80"],
            ["rank variance that the larger jitter explains (M1b)",
             f"{second['explained A']:.3f}", f"{second['explained B']:.3f}", "0.90"],
            ["rank variance that the sum of both explains (M1b)",
             f"{second['by total A']:.3f}", f"{second['by total B']:.3f}", "less than the larger jitter"],
        ],
        draw,
        [value for column in columns.values() for value in column[1]],
    )  # fmt: skip


def waits() -> Made:
    """M4: the two readings of method A's rule, over the loss of both routes."""
    x, last, _ = sources.column(ROUTES, "by-loss", "Method A")
    _, arrive, _ = sources.column(ROUTES, "by-loss", "Method B")
    made = sources.run(
        ROUTES,
        lambda job: job.experiment == "losses" and job.point[0] == job.point[1],
        changed=sources.with_variants("losses", ["A_either"]),
    )
    runs = made.results.quantity("throughput", "losses").cells
    first = [statistics.fmean(float(str(value)) for key, value in runs.items() if key[1] == loss) for loss in x]
    before, after = sources.corrected(ROUTES, "M4")

    def draw() -> Figure:
        figure, (ax,) = drawing.panels([3.0])
        percent = [100 * value for value in x]
        for y, look in ((arrive, OURS_TOO), (first, OTHER), (last, OURS)):
            drawing.curve(ax, percent, y, look)
        drawing.note(ax, "method B", (percent[6], arrive[6]), OURS_TOO, (4, 6))
        drawing.note(ax, "method A, whichever comes first", (percent[2], first[2]), OTHER, (8, 4))
        drawing.note(ax, "method A, whichever comes last", (percent[6], last[6]), OURS, (0, -16), "right")
        ax.set_ylim(0, 0.26)
        ax.set_xlabel("Packets lost on each route (%)")
        ax.set_ylabel("Throughput (Mbit/s)")
        return figure

    return Made(
        ["method A forwards after", "rank correlation of B ÷ A with the loss", "B ÷ A at 1 %", "M4"],
        [
            [label, f"{one.measures['rank correlation']:.3f}", f"{one.measures['ratio at largest']:.2f}", one.verdict]
            for label, one in (("whichever comes first", before), ("whichever comes last", after))
        ],
        draw,
        sources.rounded(first),
    )


RATES = (0.001, 0.002, 0.005, 0.01)
"""Loss rates at which C10 and C11 fail."""
LIMITS = {10: ("fec+fmax10", 0.3, "C10"), 1: ("fec+fmax1", 0.1, "C11")}
"""fmax → the variant, the claim's bound of its retransmission rate over SACK's, and the claim."""


def slow_start() -> Made:
    """C10 and C11: the retransmission rate over SACK's, here and in ns-2 at the loss rate that a limit leaves."""
    wanted = {"sack", *(variant for variant, _, _ in LIMITS.values())}
    made = sources.run(
        PARITY,
        lambda job: job.experiment == "losses" and job.variant in wanted and job.point[0] in RATES,
    )
    ours = {
        fmax: made.line(
            f'seed_mean(retransmission_rate["{variant}"]) / seed_mean(retransmission_rate[sack])', "loss", "losses"
        )[1]
        for fmax, (variant, _, _) in LIMITS.items()
    }
    module = scripts.load("studies/fec/ns2.py")
    stored = module.read()
    theirs: dict[int, dict[float, float]] = {fmax: {} for fmax in LIMITS}
    for (fmax, loss), left in module.UNREPAIRED.items():
        mean = module.mean(stored, module.Setting(float(f"{left:.4g}")))
        theirs[fmax][loss] = mean.retransmission_rate / module.sack_rate(loss)

    def draw() -> Figure:
        figure, axes = drawing.panels([2.3, 2.3])
        for ax, (fmax, (_, most, claim)) in zip(axes, LIMITS.items(), strict=True):
            percent = [100 * loss for loss in RATES]
            drawing.curve(ax, percent, ours[fmax], OURS)
            known = {100 * loss: value for loss, value in theirs[fmax].items()}
            drawing.curve(ax, list(known), list(known.values()), THEIRS)
            drawing.bound(ax, most, f"{claim}: at most {most:g}", 0.1)
            drawing.log_axis(ax, "x", {0.1: "0.1", 0.2: "0.2", 0.5: "0.5", 1: "1"})
            drawing.log_axis(ax, "y", {0.03: "0.03", 0.1: "0.1", 0.3: "0.3", 1: "1", 3: "3"})
            ax.set_ylim(0.02, 7)
            ax.set_xlim(0.09, 1.15)
            ax.set_ylabel(f"Retransmissions\nof fmax {fmax} ÷ SACK", fontsize=8)
            drawing.note(ax, "Anabranch", (percent[2], ours[fmax][2]), OURS, (0, 7), "center")
            label = list(known.items())[1 if fmax == 10 else 0]
            drawing.note(
                ax, "ns-2's SACK" if fmax == 10 else "ns-2", label, THEIRS, (7, 3) if fmax == 10 else (-2, -12)
            )
        axes[-1].set_xlabel("Packets lost (%)")
        return figure

    def cells(values: Mapping[float, float]) -> list[str]:
        return [f"{values[loss]:.2f}" if loss in values else "–" for loss in RATES]

    rows = []
    for fmax, (_, most, claim) in LIMITS.items():
        mine = dict(zip(RATES, ours[fmax], strict=True))
        rows.append([f"`fmax` {fmax}, {claim} asks for at most {most:g}: Anabranch", *cells(mine)])
        rows.append([f"`fmax` {fmax}: ns-2's SACK at the loss rate left unrepaired", *cells(theirs[fmax])])
    return Made(["retransmission rate over SACK's", *(f"{100 * loss:g} % lost" for loss in RATES)], rows, draw)


def rise() -> Made:
    """C8: the retransmission rate of SACK over the loss rate, with two queues of the sending host."""
    settings = {
        "ns-2, 50 packets": ("ns2_50", "ns-2", THEIRS),
        "ns-2, unlimited": ("ns2_unlimited", "ns-2", replace(THEIRS, marker="v", line=":")),
        "Anabranch, unlimited": ("ns2_unlimited", "here", OURS),
    }
    lines = {name: _sent_again(part, where) for name, (part, where, _) in settings.items()}

    def draw() -> Figure:
        figure, (ax,) = drawing.panels([3.3])
        for name, (_, _, look) in settings.items():
            drawing.curve(ax, list(lines[name]), list(lines[name].values()), look)
        losses = list(lines["ns-2, 50 packets"])
        ax.plot(losses, [0.8 * loss for loss in losses], color="#000000", linewidth=0.9, linestyle=(0, (1, 1)))
        drawing.note(ax, "0.8 of the loss rate", (losses[5], 0.8 * losses[5]), PUBLISHED, (8, -8))
        drawing.note(
            ax,
            "Anabranch, host's queue unlimited",
            (losses[3], lines["Anabranch, unlimited"][losses[3]]),
            OURS,
            (0, 8),
            "center",
        )
        drawing.note(ax, "ns-2, unlimited", (losses[2], lines["ns-2, unlimited"][losses[2]]), THEIRS, (-3, 6), "right")
        drawing.note(ax, "ns-2, 50 packets", (losses[1], lines["ns-2, 50 packets"][losses[1]]), THEIRS, (4, -12))
        drawing.log_axis(ax, "x", {0.001: "0.001", 0.01: "0.01", 0.1: "0.1", 1: "1"})
        drawing.log_axis(ax, "y", {0.001: "0.001", 0.01: "0.01", 0.1: "0.1", 1: "1"})
        ax.set_xlabel("Packets lost (%)")
        ax.set_ylabel("Packets retransmitted (%)")
        return figure

    outcome = {row[0] + ", " + row[1]: row[3:] for row in pages.cells(sources.page(PARITY), "ns2")[2:]}
    before, after = sources.corrected(PARITY, "C8")
    rows = [[name.replace(", ", ", host's queue "), *outcome[name.replace("Anabranch", "here")]] for name in settings]
    return Made(
        ["TCP with SACK", "the rate falls between the loss rates", "least over the loss rate", "rises at every step"],
        [*rows, ["**C8**", f"every variant, every step: {before.verdict}", f"corrected: {after.verdict}", ""]],
        draw,
        [value for line in lines.values() for value in line.values()],
    )  # fmt: skip


def _sent_again(part: str, where: str) -> dict[float, float]:
    """Loss rate → retransmission rate of SACK, both in per cent; the columns of ns-2 precede ours."""
    rows = pages.cells(sources.page(PARITY), part)[2:]
    place = 3 if where == "ns-2" else 7
    return {100 * float(row[0]): float(re.sub("[%]", "", row[place])) for row in rows}


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("L3", LINKS, _results("L3"), "ns-2's Westwood+ keeps at least half of its window", westwood),
        Entry(
            "L6", LINKS, _results("L6"), "the order depends on the form of Westwood+, and no setting gives it", order
        ),
        Entry("L7", LINKS, _results("L7"), "the settings of the control", control),
        Entry("L1-L5", LINKS, _results("L1", "L2", "L4", "L5"), "the links that have the printed 5 ms", delay),
        Entry("F4-F5", QUEUES, _results("F4", "F5"), "the multiplier that equal shares need", static),
        Entry("F7", QUEUES, _results("F7"), "the probabilities that the emulator computed", slope),
        Entry("R4", ORDER, _results("R4"), "the condition for a further fast retransmit", below),
        Entry("R9-R11", ORDER, _results("R9", "R11"), "the simulator's least retransmission timeout", least_timeout),
        Entry(
            "M1", ROUTES, _results("M1") | {"M1b": "second-reading"}, "the cost of the second route's jitter", jitter
        ),
        Entry("M4", ROUTES, _results("M4"), "which of two conditions ends a wait", waits),
        Entry("C10-C11", PARITY, _results("C10", "C11"), "the owner of the 50 packets of buffer", slow_start),
        Entry("C8", PARITY, _results("C8"), "the owner of the 50 packets, for SACK alone", rise),
    )
}
"""By name, in the page's order."""
