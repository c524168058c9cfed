"""The shipped study of fairness over mixes of traffic: quick mode, its controls, and invariants of its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from .documented import Documented, Outcome, Tables

QUEUES = ["tail_drop", "red", "dynamic", "space_saving", "share_red", "codel", "pie", "fq_codel", "drr"]
FAIR = 0.9
"""Minimum of its share that fair queueing gives each flow; headers take 0.03."""

STUDY = "fairness-mixes"


class TestAsDocumented(Documented):
    claims: ClassVar = ["X1", "X2", "X3"]
    reproduced: ClassVar = {"X3"}


def test_every_claim_is_beyond_the_paper(outcome: Outcome) -> None:
    assert {claim["section"] for claim in outcome["claims"]} == {"Better than the paper"}


def test_tables_have_every_queue_and_every_mix(tables: Tables) -> None:
    for name in ("worst-share", "jain", "total", "delay"):
        rows = tables[name]
        assert len(rows) == 12
        assert all(row[queue] is not None for row in rows for queue in QUEUES)
    for name in ("ratio-rtt", "worst-share-rtt", "total-rtt", "delay-rtt"):
        assert [row["rtt"] for row in tables[name]] == [2, 8, 32, 100, 200]
    assert [row["variant"] for row in tables["queues"]] == QUEUES
    assert [row["variant"] for row in tables["applications"]] == QUEUES


def test_figures_are_possible(tables: Tables) -> None:
    for share, index, total in zip(tables["worst-share"], tables["jain"], tables["total"], strict=True):
        for queue in QUEUES:
            assert 0 <= share[queue] <= 1, (share["label"], queue)
            assert 0 < index[queue] <= 1 + 1e-9
            # Goodput counts in-order delivery: the link's 100 Mbit/s minus headers, plus data that
            # had arrived early.
            assert 50 < total[queue] < 102


def test_a_queue_per_connection_is_fair_to_every_sender(tables: Tables) -> None:
    rows = {row["experiment"]: row for row in tables["worst-share"]}
    # The row is the minimum over 200 flows, each with a queue of more than a second. A flow's goodput in
    # the measured 30 s varies with the time of its last loss.
    crowd = rows.pop("hundred")
    assert crowd["drr"] > max(0.75, *(crowd[queue] for queue in QUEUES if queue not in {"drr", "share_red"}))
    assert min(row["drr"] for row in rows.values()) > FAIR
    # The check can fail: one queue for all flows is unfair, most of all with a sender that does not
    # slow down.
    assert min(row["tail_drop"] for row in rows.values()) < 0.2
    assert rows["udp_80"]["red"] < 0.5


def test_a_full_queue_delays_short_flows(tables: Tables) -> None:
    rows = {row["variant"]: row for row in tables["applications"]}
    assert all(
        rows[queue]["short_p95"] < rows["tail_drop"]["short_p95"] / 5 for queue in QUEUES if queue != "tail_drop"
    )
    # A separate queue keeps the neighbours' backlog away from a video; the neighbours' own delay
    # remains.
    delay = {row["experiment"]: row for row in tables["delay"]}["applications"]
    assert delay["drr"] > 500 > rows["drr"]["video_delay"]
    assert rows["tail_drop"]["video_delay"] > 500


def test_the_cells_match_the_runs(outcome: Outcome, checkout: Path) -> None:
    """One cell is computed from a run of the scenario, without the study's code."""
    command = [
        *(
            sys.executable,
            "-m",
            "anabranch",
            "run",
            str(checkout / "studies/fairness-mixes/unresponsive.toml"),
            "--json",
        ),
        "--set=flow.udp.workload.rate=80 Mbit/s",
        '--set=link.bottleneck.forward.queue={ kind = "drr", limit = "10000 packets" }',
    ]
    summary = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    goodputs = {name: flow["goodput_mbit_s"] for name, flow in summary["flows"].items()}
    row = next(
        row for t in outcome["tables"] if t["id"] == "worst-share" for row in t["rows"] if row["experiment"] == "udp_80"
    )
    assert row["drr"] == pytest.approx(min(goodputs.values()) / (100 / 3))
