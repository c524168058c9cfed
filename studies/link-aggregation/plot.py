"""Throughput over time without and with control, and windows beside the number of links that are on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from anabranch.plot.style import COLOURS
from anabranch.study.series import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anabranch.plot.study import Drawing

VARIANTS = ["ctcp", "cubic", "westwood", "newreno", "vegas"]
WINDOWS = ["ctcp", "cubic", "westwood"]
"""What figure 6 shows."""
PRINTED = {
    "off": {"ctcp": 793.9, "cubic": 797.6, "westwood": 763.2, "newreno": 694.9, "vegas": 592.1},
    "on": {"ctcp": 782.6, "cubic": 703.3, "westwood": 633.4, "newreno": 595.0, "vegas": 564.1},
}
"""Table 1 of the source, in Mbit/s."""
TITLES = {"off": "All links on", "on": "With control"}
SPAN_S = 2.0
"""Throughput is the mean over so much."""


def figures(study: Drawing) -> Iterator[tuple[str, str, Figure]]:
    """Draw table 1 beside ours, then figures 4, 5 and 6."""
    yield "table-1", "Mean goodput, ours and as printed", means(study)
    yield "figure-4", "Goodput with all links on", goodput(study, "off")
    yield "figure-5", "Goodput with control", goodput(study, "on")
    yield "figure-6", "Windows and links that are on", windows(study)


def means(study: Drawing) -> Figure:
    """Draw the mean goodput of each variant without and with control, and stars where the source prints it."""
    figure, axes = study.new_figure(5.6, 3.1)
    for shift, (experiment, title), colour in zip((-0.12, 0.12), TITLES.items(), COLOURS, strict=False):
        for place, variant in enumerate(VARIANTS):
            series = study.series(f"throughput[{variant}, {experiment}]").collapsed()
            cells = [number(value) for value in series.cells.values()]
            first = place == 0
            axes.plot([place + shift] * len(cells), cells, "o", color=colour, label=title if first else None)
            axes.plot(
                [place + shift], [PRINTED[experiment][variant]], "*", markersize=10, markerfacecolor=colour,
                markeredgecolor="black", label=f"{title}, as printed" if first else None,
            )  # fmt: skip
    labels = [study.results.definition.variants[variant].label for variant in VARIANTS]
    axes.set_xticks(range(len(VARIANTS)), labels)
    axes.set_ylabel("Goodput (Mbit/s)")
    axes.set_ylim(0, 900)
    axes.legend(loc="lower left", fontsize=7)
    return figure


def goodput(study: Drawing, experiment: str) -> Figure:
    """Draw goodput over time, a line for each variant."""
    figure, axes = study.new_figure(5.6, 3.1)
    for colour, variant in zip(COLOURS, VARIANTS, strict=False):
        times, octets = study.line(f"delivered[{variant}]", "time_s", experiment)
        kept = [(0.0, 0.0)]
        for time, value in zip(times, octets, strict=True):
            if time >= kept[-1][0] + SPAN_S - 1e-6:
                kept.append((time, value))
        rate = [(after - before) * 8e-6 / (end - start) for (start, before), (end, after) in pairwise(kept)]
        axes.plot(
            [time for time, _ in kept[1:]], rate, color=colour, label=study.results.definition.variants[variant].label
        )
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Goodput (Mbit/s)")
    axes.set_ylim(0, 820)
    axes.legend(loc="lower right", fontsize=7)
    return figure


def windows(study: Drawing) -> Figure:
    """Draw cwnd and the number of links, a panel for each variant."""
    figure, single = study.new_figure(5.6, 5.4)
    single.remove()
    panels = figure.subplots(len(WINDOWS), 1, sharex=True)
    for axes, variant in zip(panels, WINDOWS, strict=True):
        axes.plot(*study.line(f"cwnd[{variant}]", "time_s", "on"), color=COLOURS[0], linewidth=0.9)
        axes.set_title(study.results.definition.variants[variant].label, fontsize=9)
        axes.set_ylabel("Window (packets)", color=COLOURS[0])
        axes.set_ylim(bottom=0)
        links = axes.twinx()
        links.plot(
            *study.line(f"members[{variant}]", "time_s", "on"), color=COLOURS[1], linewidth=0.9, drawstyle="steps-post"
        )
        links.set_ylim(0, 8.5)
        links.set_yticks(range(0, 9, 2))
        links.set_ylabel("Links on", color=COLOURS[1])
    panels[-1].set_xlabel("Time (s)")
    return figure
