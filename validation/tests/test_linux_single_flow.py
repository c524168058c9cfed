"""Single flows against the Linux kernel: see ``docs/validation/linux-single-flow.md``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from anabranch import Scenario

from comparison import every, pages
from comparison.judging import Errors, Verdict, told_apart
from comparison.oracle import DATA
from comparison.rows import Row
from comparison.runs import SEEDS, Spread

NAME = "linux-single-flow"
LINUX = every.described(NAME)
CONDITIONS = [
    "mean RTT: closer",
    "mean RTT: median",
    "mean RTT, relative: closer",
    "mean RTT, relative: median",
    "√ of packets retransmitted: closer",
    "√ of packets retransmitted: median",
]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return LINUX.compare(LINUX.table())


def verdict(rows: list[Row], condition: str) -> Verdict:
    """The only verdict whose condition begins with this text."""
    wanted = [verdict for verdict in LINUX.verdicts(rows) if verdict.condition.startswith(condition)]
    (found,) = [verdict for verdict in wanted if "for information" not in verdict.condition]
    return found


def path(row: Row) -> tuple[float, ...]:
    return tuple(row.theirs[column] for column in LINUX.spec["path"])


def answered(row: Row, goodput: float, retransmitted: float, mean_rtt: float) -> Row:
    """The row with another answer."""
    ours = {"goodput": goodput, "retransmitted": retransmitted, "mean_rtt": mean_rtt}
    return LINUX.row(row.theirs, {name: Spread(value, value, value) for name, value in ours.items()})


def answered_by(rows: list[Row], other: dict[str, str]) -> list[Row]:
    """The rows answered by the kernel itself, for some controls with the row of another."""
    theirs = {(row.theirs["cc"], path(row)): row.theirs for row in rows}
    answers = [theirs[other.get(row.theirs["cc"], row.theirs["cc"]), path(row)] for row in rows]
    return [
        answered(row, answer["goodput"], answer["retransmitted"], answer["mean_rtt"])
        for row, answer in zip(rows, answers, strict=True)
    ]


def test_every_row_is_present(rows: list[Row]) -> None:
    assert len(rows) == 60
    assert {row.theirs["cc"] for row in rows} == {"cubic", "reno", "bbr"}
    assert sum(row.inside is not None for row in rows) == 24


@pytest.mark.parametrize("condition", CONDITIONS)
def test_congestion_controls_are_distinguished(rows: list[Row], condition: str) -> None:
    assert verdict(rows, condition).held


def test_lossy_rows_are_inside_the_range_of_the_seeds(rows: list[Row]) -> None:
    assert verdict(rows, "random loss").held


def test_the_range_is_that_of_twenty_seeds(rows: list[Row]) -> None:
    assert {LINUX.case(row.theirs).seeds for row in rows if row.inside is not None} == {SEEDS} == {20}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_exchanged_controls_miss(rows: list[Row], condition: str) -> None:
    assert verdict(answered_by(rows, {}), condition).held
    assert verdict(answered_by(rows, {"cubic": "reno", "reno": "bbr", "bbr": "cubic"}), condition).held is False


def test_the_bars_are_low_between_cubic_and_reno(rows: list[Row]) -> None:
    """Exchanging CUBIC's and Reno's rows of the kernel itself misses one condition only, as the page states."""
    swapped = answered_by(rows, {"cubic": "reno", "reno": "cubic"})
    missed = []
    for measure in LINUX.measures:
        found = zip(swapped, LINUX.errors(swapped, measure), strict=True)
        errors = [error for row, error in found if error is not None and row.theirs["cc"] != "bbr"]
        assert not any(error.ours < error.nearest for error in errors)
        missed += [one.condition for one in told_apart(measure, errors) if one.held is False]
    assert [condition.startswith("mean RTT, relative: median") for condition in missed] == [True]


def test_a_formula_that_ignores_the_control_misses(rows: list[Row]) -> None:
    """The formula gives each control the mean of the kernel's controls on the path."""
    blind = []
    for row in rows:
        same = [other.theirs for other in rows if path(other) == path(row)]
        rtt, again = (sum(theirs[name] for theirs in same) / len(same) for name in ("mean_rtt", "retransmitted"))
        blind.append(answered(row, row.theirs["goodput"], again, rtt))
    for condition in ("mean RTT: median", "√ of packets retransmitted: median"):
        assert verdict(blind, condition).held is False


def test_goodput_that_is_half_too_high_misses(rows: list[Row]) -> None:
    """Each row leaves the range of its seeds."""

    def moved(row: Row) -> Row:
        return LINUX.row({**row.theirs, "goodput": row.theirs["goodput"] / 2.5}, row.ours)

    assert verdict([moved(row) for row in rows], "random loss").held is False


def test_nineteen_rows_under_loss_are_enough(rows: list[Row]) -> None:
    def held(inside: int, outside: int) -> bool | None:
        some = [row for row in rows if row.inside is not None]
        made = [replace(row, inside=i < inside) for i, row in enumerate(some[: inside + outside])]
        return verdict(made, "random loss").held

    assert held(19, 5)
    assert held(18, 6) is False


def test_judging_by_hand() -> None:
    """Four rows, three closer; the median of the errors 1, 1, 1, 9 against that of 2, 2, 2, 2."""
    errors = [Errors(1, 2, 1), Errors(1, 2, 1), Errors(1, 2, 2), Errors(9, 2, 2), None]
    assert [(verdict.found, verdict.held) for verdict in told_apart(LINUX.measures[0], errors)] == [
        ("3 of 4", True),
        ("1 ms against 2 ms", True),
        ("1 of 4", None),
    ]
    errors[2] = Errors(2, 2, 2)
    assert [verdict.held for verdict in told_apart(LINUX.measures[0], errors)] == [False, False, None]
    assert [verdict.held for verdict in told_apart(LINUX.measures[0], [None])] == [None, None, None]


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(LINUX.comparison()) == [], "run make compare"


def test_the_scenario_file_runs_unchanged() -> None:
    goodput = Scenario.from_file(DATA / f"{NAME}.toml").run().summary["flows"]["main"]["goodput_mbit_s"]
    assert goodput is not None
    assert goodput > 8
