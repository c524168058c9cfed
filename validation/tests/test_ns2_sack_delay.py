"""TCP with SACK over a long lossy link against ns-2: see ``docs/validation/ns2-sack-delay.md``.

The page has every row; here are those that run fast, with as many seeds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from comparison import ns2_sack_delay as ns2
from comparison.ns2_sack_delay import Ours, Row, Theirs
from comparison.oracle import ROOT

FAST_MS = 200
"""Rows with at least this delay on the middle link take a second or two."""


@pytest.fixture(scope="module")
def table() -> list[Theirs]:
    return ns2.table()


@pytest.fixture(scope="module")
def fast(table: list[Theirs]) -> list[Theirs]:
    return [row for row in table if row.delay_ms >= FAST_MS]


@pytest.fixture(scope="module")
def rows(fast: list[Theirs]) -> list[Row]:
    return ns2.compare(fast)


def test_every_row_is_read(table: list[Theirs], fast: list[Theirs]) -> None:
    assert len({row.key for row in table}) == len(table) == 28
    assert {(row.loss_on, row.queue) for row in fast} == {(row.loss_on, row.queue) for row in table}
    assert len(fast) == 12


def test_the_means_agree(rows: list[Row]) -> None:
    assert [row.theirs.key for row in rows if not row.inside] == []
    assert {row.ours.seeds for row in rows} == {30}


def test_the_page_has_these_rows_and_judges_all(rows: list[Row]) -> None:
    page = (ROOT / "docs" / "validation" / f"{ns2.NAME}.md").read_text("utf-8")
    for row in rows:
        assert f"| {' | '.join(ns2.row_cells(row))} |" in page, f"{row.theirs.key}: run make compare"
    assert page.count("| inside |") == 28 - len(ns2.OUTLIERS)


def outside(fast: list[Theirs], *switches: str) -> int:
    """How many rows are missed by a TCP with other switches."""
    return sum(not row.inside for row in ns2.compare(fast, seeds=10, transport=switches))


@pytest.mark.long
@pytest.mark.parametrize(
    ("switches", "least"),
    [
        pytest.param(('recovery_pace="pipe"',), 3, id="the-pipe-of-rfc-6675"),
        pytest.param(("delayed_ack={ segments = 2, timeout = '200 ms' }",), 3, id="delayed-acknowledgments"),
    ],
)
def test_another_tcp_misses(fast: list[Theirs], switches: tuple[str, ...], least: int) -> None:
    assert outside(fast, *switches) >= least


@pytest.mark.long
@pytest.mark.parametrize(("queue", "inside"), [("50 packets", 3), ("100 packets", 0)])
def test_what_the_rows_tell_of_the_hosts_queue(
    fast: list[Theirs], monkeypatch: pytest.MonkeyPatch, queue: str, inside: int
) -> None:
    """Two packets more make no difference that shows; twice as many do."""
    monkeypatch.setattr(ns2, "QUEUES", {**ns2.QUEUES, "hb50": queue})
    rows = ns2.compare([row for row in fast if (row.loss_on, row.queue) == ("rev", "hb50")], seeds=10)
    assert len(rows) == 3
    assert sum(row.inside for row in rows) == inside


@pytest.mark.long
def test_the_counted_pipe_saves_timeouts(fast: list[Theirs], rows: list[Row]) -> None:
    """Without it there are timeouts that ns-2 does not have."""
    some = [row for row in fast if (row.loss_on, row.queue) == ("rev", "hb50")]
    without = ns2.compare(some, seeds=10, transport=['recovery_pace="pipe"'])
    assert all(row.ours.timeouts > 0.5 for row in without)
    with_it = [row for row in rows if row.theirs in some]
    assert all(row.theirs.timeouts == row.ours.timeouts == 0 for row in with_it)


def test_a_mean_too_far_off_misses() -> None:
    theirs = Theirs("fwd", "hb50", 100, 0.05, 9, 10.0, 0.3, 0, 0, 0)
    ours = Ours(30, 10.4, 0.3, 0, 0, 0)
    # 5 % of 10 is more than twice the standard error, 0.228.
    assert Row(theirs, ours).accepted == pytest.approx(0.5)
    assert Row(theirs, ours).inside
    assert not Row(theirs, replace(ours, throughput=10.6)).inside
    assert not Row(theirs, replace(ours, throughput=9.4)).inside
    spread = replace(theirs, sd=1.2)
    assert Row(spread, ours).accepted == pytest.approx(0.8074, abs=1e-4)
    assert Row(spread, replace(ours, throughput=10.6)).inside
    assert ns2.surprises([Row(theirs, replace(ours, throughput=10.6))], frozenset()) != []
    assert ns2.surprises([Row(theirs, ours)], frozenset({theirs.key})) != []
