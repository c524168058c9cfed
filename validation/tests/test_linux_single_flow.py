"""Single flows against the Linux kernel: see ``docs/validation/linux-single-flow.md``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from anabranch import Scenario

from comparison import linux_single_flow as linux
from comparison import pages
from comparison.judging import Errors, Verdict, told_apart
from comparison.linux_single_flow import MEASURES, NAME, Ours, Row, Theirs
from comparison.oracle import DATA, NOT_AVAILABLE, available, control
from comparison.runs import SEEDS, Spread

CONDITIONS = [
    "mean RTT: closer",
    "mean RTT: median",
    "mean RTT, relative: closer",
    "mean RTT, relative: median",
    "√ of packets sent again: closer",
    "√ of packets sent again: median",
]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return linux.compare(linux.table())


def verdict(rows: list[Row], condition: str) -> Verdict:
    """The one verdict whose condition begins so."""
    wanted = [verdict for verdict in linux.verdicts(rows) if verdict.condition.startswith(condition)]
    (found,) = [verdict for verdict in wanted if "for information" not in verdict.condition]
    return found


def answered_by(rows: list[Row], other: dict[str, str]) -> list[Row]:
    """The rows answered by the kernel itself, for some controls with the row of another."""

    def one(value: float) -> Spread:
        return Spread(value, value, value)

    def answer(theirs: Theirs) -> Ours:
        return Ours(one(theirs.goodput), one(theirs.retransmitted), one(theirs.mean_rtt))

    theirs = {(row.theirs.cc, row.theirs.path): row.theirs for row in rows}
    return [replace(row, ours=answer(theirs[other.get(row.theirs.cc, row.theirs.cc), row.theirs.path])) for row in rows]


def test_every_row_is_there(rows: list[Row]) -> None:
    assert len(rows) == 60
    assert {row.theirs.cc for row in rows} == {"cubic", "reno", "bbr"}
    assert sum(row.lossy for row in rows) == linux.LOSSY_ROWS
    for row in rows:
        assert (row.ours is not None) == available("cc", control(row.theirs.cc))


def test_a_control_that_is_not_available_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [row for row in linux.table() if row.path == linux.Route(10, 10, 16, 0)]
    monkeypatch.setattr(linux, "available", lambda kind, name: (kind, name) == ("cc", "reno"))
    compared = linux.compare(some)
    shown = {cells[0]: NOT_AVAILABLE in cells for cells in linux.lines(compared)}
    assert shown == {"cubic": True, "reno": False, "bbr": True}
    assert verdict(compared, "random loss").held is None


@pytest.mark.parametrize("condition", CONDITIONS)
def test_congestion_controls_are_told_apart(rows: list[Row], condition: str) -> None:
    assert verdict(rows, condition).held


def test_lossy_rows_are_inside_the_range_of_the_seeds(rows: list[Row]) -> None:
    assert verdict(rows, "random loss").held


def test_the_range_is_that_of_twenty_seeds() -> None:
    lossy = next(row for row in linux.table() if row.path.loss_rate > 0)
    assert linux.case(lossy.cc, lossy.path).seeds == SEEDS == 20


@pytest.mark.parametrize("condition", CONDITIONS)
def test_controls_that_are_mixed_up_miss(rows: list[Row], condition: str) -> None:
    assert verdict(answered_by(rows, {}), condition).held
    assert verdict(answered_by(rows, {"cubic": "reno", "reno": "bbr", "bbr": "cubic"}), condition).held is False


def test_the_bars_are_low_between_cubic_and_reno(rows: list[Row]) -> None:
    """As the page says: of the kernel's own rows, these two answered by each other miss one condition only."""
    swapped = answered_by(rows, {"cubic": "reno", "reno": "cubic"})
    alike = [row for row in swapped if row.theirs.cc != "bbr"]
    judged = [*alike, *(replace(row, ours=None) for row in swapped if row.theirs.cc == "bbr")]
    assert [name for name in CONDITIONS if not verdict(judged, name).held] == ["mean RTT, relative: median"]
    for measure in MEASURES:
        errors = [error for error in linux.errors(judged, measure) if error is not None]
        assert not any(error.ours < error.nearest for error in errors)


def test_a_formula_that_does_not_look_at_the_control_misses(rows: list[Row]) -> None:
    """The mean of what the kernel's controls do on a path, for each of them."""
    blind = []
    for row in rows:
        path = [other.theirs for other in rows if other.theirs.path == row.theirs.path]
        mean = Spread.of([{"rtt": theirs.mean_rtt} for theirs in path], lambda one: one["rtt"])
        again = Spread.of([{"again": theirs.retransmitted} for theirs in path], lambda one: one["again"])
        blind.append(replace(row, ours=Ours(goodput=mean, retransmitted=again, mean_rtt=mean)))
    for condition in ("mean RTT: median", "√ of packets sent again: median"):
        assert verdict(blind, condition).held is False


def test_goodput_that_is_half_too_high_misses(rows: list[Row]) -> None:
    """Each row moves out of reach of its seeds; nothing can make up for it."""

    def moved(row: Row) -> Row:
        return replace(row, theirs=replace(row.theirs, goodput=row.theirs.goodput / 2.5))

    assert verdict([moved(row) for row in rows], "random loss").held is False


def test_what_is_missing_decides_only_as_long_as_it_can() -> None:
    def held(inside: int, outside: int) -> bool | None:
        return linux._lossy([True] * inside + [False] * outside).held

    assert held(19, 5)
    assert held(18, 6) is False
    assert held(12, 4) is None
    assert held(12, 6) is False
    assert held(19, 0)


def test_judging_by_hand() -> None:
    """Four rows, three closer; the median of the errors 1, 1, 1, 9 against that of 2, 2, 2, 2."""
    errors = [Errors(1, 2, 1), Errors(1, 2, 1), Errors(1, 2, 2), Errors(9, 2, 2), None]
    assert [(verdict.found, verdict.held) for verdict in told_apart(MEASURES[0], errors)] == [
        ("3 of 4", True),
        ("1 ms against 2 ms", True),
        ("1 of 4", None),
    ]
    errors[2] = Errors(2, 2, 2)
    assert [verdict.held for verdict in told_apart(MEASURES[0], errors)] == [False, False, None]
    assert [verdict.held for verdict in told_apart(MEASURES[0], [None])] == [None, None, None]


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(linux.comparison()) == [], "run make compare"


def test_the_scenario_file_runs_as_it_stands() -> None:
    goodput = Scenario.from_file(DATA / f"{NAME}.toml").run().summary["flows"]["main"]["goodput_mbit_s"]
    assert goodput is not None
    assert goodput > 8
