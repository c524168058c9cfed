"""The shipped study of ABE: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Outcome, Tables

STUDY = "rfc8511"


class TestAsDocumented(Documented):
    claims: ClassVar = ["A1", "A2", "A3", "A4"]
    reproduced: ClassVar = {"A2", "A3", "A4"}

    def test_every_check_fails_on_its_wrong_system(self, outcome: Outcome) -> None:
        """All but A4, whose two sides are equal without ABE."""
        assert [claim["control"] for claim in outcome["claims"][:3]] == ["not reproduced"] * 3


def test_a_smaller_reduction_uses_no_less_of_the_link(tables: Tables) -> None:
    for row in tables["one"]:
        assert row["reno"] <= row["reno_abe"] + 0.005
        assert row["cubic"] <= row["cubic_abe"] + 0.005
