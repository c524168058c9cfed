"""Shared parts of the tests in virtual time, and their transfer into a guest.

The tests of this folder run in one guest, where pytest, the live engine and applications have the
guest's clock. The pytest on the host collects and selects them as all others, and takes over the
guest's reports (`outside.py`, `inside.py`). If no kernel is built they are skipped; with
``ANABRANCH_KERNEL_TESTS=required`` they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from anabranch.live import run_audited, taint
from anabranch.result.result import RunResult
from anabranch.scenario import Scenario

from .outside import REQUIRED, Outside

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

Told = Callable[[str], tuple[dict[str, Any], list[list[str]]]]


def missing(what: str) -> NoReturn:
    """Skip, or fail if skips are not allowed."""
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{REQUIRED}=required: {what}")
    pytest.skip(what)


def kernel_run(scenario: Scenario | str, **options: Any) -> RunResult:
    """A run with the guest's kernel. It is never repeated: in virtual time no run is tainted."""
    scenario = scenario if isinstance(scenario, Scenario) else Scenario.from_text(scenario)
    run = run_audited(scenario, **{"trace": "off", **options}, virtual_time=True)
    assert not taint(run)
    return run


def summary_of(scenario: Scenario | str, **options: Any) -> dict[str, Any]:
    """The summary of such a run."""
    return dict(kernel_run(scenario, **options).summary)


def simulation_of(text: str) -> dict[str, Any]:
    """The summary of the same scenario in the simulator."""
    return dict(Scenario.from_text(text).run().summary)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin that runs the tests of this folder in a guest."""
    config.pluginmanager.register(Outside(config), "anabranch-outside")


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str]) -> Told:
    """Run a scenario with programs; return the summary, and the words of each line of the programs' standard error."""

    def run(text: str) -> tuple[dict[str, Any], list[list[str]]]:
        capfd.readouterr()
        summary = summary_of(text)
        return summary, [line.split() for line in capfd.readouterr().err.splitlines()]

    return run
