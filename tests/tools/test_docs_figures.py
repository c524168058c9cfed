"""The figures of the documentation: each is used, drawn from a run, and inserted at its comment."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import docs_figures

DOCS = docs_figures.ROOT / "docs"
NAMED = re.compile(r"<!-- figure: ([a-z0-9-]+) -->")


def page() -> Any:
    """A page with the attributes that the hook reads."""
    return SimpleNamespace(meta={}, file=SimpleNamespace(src_uri="page.md"))


def pages() -> dict[str, list[str]]:
    """Each page that names figures, with their names."""
    found = {path.relative_to(DOCS).as_posix(): NAMED.findall(path.read_text("utf-8")) for path in DOCS.rglob("*.md")}
    return {name: figures for name, figures in found.items() if figures}


def test_every_figure_is_on_its_page() -> None:
    places = {name: place for place, names in pages().items() for name in names}
    assert places == {name: figure.page for name, figure in docs_figures.definitions().items()}


def test_every_page_with_figures_has_a_question() -> None:
    assert set(docs_figures.questions()) == {figure.page for figure in docs_figures.definitions().values()}


def test_gallery_lists_each_figure_in_its_index_and_once_below() -> None:
    text = "\n\n".join(docs_figures._gallery(lambda name, _: f"({name})"))
    for name in docs_figures.definitions():
        assert text.count(f"](#{name})") == 1
        assert text.count(f"({name})") == 1


def test_every_scenario_of_a_figure_exists() -> None:
    for figure in docs_figures.definitions().values():
        assert (docs_figures.ROOT / figure.scenario).is_file(), figure.name


@pytest.mark.parametrize("name", list(docs_figures.definitions()))
def test_every_run_of_a_figure_is_a_valid_scenario(name: str) -> None:
    figure = docs_figures.definitions()[name]
    for sets in figure.lines.values():
        rate = next((word for word in sets if "=" not in word), "")
        for changes in figure.x.values():
            docs_figures._scenario(figure, [*sets, *changes], rate).resolve()


@pytest.mark.parametrize("name", ["topology", "queues", "recovery", "groups"])
def test_a_figure_is_one_block_of_html(name: str) -> None:
    own = page()
    markdown = docs_figures.on_page_markdown(f"Text.\n\n<!-- figure: {name} -->\n\nMore.\n", page=own)
    assert f"id='figure-{name}'" in markdown
    block = markdown.split("\n\n")[1]
    assert block.startswith("<figure")
    assert block.endswith("</figure>")
    html = docs_figures.on_page_content("<p></p>", page=own)
    assert ('id="charts"' in html) == (name != "topology")


def test_a_line_has_the_name_of_its_run() -> None:
    chart = docs_figures.drawn("queues").chart
    assert chart is not None
    assert [series.label for series in chart.series] == list(docs_figures.definitions()["queues"].lines)
    assert all(len(series.x) for series in chart.series)


def test_a_figure_that_is_not_defined_ends_the_build() -> None:
    with pytest.raises(SystemExit, match=r'page.md: there is no figure "no" in docs/figures/figures.toml'):
        docs_figures.on_page_markdown("<!-- figure: no -->", page=page())


def test_the_search_loads_its_worker_from_the_site() -> None:
    own = page()
    own.url = "concepts/queues.html"
    html = f'<script src="{docs_figures.SHIM}"></script>'
    assert docs_figures.on_post_page(html, page=own) == '<script src="../vendor/iframe-worker.js"></script>'
    theme = Path(str(importlib.util.find_spec("material").origin)).parent  # type: ignore[union-attr]
    assert docs_figures.SHIM in (theme / "plugins" / "offline" / "plugin.py").read_text("utf-8")
    assert "Permission is hereby granted" in (DOCS / "vendor" / "iframe-worker.js").read_text("utf-8")


def test_the_scenarios_of_figures_are_described() -> None:
    for path in sorted((DOCS / "figures").glob("*.toml")):
        assert path.read_text("utf-8").startswith("# "), path.name


def test_the_folder_of_figures_has_no_other_files() -> None:
    used = {Path(figure.scenario).name for figure in docs_figures.definitions().values()} | {"figures.toml"}
    assert {path.name for path in (DOCS / "figures").iterdir()} <= used
