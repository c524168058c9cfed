"""The shipped study of several routes: quick mode, its controls, and invariants of its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from .documented import Documented, Outcome

LINE_MBIT_S = 8.0

STUDY = "multipath-frontier"


class TestAsDocumented(Documented):
    claims: ClassVar = [f"W{n}" for n in range(1, 5)]
    reproduced: ClassVar = {"W2", "W4"}


@pytest.fixture(scope="module")
def situations(outcome: Outcome) -> dict[str, dict[str, Any]]:
    rows = next(table["rows"] for table in outcome["tables"] if table["id"] == "situations")
    return {row["experiment"]: row for row in rows}


def test_every_claim_is_beyond_the_paper(outcome: Outcome) -> None:
    assert {claim["section"] for claim in outcome["claims"]} == {"Better than the paper"}


def test_figures_are_possible(situations: dict[str, dict[str, Any]]) -> None:
    routes = {"four": 4, "eight": 8}
    for name, row in situations.items():
        directions = 2 if name == "directions" else 1
        for variant in ("A", "B", "ours"):
            assert 0 < row[variant] < LINE_MBIT_S * directions * routes.get(name, 2), (name, variant)
        assert 0 < row["route1"] < LINE_MBIT_S * directions, name


def test_fixed_weights_keep_using_a_failed_route(situations: dict[str, dict[str, Any]]) -> None:
    """As the page states for failing routes. The failure exists: the route alone has half of the run."""
    for name in ("fails", "returns"):
        row = situations[name]
        assert row["A"] < row["route2"]
        assert row["B"] < row["route2"] < row["ours"]
    assert situations["fails"]["route1"] == pytest.approx(situations["plain"]["route1"] / 2, rel=0.1)


def test_a_control_that_ignores_losses_uses_both_routes(situations: dict[str, dict[str, Any]]) -> None:
    row = situations["bbr_plain"]
    assert all(row[variant] > 1.8 * row["route1"] for variant in ("A", "B", "ours"))


def test_the_cells_match_the_runs(situations: dict[str, dict[str, Any]], checkout: Path) -> None:
    """One cell is computed from runs of the scenario, without the study's code."""

    def goodput(seed: int) -> float:
        command = [
            *(sys.executable, "-m", "anabranch", "run"),
            *(str(checkout / "studies/multipath-frontier/two-routes.toml"), "--json", f"--seed={seed}"),
            *(f"--set=link.isp{route}.impair.0.rate=0.0005" for route in (1, 2)),
            *(f"--set=link.isp{route}.impair.1.mean=5 ms" for route in (1, 2)),
            "--set=flow.main.cc=bbr",
            "--set=gateway.tunnel.restore=none",
        ]
        summary = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return float(summary["flows"]["main"]["goodput_mbit_s"])

    assert situations["bbr_plain"]["B"] == pytest.approx(sum(goodput(seed) for seed in range(1, 9)) / 8)
