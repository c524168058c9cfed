"""The command ``anabranch evaluate``: output, baseline and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..command import Call
from .sample import bad, choose


def test_writes_a_report(anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "loss-of-several", "heavy-loss", seeds=5)
    out = tmp_path / "out"
    done = anabranch("evaluate", "bbr3", "--quick", "--out", out)
    assert done.status == 0
    assert "5.1.3  not met" in done.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "Protection against high packet loss" in page
    assert "**not met**" in (out / "SUMMARY.md").read_text(encoding="utf-8")
    assert (out / "figures" / "loss-of-several.svg").is_file()
    (scenario, *_) = sorted((out / "scenarios").glob("loss-of-several-*.toml"))
    assert anabranch("run", scenario, "--set", "duration='11 s'").status == 0
    # A second call makes no run again.
    assert anabranch("evaluate", "bbr3", "--quick", "--out", out).status == 0


def test_a_baseline_finds_a_regression(anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "loss-of-several", seeds=5)
    out, store = tmp_path / "cubic", tmp_path / "store"
    assert anabranch("evaluate", "cubic", "--quick", "--out", out, "--store", store).status == 0
    same = anabranch("evaluate", "cubic", "--quick", "--store", store, "--baseline", out)
    assert (same.status, "is worse than in the baseline" in same.err) == (0, True)
    other = anabranch("evaluate", "bbr3", "--quick", "--store", store, "--baseline", out / "evaluation.json")
    assert other.status == 1
    assert "worse: loss-of-several" in other.err
    assert "the baseline is an evaluation of cubic, and this one of bbr3" in other.err


def test_a_baseline_with_other_seeds(anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "loss-of-several", seeds=4)
    out = tmp_path / "cubic"
    assert anabranch("evaluate", "cubic", "--quick", "--out", out).status == 0
    assert anabranch("evaluate", "cubic", "--quick", "--seed", "11", "--baseline", out).status == 0
    assert anabranch("evaluate", "bbr3", "--quick", "--seed", "11", "--baseline", out).status == 1


def test_a_control_that_breaks_is_a_regression(
    anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    choose(monkeypatch, "onset-loss", seeds=1)
    out = tmp_path / "good"
    assert anabranch("evaluate", bad(tmp_path, "Good"), "--quick", "--out", out).status == 0
    done = anabranch("evaluate", bad(tmp_path, "Raises"), "--quick", "--baseline", out)
    assert done.status == 1
    assert "broken: KeyError" in done.err


def test_a_broken_item_is_a_failure(anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "onset-loss", seeds=1)
    done = anabranch("evaluate", bad(tmp_path, "Raises"), "--quick")
    assert done.status == 1
    assert "items are broken: a run of raises failed, delivered nothing or did not end" in done.err
    assert "(Raises.on_ack, bad_controls.py:38)" in " ".join(done.out.split())


def test_json(anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "breaker", seeds=1)
    made: dict[str, Any] = json.loads(anabranch("evaluate", "cubic", "--quick", "--json").out)
    assert made["kind"] == "evaluation"
    assert {one["id"]: one["verdict"] for one in made["items"]}["9743-7.2"] == "met"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cubik"], 'did you mean "cubic"?'),
        (["codell"], 'did you mean "codel"?'),
        (["bpf"], "no congestion control or queue"),
        (["cubic", "--against", "renno"], 'did you mean "reno"?'),
        (["cubic", "--against", ","], "names no congestion control"),
        (["pie", "--against", "cubic"], "is for congestion controls"),
        (["missing.bpf.c"], "No such file"),
        (["no_such_module:Mine"], "cannot be imported"),
        (["json:dumps"], "no class that derives from CongestionControl"),
        (["json:dumpss"], 'did you mean "dumps"?'),
        (["cubic", "--seed", "-1"], "a whole number from 0"),
        (["cubic", "--jobs", "0"], "at least 1"),
        (["cubic", "--engine", "live"], "has no --engine live"),
        (["cubic", "--baseline", "nowhere"], "has no evaluation"),
    ],
)
def test_bad_input(anabranch: Call, arguments: list[str], told: str) -> None:
    done = anabranch("evaluate", *arguments)
    assert done.status == 2
    assert told in done.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "[queue]\nkind = 'codel'\ntarget = '500 s'\n",
            ["mine.toml:3:10: 500 s is out of range", "expected 1 us to 100 s"],
        ),
        ("kind = 'codel'\ntargt = '5 ms'\n", ["mine.toml:2:1: unknown key `targt`", "did you mean `target`?"]),
        (
            "queue = { kind = 'codel', ecn = 3 }\n",
            ["mine.toml:1:33: this is the number `3`", "expected `true` or `false`"],
        ),
        ("kind = 'codell'\n", ['mine.toml:1:8: there is no queue "codell"', 'did you mean "codel"?']),
    ],
)
def test_a_mistake_in_the_file_of_a_queue_has_a_place(
    anabranch: Call, tmp_path: Path, content: str, told: list[str]
) -> None:
    (tmp_path / "mine.toml").write_text(content, encoding="utf-8")
    done = anabranch("evaluate", tmp_path / "mine.toml", "--quick")
    assert done.status == 2
    assert [text for text in told if text not in done.err] == []


def test_a_foreign_directory_is_refused(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    done = anabranch("evaluate", "cubic", "--quick", "--out", tmp_path)
    assert done.status == 2
    assert "was not written by anabranch" in done.err


def test_a_program_that_does_not_compile(anabranch: Call, tmp_path: Path) -> None:
    program = tmp_path / "wrong.bpf.c"
    program.write_text("this is no C", encoding="utf-8")
    done = anabranch("evaluate", program, "--quick")
    assert done.status == 2
    assert "wrong.bpf.c" in done.err


def test_a_baseline_of_another_size(anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "breaker", seeds=1)
    out = tmp_path / "cubic"
    assert anabranch("evaluate", "cubic", "--quick", "--out", out).status == 0
    for arguments, told in ((["cubic"], "give --quick"), (["pie", "--quick"], "an evaluation of a control")):
        done = anabranch("evaluate", *arguments, "--baseline", out)
        assert (done.status, told in done.err) == (2, True)


def test_the_number_of_seeds_is_an_option(anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "breaker", seeds=1)
    done = anabranch("evaluate", "reno", "--quick", "--seed", "4", "--repeat", "2", "--json")
    assert (done.status, json.loads(done.out)["seeds"]) == (0, [4, 5])
    wrong = anabranch("evaluate", "reno", "--repeat", "0")
    assert wrong.status == 2
    assert "--repeat 0: at least 1 was expected" in wrong.err
