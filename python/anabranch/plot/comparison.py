"""Implements :meth:`Comparison.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.compare import compare
from anabranch.errors import UserError
from anabranch.plot.points import Dimension, Points, draw
from anabranch.result.flat import flow_of_copy
from anabranch.result.measure_names import ambiguous

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anabranch.compare import Comparison

INPUT = "input"
_ELEMENTS = ("flow", "link", "group", "gateway")


def plot_comparison(
    comparison: Comparison, y: str, *, x: str | None, color: str | None, col: str | None, ax: Axes | None
) -> Axes | Figure:
    """A measure of every input over an axis; see :mod:`anabranch.plot.points`.

    Raises:
        UserError: There is no such measure or axis, or a short name is ambiguous.
    """
    named = [name for name in (x, color, col) if name is not None]
    of = next((name for name in named if name in _ELEMENTS), None)
    blocks = compare(comparison.inputs, [y]).blocks
    if of is not None:
        blocks = tuple(block for block in blocks if block.measure.section == of)
        if not blocks:
            raise UserError(f'"{y}" is no measure of a {of}', hint=f"leave {of} out")
    # The copies of a flow are included in its mean.
    rows = [(block.measure, row) for block in blocks for row in block.rows if flow_of_copy(row.element) is None]
    owners = list(dict.fromkeys((measure, row.element) for measure, row in rows))
    if of is None and len(owners) > 1:
        whole = (".".join((m.section, *element.rsplit(" ", 1), m.name)) for m, element in owners)
        raise ambiguous(y, list(whole))
    dimensions = [Dimension(axis) for axis in comparison.axes]
    dimensions += [Dimension(INPUT)] if of is None else [Dimension(INPUT), Dimension(of)]
    cells = [
        ((*row.point, one.name, *([row.element] if of is not None else [])), cell.interval if cell else None)
        for _, row in rows
        for one, cell in zip(comparison.inputs, row.cells, strict=True)
    ]
    measure, element = owners[0]
    label = measure.heading if of is not None else measure.of(element)
    color = INPUT if color is None and comparison.axes and INPUT not in named else color
    return draw(Points(dimensions, cells, label, measure.scale), x=x, color=color, col=col, ax=ax)
