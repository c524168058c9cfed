"""The report of a run: topology, sequence, ladder, many flows, and the command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch.charts.bands import bands
from anabranch.charts.columns import RunColumns
from anabranch.charts.rates import bottleneck
from anabranch.charts.sequence import packets_of, receiver
from anabranch.report.focus import part
from anabranch.report.ladder import ladder_data
from anabranch.report.many import small_multiples
from anabranch.report.run_output import html_report, until_the_end
from anabranch.report.topology import drawing
from anabranch.result.result import RunResult
from anabranch.result.table import Table

from .browser import View, asked, needs_chromium
from .command import Call

DATA = Path(__file__).parent / "data"
MANY = """
title = "Many"
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "50 packets" }
[flow.f]
from = "A"
to = "B"
count = 50
"""


@pytest.fixture(scope="module")
def result() -> RunResult:
    file = DATA.parents[2] / "scenarios" / "reordering.toml"
    return Scenario.from_file(file).set("duration", "2 s").run(samples_ms=10, packets=True)


@pytest.fixture(scope="module")
def many() -> RunResult:
    return Scenario.from_text(MANY).run(samples_ms=10, packets=True)


def log(arrivals: list[tuple[int, int, float, float | None]]) -> Table:
    """A log of packets: first byte, size, time sent, time received."""
    seen: set[int] = set()
    rows = []
    for start, octets, sent, received in arrivals:
        rows.append({"sequence_bytes": start, "payload_bytes": octets, "sent_s": sent, "received_s": received,
                     "retransmission": start in seen})  # fmt: skip
        seen.add(start)
    return Table.of_rows(rows, {"received_s": "f8"})


def test_the_receiver_holds_data_beyond_a_gap() -> None:
    held = receiver(log([(1, 10, 0.0, None), (11, 10, 0.1, 0.2), (21, 10, 0.1, 0.3), (1, 10, 0.4, 0.5)]))
    assert held is not None
    assert held.rcv_nxt.tolist() == [1, 1, 31]
    assert held.held.tolist() == [True, True, False]
    assert held.rows.tolist() == [1, 2, 3]


@given(st.permutations(list(range(12))))
def test_the_receiver_expects_the_first_missing_byte(order: list[int]) -> None:
    arrived = [0.0] * 12
    for place, packet in enumerate(order):
        arrived[packet] = 1.0 + place
    held = receiver(log([(1 + 10 * i, 10, i / 100, arrived[i]) for i in range(12)]))
    assert held is not None
    for place, expected in enumerate(held.rcv_nxt):
        have = set(order[: place + 1])
        assert expected == 1 + 10 * next(i for i in range(13) if i not in have)


def test_a_log_of_several_streams_has_no_receiver() -> None:
    assert receiver(log([(1, 10, 0.0, 0.1), (11, 10, 0.1, 0.2), (2, 10, 0.2, 0.3)])) is None


def test_the_windows_edge_is_above_the_sent_data(result: RunResult) -> None:
    chart = next(c for c in RunColumns(result).charts() if c.name == "sequence")
    by_name = {series.label: series for series in chart.series}
    edge, sent = by_name["congestion window's edge"], by_name["sent"]
    highest = np.maximum.accumulate(sent.y)[np.searchsorted(sent.x, edge.x, side="right") - 1]
    assert (edge.y >= highest).all()
    arrived = by_name["next expected (rcv_nxt)"]
    assert (np.diff(arrived.y) >= 0).all()
    assert arrived.y[-1] == pytest.approx(result.flows["main"]["delivered_bytes"] / 1e6, abs=1e-5)


def test_a_ladder_has_the_original_and_the_retransmission(result: RunResult) -> None:
    own = packets_of(result, "main")
    again = own.where(own.flags("retransmission")).to_dicts()[0]
    data = ladder_data(own, [(again["sent_s"], again["sequence_bytes"])])
    rows = [data["rows"][place] for place in data["ladders"][0] if place >= 0]
    same = [row for row in rows if row[2] == again["sequence_bytes"]]
    assert [row[4] for row in same] == [False, True]
    assert sorted(row[0] for row in rows) == [row[0] for row in rows]
    left_out = sum(-place for place in data["ladders"][0] if place < 0)
    between = sum(rows[0][0] - 1e-6 <= sent <= rows[-1][0] + 1e-6 for sent in own["sent_s"])
    assert left_out + len(rows) <= between


@needs_chromium
def test_the_ladder_follows_the_selected_retransmission(result: RunResult, tmp_path: Path) -> None:
    script = """
      document.querySelector("details.ladder").open = true;
      await new Promise((done) => setTimeout(done, 100));
      const marked = () => [...document.querySelectorAll("#ladder text.chosen")].map((t) => t.textContent);
      const before = marked();
      document.querySelector(".ladder-tools [data-step='1']").click();
      const after = marked(), told = document.getElementById("why-told").textContent;
      const rows = document.querySelectorAll("#ladder tbody tr").length;
      document.querySelector(".ladder-tools [data-step='0']").click();
      return { before, after, told, rows, zoomed: anabranchCharts.view.max - anabranchCharts.view.min };
    """
    found = asked(html_report(result), script, tmp_path, View(1280))
    assert len(found["before"]) == len(found["after"]) == 1
    assert found["before"] != found["after"]
    assert found["after"][0].endswith("R")
    assert found["rows"] >= 8
    assert 0 < found["zoomed"] < 1.0
    assert "fast recovery" in found["told"]


@needs_chromium
@pytest.mark.parametrize("width", [500, 1280])
def test_a_report_fits_its_window_width(result: RunResult, many: RunResult, tmp_path: Path, width: int) -> None:
    script = """
      document.querySelectorAll("details").forEach((one) => { one.open = true; });
      await new Promise((done) => setTimeout(done, 100));
      const wide = [...document.querySelectorAll("main *")].filter((one) => !one.closest(".scroll, svg, pre, .uplot")
        && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80));
      const cut = [...document.querySelectorAll("table.wide")]
        .filter((one) => one.scrollWidth > one.closest(".scroll").clientWidth + 1).map((one) => one.textContent);
      return [document.documentElement.scrollWidth <= innerWidth, wide, cut];
    """
    for name, run in (("one", result), ("many", many)):
        assert asked(html_report(run), script, tmp_path, View(width), name=name) == [True, [], []]


@needs_chromium
def test_report_opens_at_the_first_loss(tmp_path: Path) -> None:
    run = Scenario.from_file(DATA.parents[2] / "scenarios" / "live" / "thin.toml").run(samples_ms=10, packets=True)
    packets = run.plain("packets")
    first = min(packets.where(packets.is_in("fate", "dropped"))["sent_s"])
    script = """
      const { view, plots } = anabranchCharts, by = Object.fromEntries(plots.map((one) => [one.chart.name, one]));
      const size = (name, label) => by[name].plot.series.find((s) => s.label === label).points.size;
      document.querySelector(".stack-tools button[title='All of it']").click();
      return { height: document.documentElement.scrollHeight, part: document.querySelector(".stack").dataset,
        retransmitted: size("sequence", "retransmitted"), lost: size("cwnd", "lost"),
        rate: by.goodput.chart.series.at(-1).label, axes: plots.map((one) => !!one.plot.axes[0].label),
        tools: document.querySelectorAll(".stack .chart-tools").length, all: [view.min, view.max] };
    """
    found = asked(html_report(run), script, tmp_path, View(1280))
    assert float(found["part"]["from"]) < float(first) < float(found["part"]["to"])
    assert found["retransmitted"] >= 6
    assert found["lost"] >= 6
    assert found["rate"] == "rate of bottleneck"
    assert found["axes"] == [False] * (len(found["axes"]) - 1) + [True]
    assert found["tools"] == 1
    assert found["all"] == [0, pytest.approx(10, abs=0.1)]
    assert found["height"] <= 2_243, "half of 4,485 pixels"


def test_rate_of_the_bottleneck_follows_the_scenario() -> None:
    file = DATA.parents[2] / "scenarios" / "live" / "capacity-change.toml"
    line = bottleneck(Scenario.from_file(file).run(samples_ms=50))
    assert line is not None
    assert list(zip(line.x.tolist(), line.y.tolist(), strict=True)) == [(0, 40), (5, 10), (10, 40), (15, 40)]


def test_an_idle_path_has_no_bottleneck() -> None:
    text = MANY.replace("count = 50", 'workload = { kind = "file", size = "10 kB" }')
    assert bottleneck(Scenario.from_text(text).run(samples_ms=10)) is None


def test_a_run_without_an_event_opens_completely() -> None:
    text = MANY.replace("count = 50", 'workload = { kind = "file", size = "10 kB" }')
    run = Scenario.from_text(text).run(samples_ms=10, packets=True)
    assert part(run, RunColumns(run).scan) is None


def test_charts_end_with_the_last_flow() -> None:
    text = MANY.replace("count = 50", 'workload = { kind = "file", size = "1 MB" }').replace('"4 s"', '"60 s"')
    run = Scenario.from_text(text).run(samples_ms=10, packets=True)
    end = run.flows["f"]["ended_at_s"]
    assert end is not None
    made = list(until_the_end(run, RunColumns(run).charts()))
    drawn = max(series.x[-1] for chart in made for series in chart.series if len(series.x))
    assert end < drawn <= 1.05 * (end + 0.2)
    assert all(chart.about.endswith("Until the last flow ended.") for chart in made)
    running = Scenario.from_text(MANY.replace("count = 50", "count = 1")).run(samples_ms=10)
    assert "Until the last" not in html_report(running)


@pytest.mark.parametrize("size", ["100 kB", "20 kB"])
def test_charts_show_the_last_acknowledgment_of_a_file(size: str) -> None:
    text = f"""
    duration = "20.003 s"
    [link.path]
    between = ["A", "B"]
    rate = "10 Mbit/s"
    delay = "50 ms"
    reverse.delay = "300 ms"
    [flow.main]
    from = "A"
    to = "B"
    workload = {{ kind = "file", size = "{size}" }}
    """
    run = Scenario.from_text(text).run(samples_ms=10)
    samples = run.table("samples")
    cwnd = next(c for c in until_the_end(run, RunColumns(run).charts()) if c.name == "cwnd")
    (line, *_) = cwnd.series
    assert line.y[-1] == samples.get_column("cwnd_packets")[-1] == samples.get_column("cwnd_packets").max()
    assert line.x[-1] < 5
    assert samples.get_column("in_flight_packets")[-1] == 0
    assert samples.get_column("time_s")[-1] == 20.003


def test_many_flows_are_shown_as_percentiles(many: RunResult) -> None:
    charts = {chart.name: chart for chart in RunColumns(many).charts()}
    assert [series.label for series in charts["goodput"].series] == ["median", "90th percentile"]
    html = html_report(many)
    assert "Distribution of goodput" in html
    assert html.count("<figcaption>f/") == 50
    assert "All 50 flows" in html
    assert len(html) < 3e6


def test_a_band_encloses_its_median() -> None:
    x = np.linspace(0, 1, 50)
    median, band = bands([(x, x * i) for i in range(11)])
    assert band.low is not None
    assert (band.low <= median.y + 1e-12).all()
    assert (median.y <= band.y + 1e-12).all()
    assert median.y[-1] == pytest.approx(5)
    assert (band.low[-1], band.y[-1]) == (pytest.approx(1), pytest.approx(9))


def test_few_flows_have_separate_lines(result: RunResult) -> None:
    assert small_multiples(result.plain("samples")) == ""
    goodput = next(c for c in RunColumns(result).charts() if c.name == "goodput")
    assert [series.label for series in goodput.series] == ["main"]
    seconds = goodput.series[0].x
    total = (goodput.series[0].y * (seconds[1] - seconds[0])).sum() * 1e6 / 8
    assert total == pytest.approx(result.flows["main"]["delivered_bytes"], rel=0.01)


def resolved(**tables: Any) -> dict[str, Any]:
    return {"link": {}, "flow": {}, **tables}


def link(a: str, b: str, **more: Any) -> dict[str, Any]:
    way = {"rate": "1 Mbit/s", "delay": "1 ms", "queue": {"kind": "drop-tail", "limit": "unlimited"}, "impair": []}
    return {"between": [a, b], **way, "forward": {**way, **more}, "reverse": way}


def test_the_topology_names_rate_delay_queue_and_impairment() -> None:
    impaired = link(
        "A", "B", queue={"kind": "codel", "limit": "50 packets"}, impair=[{"kind": "jitter", "mean": "2 ms"}]
    )
    html = drawing(resolved(link={"a": impaired}, flow={"f": {"from": "A", "to": "B"}}))
    for text in ("1 Mbit/s · 1 ms", "→ codel, 50 packets", "→ jitter mean 2 ms"):
        assert f">{text}</text>" in html


@given(st.lists(st.tuples(st.sampled_from("ABCDEFG"), st.sampled_from("ABCDEFG")).filter(lambda p: p[0] != p[1]),
                min_size=1, max_size=12))  # fmt: skip
def test_every_node_and_link_is_drawn_once(pairs: list[tuple[str, str]]) -> None:
    links = {f"l{i}": link(*pair) for i, pair in enumerate(pairs)}
    html = drawing(resolved(link=links, flow={"f": {"from": pairs[0][0], "to": pairs[-1][1]}}))
    narrow = html.split("<svg")[-1]
    for node in {end for pair in pairs for end in pair}:
        assert narrow.count(f"<title>{node}</title>") == 1
    for name in links:
        assert narrow.count(f">{name}</text>") == 1


def test_no_box_of_a_topology_covers_another() -> None:
    links = {f"l{i}": link("A", "B") for i in range(5)} | {"on": link("B", "C")}
    for svg in drawing(resolved(link=links, flow={"f": {"from": "A", "to": "C"}})).split("<svg")[1:]:
        frames = re.findall(r"<rect x='([\d.]+)' y='([\d.]+)' width='([\d.]+)' height='([\d.]+)' rx='6'", svg)
        boxes = [tuple(map(float, frame)) for frame in frames]
        assert len(boxes) == 6
        for i, (x, y, w, h) in enumerate(boxes):
            assert all(x + w <= a or a + c <= x or y + h <= b or b + d <= y for a, b, c, d in boxes[i + 1 :])


def test_user_text_in_a_topology_is_escaped() -> None:
    nasty = "<img src=x>"
    html = drawing(resolved(link={nasty: link(nasty, "B")}, flow={nasty: {"from": nasty, "to": "B"}}))
    assert nasty not in html


def test_the_report_has_its_command(anabranch: Call, tmp_path: Path, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--set", "duration='1 s'", "--seed", "7", "--out", tmp_path / "out")
    assert done.status == 0
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    found = re.search(r"<pre class='command'[^>]*>(.*?)</pre>", html)
    assert found
    assert found[1].endswith(
        "--set &#x27;duration=&#x27;&quot;&#x27;&quot;&#x27;1 s&#x27;&quot;&#x27;&quot;&#x27;&#x27; --seed 7 --out DIR"
    )


def test_a_run_without_packets_has_a_report() -> None:
    html = html_report(Scenario.from_file(DATA / "reordering.toml").set("duration", "1 s").run())
    assert "Topology" in html
    assert "Packet ladder" not in html
