"""What the tests share. They need the compiled engine and say so if it is not there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent

if importlib.util.find_spec("anabranch._engine") is None:
    pytest.exit("the engine is not built: run `make setup`", returncode=2)


@pytest.fixture
def scenario_file() -> Path:
    return HERE / "data" / "reordering.toml"


@pytest.fixture
def sample_study() -> Path:
    return HERE / "data" / "sample-study"
