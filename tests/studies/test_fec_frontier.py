"""The shipped study of adaptive redundancy: quick mode, its controls, and invariants of its figures."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Tables

LINE_MBIT_S = 100.0
SHARED_MBIT_S = 20.0

STUDY = "fec-frontier"


class TestAsDocumented(Documented):
    claims: ClassVar = ["F1", "F2", "F3"]
    reproduced: ClassVar = {"F1"}
    inconclusive: ClassVar = {"F2", "F3"}


def test_figures_are_possible(tables: Tables) -> None:
    limits = {"heard": SHARED_MBIT_S, "not_heard": SHARED_MBIT_S}
    for name, rows in tables.items():
        for row in rows:
            for variant in ("sack", "fmax10", "adaptive"):
                assert 0 < row[variant] < limits.get(name, LINE_MBIT_S), (name, row)


def test_without_error_correction_there_are_no_repaired_losses(tables: Tables) -> None:
    """The runs of the two tables differ only in the reaction to repaired losses."""
    for heard, not_heard in zip(tables["heard"], tables["not_heard"], strict=True):
        assert heard["sack"] == not_heard["sack"]
        assert heard["fmax10"] != not_heard["fmax10"]
