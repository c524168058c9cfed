"""How connections ended, in the table of a run, in its report and in `--why`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from anabranch.report.format import end
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
    """A scenario in which nobody answers the SYN."""
    file = tmp_path / "gives-up.toml"
    file.write_text(GIVES_UP)
    return file


def test_the_table_says_that_a_connection_gave_up(anabranch: Call, gives_up: Path) -> None:
    done = anabranch("run", gives_up)
    assert done.status == 0
    row = next(line for line in done.out.splitlines() if line.lstrip().startswith("main"))
    assert row.rstrip().endswith("gave-up 131 s")


def test_the_table_shows_completion_times_of_files(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(COMPLETES)
    done = anabranch("run", file)
    summary = json.loads(anabranch("run", file, "--json").out)
    time = summary["flows"]["file"]["flow_completion_time_s"]
    row = next(line for line in done.out.splitlines() if line.lstrip().startswith("file"))
    assert row.rstrip().endswith(f"completed {time:.4g} s")
    assert f"{time:.4g}" in row.partition("completed")[0]
    assert next(line for line in done.out.splitlines() if "bulk" in line).rstrip().endswith("running")


def test_why_names_connections_that_ended_badly(anabranch: Call, gives_up: Path) -> None:
    done = anabranch("run", gives_up, "--why")
    assert "main gave up at 131 s: retransmissions went unanswered" in done.out
    assert "nothing was sent again" not in done.out


def test_the_report_and_the_tables_say_how_flows_ended(anabranch: Call, gives_up: Path, tmp_path: Path) -> None:
    assert anabranch("run", gives_up, "--out", tmp_path / "out").status == 0
    assert "gave-up 131 s" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    flows = pl.read_parquet(tmp_path / "out" / "flows.parquet").row(0, named=True)
    assert (flows["ended"], flows["ended_at_s"]) == ("gave-up", 131.0)
    assert (flows["retransmitted_packets"], flows["timeouts"]) == (10, 11)


def test_ends_in_words() -> None:
    assert end({"ended": None, "ended_at_s": None}) == "–"
    assert end({"ended": "running", "ended_at_s": None}) == "running"
    assert end({"ended": "refused", "ended_at_s": 0.25}) == "refused 0.25 s"
    assert text.ending({"ended": "completed", "ended_at_s": 4.0}) == ""
    assert text.ending({"ended": "reset", "ended_at_s": 4.0}).startswith("was reset at 4 s")
    assert text.ending({"ended": "refused", "ended_at_s": 4.0}).startswith("was refused at 4 s")
