"""The command ``group``: it passes everything to ``anabranch-group``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.gateway import daemon

from .command import Call


@pytest.mark.parametrize(
    "arguments",
    [
        ["control", "bond0", "--set", "percentile=90"],
        ["status", "--json", "bond0"],
        ["check", "--help"],
        ["release", "--", ""],
    ],
)
def test_arguments_and_exit_status_pass_as_they_are(tmp_path: Path, arguments: list[str]) -> None:
    program = tmp_path / daemon.GROUP.name
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done; exit 7\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(  # noqa: S603 - the program of this test
        [sys.executable, "-m", "anabranch", "group", *arguments],
        env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (7, "".join(f"<{word}>\n" for word in arguments), "")


def test_a_missing_daemon_is_one_message(anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(daemon, "_beside", lambda name: iter([tmp_path / name]))
    done = anabranch("group", "control", "bond0")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: anabranch-group is not installed")
    assert "cargo build --release -p anabranch-groupd" in done.err
    assert "docs/guides/link-group.md" in done.err


def test_the_unit_and_the_manual_name_existing_options() -> None:
    """Options in the manual page are those of the program's arguments, by their names in its source."""
    root = Path(__file__).resolve().parents[2]
    manual = (root / "packaging/anabranch-group.8").read_text("utf-8").replace("\\-", "-")
    source = (root / "crates/groupd/src/method.rs").read_text("utf-8")
    for option in ("method", "set", "rate", "least", "lead", "guard", "power", "report", "state"):
        assert f"--{option}" in manual
        assert f"pub {option}:" in source
    unit = (root / "packaging/anabranch-group@.service").read_text("utf-8")
    assert "ExecStopPost=-/usr/bin/anabranch-group release %I" in unit
    assert "After=network-online.target" in unit
