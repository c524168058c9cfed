"""Mistakes in studies: one change of a correct study, and the resulting message."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Study, UserError


def change(directory: Path, old: str, new: str) -> None:
    """Replace the first `old` in the study's file, which must contain it."""
    path = directory / "study.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refused(directory: Path, says: str) -> None:
    """Check that reading the study fails with a location and these words."""
    with pytest.raises(UserError, match=r"study\.toml:\d+:\d+") as caught:
        Study.load(directory)
    assert says in str(caught.value)
