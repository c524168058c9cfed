"""The report of a sweep: every point in panels, maps and table; bad places are refused before the work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, SweepResult
from anabranch.errors import UserError
from anabranch.report.sweep_output import html_report

from .browser import asked, needs_chromium
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


def test_the_axis_with_a_size_is_drawn_to_the_right(page: str) -> None:
    assert "over delay (ms)" in page
    titles = re.findall(r"<div class='panels'>.*?<h3>(.*?)</h3>", page)
    assert titles
    assert all(title.startswith("sack ") for title in titles)


def test_a_heat_map_has_a_cell_for_each_point(page: str) -> None:
    maps = re.findall(r"<table class='heat'>.*?</table>", page, re.DOTALL)
    assert len(re.findall("<td", maps[0])) == 6
    assert "goodput" in maps[0]


def test_every_point_is_a_line_and_a_row(page: str) -> None:
    assert page.count("<polyline class='point'") == 12
    rows = page.partition("<h2>Table</h2>")[2]
    assert rows.count("<tr>") == 13
    assert "±" in rows


def test_the_title_of_a_scenario_is_text(page: str) -> None:
    assert "<b>Losses</b>" not in page
    assert "&lt;b&gt;Losses" in page


@needs_chromium
def test_intervals_are_drawn_in_every_panel(page: str, tmp_path: Path) -> None:
    script = """
      const inside = (s) => s.x.length === 3 && s.low.every((v, i) => v <= s.y[i] && s.y[i] <= s.high[i]);
      return anabranchCharts.plots.map(({ chart, plot }) =>
        [chart.series.length, chart.series.every(inside), plot.scales.y.max >= chart.y_top]);
    """
    found = asked(page, script, tmp_path)
    assert found
    assert all(one == [2, True, True] for one in found)


@needs_chromium
def test_the_page_of_a_sweep_fits_a_telephone(page: str, tmp_path: Path) -> None:
    script = "return document.documentElement.scrollWidth <= innerWidth;"
    assert asked(page, script, tmp_path, "--window-size=500,900") is True


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
def test_a_bad_place_for_the_report_is_refused(swept: SweepResult, tmp_path: Path, name: str, told: str) -> None:
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


def test_the_command_refuses_a_bad_place_before_it_runs(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT)
    done = anabranch("sweep", file, "--report", tmp_path / "r.pdf", "--out", tmp_path / "out")
    assert done.status == 2
    assert "a name that ends in .html was expected" in done.err
    assert not (tmp_path / "out").exists()
    done = anabranch("sweep", file, "--report", tmp_path / "r.html", "--shard", "1/2", "--out", tmp_path / "out")
    assert done.status == 2
    assert "--report shows a whole sweep" in done.err
