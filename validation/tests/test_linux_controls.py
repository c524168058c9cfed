"""Congestion controls against the Linux kernel: see ``docs/validation/linux-controls.md``."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from comparison import every, pages
from comparison.judging import Verdict
from comparison.rows import Row, Theirs

NAME = "linux-controls"
LINUX = every.described(NAME)
CONTROLS = ["reno", "cubic", "bbr", "bic", "vegas", "westwood", "htcp", "dctcp"]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return LINUX.compare(LINUX.table())


def of(rows: list[Row], control: str) -> list[Row]:
    return [row for row in rows if row.theirs["cc"] == control]


def verdicts(rows: list[Row], condition: str) -> list[Verdict]:
    """The verdicts whose condition begins with this text."""
    wanted = [verdict for verdict in LINUX.verdicts(rows) if verdict.condition.startswith(condition)]
    return [verdict for verdict in wanted if "for information" not in verdict.condition]


def verdict(rows: list[Row], condition: str) -> Verdict:
    """The only verdict whose condition begins with this text."""
    (found,) = verdicts(rows, condition)
    return found


def unmarked(row: Theirs) -> bool:
    return bool(row["ecn"] == "off")


def marked(row: Theirs) -> bool:
    return bool(row["ecn"] != "off")


def answered(control: str, value: str, where: Callable[[Theirs], bool] = unmarked) -> list[Row]:
    """The rows of a control, answered by another value of ``cc`` in the simulator."""
    some = [row for row in LINUX.table() if row["cc"] == control and where(row)]
    return LINUX.compare(some, [f"flow.main.cc={value}"])


def retransmissions_off(rows: list[Row]) -> float:
    """The median distance of retransmissions from the kernel's, as a share.

    Not the mean: retransmissions of a queue of ten packets depend on microseconds.
    """
    some = [row for row in rows if row.theirs["retransmitted"] > 0]
    shares = [abs(row.ours["retransmitted"].mean / row.theirs["retransmitted"] - 1) for row in some]
    return float(statistics.median(shares))


def test_every_row_is_present(rows: list[Row]) -> None:
    assert [len(of(rows, control)) for control in CONTROLS] == [14, 14, 9, 9, 9, 9, 9, 4]


@pytest.mark.parametrize("condition", ["√ of packets retransmitted: closer", "mean cwnd, relative: closer"])
def test_controls_are_distinguished(rows: list[Row], condition: str) -> None:
    assert verdict(rows, condition).held


@pytest.mark.parametrize(
    "condition",
    [f"{name}: within" for name in ("√ of packets retransmitted", "mean cwnd", "mean RTT", "√ of packets marked")],
)
def test_figures_match_the_kernel(rows: list[Row], condition: str) -> None:
    assert verdict(rows, condition).held


@pytest.mark.parametrize("control", CONTROLS)
def test_goodput_matches_the_kernel(rows: list[Row], control: str) -> None:
    some = [row for row in of(rows, control) if not LINUX.explained(row)]
    assert verdict(some, "goodput within").held


def test_exactly_the_rows_listed_on_the_page_are_outside(rows: list[Row]) -> None:
    assert LINUX.surprises(rows) == []


@pytest.mark.parametrize(
    ("control", "wrong", "where"),
    [
        ("reno", '"cubic"', unmarked),
        ("cubic", '"reno"', unmarked),
        ("vegas", '{ kind = "vegas", rtt = "mean" }', unmarked),
        ("vegas", '{ kind = "vegas", form = "published" }', unmarked),
        ("westwood", '{ kind = "westwood-plus", form = "published" }', unmarked),
        ("htcp", '"reno"', unmarked),
        ("htcp", '{ kind = "htcp", adaptive_backoff = false }', unmarked),
        ("dctcp", '{ kind = "dctcp", initial_alpha = 0 }', unmarked),
        ("dctcp", '{ kind = "dctcp", g = 1 }', unmarked),
        ("reno", '{ kind = "reno", beta_ecn = 0.8 }', marked),
        ("cubic", '{ kind = "cubic", beta_ecn = 0.85 }', marked),
    ],
)
def test_a_wrong_control_misses_the_goodput(control: str, wrong: str, where: Callable[[Theirs], bool]) -> None:
    assert verdict(answered(control, wrong, where), "goodput within").held is False


@pytest.mark.parametrize(("control", "wrong"), [("bbr", '"bbr3"'), ("bic", '{ kind = "bic", form = "published" }')])
def test_a_wrong_control_changes_the_number_of_retransmissions(rows: list[Row], control: str, wrong: str) -> None:
    assert retransmissions_off(of(rows, control)) < 0.1 < retransmissions_off(answered(control, wrong))


def test_marks_on_an_unmarked_flow_are_detected() -> None:
    table = [row for row in LINUX.table() if marked(row)]
    without = LINUX.compare(table, ['flow.main.transport.ecn="off"'])
    assert verdict(without, "√ of packets marked: within").held is False


def test_rows_of_another_release_belong_to_the_comparison(rows: list[Row]) -> None:
    assert LINUX.versions(rows).startswith(tuple("0123456789"))


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(LINUX.comparison()) == [], "run make compare"
