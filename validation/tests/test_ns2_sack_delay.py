"""TCP with SACK over a long lossy link, compared with ns-2: see ``docs/validation/ns2-sack-delay.md``.

The page has every row. The tests run the fast rows, with the same number of seeds.
"""

from __future__ import annotations

import pytest

from comparison import every
from comparison.oracle import ROOT
from comparison.rows import Row, Theirs
from comparison.runs import Spread

NS2 = every.described("ns2-sack-delay")
FAST_MS = 200
"""Rows with at least this delay on the middle link take a second or two."""


@pytest.fixture(scope="module")
def table() -> list[Theirs]:
    return NS2.table()


@pytest.fixture(scope="module")
def fast(table: list[Theirs]) -> list[Theirs]:
    return [row for row in table if row["delay_ms"] >= FAST_MS]


@pytest.fixture(scope="module")
def rows(fast: list[Theirs]) -> list[Row]:
    return NS2.compare([row for row in fast if row["delay_ms"] > FAST_MS])


def test_every_row_is_read(table: list[Theirs], fast: list[Theirs]) -> None:
    assert len({(row["variant"], row["delay_ms"]) for row in table}) == len(table) == 28
    assert {row["variant"] for row in fast} == {row["variant"] for row in table}
    assert len(fast) == 12


def test_the_means_agree(rows: list[Row]) -> None:
    assert [row.theirs for row in rows if not row.inside] == []
    assert {row.ours["throughput"].count for row in rows} == {30}


def test_the_page_has_these_rows_and_judges_all(rows: list[Row]) -> None:
    page = (ROOT / "docs" / "validation" / "ns2-sack-delay.md").read_text("utf-8")
    for cells in NS2.lines(rows):
        assert f"| {' | '.join(cells)} |" in page, "run make compare"
    assert page.count("| inside |") == 28


def outside(fast: list[Theirs], *switches: str) -> int:
    """Number of rows that a TCP with other switches misses."""
    return sum(row.inside is False for row in NS2.compare(fast, switches, seeds=10))


@pytest.mark.long
@pytest.mark.parametrize(
    ("switches", "least"),
    [
        pytest.param(('flow.main.transport.recovery_pace="pipe"',), 3, id="the-pipe-of-rfc-6675"),
        pytest.param(
            ("flow.main.transport.delayed_ack={ segments = 2, timeout = '200 ms' }",), 3, id="delayed-acknowledgments"
        ),
    ],
)
def test_another_tcp_misses(fast: list[Theirs], switches: tuple[str, ...], least: int) -> None:
    assert outside(fast, *switches) >= least


@pytest.mark.long
@pytest.mark.parametrize(("queue", "inside"), [("50 packets", 3), ("100 packets", 0)])
def test_the_rows_distinguish_a_doubled_host_queue(fast: list[Theirs], queue: str, inside: int) -> None:
    """Two packets more make no visible difference; twice as many do."""
    some = [{**row, "host_queue": queue} for row in fast if row["variant"] == "rev_hb50"]
    rows = NS2.compare(some, seeds=10)
    assert len(rows) == 3
    assert sum(row.inside is True for row in rows) == inside


def test_a_mean_too_far_off_misses(table: list[Theirs]) -> None:
    def judged(ours: float, sd: float = 0.3) -> Row:
        theirs = {**table[0], "seeds": 9, "throughput": 10.0, "sd": sd}
        return NS2.row(theirs, {"throughput": Spread(ours, ours, ours, 0.3, 30)})

    # 5 % of 10 is more than twice the standard error, 0.228.
    assert judged(10.4).accepted == pytest.approx((9.5, 10.5))
    assert judged(10.4).inside
    assert not judged(10.6).inside
    assert not judged(9.4).inside
    assert judged(10.4, sd=1.2).accepted[1] == pytest.approx(10.8074, abs=1e-4)
    assert judged(10.6, sd=1.2).inside
    assert len(NS2.surprises([judged(10.4), judged(10.6)])) == 1
