"""What the live tests share.

Where the machine does not let us run live they are skipped, with the reason; with ``ANABRANCH_LIVE=required`` in the
environment, as in CI, they fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

# Tools are no package: their folder is put where tests can import them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

ATTEMPTS = 5
"""A tainted run is no result: it is made again, and so often at most."""

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


def missing(what: str) -> NoReturn:
    """Skip, or fail where nothing may be skipped."""
    if os.environ.get("ANABRANCH_LIVE") == "required":
        pytest.fail(f"ANABRANCH_LIVE=required: {what}")
    pytest.skip(what)


@pytest.fixture(scope="session")
def live_machine() -> None:
    """Skip where there is no live engine."""
    probe = "from anabranch.live import prepare; prepare()"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        missing(done.stderr.strip().splitlines()[-1])


def command(*arguments: object) -> list[str]:
    """A command line of ours."""
    return [sys.executable, "-m", "anabranch", *map(str, arguments)]


@pytest.fixture
def live_run(live_machine: None, tmp_path: Path) -> Run:
    """Run a scenario's text live; the summary. Packets are conserved in every run, by the counts of links too unless
    something doubles packets, or there is a warm-up.
    """

    def run(text: str, *options: str, conserving: bool = True) -> dict[str, Any]:
        file = tmp_path / "scenario.toml"
        file.write_text(text)
        told = []
        for _ in range(ATTEMPTS):
            done = subprocess.run(
                command("run", file, "--engine", "live", "--json", *options),
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            if done.returncode == 0:
                summary: dict[str, Any] = json.loads(done.stdout)
                datagrams_conserved(summary)
                if conserving:
                    conserved(summary)
                return summary
            assert TAINTED in done.stderr, done.stderr
            told.append(done.stderr)
        pytest.fail(f"{ATTEMPTS} runs, all tainted:\n{''.join(told)}")

    return run


def datagrams_conserved(summary: dict[str, Any]) -> None:
    """Every datagram written to a socket was taken, or was left at the end; every one released was read."""
    for account in summary["live"]["audit"]["datagrams"].values():
        assert account["written"] == account["taken"] + account["left"] > 0
        assert account["read"] == account["released"]


def conserved(summary: dict[str, Any]) -> None:
    """What hosts sent has arrived, was dropped or lost, or was on its way.

    For scenarios that double nothing and have no warm-up.
    """
    audit = summary["live"]["audit"]
    directions = [both[name] for both in summary["links"].values() for name in ("forward", "reverse")]
    gone = sum(direction["dropped_packets"] + direction["lost_packets"] for direction in directions)
    # What a gateway still holds at the end is on no link.
    both = [direction for gateway in summary["gateways"].values() for direction in gateway.values()]
    held = sum(direction["max_held_packets"] for direction in both)
    missing = audit["taken_packets"] - audit["released_packets"] - gone - audit["in_flight_packets"]
    assert 0 <= missing <= held
    assert audit["foreign_packets"] == 0
    assert audit["taken_packets"] > 0
