"""Shards of a sweep, and their merge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from anabranch import Scenario, SweepResult, UserError

from .command import Call
from .kept import kept_points

TEXT = """\
duration = "1 s"
seed = 3

[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "20 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]

[flow.main]
from = "S"
to = "R"

[sweep]
repeat = 2
"flow.main.cc" = ["reno", { kind = "cubic", beta = 0.8 }]
"link.a.forward.impair.0.rate" = [0, 0.01, 0.02]
"""
PARTS = 5


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    scenario = Scenario.from_text(TEXT, file=str(tmp_path / "path.toml"))
    directories = [tmp_path / f"part-{i}" for i in range(1, PARTS + 1)]
    for i, directory in enumerate(directories, 1):
        scenario.sweep(shard=(i, PARTS), out=directory)
    return directories


def test_shards_make_the_tables_of_one_process(shards: list[Path], tmp_path: Path) -> None:
    whole = Scenario.from_text(TEXT, file=str(tmp_path / "path.toml")).sweep(out=tmp_path / "alone")
    merged = SweepResult.merge([*reversed(shards), shards[0]], tmp_path / "whole")
    assert_frame_equal(merged.frame, whole.frame)
    for name in ("runs.csv", "sweep.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    assert_frame_equal(SweepResult.read(tmp_path / "whole").frame, whole.frame)


def test_each_run_is_made_by_one_shard(shards: list[Path]) -> None:
    made = [key for shard in shards for key in kept_points(shard)]
    assert len(made) == len(set(made)) == 12


def without_a_shard(shards: list[Path]) -> list[Path]:
    return shards[1:]


def unfinished(shards: list[Path]) -> list[Path]:
    next((shards[1] / "points").iterdir()).unlink()
    return shards


def of_another_sweep(shards: list[Path]) -> list[Path]:
    content = json.loads((shards[2] / "shard.json").read_text())
    (shards[2] / "shard.json").write_text(json.dumps({**content, "repeat": 3}))
    return shards


def of_another_build(shards: list[Path]) -> list[Path]:
    content = json.loads((shards[2] / "shard.json").read_text())
    (shards[2] / "shard.json").write_text(json.dumps({**content, "build": "0"}))
    return shards


def foreign(shards: list[Path]) -> list[Path]:
    (shards[0] / "shard.json").unlink()
    return shards


def cut_short(shards: list[Path]) -> list[Path]:
    path = next((shards[3] / "points").iterdir())
    path.write_bytes(path.read_bytes()[:-20])
    return shards


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (without_a_shard, "of 5 shards 1 are missing: 1"),
        (unfinished, "shard 2/5 lacks 3 of its runs"),
        (cut_short, "shard 4/5 lacks 2 of its runs"),
        (of_another_sweep, "are shards of different sweeps"),
        (of_another_build, "was made by another build of the engine"),
        (foreign, "is no shard: it has no shard.json"),
    ],
)
def test_shards_that_do_not_form_a_sweep_are_refused(
    shards: list[Path], tmp_path: Path, anabranch: Call, spoil: Callable[[list[Path]], list[Path]], said: str
) -> None:
    done = anabranch("sweep", "merge", *spoil(shards), "--out", tmp_path / "whole")
    assert done.status == 2
    assert said in done.err
    assert not (tmp_path / "whole").exists()


def test_a_directory_holds_one_shard(shards: list[Path], tmp_path: Path) -> None:
    scenario = Scenario.from_text(TEXT, file=str(tmp_path / "path.toml"))
    with pytest.raises(UserError, match=r"holds shard 1/5 of this sweep"):
        scenario.sweep(shard=(2, PARTS), out=shards[0])
    with pytest.raises(UserError, match="of another sweep"):
        scenario.set("duration", "2 s").sweep(shard=(1, PARTS), out=shards[0])
    before = (shards[0] / "shard.json").read_bytes()
    scenario.sweep(shard=(1, PARTS), out=shards[0])
    assert (shards[0] / "shard.json").read_bytes() == before


def test_shards_that_moved_are_merged(shards: list[Path], tmp_path: Path) -> None:
    moved = [Path(shutil.move(shard, tmp_path / f"moved-{shard.name}")) for shard in shards]
    assert SweepResult.merge(moved).frame.height == 12


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/4/2"])
def test_a_shard_with_an_invalid_number(anabranch: Call, tmp_path: Path, shard: str) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    done = anabranch("sweep", tmp_path / "path.toml", "--shard", shard, "--out", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert f"--shard {shard}" in done.err
    assert not (tmp_path / "out").exists()


def test_incompatible_options(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    done = anabranch("sweep", tmp_path / "path.toml", "--shard", "1/2")
    assert (done.status, "give --out" in done.err) == (2, True)
    done = anabranch("sweep", "merge", "--out", tmp_path / "out")
    assert (done.status, "no shards" in done.err) == (2, True)
    done = anabranch("sweep", "merge", tmp_path, "--out", tmp_path / "out", "--repeat", "2")
    assert (done.status, "belong to the shards" in done.err) == (2, True)
