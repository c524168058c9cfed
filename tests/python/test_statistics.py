"""Statistics compared with tables (Student's t) and with calculations by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.statistics import statistics


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.7062), (2, 4.3027), (5, 2.5706), (8, 2.3060), (30, 2.0423), (120, 1.9799)]
)
def test_t_quantile_matches_the_tables(degrees: int, quantile: float) -> None:
    assert statistics.t_quantile(0.975, degrees) == pytest.approx(quantile, abs=5e-5)


def test_interval_of_known_values() -> None:
    interval = statistics.mean_interval([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.n == 3
    assert interval.upper == pytest.approx(2 + 4.30265 / math.sqrt(3), abs=1e-4)
    assert interval.lower == pytest.approx(2 - 4.30265 / math.sqrt(3), abs=1e-4)


def test_one_value_has_no_interval() -> None:
    assert statistics.mean_interval([5.0]) == statistics.Interval(5.0, None, None, 1)


def test_spearman_with_ties_and_constants() -> None:
    assert statistics.spearman([1, 2, 3, 4], [10, 9, 8, 1]) == -1.0
    assert statistics.spearman([1, 2, 3, 4], [1, 1, 2, 2]) == pytest.approx(0.894427, abs=1e-6)
    assert statistics.spearman([1, 2, 3], [7, 7, 7]) is None


def test_slope() -> None:
    assert statistics.slope([0, 1, 2], [1, 3, 5]) == 2.0
    assert statistics.slope([1, 1], [1, 2]) is None


def test_runs_needed_shrinks_with_the_effect() -> None:
    few = statistics.runs_needed([1.0, 1.2, 0.8, 1.1], 0.0)
    many = statistics.runs_needed([0.1, 1.2, -0.9, 0.4], 0.0)
    assert few is not None
    assert many is not None
    assert few < many
    assert statistics.runs_needed([1.0], 0.0) is None


@given(points=st.integers(1, 40), dimensions=st.integers(1, 5), seed=st.integers(0, 1000))
def test_latin_hypercube_has_one_point_in_every_slice(points: int, dimensions: int, seed: int) -> None:
    design = statistics.latin_hypercube(points, dimensions, seed)
    for d in range(dimensions):
        assert sorted(int(p[d] * points) for p in design) == list(range(points))
    assert design == statistics.latin_hypercube(points, dimensions, seed)
