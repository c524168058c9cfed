"""Puts the test double in the engine's place when the engine has not been built; see ``double.py``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILED = importlib.util.find_spec("anabranch._engine") is not None and (
    importlib.util.find_spec("anabranch._engine").origin or ""  # type: ignore[union-attr]
).endswith((".so", ".pyd"))

if not COMPILED:
    sys.path.insert(0, str(HERE))
    sys.modules["anabranch._engine"] = importlib.import_module("double").module()


def pytest_report_header() -> str:
    return "engine: compiled" if COMPILED else "engine: TEST DOUBLE (tests/python/double.py); the real one is not built"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not COMPILED:
        for item in items:
            if item.get_closest_marker("engine"):
                item.add_marker(pytest.mark.skip(reason="the compiled engine is not built"))


@pytest.fixture
def scenario_file() -> Path:
    return HERE / "data" / "reordering.toml"


@pytest.fixture
def sample_study() -> Path:
    return HERE / "data" / "sample-study"
