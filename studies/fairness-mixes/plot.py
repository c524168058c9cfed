"""Who is fair at what cost, a panel for each queue; and how long short transfers take beside bulk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anabranch.plot.study import Drawing

HALF = 0.5
"""The bar of X3: half of the max-min share."""
OTHERS = "#c8c8c8"


def figures(study: Drawing) -> Iterator[tuple[str, str, Figure]]:
    """Draw both."""
    yield "frontier", "Worst share of max-min against queue delay, a mark for each mix", frontier(study)
    yield "applications", "Short transfers and bulk, by queue", applications(study)


def frontier(study: Drawing) -> Figure:
    """Draw a panel for each queue, with a mark for each mix; those of all other queues in grey."""
    definition = study.results.definition
    mixes = next(t.experiments for t in definition.tables if t.id == "worst-share")
    marks: dict[str, list[tuple[float, float]]] = {}
    for mix in mixes:
        share, delay = by_queue(study, "worst_share", mix), by_queue(study, "queue_delay", mix)
        for queue in share:
            marks.setdefault(queue, []).append((delay[queue], share[queue]))
    across = 3
    down = -(-len(marks) // across)
    figure, single = study.new_figure(7.2, 1.9 * down)
    single.remove()
    panels: Any = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    every = [mark for queue in marks for mark in marks[queue]]
    for axes, (queue, own) in zip(panels.flat, marks.items(), strict=False):
        axes.plot(*zip(*every, strict=True), linestyle="none", marker=".", markersize=3, color=OTHERS)
        axes.axhline(HALF, color=OTHERS, linewidth=0.8, linestyle="--")
        axes.plot(*zip(*own, strict=True), linestyle="none", marker="o", markersize=5, color=COLOURS[0])
        axes.set_title(definition.variants[queue].label, fontsize=9)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_ylim(-0.05, 1.05)
    figure.supxlabel("Queue delay, 95th percentile (ms)", fontsize=9)
    figure.supylabel("Worst share of max-min", fontsize=9)
    return figure


def applications(study: Drawing) -> Figure:
    """Draw the median and the 95th percentile of completion times, and what bulk transfers get."""
    definition = study.results.definition
    median = by_queue(study, "short_median", "applications")
    late = by_queue(study, "short_p95", "applications")
    bulk = by_queue(study, "cubic + beside", "applications")
    queues = list(reversed(median))
    figure, single = study.new_figure(7.2, 3.1)
    single.remove()
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    for place, queue in enumerate(queues):
        left.plot([median[queue], late[queue]], [place, place], color=OTHERS, linewidth=2, zorder=1)
    rows = range(len(queues))
    left.plot([median[q] for q in queues], rows, linestyle="none", marker="o", color=COLOURS[0], label="median")
    left.plot([late[q] for q in queues], rows, linestyle="none", marker="s", color=COLOURS[1], label="95th percentile")
    left.set_xscale("log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    left.set_xticks([], minor=True)
    left.set_yticks(list(rows), [definition.variants[q].label for q in queues])
    left.set_xlabel("Completion time of short transfers (s)")
    left.legend(loc="best", fontsize=8)
    right.barh(list(rows), [bulk[q] for q in queues], height=0.6, color=COLOURS[0])
    right.set_xlabel("Bulk transfers, total (Mbit/s)")
    return figure


def by_queue(study: Drawing, expression: str, experiment: str) -> dict[str, float]:
    """Return means over seeds, by queue."""
    series = study.series(expression, experiment).collapsed()
    return {str(point["variant"]): float(value or 0) for point, value in series}
