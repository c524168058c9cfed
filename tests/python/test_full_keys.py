"""The full key for a short one, and the suggested option for an unknown one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, UserError
from anabranch.keys.full_keys import full_keys
from anabranch.text import toml_text

from .command import Call

TEXT = """
duration = "1 s"
[link.access]
between = ["S", "R"]
rate = "100 Mbit/s"
[link.core]
between = ["R", "T"]
rate = "10 Mbit/s"
queue = { kind = "drop-tail", limit = "20 packets" }
forward.impair = [{ kind = "jitter", mean = "1 ms" }, { kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "T"
[flow."other one"]
from = "S"
to = "T"
cc = { kind = "cubic", beta = 0.8 }
"""
DOCUMENT = toml_text.parse(TEXT, "")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("cc", ["flow.main.cc", 'flow."other one".cc']),
        ("rate", ["link.access.rate", "link.core.rate"]),
        ("bandwidth", ["link.access.rate", "link.core.rate"]),
        ("main.cc", ["flow.main.cc"]),
        ("core.rate", ["link.core.rate"]),
        ("flow.cc", ["flow.main.cc", 'flow."other one".cc']),
        ("limit", ["link.core.queue.limit"]),
        ("buffer", ["link.core.queue.limit"]),
        ("beta", ['flow."other one".cc.beta']),
        ("loss", ["link.core.forward.impair.1.rate"]),
        ("flow.main.loss", ["link.core.forward.impair.1.rate"]),
        ("min_rto", ["flow.main.transport.min_rto", 'flow."other one".transport.min_rto']),
        ("nothing", []),
    ],
)
def test_a_short_key_suggests_the_full_keys_that_end_with_it(written: str, found: list[str]) -> None:
    assert full_keys(written.split("."), DOCUMENT) == found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ("cc=reno", 'did you mean one of `flow.main.cc`, `flow."other one".cc`?'),
        ("main.cc=reno", "did you mean `flow.main.cc`?"),
        ("flow.cc=reno", 'did you mean one of `flow.main.cc`, `flow."other one".cc`?'),
        ("rate=5 Mbit/s", "did you mean one of `link.access.rate`, `link.core.rate`?"),
        ("loss=0.1", "did you mean `link.core.forward.impair.1.rate`?"),
        ("duplicate=0.1", 'did you mean one of `link.access.impair`, `link.core.impair` as `[{ kind = "duplicate", '),
    ],
)
def test_set_names_the_full_key(anabranch: Call, file: Path, change: str, hint: str) -> None:
    done = anabranch("run", file, "--set", change)
    assert (done.status, done.out) == (2, "")
    assert f" = {hint}" in done.err
    swept = anabranch("sweep", file, "--grid", change)
    assert swept.status == 2
    assert f" = {hint}" in swept.err
    path, _, value = change.partition("=")
    with pytest.raises(UserError) as refused:
        Scenario.from_file(file).set(path, toml_text.parse_value(value))
    assert f" = {hint}" in str(refused.value)


def test_a_key_that_exists_gets_no_such_hint(anabranch: Call, file: Path) -> None:
    done = anabranch("run", file, "--set", "link.core.rate=5")
    assert done.status == 2
    assert "did you mean" not in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--duration", "5"], "no such option: --duration\n  did you mean --set duration=VALUE?"),
        (["--cc", "reno"], "no such option: --cc\n  did you mean --set flow.NAME.cc=VALUE?"),
        (["--bandwidth=5"], "no such option: --bandwidth\n  did you mean --set link.NAME.rate=VALUE?"),
        (["--output", "x"], "no such option: --output\n  did you mean --out?"),
        (["--set", "flow.main.cc", "reno"], "--set 'flow.main.cc': PATH=VALUE was expected\n  --set flow.main.cc=reno"),
    ],
)
def test_an_unknown_option_suggests_the_right_one(file: Path, words: list[Any], message: str) -> None:
    command = [sys.executable, "-m", "anabranch", "run", str(file), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {message}\n")
