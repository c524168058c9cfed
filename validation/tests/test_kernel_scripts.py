"""The page of behaviour scripts on a real kernel, docs/validation/scripts-kernel.md."""

from __future__ import annotations

import kernel_scripts

PAGE = kernel_scripts.PAGE.read_text(encoding="utf-8")


def test_the_page_lists_every_script() -> None:
    """Detects a page that is older than the scripts."""
    for script in kernel_scripts.scripts():
        name = f"{script.parent.name}/{script.name}"
        assert PAGE.count(name) >= 1, f"python validation/kernel_scripts.py --write ({name})"


def test_the_page_keeps_the_text_around_the_tables() -> None:
    page = kernel_scripts.replaced(PAGE, "new")
    assert page.startswith(PAGE.split(kernel_scripts.BEGIN)[0])
    assert kernel_scripts.BEGIN + "\n\nnew\n" + kernel_scripts.END in page


def test_a_script_that_agrees_once_is_not_in_agreement() -> None:
    """Detects a page that counts the script as agreeing, or omits how often it agreed."""
    one: kernel_scripts.Outcome = {"stack": "linux", "runs": 6, "message": "tests/scripts/a/b.pkt:7:1: it came late"}
    page = kernel_scripts.generated(
        [
            {**one, "script": "tests/scripts/a/always.pkt", "outcome": "agrees", "agreed": 3, "runs": 3},
            {**one, "script": "tests/scripts/a/once.pkt", "outcome": "varies", "agreed": 1},
            {**one, "script": "tests/scripts/a/never.pkt", "outcome": "differs", "agreed": 0},
        ]
    )
    assert "| `linux` | 3 | 1 | 1 | 1 | 0 | 0 |" in page
    assert "| a/once.pkt | 1 of 6 runs | line 7: it came late |" in page
    assert page.split("### Agreement")[1].strip().endswith("\n\na/always.pkt.")


def test_a_difference_is_reported_by_its_line() -> None:
    told = {"message": "tests/scripts/close/half.pkt:17:1: expected `> .` at 0.401024487 s; it came at 0.201243523 s"}
    assert kernel_scripts.message(told) == "line 17: expected `> .` at 0.401 s; it came at 0.201 s"
