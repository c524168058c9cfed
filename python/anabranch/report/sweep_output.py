"""The report of a sweep: its question, every point in a table, and each measure over each axis with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.charts import Chart, SeriesColumns, place
from anabranch.charts.heat import heat_map
from anabranch.charts.parallel import Upright, parallel
from anabranch.errors import UserError
from anabranch.files.output_file import OutputFile, output_file
from anabranch.keys.grid import short_names
from anabranch.plot.compare import Scale, scale_of
from anabranch.report.page import is_page_of_ours, page, table, text
from anabranch.result.format import MEAN_OF_COPIES, interval
from anabranch.result.measures import Column, columns_of, copies_of, shown_by_default, without_copies
from anabranch.statistics.bounds import CUT, is_cut, within
from anabranch.sweep.file import REPORT, SWEEP_FILE, SweepDirectory
from anabranch.sweep.sweep import SweepResult, value_text
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.sweep.sweep import Estimate

    _Point = tuple[Any, ...]

MOST_RUNS = 50_000
"""With more runs, the page is made only on request, because it takes longer than the tables."""
MOST_MEASURES = 8
"""Measures that have charts; the tables of the sweep have all of them."""
MOST_PANELS = 12
"""Largest number of panels of one measure over the first axis."""
MOST_OTHER_PANELS = 4
"""The same over each other axis."""
MOST_OPEN = 12
"""Rows of the table that are shown at once; more would push the charts off the screen."""
BESIDE = 0.1
"""Offset between the intervals at one name of an axis, as part of the distance between two names."""
MOST_ASKED = 3
"""Measures that the question mentions."""
MOST_LINES = 7
"""Largest number of lines of one panel: the number of colours."""
MOST_MAPS = 6
"""Largest number of heat maps of one measure."""
MOST_POINTS = 400
"""Largest number of points in the page's table, and of lines in the parallel coordinates."""
MOST_UPRIGHTS = 4
"""Largest number of measures in the parallel coordinates."""


@dataclass(frozen=True)
class _Axis:
    """A varied parameter.

    Attributes:
        index: Its index among the axes of the sweep.
        name: Its short name.
        values: Its values in the order of the grid.
        scale: The positions of its values.
    """

    index: int
    name: str
    values: tuple[Any, ...]
    scale: Scale

    @property
    def question(self) -> str:
        """The name, and its values or their range."""
        if not self.scale.is_numeric:
            return f"{self.name} ({', '.join(map(value_text, self.values))})"
        low, high = (f"{end(self.scale.places.values()):g}" for end in (min, max))
        return f"{self.name} ({low} to {high} {self.scale.unit})".replace(" )", ")")

    @property
    def label(self) -> str:
        """The name, with the unit if all values share one."""
        return f"{self.name} ({self.scale.unit})" if self.scale.unit else self.name

    def told(self, value: Any) -> str:
        """A value with the axis' name."""
        return f"{self.name} {value_text(value)}"


@dataclass(frozen=True)
class _Measured:
    """One measure at every point."""

    column: Column
    points: dict[_Point, Estimate | None]

    @property
    def heading(self) -> str:
        return self.column.measure.of(self.column.element)

    @cached_property
    def means(self) -> dict[_Point, float]:
        """The mean at each point that has one, in the unit of the heading."""
        return {point: one.interval.mean * self.scale for point, one in self.points.items() if one is not None}

    @cached_property
    def scale(self) -> float:
        """Factor from the figure to its displayed value."""
        return self.column.measure.scale

    @cached_property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest mean of all points: panels and maps of one measure share a scale."""
        return (min(self.means.values()), max(self.means.values())) if self.means else (0.0, 0.0)

    @cached_property
    def _chosen(self) -> dict[tuple[int, ...], dict[_Point, list[_Point]]]:
        return {}

    def where(self, chosen: Mapping[int, Any]) -> list[_Point]:
        """The points with these values, keyed by axis index."""
        places = tuple(chosen)
        if places not in self._chosen:
            groups: dict[_Point, list[_Point]] = {}
            for point in self.means:
                groups.setdefault(tuple(point[place] for place in places), []).append(point)
            self._chosen[places] = groups
        return self._chosen[places].get(tuple(chosen.values()), [])

    def ends(self, point: _Point) -> tuple[float, float] | None:
        """The interval at a point, if there is one, within the figure's bounds."""
        found = self.points.get(point)
        if found is None:
            return None
        shown = within(found.interval, self.column.figure)
        if shown.lower is None or shown.upper is None:
            return None
        return shown.lower * self.scale, shown.upper * self.scale


def write_report(result: SweepResult, path: Path, command: str = "", *, force: bool | None = None) -> None:
    """Write the report as one file, which appears whole or not at all.

    Args:
        result: The sweep.
        path: The file; an existing report is replaced.
        command: The command that made the sweep, as typed.
        force: Replace also a file that anabranch did not make.

    Raises:
        UserError: The path is a directory or a foreign file, or cannot be written.
        RunFailedError: The disk is full, or fails otherwise.
    """
    report_file(path, force=force).write(html_report(result, command).encode())


def write_into(result: SweepResult, directory: Path, command: str = "") -> bool:
    """Write the report into the directory of the sweep's tables, which it links to. Skipped with very many runs."""
    if result.frame.height > MOST_RUNS:
        return False
    tables = SweepDirectory(directory)
    tables.add(
        REPORT, [html_report(result, command, data=("runs.csv", "runs.parquet", "table.parquet", SWEEP_FILE)).encode()]
    )
    tables.note()
    return True


def report_file(path: Path, *, force: bool | None = None) -> OutputFile:
    """The file of the report, checked before any work is done.

    Raises:
        UserError: The path is a directory, a foreign file, not named as a page, or in a directory that does not exist.
    """
    told = argument("report", path)
    if not path.parent.is_dir():
        raise UserError(f"{told}: there is no directory {path.parent}", hint="make it, or choose another place")
    file = output_file(path, is_ours=is_page_of_ours, force=force)
    if path.suffix not in (".html", ".htm") and not file.is_stream:
        raise UserError(f"{told}: a name that ends in .html was expected", hint=f"{path}.html")
    if file.is_standard_output:
        raise UserError(f"{told}: standard output has the printed results", hint="choose a file")
    return file


def html_report(result: SweepResult, command: str = "", data: Sequence[str] = ()) -> str:
    """The report as one self-contained page.

    Args:
        result: The sweep.
        command: The command that made it, as typed.
        data: Files beside the page that contain the figures.
    """
    axes = _axes(result)
    measures = _measures(result)
    charts: list[Chart] = []
    title = result.scenario.title or "Sweep"
    seeds = len(result.plain.unique("seed"))
    points = list(dict.fromkeys(point for one in measures[:1] for point in one.points))
    body = [
        f"<h1>{text(title)}</h1>",
        f"<p><strong>{text(_question(measures, axes))}</strong></p>" if axes and measures else "",
        f"<p class='soft'>{result.plain.height:,} runs: {len(points):,} points, {seeds} "
        f"{'seed' if seeds == 1 else 'seeds'}</p>",
        f"<pre class='command'>{text(command)}</pre>" if command else "",
        _varied(result, axes),
        _points_table(measures, axes, points),
        *(f"<p class='hint'>{text(line)}</p>" for line in _remarks(result, measures)),
        _data(data),
    ]
    if axes:
        for number, measure in enumerate(measures):
            body.append(f"<h2>{text(measure.heading)}</h2>")
            cut = []
            panels = ""
            for across in axes:
                made, left_out = _panels(measure, across, axes, f"m{number}-{across.index}")
                charts += made
                panels += "".join(f"<div><h3>{text(chart.title)}</h3>{place(chart)}</div>" for chart in made)
                cut += left_out
            body.append(f"<div class='panels'>{panels}</div>")
            body += [f"<p class='soft'>{text(' '.join(cut))}</p>"] if cut else []
            numeric = [axis for axis in axes if axis.scale.is_numeric]
            if len(numeric) > 1:
                across, down = numeric[:2]
                body.append(_maps(measure, across, down, [axis for axis in axes if axis not in (across, down)]))
    if len(axes) > 2 and len(points) > 1:
        body.append(_coordinates(measures[:MOST_UPRIGHTS], axes, points))
    return page(title, "\n".join(body), charts=charts)


def _question(measures: Sequence[_Measured], axes: Sequence[_Axis]) -> str:
    titles = list(dict.fromkeys(one.column.measure.title for one in measures))
    named = titles if len(titles) <= MOST_ASKED else [*titles[:MOST_ASKED], "others"]
    verb = "does" if len(titles) == 1 else "do"
    return f"How {verb} {_listed(named)} change with {_listed([axis.question for axis in axes])}?"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _data(files: Sequence[str]) -> str:
    if not files:
        return ""
    links = ", ".join(f"<a href='{text(name)}'>{text(name)}</a>" for name in files)
    return f"<p>Data: {links}. A row of runs.csv and runs.parquet is a run, one of table.parquet a point.</p>"


def _axes(result: SweepResult) -> list[_Axis]:
    """The axes with several values. The first numeric one leads, because charts are drawn over it."""
    names = short_names(result.axes)
    found = []
    for index, axis in enumerate(result.axes):
        values = tuple(result.plain.unique(axis))
        if len(values) > 1:
            found.append(_Axis(index, names[index], values, scale_of(values)))
    first = next((axis for axis in found if axis.scale.is_numeric), None)
    return found if first is None else [first, *(axis for axis in found if axis is not first)]


def _measures(result: SweepResult) -> list[_Measured]:
    columns = columns_of(result.figures())
    kept = [c for c in without_copies(columns) if shown_by_default(c.measure, columns)]
    kept.sort(key=lambda column: column.measure.rank)
    found = []
    for column in kept:
        points = dict(result.estimates(column.figure))
        # A measure that is 0 or missing everywhere shows nothing.
        if any(one is not None and one.interval.mean != 0 for one in points.values()):
            found.append(_Measured(column, points))
    return found[:MOST_MEASURES]


def _varied(result: SweepResult, axes: Sequence[_Axis]) -> str:
    rows = [
        (text(axis.name), text(result.axes[axis.index]).replace(".", ".<wbr>"),
         text(", ".join(value_text(value) for value in axis.values)))
        for axis in axes
    ]  # fmt: skip
    if not rows:
        return "<p>Nothing is varied but the seed.</p>"
    return table(("varied", "path", "values"), rows, left=3, raw=True)


def _remarks(result: SweepResult, measures: Sequence[_Measured]) -> list[str]:
    means = ", ".join(copies_of(columns_of(result.figures())))
    estimates = [one for measure in measures for one in measure.points.values() if one is not None]
    told = [f"{means}: {MEAN_OF_COPIES}; --out keeps each copy."] if means else []
    if any(one.interval.lower is not None for one in estimates):
        told.append("Bars, and ± in the table, are 95 % intervals of the mean over the seeds.")
    if any(
        one and is_cut(one.interval, measure.column.figure) for measure in measures for one in measure.points.values()
    ):
        told.append(f"{CUT}.")
    if any(one.deterministic for one in estimates):
        told.append("Without a bar: nothing in these runs is random, and the seeds gave the same packets.")
    if len(measures) == MOST_MEASURES:
        told.append(f"At most {MOST_MEASURES} measures are drawn; --out keeps all of them as tables.")
    return told


def _panels(measure: _Measured, across: _Axis, axes: Sequence[_Axis], name: str) -> tuple[list[Chart], list[str]]:
    """A panel for each combination of the further axes: one axis to the right, a line for each value of the next."""
    others = [axis for axis in axes if axis is not across]
    lines, facets = (others[0], others[1:]) if others else (None, [])
    combinations = list(itertools.product(*(axis.values for axis in facets)))
    most = MOST_PANELS if across is axes[0] else MOST_OTHER_PANELS
    charts = []
    for number, combination in enumerate(combinations[:most]):
        fixed = dict(zip((axis.index for axis in facets), combination, strict=True))
        told = "".join(f", {axis.told(value)}" for axis, value in zip(facets, combination, strict=True))
        values = lines.values[:MOST_LINES] if lines is not None else (None,)
        series = []
        for i, value in enumerate(values):
            chosen = fixed if lines is None else {**fixed, lines.index: value}
            label = lines.told(value) if lines is not None else "mean"
            aside = 0.0 if across.scale.is_numeric else BESIDE * (i - (len(values) - 1) / 2)
            series.append(_line(measure, across, chosen, label, aside))
        names = () if across.scale.is_numeric else tuple(value_text(value) for value in across.values)
        charts.append(
            Chart(f"{name}-{number}", f"over {across.name}{told}", measure.column.measure.heading, tuple(series),
                  x_label=across.label, x_names=names, x_log=across.scale.is_log, y_top=measure.range[1])
        )  # fmt: skip
    cut = []
    if len(combinations) > most:
        cut.append(f"The first {most} of {len(combinations)} panels over {across.name}; the table has all points.")
    if lines is not None and len(lines.values) > MOST_LINES:
        cut.append(f"The first {MOST_LINES} of {len(lines.values)} values of {lines.name}; the table has all points.")
    return charts, cut


def _line(measure: _Measured, across: _Axis, chosen: dict[int, Any], label: str, aside: float) -> SeriesColumns:
    import numpy as np

    rows = [
        (
            across.scale.places[point[across.index]] + aside,
            measure.means[point],
            *(measure.ends(point) or (np.nan, np.nan)),
        )
        for point in measure.where(chosen)
    ]
    x, y, low, high = np.array(sorted(rows), dtype=float).reshape(-1, 4).T
    return SeriesColumns(label, x, y, "interval", low=low, high=high)


def _maps(measure: _Measured, across: _Axis, down: _Axis, facets: Sequence[_Axis]) -> str:
    """A heat map over two numeric axes, for each combination of the others."""
    combinations = list(itertools.product(*(axis.values for axis in facets)))
    parts = []
    for combination in combinations[:MOST_MAPS]:
        fixed = dict(zip((axis.index for axis in facets), combination, strict=True))
        told = "".join(f", {axis.told(value)}" for axis, value in zip(facets, combination, strict=True))
        means = {(point[down.index], point[across.index]): measure.means[point] for point in measure.where(fixed)}
        cells = [[means.get((row, column)) for column in across.values] for row in down.values]
        right, below = ((axis.name, [value_text(v) for v in axis.values]) for axis in (across, down))
        parts.append(heat_map(measure.heading + told, right, below, cells, measure.range))
    cut = (
        f"<p class='soft'>The first {MOST_MAPS} of {len(combinations)} maps.</p>"
        if len(combinations) > MOST_MAPS
        else ""
    )
    return f"<div class='maps'>{''.join(parts)}</div>{cut}"


def _coordinates(measures: Sequence[_Measured], axes: Sequence[_Axis], points: Sequence[_Point]) -> str:
    shown = points[:MOST_POINTS]
    uprights = []
    for axis in axes:
        scale = axis.scale
        names = [] if scale.is_numeric else [value_text(value) for value in axis.values]
        values = [scale.places[point[axis.index]] for point in shown]
        uprights.append(Upright(axis.label, values, names, scale.is_log))
    uprights += [Upright(one.heading, [one.means.get(point) for point in shown]) for one in measures]
    labels = [", ".join(axis.told(point[axis.index]) for axis in axes) for point in shown]
    cut = f" The first {len(shown)} of {len(points)} points." if len(points) > len(shown) else ""
    by = len(axes) if measures else 0
    told = f"A line for each point of the grid, coloured by {uprights[by].title} (dark is low).{cut}"
    return f"<h2>All points</h2><p class='soft'>{text(told)}</p>{parallel(uprights, labels, by)}"


def _points_table(measures: Sequence[_Measured], axes: Sequence[_Axis], points: Sequence[_Point]) -> str:
    rows = [
        (
            *(value_text(point[axis.index]).replace(" ", "\u00a0") for axis in axes),
            *(_cell(measure, point) for measure in measures),
        )
        for point in points[:MOST_POINTS]
    ]
    cut = f"<p class='soft'>The first {MOST_POINTS} of {len(points)} points.</p>" if len(points) > MOST_POINTS else ""
    headings = (*(axis.name for axis in axes), *(measure.heading for measure in measures))
    made = f"{table(headings, rows, left=len(axes))}{cut}"
    if len(rows) > MOST_OPEN:
        made = f"<details><summary>{len(points):,} points</summary>{made}</details>"
    return f"<h2>Table</h2>{made}"


def _cell(measure: _Measured, point: _Point) -> str:
    return interval(measure.points.get(point), measure.column.figure, measure.scale)
