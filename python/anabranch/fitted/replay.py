"""Runs the scenario of a captured connection, and sets what a capture of the run shows beside the capture."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.diagnosis import Diagnosis, diagnose
from anabranch.fitted.scenario import LINK, Fitted
from anabranch.scenario import Scenario
from anabranch.statistics import mean_interval

SEEDS = 5
"""Runs with different seeds, unless nothing in the scenario is random."""


def measures(connection: Mapping[str, Any], direction: str) -> dict[str, float | None]:
    """What a capture shows of one direction."""
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
    """One run as a capture at a link, and its diagnosis."""
    capture = scenario.run(seed=seed, digest=False, captures=[link]).pcapng(link)
    with tempfile.TemporaryDirectory(prefix="anabranch-replay-") as folder:
        file = Path(folder) / "replay.pcapng"
        file.write_bytes(capture)
        return capture, diagnose(file)


def replayed(connection: Mapping[str, Any], fitted: Fitted) -> tuple[dict[str, Any], bytes]:
    """Each measure of the capture beside the simulation's mean with its 95 % interval, and the first run's capture."""
    scenario = Scenario.from_text(fitted.text, file=f"{fitted.origin}.toml")
    runs: list[dict[str, float | None]] = []
    first = b""
    for seed in range(1, SEEDS + 1):
        capture, found = simulated(scenario, seed, fitted.capture_point)
        first = first or capture
        runs += [measures(one, _main(one)) for one in found["connections"][:1]]
    captured = measures(connection, connection["path"]["direction"])
    rows = {name: _row(value, [run[name] for run in runs]) for name, value in captured.items()}
    return {"seeds": SEEDS, **rows}, first


def _main(connection: Mapping[str, Any]) -> str:
    """The direction with more data: whoever asks opens the connection."""
    ways: dict[str, dict[str, Any]] = connection["directions"]
    return max(ways, key=lambda name: ways[name]["bytes"])


def _row(captured: float | None, values: Sequence[float | None]) -> dict[str, float | None]:
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
