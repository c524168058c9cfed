"""The shipped study of ABE: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Robust, Tables

STUDY = "rfc8511"


class TestAsDocumented(Robust):
    claims: ClassVar = ["A1", "A2", "A3", "A4", "A5"]
    reproduced: ClassVar = {"A2", "A3", "A4", "A5"}


def test_a_smaller_reduction_uses_no_less_of_the_link(tables: Tables) -> None:
    for row in tables["one"]:
        assert row["reno"] <= row["reno_abe"] + 0.005
        assert row["cubic"] <= row["cubic_abe"] + 0.005


def test_a_larger_beta_uses_no_less_of_the_link(tables: Tables) -> None:
    for row in tables["range"]:
        assert row["reno"] <= row["reno_070"] + 0.005
        assert row["reno_070"] <= row["reno_085"] + 0.005
