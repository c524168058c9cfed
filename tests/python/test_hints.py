"""Advice holds for every reader: a wheel has no Makefile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = re.compile(r"`make [a-z]")
FOUND_CHECKOUT = {"bench.py"}
"""Modules that name the Makefile only after they have found a checkout."""


@pytest.mark.parametrize("folder", ["python/anabranch", "crates/bpf/src", "crates/live/src", "crates/py/src"])
def test_no_message_names_a_target_of_the_makefile(folder: str) -> None:
    files = [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".rs")]
    assert files
    named = [file.name for file in files if TARGET.search(file.read_text(encoding="utf-8"))]
    assert set(named) <= FOUND_CHECKOUT
