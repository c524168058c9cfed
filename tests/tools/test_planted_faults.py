"""Faults can be planted if each line exists, and a copy with a fault fails its tests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import planted_faults
from planted_faults import Fault

ROOT = Path(__file__).parents[2]
FAULTS = list(planted_faults.faults(ROOT / "tools" / "planted_faults.toml"))


def test_every_fault_can_be_planted() -> None:
    assert len(FAULTS) > 20
    for fault in FAULTS:
        before = (ROOT / fault.file).read_text("utf-8")
        after = planted_faults.planted(before, fault)
        pairs = zip(before.split("\n"), after.split("\n"), strict=True)
        assert [pair for pair in pairs if pair[0] != pair[1]] == [(fault.old, fault.new)]
        assert all((ROOT / word).exists() for word in fault.tests if word.startswith(("tests/", "validation/")))


@pytest.mark.parametrize("text", ["other\n", "a = 1\na = 1\n"])
def test_a_line_that_does_not_occur_once_is_refused(text: str) -> None:
    with pytest.raises(SystemExit, match="one was expected"):
        planted_faults.planted(text, Fault("x.py", "a = 1", "a = 2", ()))


@pytest.mark.parametrize(("status", "found"), [(0, False), (1, True), (None, True)])
def test_a_fault_is_detected_by_a_failing_or_endless_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int | None, found: bool
) -> None:
    """Detects a tool that leaves the fault in the copy, or that runs the tests without it."""
    seen = []

    def run(*_: Any, **named: Any) -> subprocess.CompletedProcess[bytes]:
        seen.append((tmp_path / "x.py").read_text("utf-8"))
        if status is None:
            raise subprocess.TimeoutExpired("pytest", named["timeout"])
        return subprocess.CompletedProcess([], status)

    monkeypatch.setattr(subprocess, "run", run)
    (tmp_path / "x.py").write_text("a = 1\n", "utf-8")
    assert planted_faults.is_found(tmp_path, Fault("x.py", "a = 1", "a = 2", ())) is found
    assert seen == ["a = 2\n"]
    assert (tmp_path / "x.py").read_text("utf-8") == "a = 1\n"
