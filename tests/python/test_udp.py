"""UDP flows and the workloads of clients and clocks: summary, tables, captures and the terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from anabranch import Scenario, ScenarioError
from anabranch.result.result import RunResult

from .command import Call

TSHARK = shutil.which("tshark")
# In CI the test must not be skipped: without tshark it fails.
needs_tshark = pytest.mark.skipif(
    TSHARK is None and not os.environ.get("CI"), reason="tshark is not installed (Debian package tshark)"
)

TEXT = """
title = "A video beside bulk"
duration = "10 s"
[link.path]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "15 ms"
queue = { kind = "drop-tail", limit = "30 packets" }
[flow.bulk]
from = "S"
to = "R"
stack = "rfc"
cc = "reno"
[flow.video]
from = "S"
to = "R"
protocol = "udp"
workload = { kind = "paced", rate = "4 Mbit/s", payload = "1000 bytes" }
[flow.web]
from = "S"
to = "R"
stack = "rfc"
cc = "reno"
workload = { kind = "request-response", request = "200 bytes", response = "5 kB", think = "100 ms" }
"""


@pytest.fixture(scope="module")
def result() -> RunResult:
    return Scenario.from_text(TEXT).run(captures=["path"], snap_length=65535, packets=True)


def test_the_summary_of_a_udp_flow(result: RunResult) -> None:
    video = result.flows["video"]
    # One every 2 ms, the last at the end of the run.
    assert video["sent_packets"] == 5001
    assert video["retransmitted_packets"] is None
    assert video["mean_srtt_ms"] is None
    mean, p95 = video["mean_one_way_delay_ms"], video["p95_one_way_delay_ms"]
    assert mean is not None
    assert p95 is not None
    # Between an empty and a full queue: 30 packets of 1,500 bytes, one in transmission and the
    # packet itself.
    assert 15.8 < mean < p95 < 15.9 + 31 * 1.2
    exchanges = result.flows["web"]["exchanges"]
    assert exchanges is not None
    middle = exchanges["mean_response_time_ms"]
    assert middle is not None
    assert middle > 30
    # At best one exchange in 100 ms and a round trip; if the end of a response is lost, the timeout
    # takes a second.
    assert 10 < exchanges["completed"] < 10 / 0.13


def test_the_tables(result: RunResult) -> None:
    rows = result.table("packets")
    mine = rows.filter(rows["flow"] == "video")
    assert mine.height == 5001
    assert mine["size_bytes"].unique().to_list() == [1028]
    assert mine["sequence_bytes"].to_list() == [1000 * n for n in range(5001)]
    delivered = mine.filter(mine["fate"] == "delivered").height
    dropped = mine.filter(mine["fate"] == "dropped").height
    under_way = mine.filter(mine["fate"] == "in-flight").height
    assert delivered + dropped + under_way == 5001
    assert result.flows["video"]["delivered_bytes"] == 1000 * delivered
    flows = result.table("flows")
    row = flows.filter(flows["flow"] == "video").to_dicts()[0]
    assert row["mean_one_way_delay_ms"] == result.flows["video"]["mean_one_way_delay_ms"]
    assert row["timeouts"] is None


@needs_tshark
def test_tshark_finds_nothing_malformed(result: RunResult, tmp_path: Path) -> None:
    file = tmp_path / "path.pcapng"
    file.write_bytes(result.pcapng("path.forward"))

    assert TSHARK is not None
    fields = ("udp.length", "udp.checksum.status", "ip.checksum.status", "_ws.malformed", "_ws.short")
    command = [TSHARK, "-r", str(file), "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", "udp"]
    command += ["-T", "fields", *(part for name in fields for part in ("-e", name))]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert set(found.splitlines()) == {"1008\t1\t1\t\t"}
    assert len(found.splitlines()) == result.flows["video"]["sent_packets"]


def test_the_terminal(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "video.toml"
    file.write_text(TEXT)
    done = anabranch("run", file)
    assert done.status == 0
    out = done.out
    assert "video: S to R, UDP, paced" in out
    assert "  one-way delay  " in out
    assert " responses)" in out
    wide = anabranch("run", file, "--wide").out
    assert "video: one-way delay " in wide
    assert "web: response time " in wide
    told = json.loads(anabranch("run", file, "--json").out)
    assert told["flows"]["video"]["timeouts"] is None
    assert "stack" not in told["resolved_scenario"]["flow"]["video"]


def test_a_report_of_udp_alone(anabranch: Call, tmp_path: Path) -> None:
    """No flow has a window: the report must work without."""
    head, rest = TEXT.split("[flow.bulk]")
    video = rest.split("[flow.video]")[1].split("[flow.web]")[0]
    file = tmp_path / "alone.toml"
    file.write_text(f"{head}[flow.video]{video}")
    done = anabranch("run", file, "--out", tmp_path / "out", "--pcap", f"path={tmp_path / 'path.pcapng'}", "--why")
    assert done.status == 0
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "out" / "packets.parquet").exists()
    assert (tmp_path / "path.pcapng").stat().st_size > 5001 * 1028 // 20


def test_bulk_over_udp_is_refused() -> None:
    text = TEXT.split("workload", maxsplit=1)[0]
    with pytest.raises(ScenarioError, match="the UDP flow `video` has no `workload`"):
        Scenario.from_text(text).run()
