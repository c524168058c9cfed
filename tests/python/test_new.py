"""``anabranch new``: its files run, and no existing file is overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.files import checkout
from anabranch.files.checkout import shipped_scenarios, shipped_studies

from .command import Call


@pytest.mark.parametrize("name", sorted(shipped_scenarios()))
def test_every_ready_made_scenario_runs_with_its_schema(anabranch: Call, tmp_path: Path, name: str) -> None:
    done = anabranch("new", str(tmp_path / "first"), "--from", name)
    assert (done.status, done.out) == (0, "")
    text = (tmp_path / "first/scenario.toml").read_text(encoding="utf-8")
    assert text.startswith("#:schema ./scenario.schema.json\n")
    json.loads((tmp_path / "first/scenario.schema.json").read_text(encoding="utf-8"))
    assert anabranch("run", str(tmp_path / "first/scenario.toml"), "--set", "duration=1 s").status == 0


def test_existing_files_are_unchanged(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "scenario.schema.json").write_text("mine")
    done = anabranch("new", str(tmp_path))
    assert done.status == 2
    assert "scenario.schema.json: it exists already" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.schema.json"]
    assert (tmp_path / "scenario.schema.json").read_text() == "mine"


@pytest.mark.parametrize(("directory", "name", "said"), [("a", "reorderin", '"reordering"'), ("", "starter", "empty")])
def test_bad_arguments_write_nothing(anabranch: Call, tmp_path: Path, directory: str, name: str, said: str) -> None:
    done = anabranch("new", str(tmp_path / directory) if directory else "", "--from", name)
    assert done.status == 2
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_has_its_studies_and_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a checkout they are found in the package."""
    monkeypatch.setattr(checkout, "find_checkout", lambda: None)
    assert {"reordering", "fairness", "link-aggregation", "multipath", "fec"} <= set(shipped_studies())
    assert {"starter", "reordering", "fairness"} <= set(shipped_scenarios())
