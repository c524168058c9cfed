"""Points of a grid as a chart: one dimension along the x axis, one by colour, one by panel.

:meth:`SweepResult.plot`, :meth:`Comparison.plot` and :meth:`StudyResult.plot` draw with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError, nearest
from anabranch.keys.grid import short_names
from anabranch.plot.compare import Scale, scale_of
from anabranch.plot.style import COLOURS, MARKERS, add_legend, house_style
from anabranch.result.measure_names import ambiguous
from anabranch.statistics.statistics import Interval
from anabranch.sweep.figures import value_text
from anabranch.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_INSIDE = 5
"""Up to this number of lines the legend is inside the panel, otherwise beside it."""
MOST_LINES = 24
"""Lines that a legend names."""
MOST_PANELS = 24
ACROSS = 3
"""Panels in a row."""
_MOST_TICKS = 8
"""Values on a logarithmic axis that have a tick each."""
_ASIDE, _SPREAD = 0.1, 0.6
"""Offset between the points of two lines at a name, and of all lines, as parts of the distance between two names."""
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Dimension:
    """A dimension in which the points differ.

    Attributes:
        name: A path of the grid (``link.a.rate``), ``flow``, ``input``, ``variant``, …
        label: The axis label, without a unit; default: the name.
        values: Texts of values that differ from their usual text.
    """

    name: str
    label: str = ""
    values: Mapping[Any, str] | None = None

    def text(self, value: Any) -> str:
        """A value in a legend or below an axis."""
        return (self.values or {}).get(value, value_text(value))


@dataclass(frozen=True)
class Points:
    """Points to draw.

    Attributes:
        dimensions: The dimensions in which the points differ.
        cells: The coordinates of each point, in the order of ``dimensions``, and its interval; ``None`` for no value.
        label: The measure, with its unit.
        scale: Factor from the figures to the unit.
    """

    dimensions: Sequence[Dimension]
    cells: Sequence[tuple[tuple[Any, ...], Interval | None]]
    label: str
    scale: float = 1.0


@dataclass(frozen=True)
class Choice:
    """The use of each dimension, by index; ``rest`` are the dimensions with neither axis, colour nor panel."""

    x: int
    color: int | None
    col: int | None
    rest: tuple[int, ...]


def draw(points: Points, *, x: str | None, color: str | None, col: str | None, ax: Axes | None) -> Axes | Figure:
    """Draw the points. Returns the axes drawn into, or with ``col`` the figure, which has a panel for each value.

    Raises:
        UserError: There is no such dimension, or one has two uses.
    """
    if not points.dimensions:
        raise UserError("there is nothing to draw over", hint="give the grid two values or more")
    choice = choose(points.dimensions, x=x, color=color, col=col)
    if choice.col is None:
        if ax is not None:
            _Panel(points, choice).draw(ax)
            return ax
        from matplotlib import pyplot

        with house_style():
            axes = pyplot.subplots()[1]
            _Panel(points, choice).draw(axes)
            return axes
    if ax is not None:
        raise UserError("ax is one panel, and col makes several", hint="leave one of them out")
    return _panels(points, choice, choice.col)


def choose(dimensions: Sequence[Dimension], *, x: str | None, color: str | None, col: str | None) -> Choice:
    """Find the dimensions that are named, and choose the others.

    The x axis is the first dimension without another use. If a single dimension is left, it differs in colour.
    """
    named = {place: find(name, dimensions) for place, name in (("color", color), ("col", col)) if name is not None}
    taken = list(named.values())
    if x is None:
        free = [i for i in range(len(dimensions)) if i not in taken]
        if not free:
            raise UserError("nothing is left for x", hint="leave color or col out")
        across = free[0]
    else:
        across = find(x, dimensions)
    taken.append(across)
    if len(set(taken)) < len(taken):
        again = next(dimensions[i].name for i in taken if taken.count(i) > 1)
        raise UserError(f"{again} has two places of x, color and col", hint="give each another one")
    rest = [i for i in range(len(dimensions)) if i not in taken]
    if "color" not in named and len(rest) == 1:
        named["color"] = rest.pop()
    return Choice(across, named.get("color"), named.get("col"), tuple(rest))


def find(name: str, dimensions: Sequence[Dimension]) -> int:
    """The dimension of this name, or whose name ends with these parts.

    Raises:
        UserError: There is none, or there are several.
    """
    names = [one.name for one in dimensions]
    found = [name] if name in names else [one for one in names if one.endswith(f".{name}")]
    if len(found) > 1:
        raise ambiguous(name, found)
    if not found:
        valid = nearest(name, [form for one in names for form in (one, one.rpartition(".")[2])])
        hint = valid if valid.startswith("did you mean") else f"valid: {', '.join(names)}"
        raise UserError(f'there is no axis "{name}"', hint=hint)
    return names.index(found[0])


class _Panel:
    """Draws points into axes; colours and markers are the same in every panel."""

    def __init__(self, points: Points, choice: Choice) -> None:
        self.points = points
        self.choice = choice
        self.shown = [(at, one) for at, one in points.cells if one is not None]
        self.values = [list(dict.fromkeys(at[i] for at, _ in points.cells)) for i in range(len(points.dimensions))]
        self.scale = scale_of(self.values[choice.x]) if points.cells else Scale({}, "", False)
        line = [i for i in (choice.color, *choice.rest) if i is not None]
        self.line = tuple(line)
        self.lines = list(dict.fromkeys(tuple(at[i] for i in line) for at, _ in self.shown))

    def draw(self, axes: Axes, value: Any = None) -> None:
        """Draw all points, or only the points with one value of ``col``, with labels and a legend."""
        self.draw_lines(axes, value)
        self.begin_at_zero(axes)
        axes.set_xlabel(shown.figure(self.x_label()))
        axes.set_ylabel(shown.figure(self.points.label))
        if len(self.lines) > 1:
            beside: dict[str, Any] = {"loc": "best"}
            if len(self.lines) > MOST_INSIDE:
                beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            self.add_legend(axes, axes, **beside)

    def draw_lines(self, axes: Axes, value: Any = None) -> None:
        """Draw the lines without labels."""
        choice = self.choice
        for key in self.lines:
            own = [
                (self.scale.places[at[choice.x]] + self._aside(key), interval)
                for at, interval in self.shown
                if tuple(at[i] for i in self.line) == key and (choice.col is None or at[choice.col] == value)
            ]
            _intervals(axes, sorted(own, key=lambda point: point[0]), self.points.scale, self._looks(key))
        self._ticks(axes)

    def begin_at_zero(self, axes: Axes) -> None:
        """Begin the y axis at zero if no figure is negative. Call this after all lines are drawn."""
        if all(interval.mean >= 0 for _, interval in self.shown):
            axes.set_ylim(bottom=0)

    def x_label(self) -> str:
        """Label of the x axis, with its unit."""
        dimension = self.points.dimensions[self.choice.x]
        label = dimension.label or dimension.name
        return f"{label} ({self.scale.unit})" if self.scale.unit else label

    def add_legend(self, owner: Axes | Figure, axes: Axes, **place: Any) -> None:
        """Add a legend of the lines, titled by the dimensions in which they differ."""
        drawn = [axes.plot([], [], **self._looks(key))[0] for key in self.lines[:MOST_LINES]]
        names = [
            ", ".join(self.points.dimensions[i].text(value) for i, value in zip(self.line, key, strict=True))
            for key in self.lines[:MOST_LINES]
        ]
        titles = short_names([self.points.dimensions[i].name for i in self.line])
        add_legend(owner, drawn, names, title=shown.figure(", ".join(titles)), title_fontsize=8, **place)

    def _looks(self, key: tuple[Any, ...]) -> dict[str, Any]:
        """The look of a line: its colour by ``color``, its marker and dashes by the remaining dimensions."""
        colours = self.values[self.choice.color] if self.choice.color is not None else self.lines
        colour = colours.index(key[0] if self.choice.color is not None else key)
        rest = key[1:] if self.choice.color is not None else ()
        others = list(dict.fromkeys(line[1:] for line in self.lines)) if rest else [()]
        way = others.index(rest) if rest else 0
        return {
            "color": COLOURS[colour % len(COLOURS)],
            "marker": MARKERS[(way if rest else colour) % len(MARKERS)],
            # Names have nothing in between.
            "linestyle": _DASHES[way % len(_DASHES)] if self.scale.is_numeric else "none",
        }

    def _aside(self, key: tuple[Any, ...]) -> float:
        """Offset of a line's points from a name, so that intervals do not cover each other."""
        if self.scale.is_numeric:
            return 0.0
        return (self.lines.index(key) - (len(self.lines) - 1) / 2) * min(_ASIDE, _SPREAD / len(self.lines))

    def _ticks(self, axes: Axes) -> None:
        if not self.scale.is_numeric:
            dimension = self.points.dimensions[self.choice.x]
            texts = [shown.figure(dimension.text(value), 20) for value in self.scale.places]
            axes.set_xticks(list(self.scale.places.values()), texts)
            axes.set_xlim(-0.5, len(self.scale.places) - 0.5)
        elif self.scale.is_log:
            axes.set_xscale("log")
            places = sorted(self.scale.places.values())
            if len(places) <= _MOST_TICKS:
                axes.set_xticks(places, [f"{place:g}" for place in places])
                axes.set_xticks([], minor=True)
            else:
                axes.xaxis.set_major_formatter("{x:g}")


def _panels(points: Points, choice: Choice, col: int) -> Figure:
    from matplotlib import pyplot

    panel = _Panel(points, choice)
    values = panel.values[col]
    if len(values) > MOST_PANELS:
        raise UserError(f"{points.dimensions[col].name} has {len(values)} values; col takes {MOST_PANELS} at most")
    across = min(len(values), ACROSS)
    down = math.ceil(len(values) / across)
    (name,) = short_names([points.dimensions[col].name])
    with house_style():
        figure, made = pyplot.subplots(
            down, across, sharex=True, sharey=True, squeeze=False, figsize=(0.8 + 2.6 * across, 0.6 + 2.3 * down)
        )
        for axes, value in zip(made.flat, values, strict=False):
            panel.draw_lines(axes, value)
            axes.set_title(shown.figure(f"{name}: {points.dimensions[col].text(value)}"), fontsize=9)
        panel.begin_at_zero(made.flat[0])
        for axes in made.flat[len(values) :]:
            axes.remove()
        figure.supxlabel(shown.figure(panel.x_label()), fontsize=9)
        figure.supylabel(shown.figure(points.label), fontsize=9)
        if len(panel.lines) > 1:
            panel.add_legend(figure, made.flat[0], loc="outside right upper")
            width, height = figure.get_size_inches()
            figure.set_size_inches(width + 1.4, height)
        return figure


def _intervals(axes: Axes, own: Sequence[tuple[float, Interval]], scale: float, looks: Mapping[str, Any]) -> None:
    """A line with the interval of each of its points."""
    if not own:
        return
    across = [x for x, _ in own]
    up = [interval.mean * scale for _, interval in own]
    low = [(i.mean - i.lower if i.lower is not None else 0.0) * scale for _, i in own]
    high = [(i.upper - i.mean if i.upper is not None else 0.0) * scale for _, i in own]
    axes.plot(across, up, **looks)
    if any(low) or any(high):
        axes.errorbar(across, up, yerr=[low, high], fmt="none", ecolor=looks["color"], elinewidth=0.8, capsize=2)
