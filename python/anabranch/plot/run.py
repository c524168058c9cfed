"""The static figures of one run: cwnd, queue, sequence and reordering over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anabranch.charts.columns import RunColumns
from anabranch.plot.style import COLOURS, MAX_VECTOR_MARKS, add_legend, new_figure, thin, thin_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from anabranch.charts.model import Chart

LEGEND_LIMIT = 10
"""Lines that a legend names."""


def figures(columns: RunColumns) -> Iterator[tuple[str, Figure]]:
    """(name, figure) of every chart that has data."""
    for chart in columns.charts():
        yield chart.name, chart_figure(chart)


def chart_figure(chart: Chart) -> Figure:
    """A figure of one chart."""
    figure, axes = new_figure()
    draw(chart, axes)
    return figure


def draw(chart: Chart, axes: Axes) -> None:
    """Draw a chart over time."""
    lines: list[Line2D] = []
    for i, series in enumerate(chart.series):
        colour = COLOURS[i % len(COLOURS)]
        if series.kind == "band" and series.low is not None:
            axes.fill_between(series.x, series.low, series.y, color=colour, alpha=0.25, linewidth=0)
            lines += axes.plot(series.x, series.y, color=colour, linewidth=0.4)
        elif series.kind == "spans" and series.high is not None:
            lines.append(_handle(axes, colour))
            for start, end in zip(series.x, series.high, strict=True):
                axes.axvspan(start, end, color=colour, linewidth=0)
        elif series.kind == "ranges" and series.low is not None and series.high is not None:
            lines.append(_handle(axes, colour))
            axes.vlines(series.x, series.low, series.high, color=colour, linewidth=0.6)
        elif series.kind in ("line", "step"):
            x, y = thin(series.x, series.y)
            style = "steps-post" if series.kind == "step" else "default"
            lines += axes.plot(x, y, color=colour, linestyle="--" if series.faint else "-", drawstyle=style)
        else:
            x, y = thin_points(series.x, series.y)
            marks: dict[str, Any] = {"rasterized": len(x) > MAX_VECTOR_MARKS}
            lines += axes.plot(x, y, ".", markersize=2.5, color=colour, **marks)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.set_ylim(bottom=0)
    if chart.is_strip:
        axes.set_yticks([])
    if 1 < len(lines) <= LEGEND_LIMIT:
        add_legend(axes, lines, [series.label for series in chart.series], loc="best")


def _handle(axes: Axes, colour: str) -> Line2D:
    """A legend handle for filled areas."""
    return axes.plot([], [], color=colour, linewidth=3)[0]
