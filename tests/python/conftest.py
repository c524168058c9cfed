"""What the tests share. They need the compiled engine and say so if it is not there."""

from __future__ import annotations

import importlib.util
import signal
from functools import partial
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores it, and so would all commands that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


HERE = Path(__file__).parent

if importlib.util.find_spec("anabranch._engine") is None:
    pytest.exit("the engine is not built: run `make setup`", returncode=2)

from .command import Call, call  # noqa: E402 - it imports the engine
from .sample import copied  # noqa: E402


@pytest.fixture
def anabranch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return partial(call, capsys, monkeypatch)


@pytest.fixture
def scenario_file() -> Path:
    return HERE / "data" / "reordering.toml"


@pytest.fixture
def sample_study() -> Path:
    return HERE / "data" / "sample-study"


@pytest.fixture(scope="session")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample study where its figures do not matter: 16 runs. Every test may read it, none writes."""
    return copied(tmp_path_factory.mktemp("small") / "sample-study", (8, 70, 95))
