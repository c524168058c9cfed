"""The shipped study of RFC 9438's tables: quick mode, its controls, and figures that follow from the law."""

from __future__ import annotations

from typing import ClassVar

import pytest

from .documented import Documented, Tables

STUDY = "rfc9438"


class TestAsDocumented(Documented):
    claims: ClassVar = ["F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10"]
    reproduced: ClassVar = {"F7", "F10"}
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


def test_a_flow_from_the_window_of_the_model_keeps_it(tables: Tables) -> None:
    """The average of a W_max that stays: (3 + beta) / 4 of it, with beta 0.7 (RFC 9438, appendix)."""
    for row, average in zip(tables["steady"], (187, 1054), strict=True):
        assert row["c_default"] == pytest.approx(average, rel=0.02)
