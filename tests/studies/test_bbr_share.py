"""The shipped study of BBR's share: quick mode, its controls, and what the figures must be."""

from __future__ import annotations

from typing import ClassVar

from .documented import Documented, Tables

STUDY = "bbr-share"


class TestAsDocumented(Documented):
    claims: ClassVar = ["W1", "W2", "W3", "W4", "W5", "X1"]
    reproduced: ClassVar = {"W4", "W5", "X1"}


def test_shares_are_shares(tables: Tables) -> None:
    for name in ("sixteen", "one", "model"):
        assert [row["buffer"] for row in tables[name]] == [1, 2, 4, 8, 16, 32]
        assert all(
            0 < value <= 1 for row in tables[name] for key, value in row.items() if key not in ("buffer", "label")
        )


def test_cubic_beside_cubic_is_fair(tables: Tables) -> None:
    """The check can fail: BBR takes several times as much."""
    for row in tables["sixteen"]:
        assert row["only_cubic"] < 2 / 17
    assert max(row["cubic"] for row in tables["sixteen"]) > 4 / 17


def test_the_model_is_near_in_buffers_up_to_16_bdp(tables: Tables) -> None:
    """One BBR flow beside one CUBIC flow."""
    for row in tables["figure_8a"]:
        if row["deep"] <= 16:
            assert abs(row["one"] - row["one_model"]) < 0.2
