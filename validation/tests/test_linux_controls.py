"""Vegas, Westwood+ and BIC against the Linux kernel: see ``docs/validation/linux-controls.md``."""

from __future__ import annotations

import pytest

from comparison import every, pages
from comparison.judging import Verdict
from comparison.rows import Row

NAME = "linux-controls"
LINUX = every.described(NAME)
CONTROLS = ["vegas", "westwood", "bic"]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return LINUX.compare(LINUX.table())


def of(rows: list[Row], control: str) -> list[Row]:
    return [row for row in rows if row.theirs["cc"] == control]


def verdict(rows: list[Row], condition: str) -> Verdict:
    """The one verdict whose condition begins so."""
    wanted = [verdict for verdict in LINUX.verdicts(rows) if verdict.condition.startswith(condition)]
    (found,) = [verdict for verdict in wanted if "for information" not in verdict.condition]
    return found


def answered(control: str, value: str) -> list[Row]:
    """The rows of a control, with another value of ``cc`` in the simulator."""
    return LINUX.compare([row for row in LINUX.table() if row["cc"] == control], [f"flow.main.cc={value}"])


def retransmissions_off(rows: list[Row]) -> float:
    """The mean distance of retransmissions from the kernel's, as a share."""
    shares = [abs(row.ours["retransmitted"].mean / row.theirs["retransmitted"] - 1) for row in rows]
    return float(sum(shares) / len(shares))


def test_every_row_is_there(rows: list[Row]) -> None:
    assert [len(of(rows, control)) for control in CONTROLS] == [13, 13, 13]


@pytest.mark.parametrize("condition", ["√ of packets retransmitted: closer", "mean cwnd, relative: closer"])
def test_controls_are_told_apart(rows: list[Row], condition: str) -> None:
    assert verdict(rows, condition).held


@pytest.mark.parametrize("control", CONTROLS)
def test_goodput_is_the_kernels(rows: list[Row], control: str) -> None:
    assert verdict(of(rows, control), "goodput within").held


@pytest.mark.parametrize(
    ("control", "wrong"),
    [
        ("vegas", '{ kind = "vegas", rtt = "mean" }'),
        ("vegas", '{ kind = "vegas", form = "published" }'),
        ("westwood", '{ kind = "westwood-plus", form = "published" }'),
    ],
)
def test_a_wrong_control_misses_the_goodput(control: str, wrong: str) -> None:
    assert verdict(answered(control, wrong), "goodput within").held is False


def test_the_published_bic_retransmits_another_number(rows: list[Row]) -> None:
    published = answered("bic", '{ kind = "bic", form = "published" }')
    assert retransmissions_off(of(rows, "bic")) < 0.1 < retransmissions_off(published)


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(LINUX.comparison()) == [], "run make compare"
