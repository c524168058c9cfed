"""Ranges, and the designs that select their points."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from anabranch import Scenario, SweepResult, UserError
from anabranch.sweep.rounds import between
from anabranch.sweep.space import MOST_SOBOL_AXES, Range, Space, read_range, sobol

from .command import Call

TEXT = """\
duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "20 packets" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "R"
"""
RATES = {"link.a.rate": "1 Mbit/s..100 Mbit/s:log"}


def scenario(text: str = TEXT) -> Scenario:
    return Scenario.from_text(text, file="path.toml")


@pytest.mark.parametrize("axis", range(MOST_SOBOL_AXES))
def test_sobol_has_one_point_in_each_slice_of_an_axis(axis: int) -> None:
    for power in range(9):
        points = sobol(2**power, MOST_SOBOL_AXES)
        assert sorted(int(row[axis] * 2**power) for row in points) == list(range(2**power))


def test_sobol_has_one_point_in_each_cell_of_two_axes() -> None:
    points = sobol(256, 2)
    for k in range(9):
        cells = {(int(x * 2**k), int(y * 2 ** (8 - k))) for x, y in points}
        assert len(cells) == 256


def test_sobols_sequence_matches_joe_and_kuo() -> None:
    # The fourth to the eighth point of their table, in eighths.
    eighths = [[int(x * 8) for x in row] for row in sobol(8, 5)]
    assert eighths[1] == [4, 4, 4, 4, 4]
    assert eighths[2] == [6, 2, 2, 2, 6]
    assert eighths[3] == [2, 6, 6, 6, 2]


def test_more_points_of_sobols_sequence_keep_the_earlier_ones() -> None:
    assert sobol(50, 3) == sobol(200, 3)[:50]


@pytest.mark.parametrize("design", ["grid", "lhs", "sobol"])
def test_a_design_has_its_points_inside_the_ranges(design: str) -> None:
    ranges = {"a": Range(1, 100, "Mbit/s", is_log=True), "b": Range(5, 50, "packets", is_whole=True)}
    rows = Space(ranges, design, 16).factor().rows
    assert len(rows) == (16**2 if design == "grid" else 16)
    for a, b in rows:
        assert 1 <= float(a.removesuffix(" Mbit/s")) <= 100
        assert 5 <= int(b.removesuffix(" packets")) <= 50
    if design == "lhs":
        assert sorted(int(ranges["a"].share(a) * 16) for a, _ in rows) == list(range(16))


def test_coinciding_points_are_run_once() -> None:
    rows = Space({"a": Range(1, 3, is_whole=True)}, "sobol", 100).factor().rows
    assert sorted(rows) == [(1,), (2,), (3,)]


def test_a_value_maps_back_to_its_position() -> None:
    for range_, share in itertools.product((Range(2, 9), Range(1, 1e4, "kbit/s", is_log=True)), (0.0, 0.3, 1.0)):
        assert range_.share(range_.at(share)) == pytest.approx(share, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 Mbit/s", "LOW..HIGH or LOW..HIGH:log was expected"),
        ("\u0661..\u0662", "LOW..HIGH or LOW..HIGH:log was expected"),
        ("a..b", "LOW..HIGH or LOW..HIGH:log was expected"),
        ("1..2:lin", "LOW..HIGH or LOW..HIGH:log was expected"),
        ("1 ms..2 s", "both ends need one unit, and they have ms and s"),
        ("1 ms..2", "both ends need one unit, and they have ms and none"),
        ("2..1", "the first end is not below the second"),
        ("1..1", "the first end is not below the second"),
        ("0..1:log", "begins above 0"),
        ("1..1e999", "the first end is not below the second"),
    ],
)
def test_an_invalid_range(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_range("p", text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"points": 4}, "points=4 is of ranges, and none is given"),
        ({"design": "lhs"}, "design=lhs is of ranges"),
        ({"ranges": RATES}, "ranges need the number of points"),
        ({"ranges": RATES, "points": 1}, "points=1: 2 to "),
        ({"ranges": RATES, "points": 4, "design": "sobel"}, "there is no such design"),
        ({"ranges": {f"p{i}": "1..2" for i in range(20)}, "points": 4}, "at most 10 ranges"),
        ({"ranges": {f"p{i}": "1..2" for i in range(20)}, "points": 4, "design": "grid"}, "the grid has"),
        ({"ranges": RATES, "points": 4, "grid": {"link.a.rate": ["1 Mbit/s"]}}, "has values and a range"),
        ({"ranges": {"seed": "1..9"}, "points": 4}, "does not vary seed"),
        ({"refine": "flow.main.goodput_mbit_s:3"}, "refine needs one range"),
        ({"ranges": RATES, "points": 4, "refine": "goodput"}, "FIGURE:N was expected"),
        ({"ranges": RATES, "points": 4, "refine": "godput:3"}, 'no figure "godput"\n  did you mean "goodput'),
        ({"ranges": RATES, "points": 4, "refine": "a:3", "until": "a:1"}, "do not go together"),
        ({"until": "flow.main.goodput_mbit_s"}, "FIGURE:WIDTH was expected"),
        ({"until": "flow.main.goodput_mbit_s:0"}, "FIGURE:WIDTH was expected"),
        ({"until": "flow.main.goodput_mbit_s:nan"}, "FIGURE:WIDTH was expected"),
        ({"until": "flow.main.godput_mbit_s:1"}, 'no figure "flow.main.godput_mbit_s"'),
        ({"until": "a:1", "shard": (1, 2), "out": "out"}, "looks at all runs, and a shard has a part"),
    ],
)
def test_wrong_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], says: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=says):
        scenario().sweep(**options)


def test_a_wrong_value_of_a_range_names_the_range(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    done = anabranch("sweep", tmp_path / "path.toml", "--range", "link.a.delay=1 Mbit/s..2 Mbit/s", "--points", 4)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: --range 'link.a.delay=") or "--range 'link.a.delay=" in done.err


def test_shards_of_a_design_make_its_tables(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "grid": {"flow.main.cc": ["reno", "cubic"]},
        "ranges": {**RATES, "link.a.queue.limit": "5 packets..50 packets"},
        "points": 8,
        "repeat": 2,
    }
    whole = scenario().sweep(**options)
    assert whole.frame.height == 32
    assert whole.axes == ["flow.main.cc", "link.a.rate", "link.a.queue.limit"]
    parts = [tmp_path / str(i) for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        scenario().sweep(**options, shard=(i, 3), out=part)
    assert_frame_equal(SweepResult.merge(parts, tmp_path / "whole").frame, whole.frame)
    assert_frame_equal(SweepResult.read(tmp_path / "whole").frame, whole.frame)


def test_points_are_added_at_a_bend() -> None:
    extent = Range(0, 1)
    shares = [i / 8 for i in range(9)]
    for _ in range(10):
        curves = [[abs(x - 0.3) for x in shares]]
        shares = sorted([*shares, *between(shares, curves, extent, 1)])
    added = [x for x in shares if x * 8 != int(x * 8)]
    assert len(added) == 10
    assert all(abs(x - 0.3) < 0.2 for x in added)


def test_a_straight_line_gets_no_further_point() -> None:
    shares = [i / 8 for i in range(9)]
    assert between(shares, [[2 * x + 1 for x in shares], [None] * 9], Range(0, 1), 4) == []


def test_no_point_is_added_between_consecutive_integers() -> None:
    assert between([0.0, 0.5, 1.0], [[0.0, 1.0, 0.0]], Range(1, 3, is_whole=True), 4) == []


def test_a_refined_sweep_is_ordered_and_resumes(tmp_path: Path, anabranch: Call) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    command = ["sweep", tmp_path / "path.toml", "--range", "link.a.queue.limit=2 packets..100 packets", "--points", 5]
    command += ["--design", "grid", "--refine", "flow.main.goodput_mbit_s:6", "--grid", "flow.main.cc=reno,cubic"]
    assert anabranch(*command, "--repeat", 2, "--out", tmp_path / "out").status == 0
    frame = SweepResult.read(tmp_path / "out").frame
    assert frame.height == 2 * 11 * 2
    limits = [int(v.removesuffix(" packets")) for v in frame["link.a.queue.limit"]]
    assert limits[:22] == sorted(limits[:22]) == limits[22:]
    assert anabranch(*command, "--repeat", 2, "--out", tmp_path / "out").status == 0
    assert_frame_equal(SweepResult.read(tmp_path / "out").frame, frame)
    about = json.loads((tmp_path / "out" / "sweep.json").read_bytes())
    assert about["intervals"] == "student-t"
