"""A study resumes after an interruption, and makes no run twice."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from anabranch import Study, UserError, _engine
from anabranch.files.output import check_target
from anabranch.result.table import Table
from anabranch.study.keep import Kept, content
from anabranch.study.results import Outcome
from anabranch.sweep import points
from anabranch.sweep.segments import Block, scan

from ..command import Call
from ..kept import kept_points

STUDY = """\
title = "Reno and CUBIC under random loss"
axis.loss = { path = "link.path.forward.impair.0.rate", values = [0.001, 0.01] }
variant.reno = { set = { "flow.main.cc" = "reno" } }
variant.cubic = { set = { "flow.main.cc" = "cubic" } }
experiment.lossy = { scenario = "path.toml", axes = ["loss"], repeat = 10, samples = "loss == 0.01" }
quantity.goodput = { path = "flow.main.goodput_mbit_s" }
quantity.cwnd = { table = "samples", column = "cwnd_packets", flow = "main" }
[[table]]
id = "goodput"
title = "Goodput (Mbit/s)"
rows = "loss"
columns = "variant"
value = "goodput"
[[figure]]
id = "cwnd"
title = "cwnd"
x = "time_s"
y = "cwnd[loss == 0.01]"
y_label = "cwnd (packets)"
"""
PATH = """\
duration = "1 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.001 }]
[flow.main]
from = "A"
to = "B"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    directory = tmp_path / "lossy"
    directory.mkdir()
    (directory / "study.toml").write_text(STUDY)
    (directory / "path.toml").write_text(PATH)
    return directory


class Counter:
    """Counts the engine's runs, and raises at call number `stop_at`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.calls = 0
        self.stop_at = 0
        self._run_many = _engine.run_many
        monkeypatch.setattr(_engine, "run_many", self.run_many)

    def run_many(self, jobs: list[Any], **options: Any) -> Any:
        self.calls += 1
        if self.calls == self.stop_at:
            raise KeyboardInterrupt
        self.made += len(jobs)
        return self._run_many(jobs, **options)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


def files(directory: Path) -> dict[str, bytes]:
    """All files except the finished runs and their list."""
    found = {
        str(p.relative_to(directory)): p.read_bytes()
        for p in directory.rglob("*.*")
        if p.suffix != ".points" and p.is_file()
    }
    return {name: content for name, content in found.items() if name != "anabranch.json"}


def test_an_interrupted_study_resumes_and_gives_the_same_files(
    study: Path, tmp_path: Path, anabranch: Call, counter: Counter
) -> None:
    out = tmp_path / "out"
    counter.stop_at = 2
    done = anabranch("study", study, "--jobs", 1, "--out", out)
    assert done.status == 130
    assert done.err == f"finished runs are in {out}; the same command goes on from there\nerror: interrupted\n"
    assert counter.made == len(kept_points(out)) == 16
    assert json.loads((out / "anabranch.json").read_bytes())["complete"] is False
    done = anabranch("study", study, "--jobs", 1, "--out", out)
    assert done.status == 0, done.err
    assert counter.made == 40
    assert "40 runs" in done.out
    assert anabranch("study", study, "--out", tmp_path / "whole").status == 0
    assert files(out) == files(tmp_path / "whole")
    assert kept_points(out).keys() == kept_points(tmp_path / "whole").keys()


def test_the_same_call_makes_no_further_run(study: Path, tmp_path: Path, anabranch: Call, counter: Counter) -> None:
    for _ in range(3):
        assert anabranch("study", study, "--out", tmp_path / "out").status == 0
    assert counter.made == 40
    assert anabranch("study", study).status == 0
    # Without --out nothing is stored, and the table needs no samples.
    assert counter.made == 80


def test_only_changed_runs_are_made_again(study: Path, tmp_path: Path, anabranch: Call, counter: Counter) -> None:
    out = tmp_path / "out"
    assert anabranch("study", study, "--out", out).status == 0
    (study / "study.toml").write_text(STUDY.replace("[0.001, 0.01]", "[0.001, 0.01, 0.02]"))
    assert anabranch("study", study, "--out", out).status == 0
    assert counter.made == 60
    (study / "path.toml").write_text(PATH.replace("10 ms", "20 ms"))
    assert anabranch("study", study, "--out", out).status == 0
    assert counter.made == 120


def test_runs_of_another_build_are_not_reused(
    study: Path, tmp_path: Path, anabranch: Call, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert anabranch("study", study, "--out", out).status == 0
    before = kept_points(out)
    monkeypatch.setattr(points, "fingerprint", lambda: "another")
    assert anabranch("study", study, "--out", out).status == 0
    after = kept_points(out)
    assert counter.made == 80
    assert len(before) == len(after) == 40
    assert not set(before) & set(after)


def test_a_damaged_run_is_made_again_and_named(study: Path, tmp_path: Path, anabranch: Call, counter: Counter) -> None:
    out = tmp_path / "out"
    assert anabranch("study", study, "--out", out).status == 0
    (spoilt,) = (out / "points").iterdir()
    blocks = [block for block in scan(spoilt) if isinstance(block, Block)]
    content = bytearray(spoilt.read_bytes())
    content[blocks[1].body + 5] ^= 0xFF
    # A separate file: the results are linked to the originals.
    spoilt.unlink()
    spoilt.write_bytes(content)
    done = anabranch("study", study, "--out", out)
    assert done.status == 0
    assert f"{spoilt} is damaged at byte {blocks[0].body + blocks[0].length}; its points are made again\n" in done.err
    assert counter.made == 40 + len(blocks[1].keys)


def test_foreign_files_are_unchanged(study: Path, tmp_path: Path, anabranch: Call, counter: Counter) -> None:
    out = tmp_path / "out"
    counter.stop_at = 2
    assert anabranch("study", study, "--jobs", 1, "--out", out).status == 130
    for name in ("points/mine.json", "notes.txt"):
        (out / name).write_text("mine")
        with pytest.raises(UserError, match=f"holds files that are not ours \\({name}"):
            check_target(out, "study")
        (out / name).unlink()
    check_target(out, "study")


def test_a_study_resumes_in_the_working_directory(
    study: Path, tmp_path: Path, anabranch: Call, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    counter.stop_at = 2
    assert anabranch("study", study, "--jobs", 1, "--out", ".").status == 130
    assert anabranch("study", study, "--jobs", 1, "--out", ".").status == 0
    assert counter.made == 40
    assert len(kept_points(out)) == 40
    manifest = json.loads((out / "anabranch.json").read_bytes())
    assert "complete" not in manifest
    assert len([name for name in manifest["files"] if name.startswith("points/")]) == 2


def test_a_mistake_before_the_first_run_leaves_no_directory(study: Path, tmp_path: Path, anabranch: Call) -> None:
    (study / "path.toml").write_text(PATH.replace("10 Mbit/s", "10 Mbit"))
    assert anabranch("study", study, "--out", tmp_path / "out").status == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_robustness_resumes_too(sample_study: Path, tmp_path: Path, counter: Counter) -> None:
    directory = tmp_path / "sample"
    shutil.copytree(sample_study, directory)
    path = directory / "study.toml"
    path.write_text(path.read_text().replace("quick = [4, 8, 15, 30, 50, 70, 95, 100]", "quick = [4, 70, 95]"))
    first = Study.load(directory).run(quick=True, robustness=True, keep=tmp_path / "out")
    made = counter.made
    again = Study.load(directory).run(quick=True, robustness=True, keep=tmp_path / "out")
    assert counter.made == made
    assert again.robustness == first.robustness
    assert again.to_json() == first.to_json()


def test_stored_results_are_read_unchanged(tmp_path: Path) -> None:
    samples = Table.of({"time_s": [0.1, 0.2], "cwnd_packets": [None, 2.5], "state": ["open", None]})
    outcome = Outcome(
        {"flow.a.goodput_mbit_s": 0.1 + 0.2, "flow.a.flow_completion_time_s": None},
        "digest",
        {"samples": samples},
        {"a": math.inf, "b": 1.5, "c": math.nan},
        (("trace.txt", "hash"),),
    )
    kept = Kept(tmp_path / "out", tmp_path)
    key = kept.key("text", [], 1)
    assert kept.outcome(key) is None
    kept.write([(key, content(outcome), [])])
    kept.close()
    again = Kept(tmp_path / "out", tmp_path).outcome(key)
    assert again is not None
    assert (again.figures, again.digest, again.depends) == (outcome.figures, outcome.digest, outcome.depends)
    assert again.tables["samples"].to_dict() == samples.to_dict()
    assert (again.demands["a"], again.demands["b"]) == (math.inf, 1.5)
    assert math.isnan(again.demands["c"])
