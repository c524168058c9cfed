"""The shipped study of HyStart++: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Robust, Tables

STUDY = "rfc9406"


class TestAsDocumented(Robust):
    claims: ClassVar = ["H1", "H2", "H3", "H4", "X1"]
    reproduced: ClassVar = {"H3", "H4", "X1"}


def test_an_end_by_delay_loses_less_than_an_end_by_loss(tables: Tables) -> None:
    for row in tables["retransmitted"]:
        assert row["hystart"] <= row["hystart_pp"] < row["slow_start"]
