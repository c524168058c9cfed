"""Figures 2, 3 and 4: throughput over what befalls each route, a panel for each method; and cuts through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anabranch.plot.study import Drawing

CUTS = (
    ("Without loss", "jitter", "loss == 0"),
    ("Without jitter", "loss", "jitter == 0"),
    ("Loss of 1 %", "jitter", "loss == 0.01"),
)
LINES = (("A", "both"), ("B", "both"), ("single", "alone"))
Points = Mapping[tuple[float, float], float]
KBIT = 1e3
PERCENT = 100
MOST_IN_NUMBERS = 8
"""Points of an axis of which each still has room for a number."""


def figures(study: Drawing) -> Iterator[tuple[str, str, Figure]]:
    """Draw them."""
    yield "figure-2", "Throughput (kbit/s) over the jitter of each route", panels(study, "jitters", ("j1", "j2"))
    yield "figure-3", "Throughput (kbit/s) over the loss of each route", panels(study, "losses", ("l1", "l2"))
    yield (
        "figure-4",
        "Throughput (kbit/s) over jitter and loss of both routes",
        panels(study, "both", ("jitter", "loss")),
    )
    yield "methods", "Both methods with identical routes, and one route of 256 kbit/s", methods(study)


def methods(study: Drawing) -> Figure:
    """Draw throughput along three cuts, with the 95 % intervals over seeds."""
    definition = study.results.definition
    figure, single = study.new_figure(8.4, 2.9)
    single.remove()
    row: Any = figure.subplots(1, len(CUTS), sharey=True)
    for axes, (title, axis, where) in zip(row, CUTS, strict=True):
        for place, (variant, experiment) in enumerate(LINES):
            value = f"throughput[{variant}, {where}]"
            low, high = (study.line(f"{end}95({value})", axis, experiment)[1] for end in ("lower", "upper"))
            xs, ys = study.line(value, axis, experiment)
            xs = [x * PERCENT for x in xs] if axis == "loss" else xs
            axes.fill_between(xs, [y * KBIT for y in low], [y * KBIT for y in high], color=COLOURS[place], alpha=0.15)
            shown_as = {"color": COLOURS[place], "marker": MARKERS[place], "label": definition.variants[variant].label}
            axes.plot(xs, [y * KBIT for y in ys], **shown_as)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(label(definition.axes[axis].label, axis), fontsize=8)
        axes.set_ylim(bottom=0)
    row[0].set_ylabel("Throughput (kbit/s)", fontsize=8)
    row[0].legend(loc="lower left", fontsize=7)
    return figure


def panels(study: Drawing, experiment: str, axes: tuple[str, str]) -> Figure:
    """Draw a panel for each variant of an experiment, all in one scale."""
    definition = study.results.definition
    squares = {
        variant: points(study, variant, experiment, axes) for variant in definition.experiments[experiment].variants
    }
    if experiment == "both":
        squares["single"] = points(study, "single", "alone", axes)
    else:
        squares = {variant: mirrored(square) for variant, square in squares.items()}
    every = [value for square in squares.values() for value in square.values()]
    figure, single = study.new_figure(2.9 * len(squares) + 0.7, 2.9)
    single.remove()
    row: Any = figure.subplots(1, len(squares), sharex=True, sharey=True, squeeze=False)
    image = None
    for place, variant in zip(row.flat, squares, strict=True):
        image = panel(place, squares[variant], (min(every), max(every)))
        place.set_title(definition.variants[variant].label, fontsize=9)
        place.set_xlabel(label(definition.axes[axes[0]].label, axes[0]), fontsize=8)
    row.flat[0].set_ylabel(label(definition.axes[axes[1]].label, axes[1]), fontsize=8)
    figure.colorbar(image, ax=row, label="Throughput (kbit/s)", fraction=0.05)
    return figure


def panel(axes: Any, square: Points, limits: tuple[float, float]) -> Any:
    """Draw one square of values; return what a colour bar belongs to."""
    xs, ys = sorted({x for x, _ in square}), sorted({y for _, y in square})
    rows = [[square[x, y] for x in xs] for y in ys]
    image = axes.imshow(rows, origin="lower", vmin=limits[0], vmax=limits[1], cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(xs)), [shown(x) for x in xs], fontsize=7)
    axes.set_yticks(range(len(ys)), [shown(y) for y in ys], fontsize=7)
    middle = sum(limits) / 2
    if len(xs) <= MOST_IN_NUMBERS:
        for i, y in enumerate(ys):
            for j, x in enumerate(xs):
                dark = square[x, y] < middle
                colour = "white" if dark else "black"
                axes.text(j, i, f"{square[x, y]:.0f}", ha="center", va="center", fontsize=6, color=colour)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return image


def shown(value: float) -> str:
    """Return the coordinate as it stands on an axis: jitter in ms, loss in per cent."""
    return f"{value * PERCENT:g}" if 0 < value < 1 else f"{value:g}"


def label(text: str, axis: str) -> str:
    """Return an axis' label; loss is drawn in per cent."""
    return text if axis.startswith("j") else f"{text} (%)"


def points(study: Drawing, variant: str, experiment: str, axes: tuple[str, str]) -> Points:
    """Return means over seeds in kbit/s, by coordinates."""
    series = study.series(f"throughput[{variant}]", experiment).collapsed()
    return {(point[axes[0]], point[axes[1]]): float(value or 0) * KBIT for point, value in series}


def mirrored(half: Points) -> Points:
    """Return the square whose other half is the same with the routes exchanged."""
    return {**half, **{(y, x): value for (x, y), value in half.items()}}
