"""The shipped fairness study: quick mode, its verdicts, its controls, its stored robustness."""

from __future__ import annotations

from typing import ClassVar

from .documented import Outcome, Robust, Tables

STUDY = "fairness"


class TestAsDocumented(Robust):
    claims: ClassVar = [f"F{n}" for n in range(1, 8)]
    reproduced: ClassVar = {"F1", "F2", "F3", "F6", "F7"}


def test_the_printed_multiplier_excludes_equal_shares(outcome: Outcome) -> None:
    """As the page states for F4 and F5: a run shows the exclusion, and fails with a multiplier of 60 instead of 10."""
    claims = {claim["id"]: claim for claim in outcome["claims"]}
    for name in ("F4", "F5"):
        assert claims[name]["verdict"] == "paper inconsistent"
        assert claims[name]["inconsistency"]["control"] == "not reproduced"


def test_no_flow_exceeds_the_rate_of_the_link(tables: Tables) -> None:
    """Rates are over each flow's own time; in one second of 90 another flow may not be running."""
    for name in ("alone", "total", "many-total"):
        for row in tables[name]:
            assert all(0 < value <= 100 * 90 / 89 for key, value in row.items() if key not in {"rtt", "label"}), (
                name,
                row,
            )
