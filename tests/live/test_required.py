"""With ``ANABRANCH_LIVE=required`` nothing is skipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import missing

HERE = Path(__file__).parent
pytestmark = pytest.mark.brief

SKIPS = re.compile(r"pytest\.(?:skip|importorskip|mark\.skip\w*)\b|\bunittest\.skip")


def test_what_is_missing_is_skipped_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANABRANCH_LIVE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="a kernel"):
        missing("a kernel")
    monkeypatch.setenv("ANABRANCH_LIVE", "required")
    with pytest.raises(pytest.fail.Exception, match="required: a kernel"):
        missing("a kernel")


def test_no_test_skips_by_itself() -> None:
    """Detects a test that passes over itself in CI: ``missing`` is there for that."""
    found = [
        f"{file.name}: {line.strip()}"
        for file in sorted(HERE.glob("*.py"))
        if file.name not in ("conftest.py", Path(__file__).name)
        for line in file.read_text("utf-8").splitlines()
        if SKIPS.search(line)
    ]
    assert found == []
