"""Link groups from Python: the summary, the table over time, the command line, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch import Scenario, ScenarioError

from .command import Call

CONTRACT = Path(__file__).parents[2] / "scenarios" / "link-aggregation.toml"


def test_the_summary_and_the_samples_agree() -> None:
    scenario = Scenario.from_file(CONTRACT).set("duration", "12 s").set("flow.main.stop", "4 s")
    result = scenario.run(samples_ms=10)
    group = result.groups["core"]
    rows = result.table("group_samples")
    assert rows.columns == [
        "time_s",
        "group",
        "wanted_members",
        "active_members",
        "reverse_active_members",
        "sleeping_ports",
    ]
    assert set(rows["group"]) == {"core"}
    # After 4 s no packet arrives: one member remains, and seven sleep at both ends.
    assert rows["active_members"][-1] == rows["reverse_active_members"][-1] == 1
    assert rows["sleeping_ports"][-1] == 14
    mean = rows["active_members"].mean()
    assert isinstance(mean, float)
    assert group["mean_active_members"] == pytest.approx(mean, rel=0.01)
    sleeping = rows["sleeping_ports"].mean()
    assert isinstance(sleeping, float)
    assert group["member_seconds_off"] == pytest.approx(sleeping / 2 * 12, rel=0.01)
    seconds = group["port_seconds"]
    awake = seconds["active"] + seconds["idle"] + seconds["waking"]
    assert awake + seconds["sleeping"] == pytest.approx(2 * 8 * 12)
    assert group["energy_joules"] == pytest.approx(0.5 * awake + 0.05 * seconds["sleeping"])


def test_the_command_line(anabranch: Call) -> None:
    short = ("run", CONTRACT, "--set", "duration='2 s'")
    done = anabranch(*short)
    assert (done.status, "mean active" in done.out) == (0, True)
    assert json.loads(anabranch(*short, "--json").out)["groups"]["core"]["changes"] == 0
    done = anabranch(*short, "--set", "group.core.control.percentile=101")
    assert (done.status, "a percentile in percent" in done.err) == (2, True)
    assert "section" in anabranch("explain", "peak-percentile").out


def test_an_oracle_refuses_tcp() -> None:
    with pytest.raises(ScenarioError, match="`oracle` needs arrivals that do not depend on the group"):
        Scenario.from_file(CONTRACT).set("group.core.control", "oracle").run()
