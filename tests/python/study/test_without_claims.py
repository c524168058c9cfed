"""A study may have tables or figures only."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from anabranch import Study, UserError

from ..command import Call

HEAD = """\
title = "Reordering"
axis.ri = { path = "link.bottleneck.forward.queue.reorder.interval", values = [4, 50] }
experiment.reordering = { scenario = "reordering.toml", axes = ["ri"] }
quantity.goodput = { path = "flow.main.goodput_mbit_s" }
"""
TABLE = """\
[[table]]
id = "goodput"
title = "Goodput (Mbit/s)"
rows = "ri"
[[table.column]]
name = "goodput"
value = "goodput"
"""
FIGURE = """\
[[figure]]
id = "goodput"
title = "Goodput"
x = "ri"
y = "goodput"
y_label = "Goodput (Mbit/s)"
"""


@pytest.fixture
def study(tmp_path: Path, scenario_file: Path) -> Path:
    directory = tmp_path / "own"
    directory.mkdir()
    shutil.copy(scenario_file, directory / "reordering.toml")
    (directory / "study.toml").write_text(HEAD + TABLE + FIGURE)
    return directory


def test_tables_and_figures_are_made_without_claims(study: Path, tmp_path: Path, anabranch: Call) -> None:
    done = anabranch("study", study, "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert "Goodput (Mbit/s)" in done.out
    assert "no claims; full grid, 2 runs" in done.out
    for report in ("report.html", "report.md"):
        text = (tmp_path / "out" / report).read_text(encoding="utf-8")
        assert "no claims" in text
        assert "Controls" not in text
    assert (tmp_path / "out" / "figures" / "goodput.svg").is_file()
    assert (tmp_path / "out" / "tables" / "goodput.csv").is_file()
    assert json.loads((tmp_path / "out" / "study.json").read_bytes())["claims"] == []


def test_a_study_of_figures_only_is_drawn_with_out(study: Path, tmp_path: Path, anabranch: Call) -> None:
    (study / "study.toml").write_text(HEAD + FIGURE)
    done = anabranch("study", study)
    assert done.status == 0, done.err
    assert "no claims; full grid, 0 runs" in done.out
    assert "it has figures only: --out DIR draws them" in done.out
    assert "2 runs" in anabranch("study", study, "--out", tmp_path / "out").out


def test_robustness_needs_a_claim(study: Path, anabranch: Call) -> None:
    done = anabranch("study", study, "--robustness")
    assert done.status == 2
    assert "study.toml: --robustness judges claims, and there is no [[claim]]\n  leave it out\n" in done.err


def test_an_empty_study_is_refused(study: Path) -> None:
    (study / "study.toml").write_text(HEAD)
    with pytest.raises(UserError, match=r"study.toml:1:1: a study needs at least one \[\[claim\]\], \[\[table\]\] or"):
        Study.load(study)
