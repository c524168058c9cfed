"""What :meth:`RunResult.plot` and :meth:`SweepResult.plot` draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anabranch import shown
from anabranch.compare.measures import columns_of, without_copies
from anabranch.errors import UserError, nearest
from anabranch.extras import need
from anabranch.plot.run import draw
from anabranch.plot.style import COLOURS, MARKERS, MAX_VECTOR_MARKS, add_legend, house_style, thin, thin_points
from anabranch.report.columns import RunColumns
from anabranch.sweep import value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.result import RunResult
    from anabranch.sweep import Estimate, SweepResult
    from anabranch.table import Table

CHARTS = {"goodput": "samples", "cwnd": "samples", "srtt": "samples", "queue": "link_samples", "sequence": "packets",
          "reordering": "packets"}  # fmt: skip
"""The charts of a run, and the table that each shows."""

_OWNERS = (("flow",), ("link", "direction"), ("group",))
"""Columns that say whose a row is."""

_MOST_LINES = 10
"""Lines that a legend names."""


def plot_chart(result: RunResult, name: str, axes: Axes | None) -> Axes:
    """One chart of a run's report.

    Raises:
        NotRecordedError: The run did not record what it shows.
        UserError: There is no such chart, or nothing of it happened.
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
    result: RunResult, *, x: str, y: str | None, hue: str | None, table: str | None, ax: Axes | None
) -> Axes:
    """One column of a table over another, with a line for each flow, link or group, or each value of ``hue``.

    Raises:
        NotRecordedError: The run did not record the table.
        UserError: No table has these columns.
    """
    if y is None:
        raise UserError("nothing to draw: give a chart or y", hint=f"charts: {', '.join(CHARTS)}")
    wanted = [x, y, *([hue] if hue is not None else [])]
    name = table if table is not None else _table_of(result, wanted)
    result.check_recorded(name)
    rows = result.plain(name)
    for column in wanted:
        rows.column(column)
    owners = [hue] if hue is not None else next((list(o) for o in _OWNERS if set(o) <= set(rows.columns)), [])
    parts = dict(rows.parts(*owners))
    with _drawn_into(ax) as axes:
        lines = [_line(axes, part, x, y, COLOURS[i % len(COLOURS)]) for i, part in enumerate(parts.values())]
        axes.set_xlabel(shown.figure(x))
        axes.set_ylabel(shown.figure(y))
        _legend(axes, lines, [" ".join(map(value_text, key)) for key in parts])
        return axes


def plot_sweep(result: SweepResult, y: str, *, x: str | None, hue: str | None, ax: Axes | None) -> Axes:
    """A figure over an axis of the grid, with a line for each point of the other axes.

    Raises:
        UserError: There is no such figure or axis.
    """
    if not result.axes:
        raise UserError("the sweep has no axis to draw over", hint="give the grid two values or more")
    figure = _named(y, result.figures(), "figure")
    along = result.axes.index(_named(x, result.axes, "axis") if x is not None else result.axes[0])
    colour_axis = None if hue is None else result.axes.index(_named(hue, result.axes, "axis"))
    estimates = result.estimates(figure)
    ticks = list(dict.fromkeys(point[along] for point, _ in estimates))
    numeric = all(isinstance(tick, (int, float)) and not isinstance(tick, bool) for tick in ticks)
    lines: dict[tuple[Any, ...], list[tuple[float, Estimate]]] = {}
    for point, estimate in estimates:
        others = point[:along] + point[along + 1 :]
        if estimate is not None:
            place = float(point[along]) if numeric else float(ticks.index(point[along]))
            lines.setdefault(others, []).append((place, estimate))
    with _drawn_into(ax) as axes:
        colours: dict[Any, str] = {}
        drawn = []
        for i, (others, points) in enumerate(lines.items()):
            whole = (*others[:along], None, *others[along:])
            by = others if colour_axis is None else whole[colour_axis]
            colour = colours.setdefault(by, COLOURS[len(colours) % len(COLOURS)])
            drawn.append(_interval_line(axes, sorted(points, key=lambda p: p[0]), colour, MARKERS[i % len(MARKERS)]))
        if not numeric:
            axes.set_xticks(range(len(ticks)), [shown.figure(value_text(tick)) for tick in ticks])
        axes.set_xlabel(shown.figure(result.axes[along]))
        axes.set_ylabel(shown.figure(figure))
        _legend(axes, drawn, [", ".join(map(value_text, others)) for others in lines])
        return axes


@contextmanager
def _drawn_into(axes: Axes | None) -> Iterator[Axes]:
    """The axes that were given, or those of a new figure in our style, which ``pyplot`` shows."""
    if axes is not None:
        yield axes
        return
    need("matplotlib", "plot()")
    from matplotlib import pyplot

    with house_style():
        yield pyplot.subplots()[1]


def _table_of(result: RunResult, columns: Sequence[str]) -> str:
    """The table that has all of ``columns``: one that was recorded, if there is one."""
    from anabranch.result import TABLES

    made = [name for name in TABLES if result.has_table(name)]
    having = [name for name in made if set(columns) <= set(result.plain(name).columns)]
    for name in sorted(having, key=lambda name: not result.recorded(name)):
        return name
    known = {column for name in made for column in result.plain(name).columns}
    for column in columns:
        if column not in known:
            raise UserError(f'no table has a column "{column}"', hint=nearest(column, known))
    raise UserError(f"no table has {', '.join(columns)} together")


def _named(name: str, known: Sequence[str], noun: str) -> str:
    """The one of ``known`` that is ``name``, or ends with its parts.

    Raises:
        UserError: None does, or several do.
    """
    found = [name] if name in known else [one for one in known if one.endswith(f".{name}")]
    if len(found) > 1:
        # A flow stands for its copies.
        alone = without_copies(columns_of(found))
        found = [column.figure for column in alone] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f'the sweep has several figures "{name}"', hint=f"give one of {', '.join(found[:12])}")
    raise UserError(f'the sweep has no {noun} "{name}"', hint=nearest(name, known))


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


def _interval_line(axes: Axes, points: Sequence[tuple[float, Estimate]], colour: str, marker: str) -> Any:
    middles = [estimate.interval.mean for _, estimate in points]
    bounds = [(e.interval.lower, e.interval.upper) for _, e in points]
    low = [m - (b[0] if b[0] is not None else m) for m, b in zip(middles, bounds, strict=True)]
    high = [(b[1] if b[1] is not None else m) - m for m, b in zip(middles, bounds, strict=True)]
    style: Mapping[str, Any] = {"color": colour, "marker": marker, "capsize": 2}
    return axes.errorbar([place for place, _ in points], middles, yerr=[low, high], **style)


def _legend(axes: Axes, lines: Sequence[Any], names: Sequence[str]) -> None:
    if 1 < len(lines) <= _MOST_LINES:
        add_legend(axes, lines, names, loc="best")
