"""With ``ANABRANCH_LIVE=required`` no test is skipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import missing

HERE = Path(__file__).parent
pytestmark = pytest.mark.brief

SKIPS = re.compile(r"pytest\.(?:skip|importorskip|mark\.skip\w*)\b|\bunittest\.skip")


def test_a_missing_requirement_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANABRANCH_LIVE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="a kernel"):
        missing("a kernel")
    monkeypatch.setenv("ANABRANCH_LIVE", "required")
    with pytest.raises(pytest.fail.Exception, match="required: a kernel"):
        missing("a kernel")


def test_skips_use_missing() -> None:
    """Detects a test that is skipped in CI, because it does not use ``missing``."""
    found = [
        f"{file.name}: {line.strip()}"
        for file in sorted(HERE.glob("*.py"))
        if file.name not in ("conftest.py", Path(__file__).name)
        for line in file.read_text("utf-8").splitlines()
        if SKIPS.search(line)
    ]
    assert found == []
