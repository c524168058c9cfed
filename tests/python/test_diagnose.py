"""`anabranch diagnose`: the document, the screen, bad input. Verdicts are tested in crates/diagnose and validation/."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis.diagnosis import TABLES, Diagnosis
from anabranch.diagnosis.text import octets_text, overview, parties_text
from anabranch.files.output import to_json

from .command import Call
from .test_capture import needs_tshark, tshark
from .test_guides import DOCS, blocks, steps, trimmed

LOSS = """
duration = "5 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
[flow.main]
from = "A"
to = "B"
count = 3
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("diagnose") / "loss.pcapng"
    file.write_bytes(Scenario.from_text(LOSS, file="loss.toml").run(captures=["path"]).pcapng("path"))
    return file


def test_the_engine_writes_the_document_as_python_does(anabranch: Call, capture: Path) -> None:
    whole = anabranch("diagnose", capture, "--json").out
    assert whole == to_json(json.loads(whole)).decode()
    # The chosen connections are written by Python.
    assert anabranch("diagnose", capture, "--json", "--port", "5001").out == whole


def test_the_document_has_the_published_names(anabranch: Call, capture: Path) -> None:
    done = anabranch("diagnose", capture, "--json")
    assert done.status == 0
    document = json.loads(done.out)
    assert (document["format"], document["file"]) == (1, str(capture))
    assert document["passed_over"]["no-ip"] == 0
    assert [one["id"] for one in document["connections"]] == [1, 2, 3]
    names = {"id", "a", "b", "start_s", "duration_s", "handshake", "directions", "findings", "path", "advice"}
    ways = {
        "bytes",
        "packets",
        "goodput_mbit_s",
        "rtt_ms",
        "retransmissions",
        "reordered_packets",
        "capture_gaps",
        "limits_s",
        "stalls",
    }
    again = {"packet", "time_s", "seq", "bytes", "needed", "trigger", "lost"}
    for connection in document["connections"]:
        assert names <= connection.keys()
        for direction in connection["directions"].values():
            assert ways <= direction.keys()
            assert sum(direction["limits_s"].values()) == pytest.approx(connection["duration_s"], abs=1e-6)
        assert all(again <= one.keys() for one in connection["directions"]["a_to_b"]["retransmissions"])


def test_one_connection_alone(anabranch: Call, capture: Path) -> None:
    done = anabranch("diagnose", capture, "--connection", 2, "--json")
    assert [one["id"] for one in json.loads(done.out)["connections"]] == [2]
    done = anabranch("diagnose", capture, "--connection", 2)
    assert done.out.startswith("Connection 2: ")
    done = anabranch("diagnose", capture, "--connection", 9)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"error: --connection 9: {capture} has no such connection\n  there are: 1 to 3\n"


def test_the_overview_fits_one_screen(anabranch: Call, capture: Path) -> None:
    done = anabranch("diagnose", capture)
    assert done.status == 0
    lines = done.out.splitlines()
    assert len(lines) <= 36
    assert max(map(len, lines)) <= 80
    assert "Connection 1: " in done.out or "Connection 2: " in done.out or "Connection 3: " in done.out


def test_losses_lead_to_the_location_of_the_loss(anabranch: Call, capture: Path) -> None:
    done = anabranch("diagnose", capture, "--connection", 1)
    assert "  next: find where the segments are lost: capture at 10.0.0.2:" in done.out


def test_a_silent_end_is_named(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "silent.pcapng"
    lan = '[link.lan]\nbetween = ["M", "A"]\nrate = "1 Gbit/s"\n'
    down = '[[at]]\ntime = "1 s"\nset = { "link.path.up" = false }\n'
    text = LOSS.replace('["A", "B"]', '["M", "B"]').replace("rate = 0.02", "rate = 0.0")
    run = Scenario.from_text(text + lan + down, file="silent.toml").run(captures=["lan"])
    file.write_bytes(run.pcapng("lan"))
    done = anabranch("diagnose", file, "--connection", 1)
    assert re.search(r"  next: 10\.0\.0\.\d:\d+ left [4-9] copies of a segment unanswered \(frame \d+\): ", done.out)


def test_the_overview_names_other_connections_that_failed(capture: Path) -> None:
    found = diagnose(capture)
    first, *others = sorted(found["connections"], key=lambda one: -one["directions"]["a_to_b"]["bytes"])
    others[0]["failure"] = "refused"
    text = "\n".join(overview(Diagnosis(found)))
    assert f"  refused: {others[0]['id']}\n" in text
    assert f"Connection {first['id']}: " in text


@pytest.mark.parametrize(
    ("used", "control", "party"),
    [(0.95, None, "network"), (0.5, "bbr", "network"), (0.5, "cubic", "sender"), (None, None, "sender")],
)
def test_the_pace_at_the_paths_rate_is_the_networks(
    capture: Path, used: float | None, control: str | None, party: str
) -> None:
    connection = diagnose(capture)["connections"][0]
    limits = connection["directions"]["a_to_b"]["limits_s"]
    limits.update(dict.fromkeys(limits, 0.0))
    limits["pacing"] = connection["duration_s"]
    connection["rate_used"] = used
    connection["path"]["flow"]["control"]["name"] = control
    assert parties_text(connection, "a_to_b").startswith(party)


def test_the_summary_says_that_sack_is_missing(capture: Path, tmp_path: Path) -> None:
    assert "without SACK" not in "\n".join(overview(diagnose(capture)))
    file = tmp_path / "plain.pcapng"
    text = LOSS + "transport = { sack = false }\n"
    file.write_bytes(Scenario.from_text(text, file="plain.toml").run(captures=["path"]).pcapng("path"))
    assert "handshake seen, without SACK\n" in "\n".join(overview(diagnose(file)))


def test_a_failed_connection_without_data_is_summarized(capture: Path) -> None:
    found = diagnose(capture)
    for connection in found["connections"]:
        for direction in connection["directions"].values():
            direction["bytes"] = 0
    found["connections"][2]["failure"] = "unanswered"
    assert any(line.startswith("Connection 3: ") for line in overview(Diagnosis(found)))


@pytest.mark.parametrize(
    ("seq", "length", "trigger", "shown"),
    [
        (-1, 0, "rto", "SYN"),
        (9, 0, "rto", "FIN"),
        (0, 10, "rto", "bytes 0 to 10"),
        (8, 0, "keepalive", "bytes 8 to 8"),
    ],
)
def test_segments_without_data_are_named_by_their_flag(seq: int, length: int, trigger: str, shown: str) -> None:
    segment: Any = {"seq": seq, "bytes": length, "trigger": trigger}
    assert octets_text(segment) == shown


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.toml", b"title = 1\n", "it is not a capture; expected pcap or pcapng"),
        ("cut.gz", b"\x1f\x8b\x08", "it is cut off within the header of the file"),
    ],
)
def test_files_that_are_not_captures_are_refused(
    anabranch: Call, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    done = anabranch("diagnose", file)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {file}: {reason}")


def test_paths_that_are_not_files_are_refused(anabranch: Call, tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "missing.pcap", Path("/dev/zero")):
        done = anabranch("diagnose", file, "--json")
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: {file}: ")


def test_python_has_the_document_and_tables(capture: Path) -> None:
    found = diagnose(capture)
    for name in TABLES:
        assert found.table(name).height > 0 or name == "stalls"
    rows = found.table("retransmissions")
    counts = [one["directions"]["a_to_b"]["retransmission_counts"]["all"] for one in found["connections"]]
    assert rows.height == sum(counts) > 0
    with pytest.raises(UserError, match='no table "retransmission"'):
        found.table("retransmission")


@needs_tshark
def test_tshark_counts_the_same_retransmissions_at_the_sender(capture: Path) -> None:
    kinds = "tcp.analysis.retransmission or tcp.analysis.fast_retransmission or tcp.analysis.out_of_order"
    theirs = {
        int(line)
        for line in tshark(capture, "-Y", f"({kinds}) and tcp.len > 0", "-T", "fields", "-e", "frame.number").split()
    }
    ours: set[Any] = set(diagnose(capture).table("retransmissions")["packet"])
    assert ours == theirs


def test_the_commands_of_the_guide_work(anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(DOCS)
    made = answers = 0
    for command, shown in steps(blocks("guides/diagnose.md")):
        done = anabranch(*shlex.split(command)[1:])
        assert done.status == 0, done.err
        made += 1
        if shown is not None and "docs/captures/" in command:
            assert trimmed(done.out) == trimmed(shown), f"{command}: python tools/question_captures.py renews it"
            answers += 1
    assert (made, answers) == (26, 11)


def test_shipped_captures_are_small_and_have_their_scenario() -> None:
    captures = sorted((DOCS / "captures").glob("*.pcapng.gz"))
    assert len(captures) == 10
    for capture in captures:
        assert capture.stat().st_size < 100_000
        scenario = capture.with_name(capture.name.replace(".pcapng.gz", ".toml"))
        assert scenario.read_text(encoding="utf-8").startswith("# ")
        Scenario.from_file(scenario).resolve()
