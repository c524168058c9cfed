"""Advice holds for every reader: a wheel has no Makefile; bad input of the group controller names what to type."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.gateway.daemon import GROUP, find

ROOT = Path(__file__).resolve().parents[2]
TARGET = re.compile(r"`make [a-z]")
FOUND_CHECKOUT = {"bench.py"}
"""Modules that name the Makefile only after they have found a checkout."""


@pytest.mark.parametrize(
    "folder", ["python/anabranch", "crates/bpf/src", "crates/groupd/src", "crates/live/src", "crates/py/src"]
)
def test_no_message_names_a_target_of_the_makefile(folder: str) -> None:
    files = [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".rs")]
    assert files
    named = [file.name for file in files if TARGET.search(file.read_text(encoding="utf-8"))]
    assert set(named) <= FOUND_CHECKOUT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("control bond0 --method peak-percentil", "did you mean peak-percentile?"),
        ("control bond0 --method Dynamic-LACP", "did you mean dynamic-lacp?"),
        ("control bond0 --method oracle", "methods: dynamic-lacp, "),
        ("control bond0 --set bins=1ms", "--set bins=1ms: unknown key `bins`; expected one of `bin`"),
        ("control bond0 --set percentile=ninety", "expected a number"),
        ("control bond0 --set percentile=101", "expected 0 to 100"),
        ("control bond0 --set percentile", "expected KEY=VALUE"),
        ("control bond0 --set interval=6s --set interval=7s", "`interval` is given twice"),
        ("control bond0 --set interval=1s", '--set "interval=3 s"'),
        ("control bond0 --power slepping=1W", "did you mean `sleeping`?"),
        ("control bond0 --power sleeping=1", "expected a power with its unit"),
        ("control bond0 --rate 100Mbits", "for example"),
        ("control bond0 --lead -5ms", "--lead: "),
        ("control bond0 --guard 20", "has no unit"),
        ("control bond0 --least 0", "1 or more"),
        ("control bond0 --least many", "1 or more"),
        ("control bond0 --metod x", "'--method'"),
        ("contrl bond0", "'control'"),
        ("control", "<BOND>"),
        ("check none-such", "there is no interface none-such"),
        ("control none-such", "there is no interface none-such"),
        ("release none-such", "there is no interface none-such"),
        ("status none-such", "there is no interface none-such"),
        ("check lo", "lo is not a bond"),
        ("status lo --state /dev/null", "this is not a directory"),
    ],
)
def test_bad_input_of_the_group_controller_is_one_message(arguments: str, words: str) -> None:
    """Bonds of another mode, without members or privilege: tests/guest/test_group.py."""
    try:
        program = find(GROUP)
    except UserError as error:
        pytest.skip(str(error))
    done = subprocess.run(  # noqa: S603 - the program of this checkout
        [program, *arguments.split()], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("error: ") == 1
    assert words in done.stderr
