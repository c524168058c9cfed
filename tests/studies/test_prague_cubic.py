"""The shipped study of Prague beside CUBIC: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Tables

STUDY = "prague-cubic"


class TestAsDocumented(Documented):
    claims: ClassVar = ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9"]
    reproduced: ClassVar = {"P7", "P8", "P9"}


def test_marks_in_one_queue_favour_the_flow_that_reacts_less(tables: Tables) -> None:
    """A marking FIFO of two bandwidth-delay products or more; fair queues share with or without ECN."""
    for plain, ecn in zip(tables["plain"][1:], tables["ecn"][1:], strict=True):
        assert plain["mark"] < 10
        assert ecn["mark"] > 80
        for row in (plain, ecn):
            assert 40 < row["fq"] < 55
            assert 40 < row["fq_codel"] < 55


def test_a_second_queue_keeps_prague_from_waiting(tables: Tables) -> None:
    """The check can fail: in one queue it waits ten times as long."""
    for name in ("dual", "dual_ecn"):
        rows = {row["variant"]: row for row in tables[name]}
        assert rows["dualpi2"]["wait"] < 1 < 10 * rows["dualpi2"]["wait"] < rows["one_queue"]["wait"]
