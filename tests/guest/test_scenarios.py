"""Scenarios of `scenarios/live`, shortened: the simulator is near the kernel, and another control is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.scenario import Scenario

from .conftest import kernel_run

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "live"

GOODPUT, SRTT = 0.03, 0.05
"""Tolerances of goodput and smoothed round-trip time between the engines."""


def figures(run: Any) -> list[dict[str, Any]]:
    return [flow for _, flow in sorted(run.summary["flows"].items()) if flow["mean_srtt_ms"] is not None]


@pytest.mark.parametrize(("name", "other"), [("thin", "reno"), ("bbr-shallow", "cubic"), ("bbr-deep", "cubic")])
def test_a_scenario_matches_the_simulator(name: str, other: str) -> None:
    """Detects another control in the simulator: its round-trip times or retransmissions differ more."""
    scenario = Scenario.from_file(SCENARIOS / f"{name}.toml").set("duration", "6 s")
    [kernel], [ours] = figures(kernel_run(scenario)), figures(scenario.run())
    [wrong] = figures(scenario.set("flow.main.cc", other).run())
    assert ours["goodput_mbit_s"] == pytest.approx(kernel["goodput_mbit_s"], rel=GOODPUT)
    assert ours["mean_srtt_ms"] == pytest.approx(kernel["mean_srtt_ms"], rel=SRTT)
    for metric in ("mean_srtt_ms", "retransmitted_packets"):
        assert abs(ours[metric] - kernel[metric]) < abs(wrong[metric] - kernel[metric]), metric


def differing(one: Any, two: Any, name: str = "") -> list[str]:
    """Figures that differ. Counts must be equal, and means nearly so: the second run begins nanoseconds later.

    The longest queue may differ by a packet, which arrives when another leaves.
    """
    if isinstance(one, dict):
        return [text for key in one | two for text in differing(one.get(key), two.get(key), f"{name}.{key}")]
    if name.endswith(".max_queue_packets"):
        one = pytest.approx(one, abs=1)
    is_same = two == (pytest.approx(one, rel=1e-4, abs=1e-6) if isinstance(one, float) else one)
    return [] if is_same else [f"{name}: {one} and {two}"]


def test_a_repeated_run_has_the_same_figures() -> None:
    """Detects a clock that advances during computation."""
    scenario = Scenario.from_file(SCENARIOS / "lossy.toml").set("duration", "4 s")
    one, two, other = (kernel_run(scenario, seed=seed).summary for seed in (1, 1, 2))
    for part in ("flows", "links"):
        assert differing(one[part], two[part]) == []
        assert differing(one[part], other[part])
