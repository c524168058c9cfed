"""The fairness study as it ships: quick mode, its verdicts, its controls, what is kept of its robustness."""

from __future__ import annotations

from typing import ClassVar

import pytest

from .documented import Robust, Tables

STUDY = "fairness"


class TestAsDocumented(Robust):
    claims: ClassVar = [f"F{n}" for n in range(1, 8)]
    reproduced: ClassVar = {"F1", "F2", "F3", "F6", "F7"}
    """The full grid judges F7 otherwise, by a tenth of a per cent: docs/studies/fairness.md."""


def test_static_is_tail_drop_where_the_windows_do_not_reach_its_threshold(
    tables: Tables,
) -> None:
    """What the page says of F5: 3,600 packets in flight, 1,667 of them on the path."""
    at_200 = next(row for row in tables["ratio"] if row["rtt"] == 200)
    assert at_200["static"] == pytest.approx(at_200["tail_drop"], rel=1e-9)


def test_nobody_gets_more_than_the_link_has(tables: Tables) -> None:
    """Rates are over each flow's own time, of which a second of 90 may be somebody else's."""
    for name in ("alone", "total", "many-total"):
        for row in tables[name]:
            assert all(0 < value <= 100 * 90 / 89 for key, value in row.items() if key not in {"rtt", "label"}), (
                name,
                row,
            )
