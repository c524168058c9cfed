"""Figures with one number for every pair: matrices of coloured cells with the number in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

DARK = 0.45
"""Cells of a lower luminance have a white number."""


@dataclass(frozen=True)
class Panel:
    """A matrix, row by row."""

    title: str
    values: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Scale:
    """The label of the numbers, and the colours from minimum to maximum."""

    label: str
    colours: str
    least: float
    largest: float


SHARE = Scale("Share of the row's control beside the column's", "RdBu", 0, 1)
"""White is one half; the two sides differ in every kind of colour vision."""
JAIN = Scale("Jain's index of all flows", "cividis", 0.5, 1)


def draw(panels: Sequence[Panel], names: Sequence[str], scale: Scale, columns: int = 2) -> Figure:
    """Draw matrices with the same rows and columns, ``columns`` of them side by side."""
    lines = -(-len(panels) // columns)
    side = 0.44 * len(names)
    figure = Figure(figsize=(side * columns + 1.5, (side + 0.3) * lines + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for ax, panel in zip(axes.flat, panels, strict=True):
        _matrix(ax, panel, names, scale)
    below = min(value for panel in panels for row in panel.values for value in row) < scale.least
    colours = ScalarMappable(Normalize(scale.least, scale.largest), scale.colours)
    figure.colorbar(
        colours, ax=axes, location="top", label=scale.label, shrink=0.5, aspect=35, extend="min" if below else "neither"
    )
    return figure


def _matrix(ax: Axes, panel: Panel, names: Sequence[str], scale: Scale) -> None:
    norm, colours = Normalize(scale.least, scale.largest, clip=True), colormaps[scale.colours]
    ax.grid(visible=False)
    ax.pcolormesh(
        [list(row) for row in panel.values],
        cmap=colours,
        norm=norm,
        edgecolors="white",
        linewidth=0.6,
    )
    for y, row in enumerate(panel.values):
        for x, value in enumerate(row):
            red, green, blue, _ = colours(norm(value))
            ink = "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < DARK else "black"
            ax.text(
                x + 0.5,
                y + 0.5,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=8,
                color=ink,
            )
    ax.set_title(panel.title, fontsize=9)
    ax.set_aspect("equal")
    ax.set_ylim(len(names), 0)
    middles = [i + 0.5 for i in range(len(names))]
    ax.set_xticks(middles, names, rotation=45, ha="right", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(middles, names, fontsize=8)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
