"""Rust tests that the machine cannot run are listed with reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

import rust_skips

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="anabranch-live">
<testcase name="a" classname="anabranch-live"><system-err>SKIPPED: no namespaces
other words
</system-err></testcase>
<testcase name="b" classname="anabranch-live"><system-err>SKIPPED: no namespaces</system-err></testcase>
<testcase name="c" classname="anabranch-live"><system-out>it was not SKIPPED: it ran</system-out></testcase>
</testsuite></testsuites>
"""


def test_reasons_are_printed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(REPORT, "utf-8")
    monkeypatch.setattr("sys.argv", ["rust_skips.py", str(path)])
    assert rust_skips.main() == 0
    assert capsys.readouterr().out == "SKIPPED [2] anabranch-live a, …: no namespaces\n"
