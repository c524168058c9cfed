"""The multipath study as it ships: quick mode, its verdicts, its controls, and what the page says of the traces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPRODUCED = {"M2", "M3", "M5", "M6", "M7"}
QUICK_S = 30.0
"""What quick mode may take on two cores that do nothing else."""
LINE_MBIT_S = 0.256
"""Both routes together, or the single one."""
PAYLOAD = 536 / 576


@pytest.fixture(scope="module")
def outcome(run_quick: Callable[[str], tuple[dict[str, Any], float, int]]) -> tuple[dict[str, Any], float, int]:
    return run_quick("multipath")


@pytest.fixture(scope="module")
def tables(outcome: tuple[dict[str, Any], float, int]) -> dict[str, list[dict[str, Any]]]:
    return {table["id"]: table["rows"] for table in outcome[0]["tables"]}


def test_has_the_shape_of_the_contract(outcome: tuple[dict[str, Any], float, int]) -> None:
    document, elapsed_s, status = outcome
    assert status == 0
    assert (document["study"], document["mode"]) == ("multipath", "quick")
    assert [claim["id"] for claim in document["claims"]] == [f"M{n}" for n in range(1, 8)]
    # With room for a machine that others use as well.
    assert elapsed_s < 5 * QUICK_S
    for claim in document["claims"]:
        assert claim["verdict"].startswith("reproduced") or claim["why"]


def test_verdicts_are_those_documented(outcome: tuple[dict[str, Any], float, int]) -> None:
    verdicts = {claim["id"]: claim["verdict"] for claim in outcome[0]["claims"]}
    assert {name for name, verdict in verdicts.items() if verdict.startswith("reproduced")} == REPRODUCED


def test_every_check_fails_on_its_wrong_system(outcome: tuple[dict[str, Any], float, int]) -> None:
    assert {claim["control"] for claim in outcome[0]["claims"]} == {"not reproduced"}


def test_robustness_is_kept_and_not_stale(outcome: tuple[dict[str, Any], float, int]) -> None:
    for claim in outcome[0]["claims"]:
        assert claim["robustness"] is not None, claim["id"]
        assert not claim.get("robustness_stale", False), (
            f"{claim['id']}: run anabranch study multipath --quick --robustness"
        )


def test_nobody_gets_more_than_the_routes_have(tables: dict[str, list[dict[str, Any]]]) -> None:
    for name in ("by-jitter", "by-loss", "lossy"):
        for row in tables[name]:
            assert all(0 < row[line] <= LINE_MBIT_S * PAYLOAD for line in ("A", "B", "single")), (name, row)


def test_without_jitter_and_loss_nothing_tells_the_methods_apart(tables: dict[str, list[dict[str, Any]]]) -> None:
    row = tables["by-jitter"][0]
    assert row["jitter"] == 0
    # All but the last packet, which is shorter and may overtake the one before.
    assert row["A"] == pytest.approx(row["B"], rel=1e-4)
    assert row["A"] == pytest.approx(row["single"], rel=0.01)


def test_method_a_hides_reordering_and_method_b_does_not(tables: dict[str, list[dict[str, Any]]]) -> None:
    """What the page says of M1: needless retransmissions, and more of them where both routes are jittery."""
    rows = {row["j1"]: row for row in tables["other-route"]}
    assert all(row["needless_A"] < 1 for row in rows.values())
    assert rows[200]["needless_B"] > 1.2 * rows[0]["needless_B"] > 10


def test_method_a_as_printed_leaves_fast_recovery_alone(
    tables: dict[str, list[dict[str, Any]]], checkout: Path
) -> None:
    """What the page says of M4; and where only the retransmission ends the wait there is no fast recovery."""
    row = {row["loss"]: row for row in tables["recovery"]}[0.01]
    assert row["fast_A"] == pytest.approx(row["fast_B"], rel=0.1)
    assert row["fast_A"] > 20
    command = [
        *(sys.executable, "-m", "anabranch", "run", str(checkout / "studies/multipath/two-routes.toml"), "--json"),
        "--set=link.isp1.impair.0.rate=0.01",
        "--set=link.isp2.impair.0.rate=0.01",
        '--set=link.isp3={ between = ["GW1", "GW2"], rate = "1 bit/s", delay = "10 ms" }',
        '--set=gateway.tunnel.routes=["isp1", "isp2", "isp3"]',
        "--set=gateway.tunnel.restore.silence=3600 s",
    ]
    flow = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["flows"]["main"]
    assert flow["fast_recoveries"] == 0
    assert flow["timeouts"] > 10


def test_reordering_multiplies_acknowledgments(tables: dict[str, list[dict[str, Any]]]) -> None:
    """What the page says of M5."""
    rows = {row["jitter"]: row for row in tables["acknowledgments"]}
    assert rows[0]["acks_B"] == pytest.approx(rows[0]["acks_A"], rel=0.1)
    assert rows[20]["acks_B"] > 2 * rows[20]["acks_A"]
    assert rows[20]["timeouts_B"] < rows[20]["timeouts_A"]
