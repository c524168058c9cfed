"""The quick check runs only steps that concern the changed files."""

from pathlib import Path

import check_changed


def programs(*names: str) -> list[str]:
    return [" ".join(step) for step in check_changed.commands([Path(name) for name in names])]


def test_a_congestion_control_is_formatted_linted_and_tested_alone() -> None:
    steps = programs("crates/congestion/src/reno.rs")
    assert [step.split()[0] for step in steps] == ["rustfmt", "cargo", "env"]
    assert "clippy" in steps[1]
    assert all("-p anabranch-congestion" in step and "anabranch-tcp" not in step for step in steps[1:])


def test_a_python_test_is_run_and_a_live_one_is_not() -> None:
    assert any("pytest" in step for step in programs("tests/python/test_cli.py"))
    assert not any("pytest" in step for step in programs("tests/live/test_live.py"))


def test_the_extension_has_no_rust_tests() -> None:
    assert not any("nextest" in step for step in programs("crates/py/src/lib.rs"))


def test_a_page_alone_needs_no_step() -> None:
    assert programs("docs/index.md") == []
