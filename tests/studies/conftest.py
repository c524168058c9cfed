"""Shipped studies are run unchanged by the compiled engine; without it these tests are skipped."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from .documented import Outcome, Tables

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores SIGINT, and all commands that the tests interrupt would
    # inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHECKOUT = Path(__file__).resolve().parents[2]


def engine() -> Path:
    """The compiled engine, or its replacement."""
    spec = importlib.util.find_spec("anabranch._engine")
    return Path((spec and spec.origin) or "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if engine().suffix not in {".so", ".pyd"}:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="the compiled engine is not built"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    return CHECKOUT


class Demo(NamedTuple):
    """Output and directory of ``anabranch demo``."""

    printed: str
    folder: Path


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """``anabranch demo``, which runs the reordering study in quick mode."""
    place = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "anabranch", "demo", "--out", str(place / "demo")]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place, env=environment)
    return Demo(done.stdout, place / "demo")


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest, checkout: Path) -> Outcome:
    """The study that the module names, run in quick mode as by a user.

    After `make study` its output can be used instead: ANABRANCH_STUDIES=out/studies.
    """
    name = request.module.STUDY
    if name == "reordering":
        made_by_demo = request.getfixturevalue("demo").folder / "study/study.json"
        return cast("Outcome", json.loads(made_by_demo.read_text(encoding="utf-8")))
    made = os.environ.get("ANABRANCH_STUDIES")
    if made and (kept := checkout / made / name / "study.json").exists():
        newest = max(file.stat().st_mtime for file in [engine(), *(checkout / "studies" / name).iterdir()])
        assert kept.stat().st_mtime > newest, f"{kept} is older than what it was made from"
        return cast("Outcome", json.loads(kept.read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "anabranch", "study", f"studies/{name}", "--quick", "--json"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return cast("Outcome", json.loads(done.stdout))


@pytest.fixture(scope="module")
def tables(outcome: Outcome) -> Tables:
    return {table["id"]: table["rows"] for table in outcome["tables"]}
