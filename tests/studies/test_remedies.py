"""Remedies for reordering on the study's path: the bar of every interval, and its price."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def script(checkout: Path) -> ModuleType:
    path = checkout / "studies" / "reordering" / "remedies.py"
    spec = importlib.util.spec_from_file_location("remedies", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["remedies"] = module
    spec.loader.exec_module(module)
    return module


def test_one_remedy_keeps_its_throughput_at_every_interval_at_no_price(script: ModuleType) -> None:
    rows = {row.variant: row for row in script.rows(full=True)}
    assert (script.BAR, script.PRICE) == (0.95, 0.99)
    assert rows["blanton_allman"].passes, rows["blanton_allman"]
    # The check can fail: the stack without a remedy is far below, and TCP-PR pays.
    assert rows["unaided"].lowest < 0.7
    assert rows["tcp_pr"].lowest > script.BAR
    assert not rows["tcp_pr"].costs_nothing
    # Those that pass send hardly more for nothing in order than the stack without one.
    for row in rows.values():
        if row.passes:
            assert row.needless_in_order < rows["unaided"].needless_in_order + 0.001, row


def test_two_paths_matter_only_where_one_is_longer(script: ModuleType) -> None:
    shares, unaided = script.two_paths(full=False), script.UNAIDED
    # Equal paths reorder nothing: two of them are as good as one, whatever the remedy.
    for variant, by_delay in shares.items():
        assert by_delay[5.0] >= script.PRICE, variant
    # The check can fail: a longer path costs the stack without a remedy more than the bar allows.
    assert min(shares[unaided].values()) < script.BAR


@pytest.mark.parametrize(
    ("transport", "says"),
    [
        ('{ reordering = "rr-tcp", dsack = false }', "needs dsack = true"),
        ('{ reordering = "tcp-pr", rack = true }', 'contradicts "rack"'),
        ('{ reordering = "ncr", sack = false }', "needs sack = true"),
        ('{ reordering = "rrtcp" }', "`rr-tcp`"),
        ('{ reordering = { kind = "tcp-pr", beta = 0.5 } }', "0.5 is outside 1..100"),
        ('{ reordering = { kind = "ncr", variant = "bold" } }', "`careful`"),
        ('{ reordering = { kind = "leung-ma", gain = 0.5 } }', "mean_gain"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_place(checkout: Path, tmp_path: Path, transport: str, says: str) -> None:
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


def test_a_resolved_remedy_reads_back_as_it_stands(checkout: Path) -> None:
    file = checkout / "studies" / "reordering" / "reordering.toml"
    sets = ['flow.main.stack="rfc"', 'flow.main.transport.reordering={ kind = "tcp-pr", beta = 4 }']
    command = [sys.executable, "-m", "anabranch", "run", str(file), "--json", *(f"--set={change}" for change in sets)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    resolved = json.loads(done.stdout)["resolved_scenario"]
    remedy = resolved["flow"]["main"]["transport"]["reordering"]
    assert remedy == {"kind": "tcp-pr", "alpha": 0.995, "beta": 4.0}
