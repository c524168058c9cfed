"""Finds in a real kernel in virtual time: the published one, and one that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch.stress.campaign import read_control
from anabranch.stress.confirm import confirm
from anabranch.stress.genome import Event, Genome
from anabranch.stress.judge import Pair

from ..real_kernel import needs_kernel

pytestmark = [needs_kernel, pytest.mark.slow]

FINDING = Path(__file__).parents[3] / "docs" / "findings" / "bbr-shorter-path.toml"


def test_bbr_has_a_fifth_of_the_rate_after_100_ms_on_a_shorter_path() -> None:
    scenario = Scenario.from_file(FINDING)
    flows = scenario.run_kernel().flows, scenario.run().flows
    kernel, simulated = (one["main"]["goodput_mbit_s"] for one in flows)
    assert kernel is not None
    assert kernel < 5
    assert kernel == pytest.approx(simulated, rel=0.1)


def test_the_base_round_trip_time_of_bbr_is_confirmed() -> None:
    pair = Pair(read_control("bbr", "control", "linux"), read_control("cubic", "against", "linux"))
    shorter = Genome(20, 50, 1, "alone", (Event(3_000, "delay", 100, 2.0, 0, "shared"),))
    assert confirm("slow", shorter, pair).outcome == "confirmed"
