"""Paths fitted to captures of simulated runs match the drawn paths. ``diagnose/fit.py`` measures more."""

from __future__ import annotations

import random
import statistics

import pytest

from diagnose import fit
from diagnose.fit import BARS, LINKS, Figure

PATHS = 12
SEED = 16
WITHIN = 0.85
"""Minimum share of the values that are within their bar."""


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def figures() -> list[Figure]:
    source = random.Random(SEED)  # noqa: S311 - a draw of paths
    drawn = [fit.draw(source) for _ in range(PATHS)]
    return [figure for one in drawn for figure in fit.compared(one, dict(fit.models(one)))]


@pytest.mark.parametrize("place", LINKS)
@pytest.mark.parametrize("name", BARS)
def test_fitted_values_are_within_their_bars(figures: list[Figure], name: str, place: str) -> None:
    errors = [abs(one.error) for one in figures if (one.name, one.place) == (name, place) and one.is_value]
    assert len(errors) >= PATHS // 2
    assert statistics.median(errors) <= BARS[name] / 2
    assert sum(error <= BARS[name] for error in errors) >= WITHIN * len(errors)


@pytest.mark.parametrize("name", BARS)
def test_intervals_and_bounds_hold_the_truth_near_the_sender(figures: list[Figure], name: str) -> None:
    here = [one for one in figures if (one.name, one.place) == (name, "near")]
    assert sum(one.holds for one in here) >= WITHIN * len(here)


def test_the_goodput_of_another_control_is_predicted() -> None:
    source = random.Random(SEED)  # noqa: S311 - a draw of paths
    drawn = [fit.draw(source) for _ in range(PATHS // 2)]
    errors = [told.error for one in drawn for told in fit.predicted(one, dict(fit.models(one))["near"])]
    assert statistics.median(errors) <= 0.05
