"""CUBIC against Compound under RED, compared with ns-2: see ``docs/validation/ns2-fairness.md``.

The page has every row. The tests run two of the three rows with one flow per control: they are
fast, and show the effect of a wrong rule of RED.
"""

from __future__ import annotations

import pytest

from comparison import ns2_fairness as ns2
from comparison import pages
from comparison.ns2_fairness import Mix, Row, Runs, Table
from comparison.oracle import ROOT

TELLING = Mix("cubic", "compound", 1, 32)
"""The mix whose ratio is far from 1."""

QUEUE = "link.bottleneck.forward.queue"
TAIL_DROP = f'{QUEUE}={{ kind = "drop-tail", limit = "10000 packets" }}'


@pytest.fixture(scope="module")
def table() -> Table:
    return ns2.table()


@pytest.fixture(scope="module")
def fast(table: Table) -> Table:
    return {mix: runs for mix, runs in table.items() if mix.flows == 1 and mix.base_rtt_ms != 8}


@pytest.fixture(scope="module")
def rows(fast: Table) -> list[Row]:
    return ns2.compare(fast)


def test_every_row_is_read(table: Table, fast: Table) -> None:
    assert {(mix.flows, mix.base_rtt_ms) for mix in table} == {(flows, rtt) for flows in (1, 16) for rtt in (2, 8, 32)}
    assert table[TELLING].ratios == (1.44, 1.35, 1.43)
    assert len(fast) == 2


def test_the_ratios_agree(rows: list[Row]) -> None:
    assert [row.mix for row in rows if not row.inside] == []
    assert {len(row.ours.ratios) for row in rows} == {20}


def test_the_page_has_these_rows(rows: list[Row]) -> None:
    page = (ROOT / "docs" / "validation" / f"{ns2.NAME}.md").read_text("utf-8")
    for row in rows:
        assert f"| {' | '.join(ns2.row_cells(row))} |" in page, f"{row.mix}: run make compare"
    assert page.count("| inside |") == 6


@pytest.mark.long
def test_tail_drop_instead_of_red_is_outside_everywhere(fast: Table) -> None:
    assert [row.mix for row in ns2.compare(fast, [TAIL_DROP]) if row.inside] == []


@pytest.mark.long
@pytest.mark.parametrize("wrong", ["cubic", "reno", '"compound"'])
def test_another_control_instead_of_compound_is_outside(
    table: Table, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """CUBIC, Reno, and Compound that tunes gamma."""
    monkeypatch.setitem(ns2.CONTROLS, "compound", ns2.CONTROLS.get(wrong, wrong))
    (row,) = ns2.compare({TELLING: table[TELLING]})
    assert row.inside is False


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(f'{QUEUE}.spacing="uniform"', id="the-paper's-spacing"),
        pytest.param(f"{QUEUE}.max_probability=0.02", id="a-tenth-of-the-probability"),
    ],
)
def test_another_red_is_outside(table: Table, wrong: str) -> None:
    (row,) = ns2.compare({TELLING: table[TELLING]}, [wrong])
    assert row.inside is False


@pytest.mark.long
def test_cubic_without_its_reno_friendly_region_is_outside(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ns2.CONTROLS, "cubic", '{ kind = "cubic", beta = 0.8, tcp_friendly = false }')
    (row,) = ns2.compare({TELLING: table[TELLING]})
    assert row.inside is False


@pytest.mark.long
def test_the_cubic_of_rfc_9438_leaves_compound_less(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page states this about our default."""
    some = {mix: runs for mix, runs in table.items() if mix == Mix("cubic", "compound", 16, 2)}
    (paper,) = ns2.compare(some)
    monkeypatch.setitem(ns2.CONTROLS, "cubic", '"cubic"')
    (rfc,) = ns2.compare(some)
    assert rfc.ours.ratio < paper.ours.ratio - 0.05


def test_the_spread_is_widened_by_the_tolerance() -> None:
    theirs = Runs((0.9, 1.1), 1.0)
    assert Row(TELLING, theirs, Runs((0.815,), 1.0)).inside
    assert Row(TELLING, theirs, Runs((0.805,), 1.0)).inside is False
    assert Row(TELLING, theirs, Runs((1.205,), 1.0)).inside
    assert Row(TELLING, theirs, Runs((1.215,), 1.0)).inside is False
    found = ns2.verdicts([Row(TELLING, theirs, Runs((1.5,), 1.0))])
    assert [(verdict.found, verdict.held) for verdict in found] == [("0 of 1 rows", False)]
    assert ns2.surprises([Row(TELLING, theirs, Runs((1.5,), 1.0))])


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    assert pages.stale(ns2.comparison()) == [], "run make compare"
