"""Confidence sequences hold at all numbers of runs simultaneously."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from anabranch import Scenario, SweepResult
from anabranch.errors import UserError
from anabranch.statistics.sequential import FIRST, Until, half_width, read_until, sequence_interval
from anabranch.statistics.statistics import mean_interval, t_quantile

DRAWS = 2000
LENGTH = 1000

Values: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Draw: TypeAlias = Callable[[np.random.Generator, int, int], Values]


def outside(draw: Draw, mean: float) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], Values]:
    """For many sequences of values: the numbers at which the mean is outside, and the width of the interval."""
    values = draw(np.random.default_rng(20261127), DRAWS, LENGTH)
    counts = np.arange(1, LENGTH + 1)
    means = np.cumsum(values, 1) / counts
    squares = np.cumsum((values - mean) ** 2, 1) - counts * (means - mean) ** 2
    half = np.array([h if n > 1 and (h := half_width(n)) is not None else math.inf for n in counts.tolist()])
    errors = np.sqrt(np.maximum(squares, 1e-300) / np.maximum(counts - 1, 1) / counts)
    missed = np.abs(means - mean) > half * errors
    missed[:, : FIRST - 1] = False
    return missed, 2 * half * errors


def normal(rng: np.random.Generator, draws: int, length: int) -> Values:
    return rng.normal(size=(draws, length))


def uniform(rng: np.random.Generator, draws: int, length: int) -> Values:
    return rng.uniform(-1, 1, size=(draws, length))


def skewed(rng: np.random.Generator, draws: int, length: int) -> Values:
    return rng.exponential(size=(draws, length)) - 1


@pytest.mark.parametrize("draw", [normal, uniform])
def test_the_mean_is_inside_at_all_numbers_at_once(draw: Draw) -> None:
    missed, _ = outside(draw, 0.0)
    assert 0.93 <= 1 - missed.any(axis=1).mean() <= 0.97


@pytest.mark.parametrize("draw", [normal, uniform, skewed])
@pytest.mark.parametrize("width", [1.0, 0.5, 0.3])
def test_stopping_when_narrow_keeps_the_coverage(draw: Draw, width: float) -> None:
    missed, wide = outside(draw, 0.0)
    narrow = wide <= width
    narrow[:, : FIRST - 1] = False
    narrow[:, -1] = True
    stopped = narrow.argmax(axis=1)
    assert 1 - missed[np.arange(DRAWS), stopped].mean() >= 0.95


def test_stopping_students_interval_loses_the_coverage() -> None:
    """The wrong method fails the rule above: checking at every number of runs, the mean leaves the interval."""
    values = normal(np.random.default_rng(1), 500, 100)
    counts = np.arange(2, 101)
    means = np.cumsum(values, 1)[:, 1:] / counts
    squares = np.cumsum(values**2, 1)[:, 1:] - counts * means**2
    half = np.array([t_quantile(0.975, n - 1) for n in counts]) * np.sqrt(squares / (counts - 1) / counts)
    assert 1 - (np.abs(means) > half).any(axis=1).mean() < 0.8


def test_the_interval_follows_from_the_bet() -> None:
    """At its ends the wealth of the bet against the mean is 1/α."""
    from anabranch.statistics.sequential import SPREAD

    for n in (16, 50, 400):
        half = half_width(n)
        assert half is not None
        freedom, r = n - 1, 1 + n * SPREAD
        wealth = ((1 + half**2 / freedom) / (1 + half**2 / (freedom * r))) ** (n / 2) / math.sqrt(r)
        assert wealth == pytest.approx(20, rel=1e-9)


def test_it_is_wider_than_students() -> None:
    values = [1.0, 2.0, 4.0, 3.0] * 10
    student, sequence = mean_interval(values), sequence_interval(values)
    assert sequence.mean == student.mean
    assert sequence.lower is not None
    assert student.lower is not None
    assert sequence.lower < student.lower
    assert sequence_interval([1.0, 2.0]).lower is None
    assert sequence_interval([1.0]).lower is None


def test_a_width_in_per_cent_is_relative_to_the_mean() -> None:
    assert read_until("a.b:5%") == Until("a.b", 0.05, is_relative=True)
    assert read_until("a:b:0.2") == Until("a:b", 0.2)
    values = [99.0, 101.0] * 50
    assert Until("a", 0.05, is_relative=True).is_met(sequence_interval(values))
    assert not Until("a", 0.05).is_met(sequence_interval(values))
    assert not Until("a", 0.05, is_relative=True).is_met(sequence_interval([-1.0, 1.0] * 50))


@pytest.mark.parametrize("width", ["\u0665", "1_0", "nan", "inf", "0", "", "-1"])
def test_a_width_is_a_number_in_ascii_digits(width: str) -> None:
    with pytest.raises(UserError, match="FIGURE:WIDTH was expected"):
        read_until(f"a.b:{width}")


TEXT = """\
duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "20 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "R"
[sweep]
repeat = 3
"link.a.forward.impair.0.rate" = [0, 0.001, 0.05]
"""
FIGURE = "flow.main.goodput_mbit_s"


def test_each_point_has_the_seeds_that_it_needs(tmp_path: Path) -> None:
    scenario = Scenario.from_text(TEXT, file=str(tmp_path / "path.toml"))
    result = scenario.sweep(until=f"{FIGURE}:1.0", repeat=400, out=tmp_path / "out")
    counts = [rows.height for _, rows in result.frame.group_by(result.axes, maintain_order=True)]
    # Without loss the runs are not random.
    assert counts[0] == FIRST
    assert counts[2] > FIRST
    for _, estimate in result.estimates(FIGURE):
        assert estimate is not None
        interval = estimate.interval
        narrow = interval.lower is not None and (interval.upper or 0) - interval.lower <= 1.0
        assert estimate.deterministic or narrow or interval.n == 400
    assert result.frame["seed"].to_list() == [s for n in counts for s in range(1, n + 1)]
    again = SweepResult.read(tmp_path / "out")
    assert again.scenario.is_sequential
    assert again.estimates(FIGURE) == result.estimates(FIGURE)
    assert_frame_equal(scenario.sweep(until=f"{FIGURE}:1.0", repeat=400, out=tmp_path / "out").frame, result.frame)


def test_the_maximum_of_seeds_limits_a_point_that_stays_wide(tmp_path: Path) -> None:
    scenario = Scenario.from_text(TEXT, file="path.toml")
    result = scenario.sweep({"link.a.forward.impair.0.rate": [0.05]}, until=f"{FIGURE}:1e-9", repeat=20)
    assert result.frame.height == 20
