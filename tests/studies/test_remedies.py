"""Remedies for reordering on the study's path: its table, and the bar at every interval."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch.study import needs, tables
from anabranch.study.definition import Definition
from anabranch.study.parse import load
from anabranch.study.results import Condition, Pool

BAR = 0.95
"""A remedy passes if it keeps more than this share of its in-order throughput at every interval."""
PRICE = 0.99
"""It must also keep at least this share of the unaided stack's throughput without reordering."""


@pytest.fixture(scope="module")
def study(checkout: Path) -> Definition:
    return load(checkout / "studies" / "reordering")


def records(study: Definition, *, full: bool, columns: set[str], variants: set[str]) -> dict[str, dict[str, Any]]:
    """Columns of the study's table for some remedies, with only the runs that they need."""
    (table,) = study.tables
    table = dataclasses.replace(
        table,
        columns=tuple(column for column in table.columns if column.name in columns),
        variants=tuple(variant for variant in table.variants if variant in variants),
    )
    pool = Pool(study, None)
    jobs = [
        job
        for job in needs.only(pool.plan(Condition(full=full)), needs.of_table(study, table))
        if job.variant in variants
    ]
    pool.make(jobs)
    made = tables.one(pool.results(jobs), table, full=full)
    return {str(record["variant"]): dict(record) for record in made.records}


def test_one_remedy_keeps_its_throughput_at_every_interval_at_no_price(study: Definition) -> None:
    wanted = {"unaided", "rack_undo", "blanton_allman", "tcp_pr"}
    columns = {"lowest", "above_the_bar", "in_order", "needless_in_order"}
    rows = records(study, full=True, columns=columns, variants=wanted)
    for name in ("rack_undo", "blanton_allman"):
        assert rows[name]["lowest"] > BAR, rows[name]
        assert rows[name]["above_the_bar"]
        assert rows[name]["in_order"] >= PRICE
        # Without reordering it has hardly more spurious retransmissions than the stack without a
        # remedy.
        assert rows[name]["needless_in_order"] < rows["unaided"]["needless_in_order"] + 0.001
    # The check can fail: the stack without a remedy is far below, and TCP-PR costs throughput in
    # order.
    assert rows["unaided"]["lowest"] < 0.7
    assert not rows["unaided"]["above_the_bar"]
    assert rows["tcp_pr"]["lowest"] > BAR
    assert rows["tcp_pr"]["in_order"] < PRICE


def test_two_paths_matter_only_if_one_is_longer(study: Definition) -> None:
    pool = Pool(study, None)
    jobs = [job for job in pool.plan(Condition()) if job.experiment in {"two_paths", "one_path"}]
    pool.make(jobs)
    shares = pool.results(jobs).quantity("kept_on_two_paths", "two_paths").collapsed()
    kept = {(point["variant"], point["far"]): float(value or 0) for point, value in shares}
    # Equal paths reorder nothing: with any remedy two of them are as good as one.
    assert {variant for (variant, far), share in kept.items() if far == 5 and share < PRICE} == set()
    # The check can fail: a longer path costs the stack without a remedy more than the bar allows.
    assert min(share for (variant, _), share in kept.items() if variant == "unaided") < BAR


@pytest.mark.parametrize(
    ("transport", "says"),
    [
        ('{ reordering = "rr-tcp", dsack = false }', "needs dsack = true"),
        ('{ reordering = "tcp-pr", rack = true }', 'contradicts "rack"'),
        ('{ reordering = "ncr", sack = false }', "needs sack = true"),
        ('{ reordering = "rrtcp" }', "`rr-tcp`"),
        ('{ reordering = { kind = "tcp-pr", beta = 0.5 } }', "expected 1 to 100"),
        ('{ reordering = { kind = "ncr", variant = "bold" } }', "`careful`"),
        ('{ reordering = { kind = "leung-ma", gain = 0.5 } }', "mean_gain"),
    ],
)
def test_an_impossible_remedy_is_an_error_with_its_location(
    checkout: Path, tmp_path: Path, transport: str, says: str
) -> None:
    text = (checkout / "studies" / "reordering" / "reordering.toml").read_text(encoding="utf-8")
    text = text.replace('stack = "ns3-2018"\n', f'stack = "rfc"\ntransport = {transport}\n')
    file = tmp_path / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    line = text[: text.index("transport = ")].count("\n") + 1
    run = subprocess.run(
        [sys.executable, "-c", "from anabranch.cli import main; main()", "run", str(file), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2, run.stdout
    assert says in run.stderr
    assert f"scenario.toml:{line}:" in run.stderr, run.stderr


def test_a_resolved_remedy_is_read_back_unchanged(checkout: Path) -> None:
    file = checkout / "studies" / "reordering" / "reordering.toml"
    sets = ['flow.main.stack="rfc"', 'flow.main.transport.reordering={ kind = "tcp-pr", beta = 4 }']
    command = [sys.executable, "-m", "anabranch", "run", str(file), "--json", *(f"--set={change}" for change in sets)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    resolved = json.loads(done.stdout)["resolved_scenario"]
    remedy = resolved["flow"]["main"]["transport"]["reordering"]
    assert remedy == {"kind": "tcp-pr", "alpha": 0.995, "beta": 4.0}
