"""The shipped study of error correction: quick mode, its verdicts, its controls, each figure drawn twice."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from anabranch import Study

from .documented import Robust, Tables

STUDY = "fec"


class TestAsDocumented(Robust):
    claims: ClassVar = [*(f"C{n}" for n in range(1, 12)), "C10b", "C11b"]
    reproduced: ClassVar = {"C1", "C2", "C3", "C4", "C5", "C7", "C8", "C9", "C10b", "C11b"}
    inconclusive: ClassVar = {"C6"}


def test_a_flow_that_reacts_to_repaired_losses_takes_less(tables: Tables) -> None:
    """A repaired loss is still a sign of congestion (RFC 9265). Without error correction no loss is repaired."""
    for hidden, heard in zip(tables["throughput"], tables["heard"], strict=True):
        if hidden["loss"] < 0.0005:
            continue
        for variant in ("fec", "fec+fmax10", "fec+fmax40"):
            assert heard[variant] < hidden[variant], (variant, hidden["loss"])


def test_every_figure_is_drawn_with_and_without_reaction_to_repaired_losses(checkout: Path) -> None:
    names = {figure.id for figure in Study.load(checkout / "studies" / "fec").definition.figures}
    for name in ("5a", "5b", "6a", "6b", "7", "8", "9", "10", "11"):
        assert f"figure-{name}" in names
        assert f"figure-{name}-heard" in names
