"""The figure of a replay: the goodput of a captured connection and of its simulation, over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS, add_legend, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def goodput(captured: Mapping[str, Any], simulated: Mapping[str, Any]) -> Figure:
    """Two lines; each series has a start, an interval and rates."""
    figure, axes = new_figure()
    lines = [
        axes.plot(_times(series), series["mbit_s"], color=colour, linewidth=1)[0]
        for series, colour in zip((captured, simulated), COLOURS, strict=False)
    ]
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Goodput (Mbit/s)")
    axes.set_ylim(bottom=0)
    add_legend(axes, lines, ["capture", "simulation"])
    return figure


def _times(series: Mapping[str, Any]) -> list[float]:
    """The middle of each interval."""
    start, interval = series["start_s"], series["interval_s"]
    return [start + (at + 0.5) * interval for at in range(len(series["mbit_s"]))]
