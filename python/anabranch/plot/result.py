"""Implements :meth:`RunResult.plot` and :meth:`SweepResult.plot`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anabranch.charts.columns import RunColumns
from anabranch.errors import UserError, nearest
from anabranch.extras import need
from anabranch.plot.run import draw
from anabranch.plot.style import COLOURS, MAX_VECTOR_MARKS, add_legend, house_style, thin, thin_points
from anabranch.result.measure_names import figures_named, heading, meant, one_figure, one_name
from anabranch.result.measures import columns_of, without_copies
from anabranch.statistics.bounds import within
from anabranch.sweep.sweep import value_text
from anabranch.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anabranch.result.result import RunResult
    from anabranch.result.table import Table
    from anabranch.sweep.sweep import SweepResult

CHARTS = {"goodput": "samples", "cwnd": "samples", "srtt": "samples", "queue": "link_samples", "sequence": "packets",
          "reordering": "packets"}  # fmt: skip
"""The charts of a run, and the table that each shows."""

_OWNERS = (("flow",), ("link", "direction"), ("group",))
"""Columns that identify the owner of a row."""

_ELEMENTS = ("flow", "link", "group", "gateway")
"""Kinds of elements that a measure may belong to."""

_MOST_LINES = 10
"""Lines that a legend names."""


def plot_chart(result: RunResult, name: str, axes: Axes | None) -> Axes:
    """One chart of a run's report.

    Raises:
        NotRecordedError: The run did not record the chart's data.
        UserError: There is no such chart, or the run has no data for it.
    """
    if name not in CHARTS:
        raise UserError(f'there is no chart "{name}"', hint=nearest(name, CHARTS))
    result.check_recorded(CHARTS[name])
    for chart in RunColumns(result).charts():
        if chart.name == name:
            with _drawn_into(axes) as target:
                draw(chart, target)
                target.set_title(shown.figure(chart.title))
                return target
    raise UserError(f'nothing happened that the chart "{name}" shows')


def plot_columns(
    result: RunResult, *, x: str, y: str | None, color: str | None, table: str | None, ax: Axes | None
) -> Axes:
    """One column of a table over another, with a line for each flow, link or group, or each value of ``color``.

    Raises:
        NotRecordedError: The run did not record the table.
        UserError: No table has these columns.
    """
    if y is None:
        raise UserError("nothing to draw: give a chart or y", hint=f"charts: {', '.join(CHARTS)}")
    wanted = [x, y, *([color] if color is not None else [])]
    name = table if table is not None else _table_of(result, wanted)
    result.check_recorded(name)
    rows = result.plain(name)
    x, y, *colors = (one_name(column, rows.columns, "the table has no column") for column in wanted)
    owners = colors or next((list(o) for o in _OWNERS if set(o) <= set(rows.columns)), [])
    parts = dict(rows.parts(*owners))
    with _drawn_into(ax) as axes:
        lines = [_line(axes, part, x, y, COLOURS[i % len(COLOURS)]) for i, part in enumerate(parts.values())]
        axes.set_xlabel(shown.figure(heading(x)))
        axes.set_ylabel(shown.figure(heading(y)))
        _legend(axes, lines, [" ".join(map(value_text, key)) for key in parts])
        return axes


def plot_sweep(
    result: SweepResult, y: str, *, x: str | None, color: str | None, col: str | None, ax: Axes | None
) -> Axes | Figure:
    """A figure over an axis of the grid; see :mod:`anabranch.plot.points`.

    Raises:
        UserError: There is no such figure or axis.
    """
    from anabranch.plot import points

    if not result.axes:
        raise UserError("the sweep has no axis to draw over", hint="give the grid two values or more")
    noun = "the sweep has no figure"
    of = next((name for name in (x, color, col) if name in _ELEMENTS and name not in result.axes), None)
    figures = figures_named(y, result.figures(), noun) if of else [one_figure(y, result.figures(), noun)]
    columns = columns_of(figures)
    if of:
        columns = [column for column in without_copies(columns) if column.measure.section == of]
        if not columns:
            raise UserError(f'"{y}" is no figure of a {of}', hint=f"leave {of} out")
    dimensions = [points.Dimension(axis) for axis in result.axes]
    if of:
        dimensions.append(points.Dimension(of))
    cells = [
        (
            (*point, column.element) if of else point,
            within(estimate.interval, column.figure) if estimate is not None else None,
        )
        for column in columns
        for point, estimate in result.estimates(column.figure)
    ]
    measure = columns[0].measure
    label = measure.heading if of else measure.of(columns[0].element)
    found = points.Points(dimensions, cells, label, measure.scale)
    return points.draw(found, x=x, color=color, col=col, ax=ax)


@contextmanager
def _drawn_into(axes: Axes | None) -> Iterator[Axes]:
    """Yields ``axes``, or the axes of a new figure in our style, which ``pyplot`` shows."""
    if axes is not None:
        yield axes
        return
    need("matplotlib", "plot()")
    from matplotlib import pyplot

    with house_style():
        yield pyplot.subplots()[1]


def _table_of(result: RunResult, columns: Sequence[str]) -> str:
    """A table that has all of ``columns``, preferably a recorded one."""
    from anabranch.result.summary import TABLES

    made = {name: result.plain(name).columns for name in TABLES if result.has_table(name)}
    having = [name for name, there in made.items() if all(len(meant(column, there)) == 1 for column in columns)]
    for name in sorted(having, key=lambda name: not result.recorded(name)):
        return name
    known = [column for there in made.values() for column in there]
    for column in columns:
        one_name(column, known, "no table has a column")
    raise UserError(f"no table has {', '.join(columns)} together")


def _line(axes: Axes, part: Table, x: str, y: str, colour: str) -> Any:
    if {part.column(x).kind, part.column(y).kind} & {"?", "text", "object"}:
        (line,) = axes.plot(part[x], part[y], ".", color=colour)
        return line
    known = part.where(part.has(x) & part.has(y))
    across, up = known.numbers(x), known.numbers(y)
    if x == "time_s":
        (line,) = axes.plot(*thin(across, up), color=colour)
    else:
        across, up = thin_points(across, up)
        (line,) = axes.plot(across, up, ".", color=colour, rasterized=len(across) > MAX_VECTOR_MARKS)
    return line


def _legend(axes: Axes, lines: Sequence[Any], names: Sequence[str]) -> None:
    if 1 < len(lines) <= _MOST_LINES:
        add_legend(axes, lines, names, loc="best")
