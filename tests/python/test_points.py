"""A point of a sweep is used again only where all that it depends on is the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, _engine, points

TEXT = """
duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "10 ms"
impair = [{ kind = "loss-list", file = "loss.txt" }]
[flow.m]
from = "S"
to = "R"
stack = "rfc"
[sweep]
"link.a.rate" = ["5 Mbit/s", "10 Mbit/s"]
"""


class Made:
    """Sweeps of a scenario into one directory: how many runs each made, and what it remarked."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = directory / "s.toml"
        self.file.write_text(TEXT)
        self.loss = directory / "loss.txt"
        self.loss.write_text("3\n")
        self.out = directory / "out"
        self.runs = 0
        self.remarks: list[str] = []
        original = _engine.run_many

        def counting(jobs: list[Any], **options: Any) -> Any:
            self.runs += len(jobs)
            return original(jobs, **options)

        monkeypatch.setattr(_engine, "run_many", counting)

    def again(self) -> int:
        self.runs, self.remarks = 0, []
        self.result = Scenario.from_file(self.file).sweep(out=self.out, remark=self.remarks.append)
        return self.runs

    def point(self) -> Path:
        return sorted((self.out / "points").iterdir())[0]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    made = Made(tmp_path, monkeypatch)
    assert made.again() == 2
    assert made.again() == 0
    return made


def test_a_changed_file_makes_its_points_again(made: Made) -> None:
    before = made.result.frame["digest"].to_list()
    made.loss.write_text("3\n4\n5\n")
    assert made.again() == 2
    assert made.result.frame["digest"].to_list() != before
    assert len(made.remarks) == 2
    assert all("another content of loss.txt" in remark for remark in made.remarks)
    assert made.again() == 0
    made.loss.write_text("3\n")
    assert made.again() == 2
    assert made.result.frame["digest"].to_list() == before


def test_another_build_of_the_engine_makes_all_points_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "fingerprint", lambda: "another")
    assert made.again() == 2


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda raw: raw[: len(raw) // 2], "is not whole JSON"),
        (lambda _: b"", "is not whole JSON"),
        (lambda _: b"\0" * 100, "is not whole JSON"),
        (lambda _: b"[" * 100_000, "is not whole JSON"),
        (lambda _: b'"text"', "is not a point of format 1"),
        (lambda _: b"{}", "is not a point of format 1"),
        (lambda raw: raw.replace(b'"format": 1', b'"format": 0', 1), "is not a point of format 1"),
        (lambda raw: raw.replace(b'"key": "', b'"key": "0', 1), "is the point of another run"),
        (lambda raw: json.dumps({**json.loads(raw), "depends": []}).encode(), "lacks a part"),
        (lambda raw: json.dumps({**json.loads(raw), "summary": {"flows": {}}}).encode(), "has been changed"),
        (lambda raw: raw.replace(b'"sent_packets": ', b'"sent_packets": 1', 1), "has been changed"),
    ],
)
def test_a_spoilt_point_is_made_again_and_named(made: Made, spoil: Callable[[bytes], bytes], why: str) -> None:
    point = made.point()
    before = made.result.frame
    point.write_bytes(spoil(point.read_bytes()))
    assert made.again() == 1
    assert [remark for remark in made.remarks if why in remark and point.name in remark]
    assert made.result.frame.equals(before)


def test_the_point_of_another_run_is_made_again(made: Made) -> None:
    one, other = sorted((made.out / "points").iterdir())
    shutil.copy(one, other)
    assert made.again() == 1
    assert "is the point of another run" in made.remarks[0]


def test_points_move_with_the_scenario(made: Made, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (made.file, made.loss, made.out):
        shutil.move(path, moved / path.name)
    made.file, made.loss, made.out = moved / "s.toml", moved / "loss.txt", moved / "out"
    assert made.again() == 0
    made.loss.write_text("9\n")
    assert made.again() == 2


def test_of_many_spoilt_points_the_first_are_named(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "MOST_REMARKS", 1)
    for point in (made.out / "points").iterdir():
        point.write_bytes(b"")
    assert made.again() == 2
    assert made.remarks[1:] == ["1 more points are made again for such reasons"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="controls are compiled")
def test_what_a_control_includes_counts(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "bpf" / "cc" / "reno.bpf.c"
    (tmp_path / "c.bpf.c").write_text(f'#include "own.h"\n{shipped.read_text()}')
    (tmp_path / "own.h").write_text('#  include "deep/more.h"\n')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "more.h").write_text("")
    (tmp_path / "s.toml").write_text(
        TEXT.replace('impair = [{ kind = "loss-list", file = "loss.txt" }]\n', "").replace(
            'stack = "rfc"', 'stack = "rfc"\ncc = { kind = "bpf", file = "c.bpf.c" }'
        )
    )
    remarks: list[str] = []

    def again() -> None:
        remarks.clear()
        Scenario.from_file(tmp_path / "s.toml").sweep(out=tmp_path / "out", remark=remarks.append)

    again()
    again()
    assert remarks == []
    (tmp_path / "deep" / "more.h").write_text("/* changed */\n")
    again()
    assert len(remarks) == 2
    assert all("deep/more.h" in remark for remark in remarks)


@pytest.mark.parametrize("name", ["\\ud800", "a\\u0000b", ""])
def test_a_point_that_depends_on_no_possible_file_is_made_again(made: Made, name: str) -> None:
    content = json.loads(made.point().read_bytes())
    content["depends"] = {"@": "x"}
    made.point().write_text(json.dumps(content).replace("@", name))
    assert made.again() == 1
    assert len(made.remarks) == 1
    assert made.point().name in made.remarks[0]
    assert made.again() == 0
