"""The figures of the comparisons: theirs beside ours, one colour per congestion control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS, MARKERS

from compare.judging import MEDIAN_RATIO, Errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONTROLS = ("cubic", "reno", "bbr", "westwood", "compound")
"""In the order of colours, so that a congestion control looks the same everywhere."""


@dataclass(frozen=True)
class Point:
    """A figure of one row: theirs, ours, the range of ours, and the range in which ours should be.

    Hollow points are a group of their own.
    """

    control: str
    theirs: float
    ours: float
    span: tuple[float, float] | None = None
    hollow: bool = False
    accepted: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """Points of one quantity; ``scale`` is ``linear``, ``log`` or ``sqrt``."""

    label: str
    points: Sequence[Point]
    scale: str


@dataclass(frozen=True)
class Shares:
    """The first flow's shares in per cent: their repeats and our seeds."""

    label: str
    theirs: Sequence[float]
    ours: Sequence[float]


@dataclass(frozen=True)
class Curves:
    """A figure over the reorder interval: (interval, value) there and here."""

    control: str
    theirs: Sequence[tuple[float, float]]
    ours: Sequence[tuple[float, float]]


def there_and_here(panels: Sequence[Panel], hollow: str = "") -> Figure:
    """Ours over theirs, a panel per quantity; on the diagonal both are the same."""
    figure, axes = _panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        for point in panel.points:
            colour, marker = _look(point.control)
            if point.accepted is not None:
                ax.plot([point.theirs] * 2, point.accepted, color="#000000", alpha=0.12, linewidth=4)
            if point.span is not None:
                ax.plot([point.theirs] * 2, point.span, color=colour, linewidth=0.9, alpha=0.6)
            face = "white" if point.hollow else colour
            ax.plot(point.theirs, point.ours, marker, color=colour, markerfacecolor=face, markersize=4.5)
        for axis in ("x", "y"):
            _scale(ax, axis, panel.scale)
        values = [value for p in panel.points for value in (p.theirs, p.ours, *(p.span or ()))]
        _diagonal(ax, values, panel.scale)
        ax.set_title(panel.label, fontsize=9)
        ax.set_xlabel("there")
        ax.set_ylabel("here")
    _legend(figure, [point.control for panel in panels for point in panel.points], hollow)
    return figure


def errors(panels: Sequence[tuple[str, Sequence[tuple[str, Errors]]]]) -> Figure:
    """Our error over that of the other controls' rows; below the solid line ours is smaller."""
    figure, axes = _panels(len(panels), width=4.4)
    for ax, (label, points) in zip(axes, panels, strict=True):
        for control, found in points:
            colour, marker = _look(control)
            ax.plot(found.others, found.ours, marker, color=colour, markersize=4.5)
        values = [value for _, found in points for value in (found.ours, found.others)]
        ax.set_xscale("log")
        # An error of nothing is drawn, too.
        smallest = min((found.others for _, found in points), default=1.0) / 10
        ax.set_yscale("symlog", linthresh=smallest)
        ax.set_ylim(bottom=0)
        _plain_ticks(ax.xaxis)
        low, high = min(found.others for _, found in points), max(values)
        ax.plot([low, high], [low, high], color="#555555", linewidth=0.9)
        ax.plot([low, high], [low * MEDIAN_RATIO, high * MEDIAN_RATIO], color="#555555", linewidth=0.9, linestyle=":")
        ax.set_title(f"Error of {label}", fontsize=9)
        ax.set_xlabel("of the other controls' rows, on average")
        ax.set_ylabel("of ours")
    _legend(figure, [control for _, points in panels for control, _ in points], "")
    return figure


def shares(rows: Sequence[Shares], tolerance: float) -> Figure:
    """The first flow's share, pair by pair."""
    from anabranch.plot.style import new_figure

    figure, ax = new_figure(width=5.6, height=0.6 + 0.55 * len(rows))
    for i, row in enumerate(rows):
        mean = sum(row.theirs) / len(row.theirs)
        ax.barh(i, 2 * tolerance, left=mean - tolerance, height=0.62, color="#000000", alpha=0.08)
        ax.plot(row.theirs, [i + 0.15] * len(row.theirs), "o", color="#555555", markersize=4.5,
                label="there, each repeat" if i == 0 else None)  # fmt: skip
    labelled = False
    for i, row in enumerate(rows):
        if not row.ours:
            ax.text(50, i - 0.15, "not available", ha="center", va="center", fontsize=8, color="#555555")
            continue
        ours = [i - 0.15] * len(row.ours)
        ax.plot(row.ours, ours, "|", color=COLOURS[0], markersize=7, label=None if labelled else "here, each seed")
        mean = sum(row.ours) / len(row.ours)
        ax.plot(mean, i - 0.15, "D", color=COLOURS[1], markersize=4.5, label=None if labelled else "here, mean")
        labelled = True
    ax.axvline(50, color="#555555", linewidth=0.7, linestyle=":")
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.set_xlabel("Share of the first flow (%)")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure


def over_interval(panels: Sequence[tuple[str, Sequence[Curves], str]]) -> Figure:
    """Figures over the reorder interval: theirs as lines, ours dashed."""
    figure, axes = _panels(len(panels))
    for ax, (label, curves, scale) in zip(axes, panels, strict=True):
        for curve in curves:
            colour, marker = _look(curve.control)
            ax.plot(*_columns(curve.theirs), marker=marker, color=colour, markersize=4)
            ax.plot(*_columns(curve.ours), marker=marker, color=colour, linestyle="--", markerfacecolor="white")
        _scale(ax, "y", scale)
        ax.set_ylim(bottom=0)
        ax.set_title(label, fontsize=9)
        ax.set_xlabel("Reorder interval (packets)")
    _legend(figure, [curve.control for _, curves, _ in panels for curve in curves], "here", line=True)
    return figure


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _panels(count: int, width: float = 3.2) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * count, 3.5))
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, count, squeeze=False)
    return figure, list(axes[0])


def _look(control: str) -> tuple[str, str]:
    index = CONTROLS.index(control)
    return COLOURS[index], MARKERS[index]


def _scale(ax: Axes, axis: str, scale: str) -> None:
    import numpy as np

    put = ax.set_xscale if axis == "x" else ax.set_yscale
    which = ax.xaxis if axis == "x" else ax.yaxis
    if scale == "sqrt":
        put("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    elif scale == "log":
        put("log")
        _plain_ticks(which)


def _plain_ticks(axis: Any) -> None:
    """Write 20 and 50 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _diagonal(ax: Axes, values: Sequence[float], scale: str) -> None:
    if not values:
        return
    low, high = (0.0 if scale == "sqrt" else min(values)), max(values)
    ax.plot([low, high], [low, high], color="#555555", linewidth=0.9, zorder=0)
    margin = 0.0 if scale == "sqrt" else 0.9
    for put in (ax.set_xlim, ax.set_ylim):
        put(low * margin, high * 1.1)


def _legend(figure: Figure, controls: Sequence[str], second: str, *, line: bool = False) -> None:
    from matplotlib.lines import Line2D

    style = "-" if line else ""
    handles = []
    for control in (name for name in CONTROLS if name in set(controls)):
        colour, marker = _look(control)
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle=style, markersize=4.5, label=control))
    if second:
        handles.append(
            Line2D([], [], color="#555555", marker="o", linestyle="--" if line else "", markerfacecolor="white",
                   markersize=4.5, label=second)
        )  # fmt: skip
    if handles:
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)
