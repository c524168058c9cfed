"""Ends of connections in the table of a run, in its report and in `--why`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from anabranch.result.format import end
from anabranch.result.summary import FlowSummary
from anabranch.why import text

from .command import Call

LINK = """
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "5 ms"
"""
GIVES_UP = f"""
duration = "140 s"
{LINK}
up = false

[flow.main]
from = "A"
to = "B"
"""
COMPLETES = f"""
duration = "2 s"
{LINK}
[flow.file]
from = "A"
to = "B"
workload = {{ kind = "file", size = "10 kB" }}

[flow.bulk]
from = "A"
to = "B"
"""


@pytest.fixture
def gives_up(tmp_path: Path) -> Path:
    """A scenario in which the SYN is never answered."""
    file = tmp_path / "gives-up.toml"
    file.write_text(GIVES_UP)
    return file


def test_a_block_reports_that_a_connection_gave_up(anabranch: Call, gives_up: Path) -> None:
    done = anabranch("run", gives_up)
    assert done.status == 0
    row = next(line for line in done.out.splitlines() if line.lstrip().startswith("main"))
    assert row.rstrip().endswith("gave up at 131 s")
    wide = anabranch("run", gives_up, "--wide").out.splitlines()
    assert next(line for line in wide if line.lstrip().startswith("main")).rstrip().endswith("gave-up 131 s")


def test_the_table_shows_completion_times_of_files(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(COMPLETES)
    done = anabranch("run", file, "--wide")
    summary = json.loads(anabranch("run", file, "--json").out)
    time = summary["flows"]["file"]["flow_completion_time_s"]
    row = next(line for line in done.out.splitlines() if line.lstrip().startswith("file"))
    assert row.rstrip().endswith(f"completed {time:.4g} s")
    assert f"{time:.4g}" in row.partition("completed")[0]
    assert next(line for line in done.out.splitlines() if "bulk" in line).rstrip().endswith("running")


def test_a_block_shows_when_a_file_was_complete(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(COMPLETES)
    time = json.loads(anabranch("run", file, "--json").out)["flows"]["file"]["flow_completion_time_s"]
    out = anabranch("run", file).out
    assert f"file: A to B, cubic over linux, file of 10 kB, finished at {time:.4g} s" in out
    assert f"completion time  {time:.4g} s" in out
    assert "bulk: A to B, cubic over linux, still running" in out


def test_why_names_connections_that_ended_badly(anabranch: Call, gives_up: Path) -> None:
    done = anabranch("run", gives_up, "--why")
    assert "main gave up at 131 s: retransmissions went unanswered" in done.out
    assert "nothing was retransmitted" not in done.out


def test_the_report_and_the_tables_have_the_ends_of_flows(anabranch: Call, gives_up: Path, tmp_path: Path) -> None:
    assert anabranch("run", gives_up, "--out", tmp_path / "out").status == 0
    assert "gave-up 131 s" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    flows = pl.read_parquet(tmp_path / "out" / "flows.parquet").row(0, named=True)
    assert (flows["ended"], flows["ended_at_s"]) == ("gave-up", 131.0)
    assert (flows["retransmitted_packets"], flows["timeouts"]) == (10, 10)


SYNS_LOST = """
duration = "5 s"
[link.path]
between = ["A", "B"]
rate = "100 Mbit/s"
delay = "50 ms"
DIRECTION.impair = [{ kind = "loss-list", packets = [0, 1] }]

[flow.main]
from = "A"
to = "B"
workload = { kind = "file", size = "14480 bytes" }
"""


@pytest.mark.parametrize(
    ("direction", "heading"), [("forward", "main: 2 packets"), ("reverse", "main (reverse): 2 packets")]
)
def test_why_names_lost_syns_and_lost_syn_acks(anabranch: Call, tmp_path: Path, direction: str, heading: str) -> None:
    file = tmp_path / "lost.toml"
    file.write_text(SYNS_LOST.replace("DIRECTION", direction))
    done = anabranch("run", file, "--why=all")
    assert "nothing was retransmitted" not in done.out
    assert f"{heading} retransmitted: 2 needed, 0 spurious; 1 episode. Triggered by rto 2" in " ".join(done.out.split())
    assert done.out.count("SYN  rto  needed") == 2
    why = json.loads(anabranch("run", file, "--why", "--json").out)["why"]
    assert why[heading.partition(":")[0]]["episodes"][0]["kind"] == "opening"


def test_the_packet_table_has_every_sent_packet(anabranch: Call, tmp_path: Path) -> None:
    """Detects a table without the SYNs that ``sent_packets`` counts."""
    file = tmp_path / "lost.toml"
    file.write_text(SYNS_LOST.replace("DIRECTION", "forward"))
    assert anabranch("run", file, "--out", tmp_path / "out").status == 0
    flow = pl.read_parquet(tmp_path / "out" / "flows.parquet").row(0, named=True)
    packets = pl.read_parquet(tmp_path / "out" / "packets.parquet").filter(pl.col("direction") == "forward")
    assert packets.height == flow["sent_packets"] == 12
    assert packets["retransmission"].sum() == flow["retransmitted_packets"] == 2


STOPS = f"""
duration = "10 s"
{LINK}
up = false

[flow.main]
from = "A"
to = "B"
stop = "2.5 s"
"""


def test_a_flow_that_stops_while_opening_gave_up(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "stops.toml"
    file.write_text(STOPS)
    done = anabranch("run", file, "--why=all")
    assert "main gave up at 2.5 s: retransmissions went unanswered" in " ".join(done.out.split())
    assert done.out.count("SYN  rto  needed") == 2


def flow(figures: dict[str, object]) -> FlowSummary:
    """A flow with only these figures set."""
    return cast("FlowSummary", figures)


def test_ends_in_words() -> None:
    assert end(flow({"ended": None, "ended_at_s": None})) == "–"
    assert end(flow({"ended": "running", "ended_at_s": None})) == "running"
    assert end(flow({"ended": "refused", "ended_at_s": 0.25})) == "refused 0.25 s"
    assert text.ending(flow({"ended": "completed", "ended_at_s": 4.0})) == ""
    assert text.ending(flow({"ended": "reset", "ended_at_s": 4.0})).startswith("was reset at 4 s")
    assert text.ending(flow({"ended": "refused", "ended_at_s": 4.0})).startswith("was refused at 4 s")
