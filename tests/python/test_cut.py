"""Large runs on the terminal: shown rows, omitted rows, and the options that show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anabranch import Scenario
from anabranch.charts.cloud import MAX_POINTS, Cloud
from anabranch.charts.columns import RunColumns
from anabranch.cli.cut import MOST_FLOWS, MOST_LINKS
from anabranch.errors import MemoryWarning
from anabranch.result.remarks import MOST_REMARKS, few, surprises
from anabranch.result.result import RunResult

from .command import Call

LEAVES = 120


def star(leaves: int, flows: int) -> str:
    """A hub with leaves; the first ``flows`` leaves send to the last."""
    links = (f'[link.l{i}]\nbetween = ["hub", "n{i}"]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n' for i in range(leaves))
    sent = (f'[flow.f{i}]\nfrom = "n{i}"\nto = "n{leaves - 1}"\nstart = "0.1 s"\n' for i in range(flows))
    return '\nduration = "0.3 s"\n' + "".join(links) + "".join(sent)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large.toml"
    file.write_text(star(LEAVES, 60), encoding="utf-8")
    return file


@pytest.mark.parametrize("wide", [(), ("--wide",)])
def test_many_flows_and_links_are_shortened(anabranch: Call, large: Path, wide: tuple[str, ...]) -> None:
    done = anabranch("run", large, *wide)
    told = " ".join(done.out.split())
    assert done.status == 0
    assert f"{60 - MOST_FLOWS} of 60 flows are left out; --all-flows prints them" in told
    assert f"{LEAVES - MOST_LINKS} of {LEAVES} links are left out, {LEAVES - 61} of them idle; --all-links" in told
    lines = [line.split()[0] for line in done.out.splitlines() if line.strip()]
    assert f"l{MOST_LINKS - 1}" in lines
    assert f"l{LEAVES - 2}" not in lines


def test_options_print_all(anabranch: Call, large: Path) -> None:
    done = anabranch("run", large, "--all-flows", "--all-links")
    assert "left out;" not in done.out
    for name in ("f59:", f"l{LEAVES - 2}: idle"):
        assert any(line.startswith(name) for line in done.out.splitlines()), name


def test_all_links_is_refused_with_json(anabranch: Call, large: Path) -> None:
    done = anabranch("run", large, "--all-links", "--json")
    assert (done.status, done.out) == (2, "")
    assert "--all-links is of the printed output" in done.err


def test_figures_need_a_directory(anabranch: Call, large: Path) -> None:
    done = anabranch("run", large, "--figures")
    assert (done.status, done.out) == (2, "")
    assert "--figures selects output of --out" in done.err


def test_remarks_of_one_kind_are_shortened() -> None:
    told = [f"remark {i}" for i in range(MOST_REMARKS + 2)]
    assert few(told[: MOST_REMARKS + 1]) == told[: MOST_REMARKS + 1]
    assert few(told) == [*told[:MOST_REMARKS], "2 more remarks of this kind are left out"]


def test_many_idle_links_are_one_remark(large: Path) -> None:
    told = surprises(Scenario.from_file(large).run())
    assert sum("no packet crossed" in remark for remark in told) == 1


def test_parts_of_packets_make_the_table() -> None:
    result = Scenario.from_text(star(4, 3)).run(packets=True)
    whole = result.table("packets")
    for rows in (1, 7, whole.height, 10 * whole.height):
        parts = list(result.packet_parts(rows=rows))
        assert [part.height for part in parts[:-1]] == [rows] * (len(parts) - 1)
        assert pl.concat(parts).equals(whole)
    some = pl.concat(result.packet_parts(["sent_s", "flow"], 7))
    assert some.equals(whole.select("sent_s", "flow"))


def test_a_run_without_packets_has_one_empty_part() -> None:
    result = Scenario.from_text(star(4, 3)).run()
    (part,) = result.packet_parts()
    assert (part.height, part.columns) == (0, result.frame("packets").columns)


def test_omitted_packets_are_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Scenario.from_text(star(4, 3)).run(packets=True)
    assert result.left_out_packets == 0
    assert not any("left out" in remark for remark in surprises(result))
    monkeypatch.setattr(RunResult, "left_out_packets", property(lambda _: 1234))
    assert any("1,234 that were sent later are left out" in remark for remark in surprises(result))


def test_a_cloud_keeps_few_points_and_its_extent() -> None:
    cloud = Cloud()
    for k in range(10):
        x = np.arange(100_000) / 1e5 + k
        cloud.add(x, np.floor(x))
    series = cloud.series("sent")
    assert cloud.taken == 1_000_000
    assert 1_000 < len(series.x) <= MAX_POINTS
    assert (np.diff(series.x) >= 0).all()
    assert set(series.y) == set(range(10))
    assert np.diff(series.x).max() < 0.01


def test_a_small_cloud_keeps_every_point() -> None:
    result = Scenario.from_text(star(4, 1)).run(packets=True)
    chart = next(chart for chart in RunColumns(result).charts() if chart.name == "sequence")
    points = (series for series in chart.series if series.kind == "points")
    assert sum(len(series.x) for series in points) == result.table("packets").height
    assert "are not drawn" not in chart.about


def test_queues_that_may_outgrow_memory_are_remarked() -> None:
    short = '[flow.f0]\ncount = 1000\nstack = "rfc"\nworkload = { kind = "file", size = "1 kB" }'
    text = star(4, 1).replace('"1 Mbit/s"', '"100 Tbit/s"', 1).replace("[flow.f0]", short)
    with pytest.warns(MemoryWarning, match=r"unlimited queues .* give links a `queue` with a `limit`"):
        Scenario.from_text(text).run()
    limited = text.replace('delay = "1 ms"', 'delay = "1 ms"\nqueue = { kind = "drop-tail", limit = "9 packets" }')
    Scenario.from_text(limited).run()
