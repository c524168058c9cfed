"""Single flows against ns-2: see ``docs/validation/ns2-single-flow.md``."""

from __future__ import annotations

import pytest

from comparison import ns2_single_flow as ns2
from comparison import pages
from comparison.ns2_single_flow import Ours, Row, Theirs
from comparison.oracle import NOT_AVAILABLE, available, control


@pytest.fixture(scope="module")
def table() -> list[Theirs]:
    return ns2.table()


def test_rows_wait_for_their_stack(table: list[Theirs]) -> None:
    rows = ns2.compare(table)
    assert len(rows) == 24
    for row in rows:
        there = available("stack", ns2.STACK) and available("cc", control(row.theirs.cc))
        assert (row.ours is not None) == there
        assert (NOT_AVAILABLE in ns2.row_cells(row)) != there


def test_rows_are_compared_once_the_stack_is_there(table: list[Theirs]) -> None:
    """With another stack in its place: what is available is answered, and judged."""
    rows = ns2.compare(table, stack="rfc")
    answered = [row for row in rows if row.ours is not None]
    assert {row.theirs.cc for row in answered} >= {"reno"}
    (verdict,) = ns2.verdicts(rows)
    assert verdict.found.endswith(f"of {len(answered)}")
    for row in answered:
        assert row.ours is not None
        # A packet that was under way at 20 s arrives whole afterwards.
        assert 0.5 < row.ours.utilization < 1.001


def stack() -> str:
    """The stack of the rows, or in its place the one without habits of its own."""
    return ns2.STACK if available("stack", ns2.STACK) else "rfc"


def test_every_row_holds(table: list[Theirs]) -> None:
    rows = ns2.compare(table, stack=stack())
    assert len(rows) == 24
    assert [row for row in rows if not row.inside] == []


@pytest.mark.parametrize(("control", "wrong"), [("reno", '"bic"'), ("westwood", '"reno"')])
def test_other_controls_pass_for_reno_and_westwood(
    table: list[Theirs], monkeypatch: pytest.MonkeyPatch, control: str, wrong: str
) -> None:
    """What the page says of these rows: they do not tell controls apart. Should they ever, the page is to say so."""
    some = [row for row in table if row.cc == control]
    monkeypatch.setitem(ns2.CONTROLS, control, wrong)
    assert [row for row in ns2.compare(some, stack=stack()) if not row.inside] == []


@pytest.mark.parametrize("wrong", ['"reno"', '"compound"', '{ kind = "compound", gamma_tuning = false }'])
def test_another_form_of_compound_misses_the_short_queue(
    table: list[Theirs], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """Reno, the draft's tuned gamma, and the draft's window from which on there is a delay window."""
    short = [row for row in table if row.cc == "compound" and row.queue_packets == 33]
    monkeypatch.setitem(ns2.CONTROLS, "compound", wrong)
    (row,) = ns2.compare(short, stack=stack())
    assert row.inside is False


def test_a_share_too_far_off_misses() -> None:
    theirs = Theirs("reno", 33, 4, 96.0, 0, 0)
    assert theirs.utilization == pytest.approx(0.9664)
    assert Row(theirs, Ours(0.985, 0, 0)).inside
    assert Row(theirs, Ours(0.99, 0, 0)).inside is False
    assert Row(theirs, Ours(0.94, 0, 0)).inside is False
    assert Row(theirs, None).inside is None


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(ns2.comparison()) == [], "run make compare"
