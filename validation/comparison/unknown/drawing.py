"""The pictures. Marker and line name the source of a figure, so that colour is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anabranch.plot.style import COLOURS
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

GREY = "#555555"
WIDTH = 5.0
"""Inches; a page of 400 pixels shows its text at ten pixels."""


@dataclass(frozen=True)
class Look:
    """Colour, marker and line of one source of figures."""

    colour: str
    marker: str
    line: Any
    hollow: bool = False

    def style(self, *, joined: bool = True) -> dict[str, Any]:
        """The arguments of ``plot``."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.line if joined else "none",
            "markerfacecolor": "white" if self.hollow else self.colour,
        }


PUBLISHED = Look("#000000", "*", "-")
THEIRS = Look(COLOURS[1], "s", "--", hollow=True)
"""The implementation of the paper, or its kind: ns-2."""
OURS = Look(COLOURS[0], "o", "-")
OURS_TOO = Look(COLOURS[0], "s", "-")
"""A second method, in the study's setting too."""
LINUX = Look(COLOURS[2], "D", ":", hollow=True)
OTHER = Look(COLOURS[3], "^", "-.", hollow=True)
"""A second reading or setting in our simulator."""


@dataclass(frozen=True)
class Row:
    """The figures of one source, one for each category."""

    label: str
    look: Look
    values: Sequence[float]


def panels(heights: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """A figure with panels below one another; heights in inches."""
    figure = Figure(figsize=(WIDTH, sum(heights)))
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": list(heights)})
    return figure, [line[0] for line in grid]


def dots(
    categories: Sequence[str], rows: Sequence[Row], label: str, *, left: float = 0, names_at: float | None = None
) -> Figure:
    """A dot for each source in each category; the first category carries the sources' names.

    The names follow the dots, or begin at ``names_at``.
    """
    step = 0.8 / len(rows)
    figure, (ax,) = panels([0.55 + 0.17 * len(rows) * len(categories)])
    for place, row in enumerate(rows):
        offset = (place - (len(rows) - 1) / 2) * step
        heights = [index + offset for index in range(len(categories))]
        size = 9 if row.look.marker == "*" else 5
        ax.plot(row.values, heights, **row.look.style(joined=False), markersize=size, clip_on=False)
        beside = row.values[0] if names_at is None else names_at
        note(ax, row.label, (beside, heights[0]), row.look, (8, 0))
    for edge in range(1, len(categories)):
        ax.axhline(edge - 0.5, color=GREY, linewidth=0.4)
    ax.set_yticks(range(len(categories)), categories)
    ax.set_ylim(len(categories) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    ax.set_xlim(left=left)
    ax.set_xlabel(label)
    return figure


def note(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    look: Look,
    shift: tuple[float, float],
    side: Literal["left", "center", "right"] = "left",
) -> None:
    """Write a label beside a point; the shift is in points, ``side`` the alignment of the text."""
    ax.annotate(
        text, at, shift, textcoords="offset points", fontsize=8, color=look.colour, annotation_clip=False,
        va="center" if shift[1] == 0 else "baseline", ha=side,
    )  # fmt: skip


def curve(ax: Axes, x: Sequence[float], y: Sequence[float], look: Look, *, width: float | None = None) -> None:
    """A line with markers."""
    ax.plot(x, y, **look.style(), markersize=4.5, linewidth=width)


def band(ax: Axes, low: float, high: float, ends: tuple[float, float], text: str) -> None:
    """The stated range of a paper, hatched, with its label above."""
    ax.fill_between(
        ends, low, high, facecolor="#dddddd", edgecolor=GREY, hatch="////", linewidth=0, alpha=0.5, zorder=0
    )
    ax.annotate(text, (ends[0], high), (2, 3), textcoords="offset points", fontsize=8, color="#000000")


def bound(ax: Axes, level: float, text: str, x: float) -> None:
    """A level that a claim's check asks for."""
    ax.axhline(level, color="#000000", linewidth=0.8, linestyle=(0, (1, 1)))
    ax.annotate(text, (x, level), (2, 3), textcoords="offset points", fontsize=8, color="#000000")


def log_axis(ax: Axes, axis: str, ticks: Mapping[float, str]) -> None:
    """A logarithmic axis with these ticks alone."""
    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    one = ax.xaxis if axis == "x" else ax.yaxis
    one.set_major_locator(FixedLocator(list(ticks)))
    one.set_major_formatter(FuncFormatter(lambda value, _: ticks.get(float(f"{value:.6g}"), "")))
    one.set_minor_locator(NullLocator())
    one.set_minor_formatter(NullFormatter())
