"""The figures of the comparisons: the reference beside our figures, one colour per congestion control."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from anabranch.plot.style import COLOURS, MARKERS, new_figure
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from comparison.judging import MEDIAN_RATIO, Errors

Stroke = Literal["", "-", "--"]

GREY = "#555555"
OURS = "Anabranch"
"""The label of our figures on axes and in legends; ``other`` is that of the other implementation."""

CONTROLS = ("cubic", "reno", "bbr", "westwood", "compound", "vegas", "bic", "htcp", "dctcp")
"""In the order of colours, so that each congestion control has the same colour everywhere."""


@dataclass(frozen=True)
class Point:
    """A figure of one row: the reference, ours, the range of ours, and the accepted range.

    Hollow points are a separate group.
    """

    control: str
    theirs: float
    ours: float
    span: tuple[float, float] | None = None
    hollow: bool = False
    accepted: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """Points of one quantity; ``scale`` is ``linear``, ``log``, ``counts`` or ``sqrt``.

    With ``ratio`` the vertical axis is our figure divided by the reference, which shows small
    differences of large figures.
    """

    label: str
    points: Sequence[Point]
    scale: str
    ratio: bool = False


@dataclass(frozen=True)
class Shares:
    """The first flow's shares in per cent: the reference's repeats and our seeds."""

    label: str
    theirs: Sequence[float]
    ours: Sequence[float]


@dataclass(frozen=True)
class Curves:
    """A figure over the reorder interval: (interval, value) of both, (interval, minimum, maximum) of the repeats."""

    control: str
    theirs: Sequence[tuple[float, float]]
    ours: Sequence[tuple[float, float]]
    spread: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True)
class Over:
    """Curves of one quantity over the reorder interval; ``scale`` is ``linear`` or ``sqrt``."""

    title: str
    quantity: str
    curves: Sequence[Curves]
    scale: str = "linear"


def ours_over_theirs(panels: Sequence[Panel], other: str, hollow: str = "") -> Figure:
    """Our figures over the reference, a panel per quantity; on the grey line both are equal."""
    figure, axes = _panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        for point in panel.points:
            _point(ax, point, panel.ratio)
        _scale(ax, "x", panel.scale)
        if panel.ratio:
            ax.axhline(1.0, color=GREY, linewidth=0.9, zorder=0)
        else:
            _scale(ax, "y", panel.scale)
            values = [value for p in panel.points for value in (p.theirs, p.ours, *(p.span or ()))]
            _diagonal(ax, values, panel.scale)
        ax.set_title(textwrap.fill(panel.label, 36), fontsize=9)
        ax.set_xlabel(other)
        ax.set_ylabel(f"{OURS} ÷ {other}" if panel.ratio else OURS)
    _legend(figure, [point.control for panel in panels for point in panel.points], hollow)
    return figure


def _point(ax: Axes, point: Point, ratio: bool) -> None:
    colour, marker = _look(point.control)
    by = point.theirs if ratio else 1.0
    # Rows of different controls with nearly the same figure are drawn side by side.
    x = point.theirs * (1 + 0.05 * CONTROLS.index(point.control)) if ratio else point.theirs
    if point.accepted is not None:
        ax.plot([x] * 2, [end / by for end in point.accepted], color="#000000", alpha=0.12, linewidth=4)
    if point.span is not None:
        ax.plot([x] * 2, [end / by for end in point.span], color=colour, linewidth=1.2, alpha=0.6)
    face = "white" if point.hollow else colour
    ax.plot(x, point.ours / by, marker, color=colour, markerfacecolor=face, markersize=4.5)


def errors(panels: Sequence[tuple[str, Sequence[tuple[str, Errors]]]]) -> Figure:
    """Our error over the error of the other controls' rows; below the solid line ours is smaller."""
    figure, axes = _panels(len(panels), width=4.4)
    for ax, (label, points) in zip(axes, panels, strict=True):
        low, high = min(found.others for _, found in points), max(found.others for _, found in points)
        # Exact values are drawn at the lower edge.
        floor = low / 50
        for control, found in points:
            colour, marker = _look(control)
            ax.plot(found.others, max(found.ours, floor), marker, color=colour, markersize=4.5, clip_on=False)
        for axis in ("x", "y"):
            _scale(ax, axis, "log")
        ax.plot([low, high], [low, high], color=GREY, linewidth=0.9)
        ax.plot([low, high], [low * MEDIAN_RATIO, high * MEDIAN_RATIO], color=GREY, linewidth=0.9, linestyle=":")
        ax.set_ylim(floor, max(high, *(found.ours for _, found in points)) * 1.2)
        ax.set_title(label, fontsize=9)
        ax.set_xlabel("Error of the other controls' rows, mean")
        ax.set_ylabel(f"Error of {OURS}")
    _legend(figure, [control for _, points in panels for control, _ in points], "")
    return figure


def shares(rows: Sequence[Shares], tolerance: float, other: str) -> Figure:
    """The first flow's share, pair by pair."""
    figure, ax = new_figure(width=5.6, height=0.6 + 0.55 * len(rows))
    for i, row in enumerate(rows):
        mean = sum(row.theirs) / len(row.theirs)
        ax.barh(i, 2 * tolerance, left=mean - tolerance, height=0.62, color="#000000", alpha=0.08)
        ax.plot(row.theirs, [i + 0.15] * len(row.theirs), "o", color=GREY, markersize=4.5,
                label=f"{other}, each repeat" if i == 0 else None)  # fmt: skip
    labelled = False
    for i, row in enumerate(rows):
        ours = [i - 0.15] * len(row.ours)
        ax.plot(row.ours, ours, "|", color=COLOURS[0], markersize=7, label=None if labelled else f"{OURS}, each seed")
        mean = sum(row.ours) / len(row.ours)
        ax.plot(mean, i - 0.15, "D", color=COLOURS[1], markersize=4.5, label=None if labelled else f"{OURS}, mean")
        labelled = True
    ax.axvline(50, color=GREY, linewidth=0.7, linestyle=":")
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.set_xlabel("Share of the first flow (%)")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure


def over_interval(panels: Sequence[Over], other: str) -> Figure:
    """Figures over the reorder interval: the reference as lines, ours dashed."""
    figure, axes = _panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        for curve in panel.curves:
            _curve(ax, curve)
        _scale(ax, "y", panel.scale)
        ax.set_ylim(bottom=0)
        ax.set_title(panel.title, fontsize=9)
        ax.set_xlabel("Reorder interval (packets)")
        ax.set_ylabel(panel.quantity)
    controls = [curve.control for panel in panels for curve in panel.curves]
    handles = [*_handles(controls, "-"), *_both(other)]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)
    return figure


def by_control(rows: Sequence[Over], other: str) -> Figure:
    """The same with a column of panels for each control; the range of the reference's repeats is shaded."""
    controls = [name for name in CONTROLS if any(curve.control == name for row in rows for curve in row.curves)]
    figure = Figure(figsize=(3.0 * len(controls), 2.1 * len(rows) + 0.5))
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(rows), len(controls), squeeze=False, sharex=True, sharey="row")
    for line, row in zip(grid, rows, strict=True):
        for ax, control in zip(line, controls, strict=True):
            for curve in row.curves:
                if curve.control == control:
                    _curve(ax, curve)
            _scale(ax, "y", row.scale)
        line[0].set_ylim(bottom=0)  # for the whole row, after all of it is drawn
        line[0].set_ylabel(f"{row.quantity},\n{row.title}", fontsize=8)
    for ax, control in zip(grid[0], controls, strict=True):
        ax.set_title(control, fontsize=9)
    for ax in grid[-1]:
        ax.set_xlabel("Reorder interval (packets)")
    handles = [*_both(other), Patch(color=GREY, alpha=0.15, label=f"{other}, range of the repeats")]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)
    return figure


def _curve(ax: Axes, curve: Curves) -> None:
    colour, marker = _look(curve.control)
    if curve.spread:
        x, low, high = zip(*curve.spread, strict=True)
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(*_columns(curve.theirs), marker=marker, color=colour, markersize=4)
    ax.plot(*_columns(curve.ours), marker=marker, color=colour, linestyle="--", markerfacecolor="white")


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _panels(count: int, width: float = 3.2) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(width * count, 3.5))
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, count, squeeze=False)
    return figure, list(axes[0])


def _look(control: str) -> tuple[str, str]:
    index = CONTROLS.index(control)
    return COLOURS[index % len(COLOURS)], (*MARKERS, "*", "p")[index]


def _scale(ax: Axes, axis: str, scale: str) -> None:
    put = ax.set_xscale if axis == "x" else ax.set_yscale
    which = ax.xaxis if axis == "x" else ax.yaxis
    if scale == "sqrt":
        put("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    elif scale == "counts":
        # Logarithmic, with a position for zero.
        put("symlog", linthresh=10, linscale=0.5)
        which.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif scale == "log":
        put("log")
        _plain_ticks(which)


def _plain_ticks(axis: Any) -> None:
    """Write 20 and 50 instead of powers of ten; over many decades, 1 and 10."""
    low, high = axis.get_data_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > low * 1000 else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _diagonal(ax: Axes, values: Sequence[float], scale: str) -> None:
    if not values:
        return
    low, high = (0.0 if scale in {"sqrt", "counts"} else min(values)), max(values)
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.9, zorder=0)
    for put in (ax.set_xlim, ax.set_ylim):
        put(low * 0.9, high * 1.1)


def _legend(figure: Figure, controls: Sequence[str], hollow: str) -> None:
    handles = _handles(controls, "")
    if hollow:
        handles.append(_handle(hollow, GREY, "o", "", face="white"))
    if handles:
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)


def _handles(controls: Sequence[str], line: Stroke) -> list[Line2D]:
    present = [name for name in CONTROLS if name in set(controls)]
    return [_handle(control, *_look(control), line) for control in present]


def _both(other: str) -> list[Line2D]:
    """Legend entries for the line styles of both sides, independent of the control."""
    return [_handle(other, GREY, "o", "-"), _handle(OURS, GREY, "o", "--", face="white")]


def _handle(label: str, colour: str, marker: str, line: Stroke, face: str | None = None) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle=line, markerfacecolor=face or colour, markersize=4.5,
                  label=label)  # fmt: skip
