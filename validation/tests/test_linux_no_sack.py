"""Linux without SACK: see ``docs/validation/linux-no-sack.md``."""

from __future__ import annotations

import pytest

from comparison import every, pages
from comparison.rows import Row

NAME = "linux-no-sack"
LINUX = every.described(NAME)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return LINUX.compare(LINUX.table())


def held(rows: list[Row], condition: str) -> list[bool | None]:
    """The verdicts whose condition begins with this text."""
    return [v.held for v in LINUX.verdicts(rows) if v.condition.startswith(condition)]


def test_every_row_is_present(rows: list[Row]) -> None:
    assert [sum(row.theirs["cc"] == control for row in rows) for control in ("reno", "cubic")] == [18, 18]


def test_exactly_the_rows_listed_on_the_page_are_outside(rows: list[Row]) -> None:
    assert LINUX.surprises(rows) == []


def test_with_sack_the_goodput_is_another() -> None:
    table = [row for row in LINUX.table() if row["timestamps"] == "on"]
    with_sack = LINUX.compare(table, ["flow.main.transport.sack=true"])
    assert False in held(with_sack, "goodput within")


def test_a_constant_window_changes_the_goodput() -> None:
    table = [row for row in LINUX.table() if row["timestamps"] == "off"]
    constant = LINUX.compare(table, ["flow.main.transport.receive_autotuning=false"])
    assert False in held(constant, "goodput within")


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(LINUX.comparison()) == [], "run make compare"
