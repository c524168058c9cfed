"""Reports and figures of a run: complete, self-contained, the same bytes for the same run."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch.charts.model import Chart, SeriesColumns
from anabranch.charts.pack import pack_times, pack_values
from anabranch.plot.style import MAX_LINE_POINTS, thin, thin_points
from anabranch.report.compare_output import p_value
from anabranch.report.page import page, table
from anabranch.result.format import figure, share
from anabranch.result.result import RunResult

from .browser import asked, needs_chromium


@pytest.fixture(scope="module")
def result() -> RunResult:
    file = Path(__file__).parent / "data" / "reordering.toml"
    return Scenario.from_file(file).set("duration", "2 s").run(samples_ms=10, packets=True)


@pytest.mark.usefixtures("all_formats")
def test_the_same_run_gives_the_same_files(result: RunResult, tmp_path: Path) -> None:
    result.write(tmp_path / "a", figures=True)
    result.write(tmp_path / "b", figures=True)
    files = [p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert {f.name for f in files} >= {"report.html", "summary.json", "cwnd.pdf", "queue.svg", "sequence.png"}
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
    assert pl.read_parquet(tmp_path / "a" / "packets.parquet").height == result.table("packets").height


def test_the_report_needs_no_other_file(result: RunResult, tmp_path: Path) -> None:
    result.write(tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", html)
    assert "Leon Sorokin" in html, "the library's licence travels with it"
    found = re.search(r'id="charts">(.*?)</script>', html, re.DOTALL)
    assert found
    charts = json.loads(found[1].replace("<\\/", "</"))
    assert {"cwnd", "queue", "sequence"} <= {c["name"] for c in charts}
    cwnd = next(c for c in charts if c["name"] == "cwnd")["series"][0]
    steps = np.frombuffer(zlib.decompress(base64.b64decode(cwnd["x"])), dtype="<u4")
    samples = result.table("samples")
    assert np.cumsum(steps) / 1e6 == pytest.approx(samples.get_column("time_s").to_numpy(), abs=1e-6)
    values = np.frombuffer(zlib.decompress(base64.b64decode(cwnd["y"])), dtype="<f4")
    assert values == pytest.approx(samples.get_column("cwnd_packets").to_numpy(), rel=1e-6, nan_ok=True)


def test_user_text_is_never_markup() -> None:
    nasty = "</script><img src=x onerror=alert(1)>"
    chart = Chart(nasty, nasty, nasty, (SeriesColumns(nasty, np.array([0.0]), np.array([1.0])),))
    html = page(nasty, table((nasty,), [(nasty,)]), charts=[chart])
    assert nasty not in html


@needs_chromium
def test_a_million_packets_are_drawn(tmp_path: Path) -> None:
    x = np.arange(1_000_000) / 1e5
    series = SeriesColumns("sent", x, np.sin(x), "points"), SeriesColumns("cwnd", x, np.cos(x))
    body = "<div class='chart' id='chart-big'></div>"
    html = page("Big", body, charts=[Chart("big", "Big", "y", series)])
    assert len(html) < 14e6
    script = """
      const { show, plots } = anabranchCharts, all = plots[0].plot.data[0].length;
      show(4, 4.001);
      return [all, plots[0].plot.data[0].length];
    """
    everything, zoomed = asked(html, script, tmp_path)
    assert 1_000 < everything < 100_000, "thinned to what a screen can show"
    assert 100 <= zoomed <= 104, "zoomed in, every packet is back"


def test_packed_times_keep_a_microsecond() -> None:
    packed, unit = pack_times(np.array([0.0, 0.0000014, 300.0]))
    assert unit == 1e-6
    assert np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype="<u4").tolist() == [0, 1, 299_999_999]


def test_packed_times_allow_a_gap_of_days() -> None:
    times = np.array([0.5, 1.0, 500_000.0])
    packed, unit = pack_times(times)
    steps = np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype="<u4")
    assert np.cumsum(steps, dtype=np.float64) * unit == pytest.approx(times, abs=1e-3)
    assert pack_times(np.array([]))[1] == 1e-6


def test_packed_values_keep_missing_values() -> None:
    values = np.frombuffer(zlib.decompress(base64.b64decode(pack_values(np.array([1.5, np.nan])))), dtype="<f4")
    assert values[0] == 1.5
    assert np.isnan(values[1])


def test_thinning_keeps_extremes_and_order() -> None:
    x = np.linspace(0, 1, 100_000)
    y = np.sin(50 * x)
    y[77_777] = 9.0
    tx, ty = thin(x, y)
    assert len(tx) <= MAX_LINE_POINTS
    assert ty.max() == 9.0
    assert (np.diff(tx) > 0).all()
    px, py = thin_points(np.repeat(x, 2), np.repeat(y, 2))
    assert 1_000 < len(px) < len(x)
    assert py.max() == 9.0
    assert (np.diff(px) >= 0).all()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "0"), (9.54455, "9.545"), (1234567, "1,234,567"), (123456.7, "123,457"), (0.00012, "0.00012")],
)
def test_figures_for_people(value: float | None, shown: str) -> None:
    assert figure(value) == shown


def test_shares_for_people() -> None:
    assert (share(0.9), share(0.9, stale=True), share(None)) == ("90 %", "90 % (stale)", "–")


def test_cells_of_a_wide_table_have_their_headings() -> None:
    headings = ("flow", "sent", "lost", 'a "b"', "ended")
    html = table(headings, [("main", "1", "2", "3", "running")])
    assert re.findall(r"data-label='([^']*)'", html) == ["flow", "sent", "lost", "a &quot;b&quot;", "ended"]
    assert "data-label" not in table(headings[:4], [("main", "1", "2", "3")])


@given(st.floats(min_value=0, max_value=1, exclude_min=True, allow_subnormal=False))
def test_a_p_value_is_shown_on_its_side_of_the_level(p: float) -> None:
    assert (float(p_value(p)) < 0.05) == (p < 0.05)
