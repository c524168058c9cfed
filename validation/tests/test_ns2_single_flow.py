"""Single flows against ns-2: see ``docs/validation/ns2-single-flow.md``."""

from __future__ import annotations

import pytest

from comparison import every, pages
from comparison.rows import Row, Theirs
from comparison.runs import Spread

NS2 = every.described("ns2-single-flow")


@pytest.fixture(scope="module")
def table() -> list[Theirs]:
    return NS2.table()


def test_every_row_holds(table: list[Theirs]) -> None:
    rows = NS2.compare(table)
    assert len(rows) == 24
    assert [row for row in rows if not row.inside] == []


@pytest.mark.parametrize(("control", "wrong"), [("reno", '"bic"'), ("westwood", '"reno"')])
def test_reno_and_westwood_rows_accept_other_controls(table: list[Theirs], control: str, wrong: str) -> None:
    """As the page states, these rows do not distinguish controls. If they ever do, correct the page."""
    some = [{**row, "control": wrong} for row in table if row["cc"] == control]
    assert [row for row in NS2.compare(some) if not row.inside] == []


@pytest.mark.parametrize("wrong", ['"reno"', '"compound"', '{ kind = "compound", gamma_tuning = false }'])
def test_another_form_of_compound_misses_the_short_queue(table: list[Theirs], wrong: str) -> None:
    """Reno, the draft's tuned gamma, and the draft's window above which there is a delay window."""
    short = [{**row, "control": wrong} for row in table if row["cc"] == "compound" and row["queue_packets"] == 33]
    (row,) = NS2.compare(short)
    assert row.inside is False


def test_a_share_too_far_off_misses(table: list[Theirs]) -> None:
    theirs = {**table[0], "used": 0.9664}

    def judged(used: float) -> Row:
        return NS2.row(theirs, {"used": Spread(used, used, used)})

    assert judged(0.985).inside
    assert judged(0.99).inside is False
    assert judged(0.94).inside is False
    assert len(NS2.surprises([judged(0.985), judged(0.99)])) == 1


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(NS2.comparison()) == [], "run make compare"
