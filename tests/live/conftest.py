"""Shared parts of the live tests.

On a machine without the live engine's privileges they are skipped, with the reason; with
``ANABRANCH_LIVE=required`` in the environment, as in CI, they fail.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores SIGINT, and all commands that the tests interrupt would
    # inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# validation/ is not a package: this adds its folder to the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "validation"))

ATTEMPTS = 8
"""A study or a measurement with tainted runs is attempted at most this often. With six busy
processes one run in three was tainted; eight in a row are one in 6,000."""

TAINTED = "the live run is tainted"

PATH = """
title = "a path"
duration = "3 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
forward.queue = { kind = "drop-tail", limit = "1 bdp" }
"""

FLOW = """
[flow.main]
from = "A"
to = "B"
"""

Run = Callable[..., dict[str, Any]]


def must_not_be_missing(what: str) -> None:
    """Fail if nothing may be left out."""
    if os.environ.get("ANABRANCH_LIVE") == "required":
        pytest.fail(f"ANABRANCH_LIVE=required: {what}")


def missing(what: str) -> NoReturn:
    """Skip, or fail if skips are not allowed."""
    must_not_be_missing(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def live_machine() -> None:
    """Skip if there is no live engine."""
    probe = "from anabranch.live import prepare; prepare()"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        missing(" ".join(done.stderr.strip().splitlines()[-2:]))


def command(*arguments: object) -> list[str]:
    """A command line of ``anabranch``."""
    return [sys.executable, "-m", "anabranch", *map(str, arguments)]


def hindrance(folder: Path) -> str | None:
    """The reason why the kernel does not accept our eBPF controls; ``None`` if it does."""
    file = folder / "probe.toml"
    file.write_text((PATH + FLOW).replace("3 s", "100 ms") + 'cc = "cubic-plus"\n')
    done = subprocess.run(command("run", file, "--engine", "live"), capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[0] if "cannot be given" in done.stderr else None


@pytest.fixture(scope="session")
def can_load(live_machine: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip if the kernel does not accept our eBPF controls."""
    why = hindrance(tmp_path_factory.mktemp("probe"))
    if why is not None:
        missing(why)


def available() -> list[str]:
    """The kernel's congestion controls, which are the same in all namespaces."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def own_controls(process: int) -> list[str]:
    """The controls that a run has loaded: their names end in its process number."""
    number, end = process, ""
    for _ in range(5):
        number, digit = divmod(number, 36)
        end = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + end
    return [name for name in available() if name.endswith(f"_{end}")]


@pytest.fixture
def late_run(live_machine: None, tmp_path: Path) -> Run:
    """Run a scenario's text live, and return its summary. Lateness does not matter here: a tainted run counts."""

    def run(text: str, *options: str) -> dict[str, Any]:
        file = tmp_path / "scenario.toml"
        file.write_text(text)
        words = command("run", file, "--engine", "live", "--json", "--allow-tainted", *options)
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    return run


@pytest.fixture
def live_run(live_machine: None, tmp_path: Path) -> Run:
    """Run a scenario live, and return its summary. A tainted run has none: the machine is too busy for the test."""

    def run(text: str, *options: str) -> dict[str, Any]:
        file = tmp_path / "scenario.toml"
        file.write_text(text)
        words = command("run", file, "--engine", "live", "--json", *options)
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        if TAINTED in done.stderr:
            missing(f"a machine that is less busy: {done.stderr}")
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    return run
