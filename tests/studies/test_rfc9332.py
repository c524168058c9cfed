"""The shipped study of DualPI2: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Outcome, Tables

STUDY = "rfc9332"


class TestAsDocumented(Documented):
    claims: ClassVar = ["L1", "L2", "L3", "L4", "L5"]
    reproduced: ClassVar = {"L4"}

    def test_every_check_fails_on_its_wrong_system(self, outcome: Outcome) -> None:
        """All but L5, whose target is a setting of the queue."""
        assert [claim["control"] for claim in outcome["claims"][:4]] == ["not reproduced"] * 4


def test_the_coupling_and_the_second_queue_protect_classic_traffic(tables: Tables) -> None:
    for row in tables["ratio"]:
        assert row["prague_cubic"] < 3 < row["one_queue"]
        assert row["prague_cubic"] < row["uncoupled"]
