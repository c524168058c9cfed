"""Tests of Ray clusters. They are not skipped: `make test-cluster` runs them in an environment that has Ray."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

if importlib.util.find_spec("ray") is None:
    pytest.exit("Ray is not installed: run `make test-cluster`", returncode=2)

TEXT = """\
duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "20 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "R"
[sweep]
repeat = 20
"flow.main.cc" = ["reno", { kind = "cubic", beta = 0.8 }]
"""

Ended = subprocess.CompletedProcess[str]
Python = Callable[..., Ended]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "path.toml").write_text(TEXT)
    return tmp_path / "path.toml"


@pytest.fixture(scope="session")
def sessions() -> Iterator[Path]:
    """The folder of Ray's files. It is short, because the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def environment(sessions: Path) -> dict[str, str]:
    return {**os.environ, "RAY_TMPDIR": str(sessions), "RAY_USAGE_STATS_ENABLED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def python(environment: dict[str, str], tmp_path: Path) -> Python:
    """Run Python with these arguments; `more` is added to the environment."""

    def run(*arguments: object, **more: str) -> Ended:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
                              env=environment | more)  # fmt: skip

    return run


@pytest.fixture
def anabranch(python: Python) -> Python:
    """Run ``anabranch`` with these arguments."""

    def run(*arguments: object, **more: str) -> Ended:
        return python("-m", "anabranch", *arguments, **more)

    return run
