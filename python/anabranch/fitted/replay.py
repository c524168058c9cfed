"""Runs the scenario of a captured connection, and compares a capture of the run with the original capture."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from anabranch.diagnosis.diagnosis import Diagnosis, diagnose, main_direction
from anabranch.diagnosis.document import Connection, DirectionName, Series
from anabranch.diagnosis.simulated import Measure, MeasureName
from anabranch.diagnosis.simulated import Replay as ReplayRows
from anabranch.errors import RunFailedError
from anabranch.fitted.scenario import LINK, Fitted
from anabranch.scenario import Scenario
from anabranch.statistics.statistics import mean_interval

NO_GOODPUT: Series = {"start_s": 0.0, "interval_s": 1.0, "mbit_s": []}
SEEDS = 5
"""Runs with different seeds, or one if the scenario has no randomness."""


def measures(connection: Connection, direction: DirectionName) -> dict[MeasureName, float | None]:
    """The measures of one direction of a capture."""
    way = connection["directions"][direction]
    rtt = way["rtt_ms"]
    return {
        "goodput_mbit_s": way["goodput_mbit_s"],
        "rtt_min_ms": rtt["min"],
        "rtt_median_ms": rtt["median"],
        "rtt_p95_ms": rtt["p95"],
        "retransmissions": float(way["retransmission_counts"]["all"]),
    }


def simulated(scenario: Scenario, seed: int, link: str = LINK) -> tuple[bytes, Diagnosis]:
    """One run as a capture of a link, and its diagnosis."""
    capture = scenario.run(seed=seed, digest=False, captures=[link]).pcapng(link)
    with tempfile.TemporaryDirectory(prefix="anabranch-replay-") as folder:
        file = Path(folder) / "replay.pcapng"
        file.write_bytes(capture)
        return capture, diagnose(file)


@dataclass(frozen=True)
class Replay:
    """The result of a replay."""

    rows: ReplayRows
    """Each measure of the capture beside the simulation's mean with its 95 % interval."""
    capture: bytes
    """The first run's capture."""
    goodput: Series
    """The first run's goodput over time."""


def replayed(connection: Connection, fitted: Fitted) -> Replay:
    """Simulate a connection, and measure the simulation like the capture.

    Raises:
        RunFailedError: A simulated run has no connection.
    """
    scenario = Scenario.from_text(fitted.text, file=f"{fitted.origin}.toml")
    runs: list[dict[MeasureName, float | None]] = []
    captures: list[bytes] = []
    series: list[Series] = []
    for seed in range(1, SEEDS + 1):
        capture, found = simulated(scenario, seed, fitted.capture_point)
        captures.append(capture)
        for one in found.content["connections"][:1]:
            runs.append(measures(one, main_direction(one)[0]))
            series.append(one["path"].get("goodput", NO_GOODPUT))
    if not runs:
        raise RunFailedError(f"the replay of {fitted.origin} has no connection")
    captured = measures(connection, connection["path"]["direction"])
    rows = {name: _row(value, [run[name] for run in runs]) for name, value in captured.items()}
    return Replay(cast("ReplayRows", {"seeds": SEEDS, **rows}), captures[0], series[0])


def _row(captured: float | None, values: Sequence[float | None]) -> Measure:
    known = [value for value in values if value is not None]
    if not known:
        return {"capture": captured, "simulation": None, "low": None, "high": None}
    interval = mean_interval(known)
    is_random = max(known) > min(known)
    return {
        "capture": captured,
        "simulation": interval.mean,
        "low": interval.lower if is_random else None,
        "high": interval.upper if is_random else None,
    }
