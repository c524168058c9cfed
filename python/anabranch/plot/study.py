"""The figures of a study: first those declared in ``study.toml``, then those drawn by ``plot.py``."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError
from anabranch.plot.style import COLOURS, MARKERS, add_legend, new_figure, thin
from anabranch.study.bounds import Bounds, bounds_of
from anabranch.study.definition import Axis
from anabranch.study.definition import Figure as FigureDefinition
from anabranch.study.document import FILE_NAME, FILE_NAME_HINT
from anabranch.study.results import Results
from anabranch.study.series import NoValueError, Series, number
from anabranch.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


MOST_INSIDE = 5
"""Up to this number of lines the legend is inside the panel, otherwise beside it."""
BESIDE = 2.2
"""Inches for a legend beside the panel."""
LETTER = 0.0175
"""Width of a letter of a tick label, as part of the panel's width."""
GAP = 0.01
"""Smallest gap between two labels, in the same unit."""
MOST_LABEL = 120
"""Largest number of characters of an axis label."""
MOST_TICKS = 10
"""Largest number of axis values that fit below a panel."""
BAND = 1.5
"""Largest height of a panel, as a multiple of its highest line."""
ZERO = 3.0
"""On a logarithmic axis, 0 is drawn this factor below the smallest positive value."""


_PRINTED: Mapping[str, Any] = {"marker": "*", "markersize": 11, "markeredgewidth": 0.8, "linestyle": "none"}
"""Marker of a point printed in the source, drawn over ours."""


class Drawing:
    """The argument of a study's ``plot.py``: the results, queried in the language of claims.

        def figures(study):
            figure, axes = study.new_figure()
            axes.plot(*study.line("normalised[cubic]", "ri"), label="CUBIC")
            yield "figure-3", "Normalised throughput", figure

    Attributes:
        results: The runs.
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    def new_figure(self, width: float = 5.0, height: float = 3.1) -> tuple[Figure, Axes]:
        """A figure of one panel in our style; inches."""
        return new_figure(width, height)

    def series(self, expression: str, experiment: str | None = None) -> Series:
        """Any expression of the language of claims, as a series.

        Raises:
            UserError: The expression is not well formed, or names something that does not exist.
        """
        from anabranch.study.expression import ExpressionError, Names, compile_expression

        definition = self.results.definition
        names = Names(
            quantities=list(definition.quantities),
            axes=[*definition.axes, "variant", "seed", "time_s"],
            variants=list(definition.variants),
            experiments=list(definition.experiments),
        )
        try:
            value = compile_expression(expression, names).evaluate(
                self.results, {}, experiment or definition.default_experiment
            )
        except (ExpressionError, NoValueError) as error:
            raise UserError(f"{expression}: {error}", file=str(definition.directory / "plot.py")) from None
        return value if isinstance(value, Series) else Series((), {(): value})

    def line(self, expression: str, x: str, experiment: str | None = None) -> tuple[list[float], list[float]]:
        """An expression over an axis, as means over seeds in the axis' order: ready for ``axes.plot``."""
        return _points(self.series(expression, experiment).collapsed(), x)


def figures(results: Results) -> Iterator[tuple[str, str, Figure]]:
    """(name, title, figure) of every figure of the study.

    Raises:
        UserError: ``plot.py`` is wrong.
    """
    drawing = Drawing(results)
    for definition in results.definition.figures:
        try:
            yield definition.id, definition.title, _declared(definition, results)
        except NoValueError as error:
            raise UserError(
                f"[[figure]] {definition.id}: {error}", file=str(results.definition.directory / "study.toml")
            ) from None
    path = results.definition.directory / "plot.py"
    if path.exists():
        yield from _own(path, drawing)


def _declared(definition: FigureDefinition, results: Results) -> Figure:
    figure, axes = new_figure()
    drawn = 0
    lines: list[Line2D] = []
    names: list[str] = []
    marks: list[Line2D] = []
    for label, expression in definition.lines:
        value = expression.evaluate(results, {}, definition.experiment)
        if not isinstance(value, Series):
            raise NoValueError("a single value; nothing to draw")
        bounds = bounds_of(results.definition, expression)
        for variant, part in _parts(value, definition):
            # The variant's place is the same in every figure. With labelled lines, the lines are counted instead.
            place = list(results.definition.variants).index(variant) if variant and not label else drawn
            again, colour = divmod(place, len(COLOURS))
            text = label or (results.definition.variants[variant].label if variant else "")
            marker = MARKERS[(place + again) % len(MARKERS)]
            zero = _zero(results.definition.axes.get(definition.x)) if definition.x_scale == "log" else None
            lines.append(_line(axes, part, definition, _Style(COLOURS[colour], marker, again > 0), zero, bounds))
            names.append(text)
            drawn += 1
            for x, y in definition.printed.get(label or variant, ()):
                printed = axes.plot(
                    [x], [y], color="black", markerfacecolor=COLOURS[colour], zorder=5, clip_on=False, **_PRINTED
                )
                marks = marks or printed
    if marks:
        lines += marks
        names.append("as printed")
        drawn += 1
    axes.set_xlabel(shown.figure(definition.x_label, MOST_LABEL))
    axes.set_ylabel(shown.figure(definition.y_label, MOST_LABEL))
    _scales(axes, definition, results)
    if drawn > MOST_INSIDE:
        figure.set_size_inches(5.0 + BESIDE, 3.1)
        add_legend(figure, lines, names, loc="outside right upper")
    elif drawn > 1:
        add_legend(axes, lines, names, loc="best")
    return figure


def _parts(value: Series, definition: FigureDefinition) -> Iterator[tuple[str, Series]]:
    """The lines of a figure: each variant's part of the series, or the whole series if it has no variants."""
    if "variant" not in value.axes:
        yield "", value
        return
    for variant in definition.variants:
        part = value.keep(lambda point, variant=variant: point["variant"] == variant)  # type: ignore[misc]
        if part.cells:
            yield variant, part.drop("variant")


def _scales(axes: Axes, definition: FigureDefinition, results: Results) -> None:
    import numpy as np

    axis = results.definition.axes.get(definition.x)
    if definition.x_scale == "log":
        axes.set_xscale("log")
        if axis is not None:
            _log_ticks(axes, axis)
    if definition.y_scale == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        # An interval may reach below 0 where no value does.
        lowest = min((np.min(line.get_ydata()) for line in axes.get_lines()), default=0.0)
        axes.set_ylim(bottom=0 if lowest >= 0 else min(0, axes.get_ylim()[0]))
        # An interval over two seeds may be many times as wide as the lines are high and would flatten them: cut it off.
        highest = max((np.max(line.get_ydata()) for line in axes.get_lines()), default=0.0)
        if highest > 0:
            axes.set_ylim(top=min(axes.get_ylim()[1], BAND * highest))
    if definition.x_scale == "log" and (zero := _zero(axis)) is not None:
        # On such an axis, 0 has no distance from the other values.
        axes.axvline(zero * math.sqrt(ZERO), color="#808080", linewidth=0.7, linestyle=":")


def _log_ticks(axes: Axes, axis: Axis) -> None:
    above = [value for value in axis.full if value > 0]
    zero = _zero(axis)
    if len(above) <= MOST_TICKS:
        # The measured values, rather than powers of ten.
        marks, labels = above, _apart(above, zero)
    elif zero is not None:
        first, last = math.ceil(math.log10(min(above))), math.floor(math.log10(max(above)))
        marks = [10.0**power for power in range(first, last + 1)]
        labels = [f"{mark:g}" for mark in marks]
    else:
        return
    if zero is not None:
        marks, labels = [zero, *marks], ["0", *labels]
    axes.set_xticks(marks, labels, minor=False)
    axes.set_xticks([], minor=True)


def _zero(axis: Axis | None) -> float | None:
    """Position of 0 on a logarithmic axis; ``None`` if the axis needs none."""
    values = [*axis.quick, *axis.full] if axis is not None else []
    above = [value for value in values if value > 0]
    return min(above) / ZERO if above and 0 in values else None


def _apart(values: Sequence[float], begin: float | None = None) -> list[str]:
    """The tick labels of a logarithmic axis; empty for a label that would overlap the one before."""
    span = math.log(max(values) / (begin or min(values)))
    shown: list[str] = []
    last, letters = -math.inf, 0
    for value in values:
        here, label = math.log(value), f"{value:g}"
        room = here - last > span * (LETTER * (len(label) + letters) / 2 + GAP)
        shown.append(label if room else "")
        last, letters = (here, len(label)) if room else (last, letters)
    return shown


@dataclass(frozen=True)
class _Style:
    """Colour and marker that distinguish a line from the others."""

    colour: str
    marker: str
    hollow: bool
    """Whether all colours have been used once already."""


def _line(
    axes: Axes, part: Series, definition: FigureDefinition, style: _Style, zero: float | None, bounds: Bounds
) -> Line2D:
    import numpy as np

    if definition.x == "time_s" and "seed" in part.axes:
        # One run over time: the mean of several sawtooths is the window of no run.
        first = min(number(point["seed"]) for point, _ in part)
        part = part.keep(lambda point: point["seed"] == first)
    xs, ys = _points(part.collapsed(), definition.x)
    if definition.x == "time_s":
        x, y = thin(np.array(xs, dtype=float), np.array(ys, dtype=float))
        return axes.plot(x, y, color=style.colour, linestyle="--" if style.hollow else "-")[0]
    _band(axes, part, definition.x, style.colour, zero, bounds)
    joined = "none" if definition.kind == "points" else "--" if style.hollow else "-"
    inside = "none" if style.hollow else style.colour
    looks: dict[str, Any] = {"marker": style.marker, "color": style.colour, "markerfacecolor": inside}
    if zero is not None and xs[0] == 0:
        # A separate marker: a line to it would show values that were not measured.
        axes.plot([zero], ys[:1], linestyle="none", **looks)
        xs, ys = xs[1:], ys[1:]
    return axes.plot(xs, ys, linestyle=joined, **looks)[0]


def _band(axes: Axes, part: Series, x: str, colour: str, zero: float | None, bounds: Bounds) -> None:
    """The 95 % interval over seeds, if there are several and they differ, within the figure's bounds."""
    from anabranch.study.series import interval_ends

    try:
        lower, upper = interval_ends(part)
    except NoValueError:
        return
    xs, low = _points(lower, x)
    _, high = _points(upper, x)
    low, high = [max(end, bounds[0]) for end in low], [min(end, bounds[1]) for end in high]
    if zero is not None and xs[0] == 0:
        axes.vlines([zero], low[:1], high[:1], color=colour, alpha=0.3, linewidth=4)
        xs, low, high = xs[1:], low[1:], high[1:]
    axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)


def _points(series: Series, x: str) -> tuple[list[float], list[float]]:
    if x not in series.axes:
        raise NoValueError(f"there is no axis {x} to draw against")
    if len(series.axes) > 1:
        rest = ", ".join(a for a in series.axes if a != x)
        raise NoValueError(f"several lines ({rest}); select one")
    rows = sorted((number(key[0]), math.nan if v is None else number(v)) for key, v in series.cells.items())
    return [a for a, _ in rows], [b for _, b in rows]


def _own(path: Path, drawing: Drawing) -> Iterator[tuple[str, str, Figure]]:
    spec = importlib.util.spec_from_file_location("anabranch_study_plot", path)
    if spec is None or spec.loader is None:
        raise UserError("cannot be imported", file=str(path))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"cannot be imported: {type(error).__name__}: {error}", file=str(path)) from error
    draw = getattr(module, "figures", None)
    if not callable(draw):
        raise UserError("has no function figures(study)", file=str(path), hint="see docs/studies.md")
    try:
        for name, title, figure in draw(drawing):
            if not FILE_NAME.fullmatch(name):
                raise UserError(f'figures() gives a figure the name "{name}"', file=str(path), hint=FILE_NAME_HINT)
            yield name, title, figure
    except UserError:
        raise
    except Exception as error:
        line = error.__traceback__
        while line is not None and line.tb_next is not None and line.tb_next.tb_frame.f_code.co_filename == str(path):
            line = line.tb_next
        raise UserError(f"figures() failed: {type(error).__name__}: {error}", file=str(path)) from error
