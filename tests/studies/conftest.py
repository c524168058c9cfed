"""Studies are run as they ship, by the compiled engine; without it these tests are skipped."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

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
