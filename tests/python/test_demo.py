"""``anabranch demo`` with a small study; tests/studies has the shipped one."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import Call


def test_a_second_demo_replaces_the_first_and_prints_the_same(
    anabranch: Call, monkeypatch: pytest.MonkeyPatch, small_study: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("anabranch.cli.demo.STUDY", str(small_study))
    monkeypatch.setattr("anabranch.cli.demo.FIGURE", "fig3")
    first = anabranch("demo", "--out", tmp_path / "demo")
    assert (first.status, str(tmp_path / "demo/index.html") in first.out) == (0, True)
    page = (tmp_path / "demo/index.html").read_text(encoding="utf-8")
    again = anabranch("demo", "--out", tmp_path / "demo")
    assert (again.status, again.out) == (0, first.out)
    assert (tmp_path / "demo/index.html").read_text(encoding="utf-8") == page
