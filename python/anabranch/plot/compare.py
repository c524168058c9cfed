"""Sweeps side by side: each measure over the varied parameter, a line for each sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS, MARKERS, add_legend, new_figure
from anabranch.statistics.bounds import within
from anabranch.sweep.quantities import numbers_of
from anabranch.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from anabranch.compare import Block, Comparison, Row

MOST_LINES = 12
MOST_ELEMENTS = 6
"""Flows or links of one measure that get a figure; the tables contain all."""
MOST_INSIDE = 5
"""Up to this number of lines the legend is inside the panel, otherwise beside it."""
BESIDE = 2.2
"""Inches for a legend beside the panel."""
WIDE = 50.0
"""From this ratio of largest to smallest on, an axis is logarithmic."""
MAX_SLUG = 80

_QUANTITY = re.compile(r"([-+]?[0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?) *([A-Za-z%/]*)")


@dataclass(frozen=True)
class Scale:
    """Positions of the values of an axis.

    Attributes:
        places: Position by value.
        unit: The common unit of all values; empty if there is none.
        is_numeric: Whether the positions are the values; otherwise they are indices.
    """

    places: dict[Any, float]
    unit: str
    is_numeric: bool

    @property
    def is_log(self) -> bool:
        """Whether the values span so wide a range that a linear axis would hide most of them."""
        low, high = min(self.places.values()), max(self.places.values())
        return self.is_numeric and low > 0 and high / low >= WIDE


def scale_of(values: Sequence[Any]) -> Scale:
    """Positions of values: numbers, and quantities of one dimension, by size; other values in their order."""
    values = list(dict.fromkeys(values))
    found = [_quantity(value) for value in values]
    numbers = [(number, unit) for number, unit in found if number is not None]
    if len(numbers) == len(values) and len({unit for _, unit in numbers}) == 1:
        return Scale({v: n for v, (n, _) in zip(values, numbers, strict=True)}, numbers[0][1], True)
    # 500 kbit/s and 2 Mbit/s.
    read = numbers_of("", values)
    if read is not None and None not in read.values:
        return Scale({v: n for v, n in zip(values, read.values, strict=True) if n is not None}, read.unit, True)
    return Scale({v: float(i) for i, v in enumerate(values)}, "", False)


def _quantity(value: Any) -> tuple[float | None, str]:
    if isinstance(value, bool):
        return None, ""
    if isinstance(value, (int, float)):
        return float(value), ""
    parts = _QUANTITY.fullmatch(str(value).strip())
    return (float(parts[1].replace("_", "")), parts[2]) if parts else (None, "")


def figures(comparison: Comparison) -> Iterator[tuple[str, str, Figure]]:
    """(name, title, figure) of every measure of every flow and link."""
    names: set[str] = set()
    for block in comparison.blocks:
        for element in block.elements[:MOST_ELEMENTS]:
            title = block.measure.of(element)
            yield _file_name(f"{block.measure.name} {element}", names), title, _draw(comparison, block, element)


def _file_name(text: str, taken: set[str]) -> str:
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:MAX_SLUG]
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    taken.add(name)
    return name


def _draw(comparison: Comparison, block: Block, element: str) -> Figure:
    figure, axes = new_figure()
    rows = block.of(element)
    lines: list[tuple[Line2D, str]] = []
    if comparison.axes:
        x = _x_axis(comparison, rows)
        scale = scale_of([row.point[x] for row in rows])
        _label_x(axes, comparison.axes[x], scale)
        for label, part in _parts(comparison, rows, x).items():
            for i, one in enumerate(comparison.inputs):
                name = f"{one.name}, {label}" if label else one.name
                points = sorted(((scale.places[row.point[x]], row) for row in part), key=_place)
                line = _line(axes, block, points, i, len(lines))
                # Values without a size have nothing in between.
                line.set_linestyle("-" if scale.is_numeric else "none")
                lines.append((line, name))
    else:
        axes.set_xticks(range(len(comparison.inputs)), [shown.figure(one.name) for one in comparison.inputs])
        axes.set_xlim(-0.5, len(comparison.inputs) - 0.5)
        for i in range(len(comparison.inputs)):
            _line(axes, block, [(float(i), row) for row in rows], i, i)
    axes.set_ylabel(shown.figure(block.measure.heading))
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]) if _reaches_below(rows) else 0)
    _add_legend(figure, axes, lines[:MOST_LINES])
    return figure


def _place(point: tuple[float, Row]) -> float:
    return point[0]


def _x_axis(comparison: Comparison, rows: Sequence[Row]) -> int:
    """The axis to draw over: the first with numeric values, else the first."""
    for i in range(len(comparison.axes)):
        values = [row.point[i] for row in rows]
        if len(set(values)) > 1 and scale_of(values).is_numeric:
            return i
    return 0


def _parts(comparison: Comparison, rows: Sequence[Row], x: int) -> dict[str, list[Row]]:
    """The rows of each line, keyed by the values of all axes but the drawn one."""
    from anabranch.keys.grid import short_names
    from anabranch.sweep.sweep import value_text

    others = [i for i in range(len(comparison.axes)) if i != x]
    names = short_names([comparison.axes[i] for i in others])
    parts: dict[str, list[Row]] = {}
    for row in rows:
        label = ", ".join(f"{name} {value_text(row.point[i])}" for name, i in zip(names, others, strict=True))
        parts.setdefault(label, []).append(row)
    most = max(1, MOST_LINES // len(comparison.inputs))
    return dict(list(parts.items())[:most])


def _label_x(axes: Axes, path: str, scale: Scale) -> None:
    from anabranch.sweep.sweep import value_text

    axes.set_xlabel(shown.figure(f"{path} ({scale.unit})" if scale.unit else path))
    if not scale.is_numeric:
        axes.set_xticks(list(scale.places.values()), [shown.figure(value_text(v), 20) for v in scale.places])
    elif scale.is_log:
        axes.set_xscale("log")


def _line(axes: Axes, block: Block, points: Sequence[tuple[float, Row]], column: int, drawn: int) -> Line2D:
    """One input's line, with its 95 % interval. The colour marks the input, the marker a line within it."""
    scale = block.measure.scale
    name = block.measure.name
    known = [(x, within(cell.interval, name)) for x, row in points if (cell := row.cells[column]) is not None]
    xs, ys = [x for x, _ in known], [interval.mean * scale for _, interval in known]
    low = [(i.mean - i.lower if i.lower is not None else 0.0) * scale for _, i in known]
    high = [(i.upper - i.mean if i.upper is not None else 0.0) * scale for _, i in known]
    looks: dict[str, Any] = {"color": COLOURS[column % len(COLOURS)], "marker": MARKERS[drawn % len(MARKERS)]}
    line = axes.plot(xs, ys, **looks)[0]
    if any(low) or any(high):
        axes.errorbar(xs, ys, yerr=[low, high], fmt="none", ecolor=looks["color"], elinewidth=0.8, capsize=2)
    return line


def _reaches_below(rows: Sequence[Row]) -> bool:
    return any(cell is not None and cell.interval.mean < 0 for row in rows for cell in row.cells)


def _add_legend(figure: Figure, axes: Axes, lines: Sequence[tuple[Line2D, str]]) -> None:
    drawn, names = [line for line, _ in lines], [name for _, name in lines]
    if len(lines) > MOST_INSIDE:
        figure.set_size_inches(5.0 + BESIDE, 3.1)
        add_legend(figure, drawn, names, loc="outside right upper")
    elif len(lines) > 1:
        add_legend(axes, drawn, names, loc="best")
