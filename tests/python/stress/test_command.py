"""The command ``anabranch stress``: bad input, and its output."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ..command import Call, call

MINE = """
from anabranch import CongestionControl

class Mine(CongestionControl):
    name = "mine"
    def on_ack(self, ack):
        self.cwnd = 4 * self.smss
    def on_congestion(self, event):
        self.ssthresh = self.cwnd
    def on_rto(self, event):
        self.cwnd = self.smss
"""
"""A window of four segments."""


@pytest.fixture
def anabranch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command."""
    return lambda *arguments: call(capsys, monkeypatch, *arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cubik"], 'did you mean "cubic"?'),
        (["vegas", "--goal", "starve"], 'did you mean "starvation"?'),
        (["vegas", "--against", "renno"], 'did you mean "reno"?'),
        (["vegas", "--budget", "30"], "30min, 90s or 2h"),
        (["vegas", "--runs", "0"], "at least 1"),
        (["vegas", "--events", "los"], 'did you mean "loss"?'),
        (["vegas", "--goal", "stall", "--events", "pulses"], "last until the end"),
        (["vegas", "--stack", "lynux"], "lynux"),
        (["{ kind = 'cubic', betta = 0.5 }"], "betta"),
        (["{ kind = 'cubic', beta = 5 }"], "beta"),
        (["{ kind = "], "error"),
        (["vegas", "--seed", "-1"], "seed"),
        (["vegas", "--jobs", "0"], "at least 1"),
        (["vegas", "--engine", "live"], "live"),
        (["vegas", "--kernel", "6.12"], "kernel"),
    ],
)
def test_bad_input_has_one_message_and_status_2(anabranch: Call, arguments: list[str], told: str) -> None:
    done = anabranch("stress", *arguments)
    assert done.status == 2, done
    assert told in done.err
    assert done.err.count("error:") <= 1
    assert not done.out


def test_a_directory_with_something_else_is_left_alone(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    done = anabranch("stress", "vegas", "--runs", 1, "--out", tmp_path)
    assert done.status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_damaged_state_is_refused(anabranch: Call, tmp_path: Path) -> None:
    arguments = ("stress", "reno", "--goal", "slow", "--runs", 1, "--out", tmp_path / "out")
    assert anabranch(*arguments).status == 0
    (tmp_path / "out" / "search.json").write_text("{")
    done = anabranch(*arguments)
    assert done.status == 2
    assert "the state of the search cannot be read" in done.err


def test_a_control_in_python_is_searched_and_kept(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    arguments = ("stress", f"{tmp_path}/mine.py:Mine", "--goal", "slow", "--events", "loss", "--out", tmp_path / "out")
    assert anabranch(*arguments, "--first", "--runs", 40).status == 0
    finds = json.loads((tmp_path / "out" / "finds.json").read_text("utf-8"))
    assert finds["control"] == "mine"
    assert finds["finds"][0]["goal"] == "slow"
    find = tmp_path / "out" / "01-slow.toml"
    assert f"anabranch run 01-slow.toml --control {tmp_path}/mine.py:Mine" in find.read_text("utf-8")
    assert anabranch("run", find, "--control", f"{tmp_path}/mine.py:Mine").status == 0
    refused = anabranch("run", find)
    assert (refused.status, "a control in Python: --control FILE.py:Class" in refused.err) == (2, True)
    (tmp_path / "mine.py").write_text(f"{MINE}# changed\n")
    done = anabranch(*arguments, "--runs", 1000)
    assert done.status == 2
    assert "another control" in done.err


@pytest.mark.parametrize("control", ["nothing.py:Mine", "no_such_module:Mine", "none.bpf.c"])
def test_a_control_of_a_missing_file_is_refused(anabranch: Call, control: str) -> None:
    done = anabranch("stress", control)
    assert done.status == 2
    assert control.partition(":")[0] in done.err


def test_finds_are_printed_and_written(anabranch: Call, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("stress", "vegas", "--goal", "starvation", "--events", "delay", "--first", "--runs", 200, "--out", out)
    done = anabranch(*arguments)
    assert done.status == 0
    assert "01-starvation" in done.out
    assert f"anabranch run {out}/01-starvation.toml" in done.out.replace("\n  ", " ")
    assert anabranch("run", out / "01-starvation.toml").status == 0
    document = json.loads(anabranch(*arguments, "--json").out)
    assert document == json.loads((out / "finds.json").read_text("utf-8"))
    assert document["finds"][0]["goal"] == "starvation"


FAULTY = """
import os
import sys
import time

from mine import Mine


class Exits(Mine):
    name = "exits"

    def on_ack(self, ack):
        sys.exit(0)


class Ends(Mine):
    name = "ends"

    def on_ack(self, ack):
        os._exit(0)


class Raises(Mine):
    name = "raises"

    def on_congestion(self, event):
        raise ValueError("bad luck")


class Words(Mine):
    name = "words"

    def on_ack(self, ack):
        self.cwnd = "ten"


class Sleeps(Mine):
    name = "sleeps"

    def on_ack(self, ack):
        time.sleep(100)
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Exits", "SystemExit: 0 (Exits.on_ack, faulty.py:13)"),
        ("Ends", "the process of the run ended with status 0"),
        ("Raises", "ValueError: bad luck (Raises.on_congestion, faulty.py:27)"),
        ("Words", "TypeError: Words.cwnd is 'ten'; expected a number above 0"),
        ("Sleeps", "no 32 candidates of sleeps ended within the budget of 2 s"),
    ],
)
def test_a_faulty_control_is_named(anabranch: Call, tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "faulty.py").write_text(FAULTY)
    began = time.monotonic()
    done = anabranch("stress", f"{tmp_path}/faulty.py:{name}", "--budget", "2s", "--jobs", 1)
    assert done.status == 1, done
    assert told in done.err
    assert "fault of anabranch" not in done.err
    assert time.monotonic() - began < 30


def test_the_number_of_candidates_is_explained(anabranch: Call) -> None:
    done = anabranch("stress", "reno", "--goal", "stall", "--runs", 1)
    assert "more than --runs 1: a generation has 32 candidates" in done.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Exits", "SystemExit: 0 (Exits.on_ack, faulty.py:13)"),
        ("Raises", "ValueError: bad luck (Raises.on_congestion, faulty.py:27)"),
        ("Words", "TypeError: Words.cwnd is 'ten'; expected a number above 0"),
    ],
)
def test_run_names_a_faulty_control(anabranch: Call, tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "path.toml").write_text(
        'duration = "5 s"\nlink.a = { between = ["S", "R"], rate = "1 Mbit/s", delay = "5 ms" }\n'
        f'flow.x = {{ from = "S", to = "R", cc = "{name.lower()}" }}\n'
    )
    arguments = ("run", tmp_path / "path.toml", "--control", f"{tmp_path}/faulty.py:{name}")
    loss = ("--set", 'link.a.forward.impair=[{ kind = "bernoulli-loss", rate = 0.05 }]')
    done = anabranch(*arguments, *loss)
    assert done.status == 1, done
    assert "a congestion control in Python failed: " in done.err
    assert told in done.err
    live = anabranch(*arguments, "--engine", "kernel")
    assert (live.status, "runs no congestion control in Python" in live.err) == (2, True)
