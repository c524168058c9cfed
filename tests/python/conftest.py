"""Shared parts of the tests. They need the compiled engine and report if it is missing."""

from __future__ import annotations

import importlib.util
import signal
from functools import partial
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores SIGINT, and all commands that the tests interrupt would
    # inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)


HERE = Path(__file__).parent

if importlib.util.find_spec("anabranch._engine") is None:
    pytest.exit("the engine is not built: run `make setup`", returncode=2)

from anabranch.plot import style  # noqa: E402

from .chromium import end_shared  # noqa: E402
from .command import Call, call  # noqa: E402
from .sample import copied  # noqa: E402

ALL_FORMATS, style.FORMATS = style.FORMATS, ("svg",)
# Three formats take five times as long as this one.


@pytest.fixture
def all_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures have all formats, as for users."""
    monkeypatch.setattr(style, "FORMATS", ALL_FORMATS)


def pytest_sessionfinish() -> None:
    end_shared()


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
    """The sample study for tests that do not depend on its figures: 16 runs. Tests may read it, but not write."""
    return copied(tmp_path_factory.mktemp("small") / "sample-study", (8, 70, 95))
