"""The report of a sweep: question, table, a figure for each axis; bad targets are refused before the runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Scenario, SweepResult
from anabranch.errors import UserError
from anabranch.report.sweep_output import html_report, write_into
from anabranch.sweep.sweep import SweptScenario

from .browser import View, asked, needs_chromium
from .command import Call

TEXT = """
title = "<b>Losses</b>"
duration = "2 s"
[link.path]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "20 packets" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.f]
from = "A"
to = "B"
"""
GRID: dict[str, list[Any]] = {
    "flow.f.cc": ["reno", "cubic"],
    "link.path.delay": ["5 ms", "20 ms", "80 ms"],
    "flow.f.transport.sack": [True, False],
}


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    return Scenario.from_text(TEXT).sweep(GRID, repeat=3)


@pytest.fixture(scope="module")
def page(swept: SweepResult) -> str:
    return html_report(swept, "anabranch sweep FILE")


def test_the_question_and_the_table_come_before_the_figures(page: str) -> None:
    question = "change with delay (5 to 80 ms), cc (reno, cubic) and sack (true, false)?"
    places = [page.index(part) for part in (question, "<h2>Table</h2>", "<h2>goodput (Mbit/s), flow f</h2>")]
    assert places == sorted(places)


def test_each_axis_has_a_figure_for_each_measure(page: str) -> None:
    panels = re.findall(r"<div class='panels'>.*?</div>\n", page, re.DOTALL)
    assert len(panels) == page.count("<h2>") - 2
    for part in panels:
        titles = re.findall(r"<h3>(.*?)</h3>", part)
        assert titles[:2] == ["over delay, sack true", "over delay, sack false"]
        for axis, count in (("delay", 2), ("cc", 2), ("sack", 2)):
            assert sum(title.startswith(f"over {axis},") for title in titles) == count


def test_axes_without_quantities_have_no_heat_map(page: str) -> None:
    assert "class='heat'" not in page


def test_two_axes_of_quantities_have_a_heat_map() -> None:
    grid: dict[str, list[Any]] = {
        "link.path.delay": ["5 ms", "20 ms", "80 ms"],
        "link.path.rate": ["1 Mbit/s", "5 Mbit/s"],
    }
    html = html_report(Scenario.from_text(TEXT).sweep({"flow.f.cc": ["reno", "cubic"], **grid}))
    maps = re.findall(r"<table class='heat'>.*?</table>", html, re.DOTALL)
    assert "goodput (Mbit/s), flow f, cc reno" in maps[0]
    assert all(len(re.findall("<td", one)) == 6 for one in maps)


def test_every_point_is_a_line_and_a_row(page: str) -> None:
    assert page.count("<polyline class='point'") == 12
    rows = page.partition("<h2>Table</h2>")[2].partition("<h2>")[0]
    assert rows.count("<tr>") == 13
    assert "±" in rows


def bounded(values: list[tuple[float, float]]) -> SweepResult:
    """Runs with these goodputs and losses over two rates and two seeds."""
    frame = pl.DataFrame(
        {
            "link.path.rate": ["1 Mbit/s", "1 Mbit/s", "5 Mbit/s", "5 Mbit/s"],
            "seed": [1, 2, 1, 2],
            "digest": ["a", "b", "c", "d"],
            "flow.f.goodput_mbit_s": [one for one, _ in values],
            "link.path.forward.utilization": [one for _, one in values],
        }
    )
    return SweepResult(["link.path.rate"], frame, SweptScenario("", [], {}, is_sequential=False))


def test_intervals_end_at_the_bounds_of_their_figure(tmp_path: Path) -> None:
    swept = bounded([(0.1, 0.2), (2.0, 0.9), (3.0, 0.5), (3.1, 0.51)])
    _, ends = swept.estimates("flow.f.goodput_mbit_s")[0]
    assert ends is not None
    assert ends.interval.lower is not None
    assert ends.interval.lower < 0
    html = html_report(swept)
    rows = html.partition("<h2>Table</h2>")[2].partition("<h2>")[0]
    assert re.findall(r"<td[^>]*>([^<]*to[^<]*)</td>", rows) == ["1 (0 to 13)", "55 (0 to 100)"]
    assert "3.05 ± 0.64" in rows
    assert "below 0, a share above 1" in html
    for figure, most in (("goodput_mbit_s", None), ("utilization", 100)):
        axes: Any = swept.plot(figure)
        bars = axes.containers[0].lines[2][0].get_segments()
        assert float(bars[0][0][1]) == 0
        assert most is None or float(bars[0][1][1]) == most


def test_the_title_of_a_scenario_is_text(page: str) -> None:
    assert "<b>Losses</b>" not in page
    assert "&lt;b&gt;Losses" in page


@needs_chromium
def test_intervals_are_drawn_in_every_panel(page: str, tmp_path: Path) -> None:
    script = """
      const inside = (s) => s.x.length >= 2 && s.low.every((v, i) => v <= s.y[i] && s.y[i] <= s.high[i]);
      return anabranchCharts.plots.map(({ chart, plot }) =>
        [chart.series.length === (chart.x_names.length ? 3 : 2), chart.series.every(inside),
         plot.scales.y.max >= chart.y_top, plot.series.slice(1).every((s) => (s.width > 0) === !chart.x_names.length)]);
    """
    found = asked(page, script, tmp_path)
    assert found
    assert all(one == [True] * 4 for one in found)


@needs_chromium
def test_the_page_of_a_sweep_fits_a_telephone(page: str, tmp_path: Path) -> None:
    script = "return document.documentElement.scrollWidth <= innerWidth;"
    assert asked(page, script, tmp_path, View(500)) is True


def test_a_sweep_of_seeds_alone_has_a_table() -> None:
    html = html_report(Scenario.from_text(TEXT).sweep({}, repeat=2))
    assert "Nothing is varied but the seed." in html
    assert "<h2>Table</h2>" in html


def test_many_copies_are_shown_by_their_mean() -> None:
    html = html_report(Scenario.from_text(TEXT + "count = 6\n").sweep({"link.path.delay": ["5 ms", "9 ms"]}))
    assert "goodput (Mbit/s), flow f</h2>" in html
    assert "f: mean over the copies of the flow (count)" in html
    assert "flow f/0" not in html


def test_the_result_writes_its_report(swept: SweepResult, tmp_path: Path) -> None:
    swept.report(tmp_path / "a.html")
    swept.report(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == html_report(swept)


@pytest.mark.parametrize(
    ("name", "told"), [("a.txt", "a name that ends in .html"), ("no/a.html", "there is no directory")]
)
def test_a_bad_target_of_the_report_is_refused(swept: SweepResult, tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        swept.report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_the_report(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT)
    done = anabranch("sweep", file, "--grid", "flow.f.cc=reno,cubic", "--report", tmp_path / "r.html")
    assert done.status == 0, done.err
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "--grid flow.f.cc=reno,cubic --report FILE.html</pre>" in html


def test_the_directory_has_the_report_with_links_to_its_tables(anabranch: Call, tmp_path: Path) -> None:
    (file := tmp_path / "s.toml").write_text(TEXT)
    out = tmp_path / "out"
    sweep = ("sweep", file, "--grid", "flow.f.cc=reno,cubic", "--repeat", 2, "--out", out)
    done = anabranch(*sweep)
    assert done.status == 0, done.err
    html = (out / "report.html").read_text(encoding="utf-8")
    links = re.findall(r"href='([^']*)'", html)
    assert set(links) == {"runs.csv", "runs.parquet", "table.parquet", "sweep.json"}
    assert all((out / link).is_file() for link in links)
    assert "--repeat 2 --out DIR</pre>" in html
    assert "report.html" in json.loads((out / "anabranch.json").read_text())["files"]
    # The grid has other points: the page shows them.
    done = anabranch(*sweep[:3], "flow.f.cc=bbr,vegas", *sweep[4:])
    assert done.status == 0, done.err
    assert "cc (bbr, vegas)" in (out / "report.html").read_text(encoding="utf-8")


def test_new_tables_remove_the_report_of_the_old_ones(tmp_path: Path) -> None:
    scenario = Scenario.from_text(TEXT)
    write_into(scenario.sweep({}, repeat=2, out=tmp_path), tmp_path)
    assert (tmp_path / "report.html").is_file()
    scenario.sweep({}, repeat=3, out=tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_foreign_report_is_unchanged(anabranch: Call, tmp_path: Path) -> None:
    (file := tmp_path / "s.toml").write_text(TEXT)
    out = tmp_path / "out"
    assert anabranch("sweep", file, "--out", out).status == 0
    (out / "report.html").unlink()
    (out / "anabranch.json").write_text((out / "anabranch.json").read_text().replace('"report.html",', ""))
    (out / "report.html").write_text("mine")
    done = anabranch("sweep", file, "--out", out)
    assert done.status == 2
    assert "report.html was not written by this sweep" in done.err
    assert (out / "report.html").read_text() == "mine"


def test_the_command_refuses_a_bad_target_before_it_runs(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT)
    done = anabranch("sweep", file, "--report", tmp_path / "r.pdf", "--out", tmp_path / "out")
    assert done.status == 2
    assert "a name that ends in .html was expected" in done.err
    assert not (tmp_path / "out").exists()
    done = anabranch("sweep", file, "--report", tmp_path / "r.html", "--shard", "1/2", "--out", tmp_path / "out")
    assert done.status == 2
    assert "--report shows a whole sweep" in done.err
