"""Studies are run as they ship, by the compiled engine; without it these tests are skipped."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .documented import Outcome, Tables

CHECKOUT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    spec = importlib.util.find_spec("anabranch._engine")
    if spec is None or not (spec.origin or "").endswith((".so", ".pyd")):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="the compiled engine is not built"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    return CHECKOUT


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest, checkout: Path) -> Outcome:
    """The study that the module names, run as a user would, in quick mode."""
    command = [sys.executable, "-m", "anabranch", "study", f"studies/{request.module.STUDY}", "--quick", "--json"]
    started = time.monotonic()
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout), time.monotonic() - started, done.returncode


@pytest.fixture(scope="module")
def tables(outcome: Outcome) -> Tables:
    return {table["id"]: table["rows"] for table in outcome[0]["tables"]}
