"""The shipped study of DualPI2: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Tables

STUDY = "rfc9332"


class TestAsDocumented(Documented):
    claims: ClassVar = ["L1", "L2", "L3", "L4", "L5", "L6", "L7"]
    reproduced: ClassVar = {"L4", "L6"}


def test_the_coupling_and_the_second_queue_protect_classic_traffic(tables: Tables) -> None:
    for row in tables["ratio"]:
        assert row["prague_cubic"] < 3 < row["one_queue"]
        assert row["prague_cubic"] < row["uncoupled"]


def test_the_second_queue_keeps_the_wait_below_two_packets(tables: Tables) -> None:
    """Of 12,112 bits each; RFC 9332 §1.4."""
    for row in tables["wait"]:
        assert row["prague_cubic"] < max(1, 2 * 12.112 / row["rate"]) < row["one_queue"]
