"""The shipped multipath study: quick mode, its verdicts, its controls, and the page's statements about traces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from .documented import Robust, Tables

LINE_MBIT_S = 0.256
"""Both routes together, or the single one."""
PAYLOAD = 536 / 576

STUDY = "multipath"


class TestAsDocumented(Robust):
    claims: ClassVar = [*(f"M{n}" for n in range(1, 8)), "M1b"]
    reproduced: ClassVar = {"M2", "M3", "M4", "M5", "M6", "M7"}


def test_no_flow_exceeds_the_rate_of_the_routes(tables: Tables) -> None:
    for name in ("by-jitter", "by-loss", "lossy"):
        for row in tables[name]:
            assert all(0 < row[line] <= LINE_MBIT_S * PAYLOAD for line in ("A", "B", "single")), (name, row)


def test_the_methods_are_equal_without_jitter_and_loss(tables: Tables) -> None:
    row = tables["by-jitter"][0]
    assert row["jitter"] == 0
    # Apart from the last packet, which is shorter and may overtake the previous one.
    assert row["A"] == pytest.approx(row["B"], rel=1e-4)
    assert row["A"] == pytest.approx(row["single"], rel=0.01)


def test_method_a_hides_reordering_and_method_b_does_not(tables: Tables) -> None:
    """As the page states for M1: spurious retransmissions, and more of them if both routes have jitter."""
    rows = {row["j1"]: row for row in tables["other-route"]}
    assert all(row["needless_A"] < 1 for row in rows.values())
    assert rows[200]["needless_B"] > 1.2 * rows[0]["needless_B"] > 10


def test_method_a_disables_fast_recovery_but_neither_condition_alone_does(tables: Tables, checkout: Path) -> None:
    """As the page states for M4, and for the earlier reading."""
    row = {row["loss"]: row for row in tables["recovery"]}[0.01]
    assert row["fast_A"] < 1
    assert row["timeouts_A"] > 3 * row["timeouts_B"]
    assert row["fast_B"] > 20
    command = [
        *(sys.executable, "-m", "anabranch", "run", str(checkout / "studies/multipath/two-routes.toml"), "--json"),
        "--set=link.isp1.impair.0.rate=0.01",
        "--set=link.isp2.impair.0.rate=0.01",
        '--set=gateway.tunnel.restore={ kind = "in-order", release = "either" }',
    ]
    flow = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["flows"]["main"]
    assert flow["fast_recoveries"] > 10


def test_reordering_multiplies_acknowledgments(tables: Tables) -> None:
    """As the page states for M5."""
    rows = {row["jitter"]: row for row in tables["acknowledgments"]}
    assert rows[0]["acks_B"] < 1.5 * rows[0]["acks_A"]
    assert rows[20]["acks_B"] > 2 * rows[20]["acks_A"]
    assert rows[20]["timeouts_B"] < rows[20]["timeouts_A"]
