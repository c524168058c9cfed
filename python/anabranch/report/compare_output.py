"""The output of ``anabranch compare --out``: the comparison as JSON, overlaid figures, and one HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.charts import stack
from anabranch.charts.pack import thinned
from anabranch.extras import WITHOUT_FIGURES, is_installed
from anabranch.files.output import to_json, whole_directory
from anabranch.report.compare_columns import charts, without_samples
from anabranch.report.compare_format import cell, heading_rows, legend, percent
from anabranch.report.page import image, page, table, text

if TYPE_CHECKING:
    from anabranch.charts.model import Chart
    from anabranch.compare import Comparison, ComparisonDocument
    from anabranch.compare.difference import Difference

MOST_SETTINGS = 10
"""Differences that are shown at once; more would push the charts off the screen."""
MOST_ROWS = 500
"""Largest number of rows of the page's table; comparison.json has all."""


def write_comparison(comparison: Comparison, directory: Path, document: ComparisonDocument) -> None:
    """Write everything; the directory appears whole or not at all.

    Args:
        comparison: The comparison to show.
        directory: The directory to write.
        document: The content of ``comparison.json``, which may be more than is shown.

    Raises:
        UserError: The directory holds something else.
        RunFailedError: It cannot be written.
    """
    from anabranch.plot import compare as sweep_figures
    from anabranch.plot.run import chart_figure
    from anabranch.plot.style import house_style, save

    drawn = [thinned(chart) for chart in charts(comparison)]
    with whole_directory(directory, "compare") as aside:
        (aside / "comparison.json").write_bytes(to_json(document))
        figures: list[tuple[str, str]] = []
        if is_installed("matplotlib"):
            with house_style():
                for chart in drawn:
                    save(chart_figure(chart), aside / "figures" / chart.name)
                if comparison.kind == "sweep":
                    for name, title, figure in sweep_figures.figures(comparison):
                        save(figure, aside / "figures" / name)
                        figures.append((name, title))
        html = html_report(comparison, drawn, figures, aside / "figures")
        (aside / "report.html").write_text(html, encoding="utf-8")


_IN_ORDER = (
    "Goodput counts data in order. When a gap is filled, the data after it counts at once, and a sample may exceed "
    "the rate of the path."
)
"""Explains the peaks of a chart."""


def html_report(
    comparison: Comparison, drawn: Sequence[Chart], figures: Sequence[tuple[str, str]], directory: Path
) -> str:
    """The report as one self-contained page."""
    title = " beside ".join(one.name for one in comparison.inputs)
    body = [f"<h1>{text(title)}</h1>", table(("name", "input"), heading_rows(comparison), left=2)]
    if comparison.settings:
        headings = ("differs", *(one.name for one in comparison.inputs))
        rows = [(path, *values) for path, values in comparison.settings]
        told = table(headings, rows, left=len(headings))
        if len(rows) > MOST_SETTINGS:
            told = f"<details><summary>{len(rows)} differ</summary>{told}</details>"
        body.append(f"<h2>Settings</h2>{told}")
    body += [f"<p><strong>{text(remark)}</strong></p>" for remark in comparison.remarks]
    body.append(_figures(comparison))
    body += [f"<p class='hint'>{text(line)}</p>" for line in legend(comparison)]
    if drawn:
        body.append(f"<h2>Over time</h2>{stack(drawn)}")
    if any(chart.name == "goodput" for chart in drawn):
        body.append(f"<p class='hint'>{text(_IN_ORDER)}</p>")
    missing = without_samples(comparison)
    if missing:
        told = f"Without samples, so that no chart over time has them: {', '.join(missing)}."
        body.append(f"<p class='hint'>{text(told)}</p>")
    if figures:
        images = (
            f"<figure>{image((directory / f'{name}.svg').read_bytes(), about)}<figcaption>{text(about)}</figcaption>"
            "</figure>"
            for name, about in figures
        )
        body.append(f"<h2>Over the swept values</h2><div class='figures'>{''.join(images)}</div>")
    elif comparison.axes and not is_installed("matplotlib"):
        body.append(f"<p class='hint'>{text(WITHOUT_FIGURES)}</p>")
    return page(title, "\n".join(body), charts=drawn)


def _figures(comparison: Comparison) -> str:
    """One table of all measures."""
    from anabranch.sweep.sweep import value_text

    headings = ["figure", "of", *comparison.axes, comparison.inputs[0].name]
    for one in comparison.inputs[1:]:
        headings += [one.name, "change"]
    rows = []
    for block in comparison.blocks:
        for row in block.rows:
            cells = [block.measure.heading, row.element or "all", *map(value_text, row.point)]
            cells.append(cell(row.cells[0], block.measure))
            for value, difference in zip(row.cells[1:], row.differences[1:], strict=True):
                cells += [cell(value, block.measure), _change(difference)]
            rows.append(cells)
    cut = f"<p class='hint'>The first {MOST_ROWS} of {len(rows)} rows.</p>" if len(rows) > MOST_ROWS else ""
    return f"<h2>Figures</h2>{table(headings, rows[:MOST_ROWS], left=2 + len(comparison.axes))}{cut}"


def _change(difference: Difference | None) -> str:
    told = percent(difference)
    if difference is None or difference.test is None:
        return told
    p = f"p = {p_value(difference.test.p)}"
    return f"{told} * ({p})" if difference.test.is_significant else f"{told} ({p})"


def p_value(p: float) -> str:
    """Two digits, or the fewest that show the side of 0.05: 0.0496 has a star, 0.0504 has none."""
    written = (f"{p:.{digits}g}" for digits in range(2, 18))
    return next(text for text in written if (float(text) < 0.05) == (p < 0.05))
