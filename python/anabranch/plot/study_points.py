"""Implements :meth:`StudyResult.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.errors import UserError, nearest
from anabranch.plot.points import Dimension, Points, draw, find
from anabranch.plot.study import Drawing
from anabranch.result.measure_names import heading
from anabranch.result.measures import Measure
from anabranch.statistics.statistics import Interval, mean_interval
from anabranch.study.series import Cell, Key, Series, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anabranch.study import StudyResult
    from anabranch.study.definition import Definition

VARIANT = "variant"


def plot_study(
    result: StudyResult,
    y: str,
    *,
    x: str | None,
    color: str | None,
    col: str | None,
    experiment: str | None,
    ax: Axes | None,
) -> Axes | Figure:
    """A quantity of a study over an axis; see :mod:`anabranch.plot.points`.

    Raises:
        UserError: There is no such quantity or axis.
    """
    definition = result.definition
    if experiment is not None and experiment not in definition.experiments:
        raise UserError(f'there is no experiment "{experiment}"', hint=nearest(experiment, definition.experiments))
    names = [*definition.quantities, *definition.axes]
    if y.isidentifier() and y not in names:
        raise UserError(f'the study has no quantity "{y}"', hint=nearest(y, definition.quantities))
    series = Drawing(result.results).series(y, experiment)
    axes = sorted((axis for axis in series.axes if axis != "seed"), key=lambda axis: axis == VARIANT)
    dimensions = [_dimension(axis, definition) for axis in axes]
    named = {find(name, dimensions) for name in (x, color, col) if name is not None and dimensions}
    if color is None and VARIANT in axes and axes.index(VARIANT) not in named and len(axes) > 1:
        color = VARIANT
    cells = [(tuple(key[i] for i in _order(series, axes)), interval) for key, interval in _over_seeds(series).items()]
    return draw(Points(dimensions, cells, _label(y, definition)), x=x, color=color, col=col, ax=ax)


def _dimension(axis: str, definition: Definition) -> Dimension:
    if axis == VARIANT:
        return Dimension(axis, values={name: one.label for name, one in definition.variants.items()})
    return Dimension(axis, definition.axes[axis].label if axis in definition.axes else heading(axis))


def _order(series: Series, axes: list[str]) -> list[int]:
    """The index of each of ``axes`` in a key without the seed."""
    left = [axis for axis in series.axes if axis != "seed"]
    return [left.index(axis) for axis in axes]


def _over_seeds(series: Series) -> dict[Key, Interval | None]:
    """The mean over the seeds of each point; ``None`` if a seed has no value."""
    if "seed" in series.axes:
        _, groups = series.groups("seed")
        values: dict[Key, list[Cell]] = {key: [value for _, value in rows] for key, rows in groups.items()}
    else:
        values = {key: [value] for key, value in series.cells.items()}
    return {
        key: None
        if any(value is None or isinstance(value, str) for value in own)
        else mean_interval(list(map(number, own)))
        for key, own in values.items()
    }


def _label(y: str, definition: Definition) -> str:
    """Label of a quantity, with the unit of its figure unless the label already contains one."""
    quantity = definition.quantities.get(y)
    if quantity is None:
        return y
    last = (quantity.path or quantity.column or "").rpartition(".")[2]
    unit = Measure("flow", last).unit if last else ""
    if unit == "%":
        # The value is drawn unscaled, 0 to 1.
        unit = ""
    return quantity.label if not unit or "(" in quantity.label else f"{quantity.label} ({unit})"
