"""The guide to conversions: its files and commands give the printed output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .command import Call

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "convert.md"
BLOCK = re.compile(r"```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)```\n", re.DOTALL)


def shell(command: str, directory: Path) -> str:
    """A command's output on both streams, with `anabranch` first in PATH."""
    programs = directory.parent / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / "anabranch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m anabranch "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(  # noqa: S603 - the guide's own commands
        ["/bin/sh", "-c", f"exec 2>&1\n{command}"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout


def printed_by(anabranch: Call, command: str, directory: Path) -> str:
    """A command's output; a single `anabranch` command with one stream runs in this process."""
    if command.startswith("anabranch ") and not set(command) & set("|<>&;$*"):
        done = anabranch(*shlex.split(command)[1:])
        if not (done.out and done.err):
            return done.out + done.err
    return shell(command, directory)


def test_each_example_prints_the_guides_output(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    commands = 0
    for language, title, text in BLOCK.findall(GUIDE.read_text("utf-8")):
        if title:
            (directory / title).write_text(text)
        if language != "console":
            continue
        printed = ""
        for line in text.splitlines():
            if line.startswith("$ "):
                printed += f"{line}\n{printed_by(anabranch, line[2:], directory)}"
                commands += 1
        assert printed == text
    assert commands > 10
