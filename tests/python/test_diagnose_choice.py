"""`anabranch diagnose`: connections by host, port and time; the next step for either slow direction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis.choice import Choice, choose, time_of
from anabranch.diagnosis.diagnosis import Diagnosis
from anabranch.diagnosis.text import overview

from .command import Call

CASES = """
duration = "8 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
[flow.bulk]
from = "A"
to = "B"
[flow.chat]
from = "A"
to = "B"
start = "2 s"
workload = { kind = "request-response", request = "100 bytes", response = "200 bytes" }
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("choice") / "two.pcapng"
    file.write_bytes(Scenario.from_text(CASES, file="two.toml").run(captures=["path"]).pcapng("path"))
    return file


@pytest.fixture(scope="module")
def found(capture: Path) -> Diagnosis:
    return diagnose(capture)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _at(document: Diagnosis, start_s: float) -> Diagnosis:
    """The same capture at another time."""
    moved = start_s - document["start_s"]
    connections = [{**one, "start_s": one["start_s"] + moved} for one in document["connections"]]
    return Diagnosis({**document, "start_s": start_s, "connections": connections})


def _chosen(document: Diagnosis, **choice: Any) -> list[int]:
    return [one["id"] for one in choose(document, Choice(**choice))["connections"]]


def test_a_connection_is_selected_by_each_of_its_ends(found: Diagnosis) -> None:
    first = found["connections"][0]
    for end in (first["a"], first["b"]):
        host, _, port = end.rpartition(":")
        assert 1 in _chosen(found, hosts=(host,))
        assert 1 in _chosen(found, hosts=("10.0.0.0/8",), port=int(port))
    assert _chosen(found, port=int(first["a"].rpartition(":")[2])) == [1]
    hosts = tuple(first[end].rpartition(":")[0] for end in "ab")
    assert 1 in _chosen(found, hosts=hosts)
    assert 1 in _chosen(found, hosts=hosts[::-1])


def test_a_time_is_a_clock_time_a_date_or_relative(found: Diagnosis) -> None:
    moved = _at(found, 1_795_874_600.0)  # 2026-11-28 14:03:20 UTC
    for text in ("14:03:21.5", "2026-11-28T14:03:21.5", "2026-11-28 15:03:21.5+01:00", "1.5"):
        assert time_of(moved, text) == pytest.approx(moved["start_s"] + 1.5), text
    assert time_of(_at(found, 1_795_910_395.0), "00:00:02") == 1_795_910_402.0
    assert _chosen(moved, around="0.5") == [1]
    assert _chosen(moved, around="14:03:24") == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "10.9.9.9"), "has no such connection\n  there are: 10.0.0."),
        (("--host", "server"), "expected an address or a network"),
        (("--host", "10.0.0.1", "--host", "10.0.0.2", "--host", "10.0.0.3"), "expected one host or two"),
        (("--port", "70000"), "expected a port from 1 to 65535"),
        (("--port", "9"), "has no such connection\n  there are: "),
        (("--around", "noon"), "expected a time"),
        (("--around", "2026-11-28"), "expected a time of the day as well"),
        (("--around", "25:00"), "expected a time of the day"),
        (("--around", "10:61"), "expected a time of the day"),
        (("--around", "9000"), "has no such connection\n  the nearest is connection 1, from "),
        (("--follow", "lo", "--port", "80"), "--follow goes with"),
    ],
)
def test_a_selection_without_a_match_is_one_message(
    anabranch: Call, capture: Path, options: tuple[str, ...], message: str
) -> None:
    done = anabranch("diagnose", *(() if "--follow" in options else (capture,)), *options)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: --")
    assert message in done.err


def test_a_clock_time_on_two_days_is_refused(found: Diagnosis) -> None:
    moved = _at(found, 1_795_874_600.0)
    moved["connections"][0]["duration_s"] = 100_000.0
    with pytest.raises(UserError, match="several such times"):
        time_of(moved, "14:03:21")


def test_the_screen_and_the_document_have_the_selected_connections(anabranch: Call, capture: Path) -> None:
    one, other = ({end.rpartition(":")[2] for end in (c["a"], c["b"])} for c in diagnose(capture)["connections"])
    (port,) = other - one
    done = anabranch("diagnose", capture, "--port", port)
    assert "1 TCP connection\n" in done.out
    assert "Connection 2: " in done.out
    assert "Connection 1: " not in done.out


def test_the_worst_connection_is_summarized_before_the_largest(found: Diagnosis) -> None:
    bulk, chat = found["connections"]
    assert bulk["lost_s"] < 1 < chat["lost_s"]
    lines = [line for line in overview(found) if line.startswith(("Connection ", "  next: "))]
    assert [line.split(":")[0] for line in lines] == ["Connection 2", "  next", "Connection 1", "  next"]
    assert "send requests together" in lines[1]
    assert "the path is full" in lines[3]


def test_a_pause_near_the_time_selects_the_summary(found: Diagnosis) -> None:
    bulk = found["connections"][0]
    stall = {
        "start_s": bulk["start_s"] + 3.0,
        "duration_s": 2.5,
        "cause": "zero-window",
        "side": None,
        "packets": [1, 2],
    }
    one = {**bulk, "directions": {**bulk["directions"]}}
    one["directions"]["a_to_b"] = {**bulk["directions"]["a_to_b"], "stalls": [stall]}
    document = Diagnosis({**found, "connections": [one, found["connections"][1]]})
    lines = list(overview(document, one["start_s"] + 4.0))
    assert any(line.startswith("Connection 1: ") for line in lines)
    assert "  then: pause of 2.500 s at 3.000000 s, frames 1 to 2: zero window" in lines
