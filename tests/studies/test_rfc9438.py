"""The shipped study of RFC 9438's tables: quick mode, its controls, and figures that follow from the law."""

from __future__ import annotations

from typing import ClassVar

import pytest

from .documented import Documented, Tables

STUDY = "rfc9438"


class TestAsDocumented(Documented):
    claims: ClassVar = ["F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"]
    reproduced: ClassVar = {"F7", "F8"}
    inconclusive: ClassVar = {"F9"}


def test_windows_follow_the_square_root_law_of_reno(tables: Tables) -> None:
    """Mathis et al. 1997: the window is sqrt(3/2) / sqrt(p), where recoveries take a small share of the time."""
    for row in tables["long"][1:]:
        assert row["reno"] == pytest.approx(1.2247 * 10 ** (row["exponent"] / 2), rel=0.05)


def test_windows_fall_with_the_loss_rate_and_grow_with_c(tables: Tables) -> None:
    for before, after in zip(tables["long"], tables["long"][1:], strict=False):
        assert all(after[name] > 2.5 * before[name] for name in ("reno", "c_low", "c_default", "c_high"))
    for row in tables["long"][2:]:
        assert row["reno"] < 1.05 * row["c_low"] < 1.1 * row["c_default"] < 1.2 * row["c_high"]
