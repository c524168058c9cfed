"""Names and titles are data in every place that shows them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch.charts.columns import RunColumns
from anabranch.plot.run import figures
from anabranch.plot.style import FigureWarning, add_legend, house_style, new_figure, save, spell
from anabranch.report.page import page, table
from anabranch.report.run_output import html_report
from anabranch.report.study_output import _markdown_table
from anabranch.text import shown
from anabranch.text.toml_text import write_key

from .command import Call

NASTY = [
    "$", "US$", "$x^{$", r"\$", r"a\\", "_", "__init__", "_hidden", "[@click=(]y", "[bold red]x:smile:", "[/]",
    "[/bold]", "<!--<script>", "</script>", "]]>", "&amp;", "'\"", "`code`", "*a*", "|", "漢字", "עברית", "\U0001f600",
    "%s%d{}", "-", "--out", "a b", "x" * 400, "\u202egnp", "\u2028", "\ufeff", "=1+1", "~~", "#1", "None", "forward",
]  # fmt: skip
"""Names that once caused errors, or may."""

TITLES = [*NASTY, "\x1b]0;pwned\x07\x1b[31mred", "\x9b31m", "a\nerror: b", "a\tb", "\x00", "a.b/c"]

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]")

# Allowed content of a flow's name: the engine refuses dots, slashes and control characters, and
# TOML half characters.
NAMES = [text for text in NASTY if not set("./") & set(text)]
names = st.sampled_from(NAMES) | st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="./"), min_size=1, max_size=12
)
titles = st.sampled_from(TITLES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SETTINGS = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def scenario(title: str, flows: list[str], link: str = "a") -> str:
    head = f"""title = {toml(title)}
duration = "0.3 s"
[link.{write_key(link)}]
between = ["S", "R"]
rate = "2 Mbit/s"
delay = "5 ms"
queue = {{ kind = "drop-tail", limit = "5 packets" }}
"""
    flow = '[flow.{}]\nfrom = "S"\nto = "R"\nstack = "rfc"\n'
    return head + "".join(flow.format(write_key(name)) for name in flows)


def toml(text: str) -> str:
    return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text) + '"'


class Text(HTMLParser):
    """The text of a page's cells and headings, with its scripts and tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.scripts: list[str] = []
        self._in: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("td", "h1", "script"):
            self._in.append(tag)
            (self.scripts if tag == "script" else self.cells).append("")

    def handle_endtag(self, tag: str) -> None:
        if self._in and self._in[-1] == tag:
            self._in.pop()

    def handle_data(self, data: str) -> None:
        if self._in:
            (self.scripts if self._in[-1] == "script" else self.cells)[-1] += data


def read(html: str) -> Text:
    text = Text()
    text.feed(html)
    text.close()
    return text


@SETTINGS
@given(title=titles, flows=st.lists(names, min_size=2, max_size=3, unique=True), link=names)
def test_a_run_shows_every_name_unchanged(
    anabranch: Call, tmp_path: Path, title: str, flows: list[str], link: str
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(scenario(title, flows, link), encoding="utf-8")
    done = anabranch("run", file, "--why")
    assert done.status == 0, done.err
    assert not CONTROL.search(done.out + done.err)
    document = anabranch("run", file, "--why", "--json")
    assert document.status == 0, document.err
    assert not CONTROL.search(document.out)
    assert list(json.loads(document.out)["flows"]) == flows
    assert json.loads(document.out)["scenario"] == title


@SETTINGS
@given(title=titles, flows=st.lists(names, min_size=2, max_size=3, unique=True), link=names)
def test_a_report_shows_every_name_unchanged(title: str, flows: list[str], link: str) -> None:
    result = Scenario.from_text(scenario(title, flows, link)).run(samples_ms=10, packets=True)
    html = read(html_report(result))
    plain = read(
        html_report(Scenario.from_text(scenario("t", [*"xyz"][: len(flows)])).run(samples_ms=10, packets=True))
    )
    # The structure does not depend on the names; the number of rows of the retransmission table is
    # the run's.
    assert set(html.tags) == set(plain.tags)
    assert html.tags.count("script") == plain.tags.count("script")
    # Each name is the whole text of a cell.
    assert {shown.terminal(name) for name in (title or "Scenario", *flows, link)} <= set(html.cells)
    # The data of retransmissions, if there are any, precedes the charts.
    data = [json.loads(script) for script in html.scripts if script.startswith(("[", "{"))]
    charts = next(value for value in data if isinstance(value, list))
    goodput = [series["label"] for series in charts[0]["series"]]
    assert [name for name in goodput if not name.startswith("rate of ")] == flows


@pytest.mark.parametrize("some", [NAMES[i : i + 9] for i in range(0, len(NAMES), 9)])
@pytest.mark.filterwarnings("ignore::anabranch.plot.style.FigureWarning")
def test_figures_show_every_name(tmp_path: Path, some: list[str]) -> None:
    result = Scenario.from_text(scenario(" ".join(some), some)).run(samples_ms=10)
    # Warnings are errors here: of missing glyphs, of labels that begin with an underscore, of a
    # layout without room.
    with house_style():
        name, drawn = next(figures(RunColumns(result)))
        files = save(drawn, tmp_path / name)
    assert all(file.stat().st_size > 0 for file in files)


def test_a_legend_has_every_name() -> None:
    flows = ["$x^{$", "_hidden", "US$", "plain"]
    result = Scenario.from_text(scenario("t", flows)).run(samples_ms=10)
    with house_style():
        drawn = dict(figures(RunColumns(result)))["cwnd"]
        drawn.draw_without_rendering()
    (legend,) = (axes.get_legend() for axes in drawn.axes)
    assert legend is not None
    assert [text.get_text().replace(r"\$", "$") for text in legend.get_texts()] == flows


@SETTINGS
@given(title=titles, flow=names, value=names)
def test_a_sweep_shows_every_name_unchanged(anabranch: Call, tmp_path: Path, title: str, flow: str, value: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(scenario(title, [flow]), encoding="utf-8")
    grid = f"title=[{toml(value)}, {toml(value + 'x')}]"
    done = anabranch("sweep", file, "--grid", grid)
    assert done.status == 0, done.err
    assert not CONTROL.search(done.out + done.err)
    document = anabranch("sweep", file, "--grid", grid, "--json")
    assert document.status == 0, document.err
    assert [point["point"]["title"] for point in json.loads(document.out)["points"]] == [value, f"{value}x"]


@given(text=titles)
def test_a_script_holds_any_text(text: str) -> None:
    told = shown.script({"a": text})
    assert json.loads(told) == {"a": text}
    assert not set("<>&\u2028\u2029") & set(told)


@given(text=titles | names)
def test_a_cell_of_a_page_or_a_table_remains_one_cell(text: str) -> None:
    html = read(page(text, table((text,), [(text,)])))
    assert html.tags.count("td") == 1
    header, _, row = _markdown_table((text,), [(text,)])
    for line in (header, row):
        assert "\n" not in line
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 2


@given(text=st.text())
def test_terminal_output_has_no_control_characters(text: str) -> None:
    told = shown.terminal(text)
    assert len(told) == len(text)
    assert not CONTROL.search(told)
    assert shown.terminal(told) == told


def drawn_texts(names: list[str]) -> list[str]:
    """Names as shown in a figure's legend and on its axis."""
    figure, axes = new_figure()
    lines = [axes.plot([0, 1], [k, k])[0] for k in range(len(names))]
    add_legend(axes, lines, names)
    axes.set_yticks(range(len(names)), [shown.figure(name) for name in names])
    spell(figure)
    figure.canvas.draw()
    legend = axes.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert [text.get_text() for text in axes.get_yticklabels()] == texts
    return texts


def test_names_missing_from_the_font_remain_distinct() -> None:
    long = "東京と大阪の間の経路の第"
    with (
        pytest.warns(FigureWarning, match=r"has no characters for 漢字 \(shown as \\u6f22\\u5b57\), ") as told,
        house_style(),
    ):
        texts = drawn_texts(["漢字", "漢子", f"{long}一", f"{long}二", "plain", "ütf", "a 漢字 b $x$"])
    assert texts[0] == r"\u6f22\u5b57"
    assert texts[1] == r"\u6f22\u5b50"
    assert texts[4:] == ["plain", "ütf", r"a \u6f22\u5b57 b \$x\$"]
    assert re.fullmatch(r"\[\d+\]", texts[2])
    assert len(set(texts)) == len(texts)
    assert len(told) == 1
    assert f"{long}一 (shown as {texts[2]})" in str(told[0].message)
    # Names that the font covers give no warning.
    with warnings.catch_warnings(), house_style():
        warnings.simplefilter("error")
        assert drawn_texts(["plain", "ütf"]) == ["plain", "ütf"]


def test_a_run_reports_once_which_names_its_figures_cannot_show(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(scenario("t", ["流れ一", "流れ二"]), encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "anabranch", "run", str(file), "--out", str(tmp_path / "out"), "--figures"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if "font" in line]
    assert len(lines) == 1
    assert lines[0].startswith("the font of the figures has no characters for 流れ")
