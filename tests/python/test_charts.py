"""The chart component: its drawings, use without a mouse, printing and dark mode."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.charts import Chart, SeriesColumns, place_all
from anabranch.charts.heat import colour, heat_map
from anabranch.charts.pack import MOST_LINE_POINTS, MOST_MARKS, thinned
from anabranch.report.page import page

from .browser import View, asked, needs_chromium, printed

X = np.arange(0.0, 10.0, 0.5)
LINES = Chart(
    "lines",
    "Lines",
    "window (packets)",
    (SeriesColumns("main", X, X**2), SeriesColumns("held", X, X, "step", faint=True)),
)
CLOUD = Chart("cloud", "Cloud", "sequence (MB)", (SeriesColumns("sent", X, X, "points"),))
BAND = Chart("band", "Band", "goodput (Mbit/s)", (SeriesColumns("p90", X, X + 2, "band", low=X, low_label="p10"),))
NAMED = Chart(
    "named",
    "Named",
    "goodput (Mbit/s)",
    (SeriesColumns("mean", np.array([0.0, 1.0]), np.array([3.0, 5.0]), "interval", low=np.array([2.0, 4.0]),
                   high=np.array([4.0, 9.0])),),
    x_label="cc",
    x_names=("reno", "cubic"),
)  # fmt: skip


def whole_page(*charts: Chart) -> str:
    return page("Charts", place_all(charts), charts=charts)


@needs_chromium
def test_every_kind_of_series_is_drawn(tmp_path: Path) -> None:
    script = """
      return anabranchCharts.plots.map(({ plot, home }) => {
        const canvas = home.querySelector("canvas");
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let blue = 0;
        for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] && pixels[i + 2] > pixels[i] + 60) blue++;
        return [home.id, plot.data.length - 1, blue > 20];
      });
    """
    found = asked(whole_page(LINES, CLOUD, BAND, NAMED), script, tmp_path)
    assert found == [
        ["chart-lines", 2, True], ["chart-cloud", 1, True], ["chart-band", 2, True], ["chart-named", 1, True],
    ]  # fmt: skip


@needs_chromium
def test_an_interval_remains_inside_its_axis(tmp_path: Path) -> None:
    assert asked(whole_page(NAMED), "return anabranchCharts.plots[0].plot.scales.y.max;", tmp_path) >= 9


@needs_chromium
def test_keys_zoom_read_and_reset(tmp_path: Path) -> None:
    script = """
      const one = anabranchCharts.plots[0], other = anabranchCharts.plots[1], { area } = one;
      const press = (key) => area.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
      area.focus();
      const range = () => [other.plot.scales.x.min, other.plot.scales.x.max];
      const settle = () => new Promise((done) => setTimeout(done, 20));
      const whole = range();
      press("+"); await settle();
      const zoomed = range();
      press("Home"); press("ArrowRight");
      const told = one.told.textContent;
      press("0"); await settle();
      return { focused: document.activeElement === area, whole, zoomed, told, again: range() };
    """
    found = asked(whole_page(LINES, CLOUD), script, tmp_path)
    assert found["focused"]
    assert found["zoomed"][1] - found["zoomed"][0] == pytest.approx((found["whole"][1] - found["whole"][0]) / 2)
    assert found["again"] == found["whole"], "both charts over time share one window"
    assert re.match(r"Time \(s\) \d+\.\d+: main \d", found["told"])


@needs_chromium
def test_a_chart_has_a_name_and_a_table(tmp_path: Path) -> None:
    script = """
      const { home, area, table } = anabranchCharts.plots[0];
      table.open = true;
      await new Promise((done) => setTimeout(done, 50));
      return { role: area.getAttribute("role"), name: area.getAttribute("aria-label"),
        heads: [...table.querySelectorAll("th")].map((th) => th.textContent),
        rows: [...table.querySelectorAll("tbody tr")].map((tr) => [...tr.children].map((td) => td.textContent)),
        buttons: [...home.querySelectorAll("button")].map((b) => b.getAttribute("aria-label")) };
    """
    found = asked(whole_page(LINES), script, tmp_path)
    assert found["role"] == "img"
    assert found["name"].startswith("Lines: window (packets) over Time (s). Series: main, held.")
    assert found["heads"] == ["Time (s)", "main", "held"]
    assert found["rows"][4] == ["2.0000", "4", "2"]
    assert len(found["rows"]) == len(X)
    assert "Zoom in: Lines" in found["buttons"]


@needs_chromium
def test_the_colours_follow_the_colour_scheme(tmp_path: Path) -> None:
    script = (
        "return [matchMedia('(prefers-color-scheme: dark)').matches, anabranchCharts.plots[0].plot.series[1].stroke()];"
    )
    light = asked(whole_page(LINES), script, tmp_path)
    dark = asked(whole_page(LINES), script, tmp_path, View(dark=True))
    assert light[0] is False
    assert dark[0] is True
    assert light[1] != dark[1]


@needs_chromium
def test_printed_charts_are_light_and_fit_the_paper(tmp_path: Path) -> None:
    script = """
      const { plot } = anabranchCharts.plots[0], before = plot.width;
      dispatchEvent(new Event("beforeprint"));
      const on = [anabranchCharts.plots[0].plot.width, anabranchCharts.plots[0].plot.series[1].stroke()];
      dispatchEvent(new Event("afterprint"));
      return [before, ...on, anabranchCharts.plots[0].plot.width];
    """
    before, width, stroke, after = asked(whole_page(LINES), script, tmp_path, View(1280, dark=True))
    assert (width, stroke) == (680, "#0072b2")
    assert before == after > 680
    assert printed(whole_page(LINES, CLOUD), tmp_path).startswith(b"%PDF")


@needs_chromium
def test_a_point_is_selected_by_click_and_by_key(tmp_path: Path) -> None:
    script = """
      const told = [];
      anabranchCharts.pick("cloud", [[2, 2], [4, 4], [8, 8]], (index) => told.push(index));
      const { plot, area } = anabranchCharts.plots[0], box = plot.over.getBoundingClientRect();
      const click = (x, y) => { for (const kind of ["mousedown", "mouseup", "click"]) plot.over.dispatchEvent(
        new MouseEvent(kind, { clientX: box.left + plot.valToPos(x, "x"), clientY: box.top + plot.valToPos(y, "y"),
          bubbles: true })); };
      click(4, 4); click(9, 1);
      for (const key of ["n", "n", "p"]) area.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      return told;
    """
    assert asked(whole_page(CLOUD), script, tmp_path) == [1, -1, 0, 1, 0]


@needs_chromium
def test_another_run_is_overlaid(tmp_path: Path) -> None:
    other = base64.b64encode(whole_page(LINES, BAND).encode()).decode()
    script = f"""
      const added = await anabranchCharts.overlay(atob("{other}"), "B");
      return [added, anabranchCharts.plots[0].plot.series.map((s) => s.label)];
    """
    found = asked(whole_page(LINES), script, tmp_path)
    assert found == [2, ["Time (s)", "main", "held", "B: main", "B: held"]]


@needs_chromium
def test_no_chart_is_wider_than_a_telephone(tmp_path: Path) -> None:
    script = "return [document.documentElement.scrollWidth, innerWidth];"
    wide, window = asked(whole_page(LINES, NAMED), script, tmp_path, View(500))
    assert wide <= window


def test_a_long_run_is_thinned_with_a_note() -> None:
    count = 500_000
    x = np.arange(count) / 1e4
    y = np.sin(x)
    y[123_456] = 9.0
    chart = Chart("c", "C", "y", (SeriesColumns("a", x, y), SeriesColumns("p", x, y, "points")))
    made = thinned(chart)
    assert len(made.series[0].x) <= MOST_LINE_POINTS + 2
    assert len(made.series[1].x) <= MOST_MARKS
    assert made.series[0].y.max() == 9.0
    assert (np.diff(made.series[0].x) > 0).all()
    assert "Thinned to" in made.about
    assert thinned(LINES) is LINES


@given(st.lists(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=2, max_size=2), min_size=1, max_size=4))
def test_a_heat_map_has_every_value_as_text(cells: list[list[float | None]]) -> None:
    html = heat_map("srtt (ms)", ("rate", ("1", "2")), ("delay", tuple(map(str, range(len(cells))))), cells)
    found = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert found == ["–" if value is None else f"{value:.4g}" for row in cells for value in row]


def test_heat_colours_reach_from_dark_to_bright() -> None:
    assert (colour(-1), colour(0), colour(1), colour(2)) == ("#440154", "#440154", "#fde725", "#fde725")


def test_print_is_never_dark() -> None:
    style = re.search(r"<style>(.*?)</style>", whole_page(LINES), re.DOTALL)
    assert style
    conditions = re.findall(r"@media ([^{]*prefers-color-scheme: dark[^{]*)", style[1])
    assert conditions
    assert all(condition.startswith("screen and ") for condition in conditions)
