"""Output of `anabranch diagnose`: the report, tables that join with a run's, the capture with comments."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import polars as pl
import pytest

from anabranch import Scenario, UserError, diagnose
from anabranch.charts.capture import CaptureColumns
from anabranch.diagnosis.comments import comments
from anabranch.diagnosis.diagnosis import COLUMNS, TABLES, Diagnosis, directions
from anabranch.diagnosis.points import MOST_POINTS, Trace, moments, points
from anabranch.report.capture_ladder import moment_data
from anabranch.report.capture_output import html_report
from anabranch.result.result import RunResult

from .browser import View, asked, needs_chromium
from .command import Call
from .test_capture import needs_tshark, tshark

SCENARIO = """
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
[flow.first]
from = "A"
to = "B"
[flow.back]
from = "B"
to = "A"
transport = { receive_window = "20 kB" }
"""

REORDERING = SCENARIO.replace(
    '{ kind = "bernoulli-loss", rate = 0.02 }',
    '{ kind = "jitter", distribution = { kind = "exponential" }, mean = "3 ms", reorder = true }',
)


@pytest.fixture(scope="module")
def run() -> RunResult:
    return Scenario.from_text(SCENARIO, file="two.toml").run(captures=["path"], packets=True)


@pytest.fixture(scope="module")
def found(run: RunResult, tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    return run.diagnose("path", tmp_path_factory.mktemp("capture") / "two.pcapng")


@pytest.fixture(scope="module")
def traced(found: Diagnosis) -> dict[int, Trace]:
    return points(found, found["connections"])


def test_a_diagnosed_run_joins_with_its_packets(run: RunResult, found: Diagnosis) -> None:
    again = found.table("retransmissions")
    assert again["flow"].unique().to_list() == ["first"]
    theirs = run.frame("packets").filter("retransmission").with_columns(pl.col("sent_s").round(6))
    ours = again.with_columns(pl.col("time_s").round(6).alias("sent_s"), pl.col("flow_direction").alias("direction"))
    both = ours.join(theirs, on=["flow", "direction", "sequence_bytes", "sent_s"], suffix="_run")
    assert both.height == again.height == theirs.height > 0
    known = both.filter(pl.col("needed").is_not_null() & pl.col("needed_run").is_not_null())
    assert (known["needed"] == known["needed_run"]).all()


def test_a_flow_with_several_connections_is_refused(tmp_path: Path) -> None:
    workload = 'workload = { kind = "poisson", rate = "1 Mbit/s", sizes = { kind = "fixed", size = "20 kB" } }'
    text = SCENARIO.replace('to = "B"\n[flow.back]', f'to = "B"\n{workload}\n[flow.back]')
    with pytest.raises(UserError, match="several connections"):
        Scenario.from_text(text, file="two.toml").run(captures=["path"]).diagnose("path", tmp_path / "x.pcapng")


@pytest.mark.parametrize("text", [SCENARIO, REORDERING])
def test_limits_over_time_sum_up_to_the_limits(text: str, tmp_path: Path) -> None:
    found = Scenario.from_text(text, file="x.toml").run(captures=["path"]).diagnose("path", tmp_path / "x.pcapng")
    every = points(found, found["connections"])
    for connection in found["connections"]:
        for name, way in directions(connection):
            spans = every[connection["id"]][name]["limits"]
            assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))
            sums: dict[str, float] = {}
            for start, end, limit in spans:
                sums[limit] = sums.get(limit, 0.0) + end - start
            assert sums == pytest.approx({limit: time for limit, time in way["limits_s"].items() if time}, abs=2e-3)


def test_every_segment_and_acknowledgment_is_drawn(run: RunResult, found: Diagnosis, traced: dict[int, Trace]) -> None:
    sent = traced[1]["a_to_b"]["sent"]
    log = run.frame("packets").filter((pl.col("flow") == "first") & (pl.col("payload_bytes") > 0))
    assert sent["of"] == len(sent["points"]) == log.height
    edges = [(ack, edge) for _, ack, edge in traced[2]["a_to_b"]["acknowledged"]["points"] if edge is not None]
    assert edges
    assert all(edge >= ack for ack, edge in edges)
    assert max(edge - ack for ack, edge in edges) <= 20_000
    least = min(rtt for _, rtt in traced[1]["a_to_b"]["round_trips"]["points"])
    assert least == pytest.approx(found["connections"][0]["directions"]["a_to_b"]["rtt_ms"]["min"], abs=0.01)


def test_a_long_connection_is_thinned_with_a_note(tmp_path: Path) -> None:
    text = SCENARIO.replace("10 Mbit/s", "200 Mbit/s").replace("forward.impair", "# ")
    found = Scenario.from_text(text, file="x.toml").run(captures=["path"]).diagnose("path", tmp_path / "x.pcapng")
    sent = points(found, found["connections"])[1]["a_to_b"]["sent"]
    assert MOST_POINTS / 2 <= len(sent["points"]) <= MOST_POINTS < sent["of"]
    assert re.search(r"of [\d,]+ segments are drawn, evenly chosen", html_report(found))


def test_a_ladder_has_the_frames_it_names(found: Diagnosis, traced: dict[int, Trace]) -> None:
    connection = found["connections"][0]
    chosen = moments(connection)
    data = moment_data(connection, traced[1], chosen, connection["start_s"])
    assert len(data["moments"]) == len(chosen) > 0
    for _, _, sentence, frames, places in data["moments"]:
        rows = [data["rows"][place] for place in places if place >= 0]
        assert set(frames) <= {row[0] for row in rows}, sentence
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_verdicts_have_separate_series(found: Diagnosis, traced: dict[int, Trace]) -> None:
    connection = found["connections"][0]
    chart = CaptureColumns(connection, traced[1], "a_to_b", 0.0).sequence()
    sizes = {series.label: len(series.x) for series in chart.series}
    counts = connection["directions"]["a_to_b"]["retransmission_counts"]
    assert sizes["retransmitted, needed"] == counts["needed"] > 0
    assert sizes.get("retransmitted, spurious", 0) == counts["spurious"]
    blocks = next(series for series in chart.series if series.label == "SACK blocks")
    assert blocks.low is not None
    assert (blocks.low < blocks.y).all()


def test_out_writes_the_report_and_every_table(anabranch: Call, found: Diagnosis, tmp_path: Path) -> None:
    done = anabranch("diagnose", found["file"], "--out", tmp_path / "out")
    assert done.status == 0, done.err
    report = tmp_path / "out" / "report.html"
    assert f"wrote {report}, diagnosis.json, tables and scenario.toml" in done.err.replace("\n  ", " ")
    document = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert document["packets"] == found["packets"]
    for name in TABLES:
        frame = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        assert set(COLUMNS[name]) <= set(frame.columns)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What stands out" in page
    assert "http://" not in re.sub(r'xmlns="[^"]*"|"http://www.w3.org/2000/svg"', "", page.split("<script>")[0])


def test_empty_tables_keep_their_columns(tmp_path: Path) -> None:
    text = SCENARIO.replace("forward.impair", "# ").replace('"4 s"', '"0.2 s"')
    found = Scenario.from_text(text, file="x.toml").run(captures=["path"]).diagnose("path", tmp_path / "x.pcapng")
    frame = diagnose(found["file"]).table("retransmissions")
    assert frame.is_empty()
    assert dict(frame.schema) == {name: getattr(pl, kind) for name, kind in COLUMNS["retransmissions"].items()}


def test_names_of_a_capture_are_escaped_in_the_page(found: Diagnosis, tmp_path: Path) -> None:
    evil = tmp_path / "<img src=x onerror=alert(1)>.pcapng"
    evil.write_bytes(Path(found["file"]).read_bytes())
    page = html_report(diagnose(evil), command=f"anabranch diagnose {evil}")
    assert "<img src=x" not in page


@needs_chromium
def test_a_click_draws_the_packets_around_a_retransmission(found: Diagnosis, tmp_path: Path) -> None:
    script = """
      const block = document.querySelector(".moments"), told = block.querySelector(".moment-told");
      const before = told.textContent;
      anabranchCharts.choose("sequence-2", 0);
      anabranchCharts.choose("sequence-1", 1);
      const strip = anabranchCharts.plots.find((one) => one.chart.name === "limits-1");
      strip.area.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
      return { before, after: [...document.querySelectorAll(".moment-told")].map((one) => one.textContent),
        chosen: [...document.querySelectorAll(".ladder text.chosen")].length,
        rows: document.querySelectorAll(".ladder tbody tr").length,
        charts: anabranchCharts.plots.map((one) => one.chart.name), told: strip.told.textContent,
        labels: [...document.querySelectorAll("[role=img]")].every((one) => one.getAttribute("aria-label")),
        wide: document.documentElement.scrollWidth <= document.documentElement.clientWidth };
    """
    got = asked(html_report(found), script, tmp_path, View(400, 800))
    assert "error" not in got, got
    assert {"limits-1", "sequence-1", "rtt-1", "limits-2", "sequence-2", "rtt-2"} == set(got["charts"])
    assert got["before"]
    assert any("retransmits octets" in one for one in got["after"])
    assert got["chosen"] >= 1
    assert got["rows"] > 5
    assert re.search(r"for [\d.]+ ms", got["told"])
    assert got["labels"]
    assert got["wide"]


def test_comments_are_at_the_frames_of_the_findings(found: Diagnosis) -> None:
    told = comments(found)
    for connection in found["connections"]:
        for finding in connection["findings"]:
            assert all(finding["text"] in told[frame] for frame in finding["packets"])
    assert set(found.table("retransmissions")["packet"]) <= set(told)


@needs_tshark
def test_tshark_reads_the_comments_and_the_same_frames(anabranch: Call, found: Diagnosis, tmp_path: Path) -> None:
    target = tmp_path / "annotated.pcapng"
    done = anabranch("diagnose", found["file"], "--annotate", target)
    assert done.status == 0, done.err
    fields = ("-T", "fields", "-e", "frame.number", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "tcp.seq_raw")
    assert tshark(target, *fields) == tshark(Path(found["file"]), *fields)
    lines = tshark(target, "-Y", "frame.comment", "-T", "fields", "-e", "frame.number", "-e", "frame.comment")
    read = dict(line.split("\t", 1) for line in lines.splitlines())
    assert {int(frame) for frame in read} == set(comments(found))
    frame = found.table("retransmissions")["packet"][0]
    assert "retransmission (" in read[str(frame)]


def test_an_annotated_capture_has_the_same_diagnosis(found: Diagnosis, tmp_path: Path) -> None:
    found.annotate(tmp_path / "annotated.pcapng")
    assert (
        diagnose(tmp_path / "annotated.pcapng")
        .table("retransmissions")
        .equals(diagnose(found["file"]).table("retransmissions"))
    )


def test_an_unwritable_target_is_refused(anabranch: Call, found: Diagnosis, tmp_path: Path) -> None:
    for target in (tmp_path / "missing" / "x.pcapng", tmp_path, Path(found["file"])):
        done = anabranch("diagnose", found["file"], "--annotate", target)
        assert done.status == 2
        assert "cannot be written" in done.err
    assert not list(tmp_path.iterdir())


def test_charts_are_drawn_as_figures(found: Diagnosis) -> None:
    assert found.plot_time_sequence().get_ylabel() == "sequence (MB)"
    assert found.plot("limits", connection=2).get_xlabel() == "Time (s)"
    with pytest.raises(UserError, match='no chart "limit"'):
        found.plot("limit")
    with pytest.raises(UserError, match="no such connection"):
        found.plot("rtt", connection=7)
