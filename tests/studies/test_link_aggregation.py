"""The shipped link-aggregation study: quick mode, its verdicts, its controls, every residual."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Outcome

STUDY = "link-aggregation"


class TestAsDocumented(Documented):
    claims: ClassVar = [f"L{n}" for n in range(1, 10)]
    reproduced: ClassVar = {"L1", "L2", "L4", "L5", "L8", "L9"}


def test_every_cell_has_its_residual(outcome: Outcome) -> None:
    for claim in outcome["claims"][:5]:
        assert "residual off" in claim["measured"]
        assert "residual on" in claim["measured"]
