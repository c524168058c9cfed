"""Mistakes in studies: one change of a study that is right, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Study, UserError


def change(directory: Path, old: str, new: str) -> None:
    """Change the first `old` of the study's file, which must be there."""
    path = directory / "study.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refused(directory: Path, says: str) -> None:
    """Reading the study must fail, with the place and these words."""
    with pytest.raises(UserError, match=r"study\.toml:\d+:\d+") as caught:
        Study.load(directory)
    assert says in str(caught.value)
