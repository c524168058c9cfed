"""A point of a sweep is reused only if all its inputs are the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, Study, UserError, _engine
from anabranch.compare.inputs import read_inputs
from anabranch.sweep import points, segments
from anabranch.sweep.points import build_name

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
    """Sweeps of a scenario into one directory: the number of runs, and the remarks."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = directory / "s.toml"
        self.file.write_text(TEXT)
        self.loss = directory / "loss.txt"
        self.loss.write_text("3\n")
        self.out = directory / "out"
        self.runs = 0
        self.remarks: list[str] = []
        for name in ("summarize_many", "run_many"):
            monkeypatch.setattr(_engine, name, self._counting(getattr(_engine, name)))

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def counting(jobs: list[Any], **options: Any) -> Any:
            self.runs += len(jobs)
            return original(jobs, **options)

        return counting

    def again(self) -> int:
        self.runs, self.remarks = 0, []
        self.result = Scenario.from_file(self.file).sweep(out=self.out, remark=self.remarks.append)
        return self.runs

    def segment(self) -> Path:
        """The only segment."""
        (path,) = (self.out / "points").iterdir()
        return path


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    made = Made(tmp_path, monkeypatch)
    assert made.again() == 2
    assert made.again() == 0
    return made


def test_a_changed_file_repeats_its_points(made: Made) -> None:
    before = made.result.frame["digest"].to_list()
    made.loss.write_text("3\n4\n5\n")
    assert made.again() == 2
    assert made.result.frame["digest"].to_list() != before
    assert len(made.remarks) == 2
    assert all("another content of loss.txt" in remark for remark in made.remarks)
    assert made.again() == 0
    made.loss.write_text("3\n")
    # The points of each content are stored.
    assert made.again() == 0
    assert made.result.frame["digest"].to_list() == before


def test_another_build_of_the_engine_repeats_all_points(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "fingerprint", lambda: "another")
    assert made.again() == 2


@pytest.mark.parametrize(
    ("spoil", "made_again", "says"),
    [
        # Both points are in one block.
        (lambda raw: raw[:-1], 2, ""),
        (lambda raw: raw[: len(segments.MAGIC) + 7], 2, ""),
        (lambda raw: raw[:5], 2, ""),
        (lambda _: b"", 2, ""),
        (lambda raw: raw + raw[len(segments.MAGIC) : -9], 0, ""),
        (lambda raw: raw + raw[len(segments.MAGIC) :], 0, ""),
        (lambda raw: raw + b"\0" * 100, 0, "is damaged at byte"),
        (lambda raw: b"\0" * len(raw), 2, "is damaged at byte 0"),
        (lambda _: b"[" * 100_000, 2, "is damaged at byte 0"),
        (lambda raw: raw.replace(b"points 2", b"points 9"), 2, "is damaged at byte 0"),
        (lambda raw: flipped(raw, len(segments.MAGIC)), 2, "is damaged at byte 19"),
        # The block's size points beyond the end of the file, as if its write had been interrupted.
        (lambda raw: flipped(raw, len(segments.MAGIC) + 4), 2, ""),
        (lambda raw: flipped(raw, len(segments.MAGIC) + 20), 2, "is damaged at byte 19"),
        (lambda raw: flipped(raw, len(raw) - 3), 2, "is damaged at byte 19"),
        (lambda raw: raw[: len(segments.MAGIC)] + b"noise" + raw[len(segments.MAGIC) :], 0, "is damaged at byte 19"),
    ],
)
def test_damaged_points_are_repeated(made: Made, spoil: Callable[[bytes], bytes], made_again: int, says: str) -> None:
    segment = made.segment()
    before = made.result.frame
    segment.write_bytes(spoil(segment.read_bytes()))
    assert made.again() == made_again
    assert [says in remark and segment.name in remark for remark in made.remarks] == [True] * bool(says)
    assert made.result.frame.equals(before)


def flipped(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0x40]) + raw[at + 1 :]


def test_points_of_two_directories_are_merged_by_copying(made: Made, tmp_path: Path) -> None:
    other = tmp_path / "other"
    Scenario.from_file(made.file).set("seed", 9).sweep(out=other)
    for segment in (other / "points").iterdir():
        shutil.copy(segment, made.out / "points")
    made.runs = 0
    Scenario.from_file(made.file).set("seed", 9).sweep(out=made.out)
    assert made.runs == 0


def test_a_directory_among_the_points_is_ignored(made: Made) -> None:
    (made.out / "points" / f"{build_name()}-{'0' * 16}.points").mkdir()
    assert made.again() == 0
    assert "is damaged at byte 0" in made.remarks[0]


def test_points_can_be_moved_with_the_scenario(made: Made, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (made.file, made.loss, made.out):
        shutil.move(path, moved / path.name)
    made.file, made.loss, made.out = moved / "s.toml", moved / "loss.txt", moved / "out"
    assert made.again() == 0
    made.loss.write_text("9\n")
    assert made.again() == 2


def test_remarks_on_many_points_are_shortened(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "MOST_REMARKS", 1)
    made.loss.write_text("9\n")
    assert made.again() == 2
    assert made.remarks[1:] == ["1 more points are made again for such reasons"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="controls are compiled")
def test_included_files_of_a_control_are_inputs(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"7",
        b"{",
        b"[" * 100_000,
        b'{"depends": [], "summary": {"flows": {}}}',
        b'{"depends": {}, "summary": 7}',
        b'{"depends": {"\\ud800": "x"}, "summary": {"flows": {}}}',
        b'{"depends": {"a\\u0000b": "x"}, "summary": {"flows": {}}}',
        b'{"depends": {"": "x"}, "summary": {"flows": {}}}',
    ],
)
def test_an_invalid_point_is_repeated(made: Made, line: bytes) -> None:
    (block,) = segments.scan(made.segment())
    assert isinstance(block, segments.Block)
    made.segment().unlink()
    writer = segments.Writer(made.out / "points", build_name())
    writer.append([(key, line) for key in block.keys])
    writer.close()
    assert made.again() == 2
    assert len(made.remarks) == 2
    assert made.again() == 0


def test_sweep_study_and_comparison_share_a_store(made: Made, tmp_path: Path) -> None:
    store = tmp_path / "store"
    scenario = Scenario.from_file(made.file).set("seed", 7)
    made.runs = 0
    scenario.sweep({"flow.m.cc": ["reno"]}, store=store)
    assert made.runs == 2
    scenario.sweep({"flow.m.cc": ["reno", "cubic"]}, store=store, out=tmp_path / "tables")
    assert made.runs == 4
    assert not (tmp_path / "tables" / "points").exists()
    options: dict[str, Any] = {"seed": 7, "repeat": 3, "store": store}
    read_inputs([made.file, copied(made, "cubic")], **options)
    assert made.runs == 10
    read_inputs([made.file, copied(made, "cubic")], **options)
    assert made.runs == 10
    study = tmp_path / "study"
    study.mkdir()
    (study / "study.toml").write_text(STUDY)
    shutil.copy(made.file, study / "path.toml")
    shutil.copy(made.loss, study)
    Study.load(study).run(store=store)
    assert made.runs == 12
    Scenario.from_file(made.file).sweep(store=store)
    assert made.runs == 12


STUDY = """\
title = "Shared"
axis.rate = { set = { "link.a.rate" = "{} Mbit/s" }, values = [5, 10] }
experiment.runs = { scenario = "path.toml", axes = ["rate"] }
quantity.goodput = { path = "flow.m.goodput_mbit_s" }
[[table]]
id = "goodput"
title = "Goodput (Mbit/s)"
rows = "rate"
[[table.column]]
name = "all"
value = "goodput"
"""


def copied(made: Made, name: str) -> Path:
    """The scenario under another name, with other content."""
    path = made.file.with_name(f"{name}.toml")
    path.write_text(TEXT.replace('stack = "rfc"', f'stack = "rfc"\ncc = "{name}"'))
    return path


def test_a_store_is_not_another_directory(made: Made) -> None:
    with pytest.raises(UserError, match="holds the results of `anabranch sweep`"):
        Scenario.from_file(made.file).sweep(store=made.out)
    (made.out / "anabranch.json").unlink()
    with pytest.raises(UserError, match="was not written by anabranch"):
        Scenario.from_file(made.file).sweep(store=made.out)
