"""MkDocs hook: runs scenarios and draws their figures with the component of the reports.

A page names a figure in a comment, `<!-- figure: NAME -->`, and the gallery names all of them,
`<!-- gallery -->`. `docs/figures/figures.toml` defines the runs and the content of each figure. No
drawn figure is kept in the repository.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from anabranch import RunResult, Scenario, diagnose
from anabranch.charts import Chart, SeriesColumns, embed, place
from anabranch.charts.capture import CaptureColumns
from anabranch.charts.columns import RunColumns
from anabranch.charts.heat import heat_map
from anabranch.charts.pack import thinned
from anabranch.diagnosis.diagnosis import main_direction
from anabranch.diagnosis.points import points
from anabranch.report.topology import drawing
from anabranch.statistics.statistics import mean_interval
from anabranch.studio.page import PAGE, fragment
from anabranch.text import shown, toml_text
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "figures" / "figures.toml"
STUDIO = "anabranch-studio:"
"""Address of the studio in a page until its place is known."""
FOLDER = "assets/anabranch"
"""The component's folder in the site."""
SHIM = "https://unpkg.com/iframe-worker/shim"
"""The address of the worker that the theme's plugin `offline` uses."""
_FIGURE = re.compile(r"<!-- figure: ([a-z0-9-]+) -->")
_GALLERY = "<!-- gallery -->"
_OPEN = "<!-- studio -->"
_QUESTIONS = "questions"
_SAMPLES_MS = 20.0


@dataclass(frozen=True)
class FigureDefinition:
    """A table of `figures.toml`, which explains its keys."""

    name: str
    title: str
    about: str
    page: str
    scenario: str
    lines: Mapping[str, list[str]] = field(default_factory=lambda: {"": []})
    chart: str = ""
    series: str = ""
    table: str = ""
    column: str = ""
    of: str = ""
    measure: str = ""
    x: Mapping[str, list[str]] = field(default_factory=lambda: {"": []})
    repeat: int = 1
    form: str = "chart"
    capture: str = ""
    x_label: str = "Time (s)"
    y_label: str = ""


@dataclass(frozen=True)
class Drawn:
    """A drawn figure of a page: a chart, or HTML without one."""

    definition: FigureDefinition
    chart: Chart | None
    html: str


@functools.cache
def definitions() -> dict[str, FigureDefinition]:
    """All figures, by name."""
    tables = _tables()
    return {name: FigureDefinition(name=name, **table) for name, table in tables.items() if name != _QUESTIONS}


def questions() -> dict[str, str]:
    """The question that the figures of each page answer."""
    return dict(_tables()[_QUESTIONS])


@functools.cache
def _tables() -> dict[str, Any]:
    return toml_text.parse(FILE.read_text(encoding="utf-8"), str(FILE))


@functools.cache
def drawn(name: str) -> Drawn:
    """Run a figure's scenarios and draw it."""
    definition = definitions()[name]
    if definition.form == "topology":
        resolved = _scenario(definition, []).resolve()["resolved_scenario"]
        return Drawn(definition, None, drawing(resolved))
    if definition.form == "heat":
        return Drawn(definition, None, _heat(definition))
    if definition.capture:
        chart = _captured(definition)
        return Drawn(definition, chart, place(chart))
    chart = thinned(_measured(definition) if definition.measure else _over_time(definition))
    return Drawn(definition, chart, place(chart))


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the component to the site."""
    folder = Path(embed.__file__).parent
    for source in ("vendor/uPlot.iife.min.js", "chart.js", "vendor/uPlot-LICENSE"):
        name = f"{FOLDER}/{Path(source).name}"
        content = (folder / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=content))
        if name.endswith(".js"):
            config.extra_javascript.append(name)
    files.append(File.generated(config, f"{FOLDER}/chart.css", content=embed.style()))
    if PAGE.exists():
        files.append(File.generated(config, f"{FOLDER}/studio.html", content=PAGE.read_text(encoding="utf-8")))
    config.extra_css.append(f"{FOLDER}/chart.css")
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Put each figure at its comment in the page."""
    charts: list[Chart] = []

    def put(name: str, is_headed: bool = False) -> str:
        if name not in definitions():
            raise SystemExit(f'{page.file.src_uri}: there is no figure "{name}" in {FILE.relative_to(ROOT)}')
        one = drawn(name)
        if one.chart is not None:
            charts.append(one.chart)
        return _html(one, is_headed=is_headed)

    text = _FIGURE.sub(lambda found: put(found[1]), markdown)
    text = text.replace(_OPEN, _opened() if PAGE.exists() else "")
    if _GALLERY in text:
        text = text.replace(_GALLERY, "\n\n".join(_gallery(put)))
    page.meta["charts"] = charts
    return text


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Add the columns of the page's charts."""
    charts = page.meta.pop("charts", [])
    return html + embed.data(charts) if charts else html


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Load the search's worker from the site: the search works neither from file:// nor offline without it."""
    output = output.replace(STUDIO, get_relative_url(f"{FOLDER}/studio.html", page.url))
    return _accessible(output).replace(SHIM, get_relative_url("vendor/iframe-worker.js", page.url))


def on_post_template(output_content: str, **_: object) -> str:
    """The same for pages without a source, which are at the root of the site."""
    return _accessible(output_content).replace(SHIM, "vendor/iframe-worker.js")


def _accessible(html: str) -> str:
    """Add the accessible name of the search, which the theme omits."""
    search = 'data-md-component="search" role="dialog"'
    return html.replace(search, f'{search} aria-label="Search"')


def _gallery(put: Callable[[str, bool], str]) -> Iterator[str]:
    """An index by question, then the figures of each question; links are relative to the gallery's folder."""
    by_page: dict[str, list[FigureDefinition]] = {}
    for definition in definitions().values():
        by_page.setdefault(definition.page, []).append(definition)
    asked = questions()
    index = []
    for page, figures in by_page.items():
        links = ", ".join(f"[{one.title}](#{one.name})" for one in figures)
        index.append(f"| {asked[page]} | {links} |")
    yield "\n".join(["| question | figures |", "| --- | --- |", *index])
    for page, figures in by_page.items():
        yield f"## {asked[page]}\n\nSee [{_title(page)}]({page})."
        for one in figures:
            yield f"### {one.title} {{ #{one.name} }}\n\n{put(one.name, True)}"


def _title(page: str) -> str:
    """The first heading of a page."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("# ") for line in lines if line.startswith("# "))


def _html(one: Drawn, *, is_headed: bool) -> str:
    """The figure with its source and, unless a heading gives it, its title. One block of HTML without blank lines."""
    definition = one.definition
    source = shown.html(f"Capture: {definition.capture}" if definition.capture else f"Run: {definition.scenario}")
    title = "" if is_headed else f"<strong>{shown.html(definition.title)}.</strong> "
    caption = f"{title}{shown.html(definition.about)} <span class='source'>{source}.</span>"
    return (
        f"<figure class='run' id='figure-{one.definition.name}'>{one.html}<figcaption>{caption}</figcaption>"
        f"{_studio(definition)}</figure>"
    )


def _opened() -> str:
    """A link to the studio of the site."""
    return f"<p><a class='md-button' href='{STUDIO}'>Open the studio</a></p>"


def _studio(definition: FigureDefinition) -> str:
    """The scenario in a studio, loaded when it is unfolded; "" without a studio or if the scenario reads files."""
    if definition.capture or not PAGE.exists():
        return ""
    text = (ROOT / definition.scenario).read_text(encoding="utf-8")
    if "file = " in text:
        return ""
    title = shown.html(f"{definition.title}: the scenario in the studio")
    frame = f"<iframe loading='lazy' title='{title}' src='{STUDIO}#{fragment(text)}'></iframe>"
    return f"<details class='studio'><summary>Change this scenario in the page</summary>{frame}</details>"


def _scenario(definition: FigureDefinition, sets: list[str], rate: str = "") -> Scenario:

    scenario = Scenario.from_file(ROOT / definition.scenario)
    for change in sets:
        path, equals, value = change.replace("{rate}", rate).partition("=")
        if equals:
            scenario = scenario.set(path, toml_text.parse_value(value))
    return scenario


def _captured(definition: FigureDefinition) -> Chart:
    """A chart of the connection of a capture."""
    found = diagnose(ROOT / definition.capture)
    connection = found["connections"][0]
    traced = points(found, [connection])[connection["id"]]
    columns = CaptureColumns(connection, traced, main_direction(connection)[0], connection["start_s"])
    chart = next(one for one in columns.charts() if one.name == definition.chart)
    return thinned(replace(chart, name=f"figure-{definition.name}", title=definition.title, shares_time=False))


def _over_time(definition: FigureDefinition) -> Chart:

    series: list[SeriesColumns] = []
    label = definition.y_label
    for name, sets in definition.lines.items():
        packets = definition.chart in ("sequence", "reordering")
        result = _scenario(definition, sets).run(samples_ms=_SAMPLES_MS, packets=packets, digest=False)
        found, shown_label = _series(definition, result, name)
        series += found
        label = label or shown_label
    return Chart(f"figure-{definition.name}", definition.title, label, tuple(series), shares_time=False)


def _series(definition: FigureDefinition, result: RunResult, name: str) -> tuple[list[SeriesColumns], str]:
    """The lines that one run adds to a chart over time, and the label of the axis."""
    if definition.table:
        frame = result.table(definition.table)
        x, y = (frame.get_column(c).cast(pl.Float64).to_numpy() for c in ("time_s", definition.column))
        return [SeriesColumns(name, x, y, "step")], definition.column
    chart = next(one for one in RunColumns(result).charts() if one.name == definition.chart)
    if definition.series == "all":
        return list(chart.series), chart.y_label
    own = next((s for s in chart.series if s.label == definition.series), chart.series[0])
    return [replace(own, label=name)], chart.y_label


@functools.cache
def _figures(name: str) -> dict[tuple[str, str], list[float]]:
    """A measure of every line at every x, with one value per seed."""
    definition = definitions()[name]
    found: dict[tuple[str, str], list[float]] = {}
    for line, sets in definition.lines.items():
        rate = next((word for word in sets if "=" not in word), "")
        for x, changes in definition.x.items():
            swept = _scenario(definition, [*sets, *changes], rate).sweep({}, repeat=definition.repeat)
            found[line, x] = [float(value) for value in swept.frame.get_column(definition.measure)]
    return found


def _measured(definition: FigureDefinition) -> Chart:

    names = tuple(definition.x)
    figures = _figures(definition.name)
    series = []
    for line in definition.lines:
        intervals = [mean_interval(figures[line, x]) for x in names]
        low, high = (
            np.array([np.nan if end is None else end for end in ends])
            for ends in ([i.lower for i in intervals], [i.upper for i in intervals])
        )
        means = np.array([interval.mean for interval in intervals])
        series.append(SeriesColumns(line, np.arange(len(names), dtype=float), means, "interval", low=low, high=high))
    return Chart(
        f"figure-{definition.name}", definition.title, definition.y_label, tuple(series),
        x_label=definition.x_label, x_names=names,
    )  # fmt: skip


def _heat(definition: FigureDefinition) -> str:

    figures = _figures(definition.name)
    cells = [[sum(figures[line, x]) / len(figures[line, x]) for x in definition.x] for line in definition.lines]
    return heat_map(
        definition.y_label, (definition.x_label, list(definition.x)), ("remedy", list(definition.lines)), cells
    )
