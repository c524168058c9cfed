"""The figure of a validation: the distance between the engines, beside the distances it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS
from anabranch.text import shown
from anabranch.validate import WINDOW
from anabranch.validate.measure import COMPLETION, GOODPUT, RETRANSMITTED, SHARES, SRTT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anabranch.validate import Comparison, Result

PANELS = (
    (GOODPUT.name, "Goodput (%)"),
    (SRTT.name, "Mean RTT (%)"),
    (RETRANSMITTED.name, "Retransmitted (√packets)"),
    (SHARES.name, "Shares (% of the sum)"),
    (WINDOW, "Window over time (%)"),
    (COMPLETION.name, "Completion times (%)"),
)
"""Metric and title of each panel."""

LEAST = {RETRANSMITTED.name: 0.01}
"""Smaller distances are drawn at this value, because the axis is logarithmic."""
LEAST_SHARE = 0.01
"""The same for metrics in per cent."""

WIDTH, ROW, MARGIN = 11.0, 0.2, 1.1
"""Inches."""


def distances(comparisons: Sequence[Comparison]) -> Figure:
    """A row per scenario, a panel per metric; logarithmic axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, MARGIN + ROW * max(4, len(comparisons))))
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, len(PANELS), sharey=True, squeeze=False)[0]
    theirs = "kernel" if any(comparison.engine == "kernel" for comparison in comparisons) else "live"
    for panel, (metric, title) in zip(panels, PANELS, strict=True):
        _panel(panel, metric, [comparison.results.get(metric) for comparison in comparisons], theirs)
        panel.set_xlabel(title)
    names = [
        shown.figure(Path(comparison.file).stem) + (" (tainted)" if comparison.tainted else "")
        for comparison in comparisons
    ]
    panels[0].set_yticks(range(len(comparisons)), names)
    panels[0].set_ylim(len(comparisons) - 0.4, -0.6)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(handles), fontsize=8)
    return figure


def _panel(axes: Axes, metric: str, results: Sequence[Result | None], theirs: str) -> None:
    count = metric == RETRANSMITTED.name
    least, factor = (LEAST[metric], 1) if count else (LEAST_SHARE, 100)

    def place(value: float) -> float:
        return max(value * factor, least)

    rows = [(row, result) for row, result in enumerate(results) if result is not None]
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    if not rows:
        # An unclipped line without points would be laid out at the corner of the figure.
        axes.set_xticks([])
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color="#666666")
        return
    axes.barh(
        [row for row, _ in rows],
        [place(result.floor) - least for _, result in rows],
        left=least,
        height=0.7,
        color="#bbbbbb",
        linewidth=0,
        label="Live against live" if theirs == "live" else "Kernel: parts of a tick",
    )
    axes.plot(
        [place(result.other) for _, result in rows if result.other is not None],
        [row for row, result in rows if result.other is not None],
        linestyle="none",
        marker="x",
        markersize=4.5,
        clip_on=False,
        color=COLOURS[1],
        label=f"Another control against {theirs}",
    )
    axes.plot(
        [place(result.error) for _, result in rows],
        [row for row, _ in rows],
        linestyle="none",
        marker="o",
        markersize=4,
        clip_on=False,
        zorder=3,
        color=COLOURS[0],
        label=f"Simulator against {theirs}",
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    # Labels of the minor ticks would overlap on an axis of one decade.
    axes.xaxis.set_minor_formatter("")
    axes.set_xlim(left=least)
