"""The command line as a user calls it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Protocol

import pytest

from anabranch.cli.app import app


@dataclass
class Done:
    """Result of a command: its exit status and output."""

    status: int
    out: str
    err: str


class Call(Protocol):
    """The fixture `anabranch`: the command with these arguments."""

    def __call__(self, *arguments: object) -> Done: ...


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Done:
    """Run `anabranch` with `arguments` in this process."""
    monkeypatch.setattr(sys, "argv", ["anabranch", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        app(prog_name="anabranch")
    captured = capsys.readouterr()
    code = ended.value.code
    return Done(code if isinstance(code, int) else 0, captured.out, captured.err)
