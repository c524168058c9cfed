"""Verdicts on planted figures."""

from __future__ import annotations

import pytest

from anabranch.evaluate.judge import (
    BROKEN,
    INCONCLUSIVE,
    MET,
    NOT_EVALUATED,
    NOT_MET,
    Limit,
    NoWorse,
    difference,
    judge,
    worst,
)
from anabranch.evaluate.measures import Measure

LESS = Measure("delay", "ms", True, 1.0, lambda _: None)
MORE = Measure("goodput", "Mbit/s", False, 0.0, lambda _: None)
STANDARD = NoWorse(("cubic", "reno"))


def spread(mean: float, half: float = 0.0) -> dict[int, float | None]:
    """Ten figures around a mean, alternately above and below."""
    return {seed: mean + (half if seed % 2 else -half) for seed in range(10)}


@pytest.mark.parametrize(
    ("measure", "own", "verdict"),
    [
        (LESS, 100.0, MET),
        (LESS, 104.9, MET),
        (LESS, 106.0, NOT_MET),
        (LESS, 20.0, MET),
        (MORE, 100.0, MET),
        (MORE, 95.1, MET),
        (MORE, 94.0, NOT_MET),
        (MORE, 300.0, MET),
    ],
)
def test_a_difference_counts_from_five_percent_on(measure: Measure, own: float, verdict: str) -> None:
    references = {"cubic": spread(100), "reno": spread(100)}
    assert judge(STANDARD, measure, spread(own), references).verdict == verdict


def test_the_floor_replaces_a_smaller_margin() -> None:
    references = {"cubic": spread(1), "reno": spread(1)}
    assert judge(STANDARD, LESS, spread(1.9), references).verdict == MET
    assert judge(STANDARD, LESS, spread(2.1), references).verdict == NOT_MET


def test_the_worse_reference_decides() -> None:
    references = {"cubic": spread(100), "reno": spread(200)}
    judgement = judge(STANDARD, LESS, spread(180), references)
    assert judgement.verdict == MET
    assert [one.verdict for one in judgement.differences] == [NOT_MET, MET]


def test_a_wide_interval_is_inconclusive() -> None:
    references = {"cubic": spread(100), "reno": spread(100)}
    assert judge(STANDARD, LESS, spread(105, 30), references).verdict == INCONCLUSIVE


def test_the_cases_of_a_check_share_its_error() -> None:
    references = {"cubic": spread(100), "reno": spread(100)}
    own = spread(108, 3.0)
    assert judge(STANDARD, LESS, own, references).verdict == NOT_MET
    assert judge(STANDARD, LESS, own, references, cases=100).verdict == INCONCLUSIVE


def test_pairs_have_the_same_seed() -> None:
    own, other = {seed: 10.0 * seed for seed in range(10)}, {seed: 10.0 * seed + 1 for seed in range(10)}
    found = difference(MORE, dict(own), dict(other), "cubic")
    assert found is not None
    assert found.lower == found.upper == -1


@pytest.mark.parametrize(("values", "verdict"), [([1.0, 2.0], MET), ([1.0, 4.0], NOT_MET), ([4.0, 5.0], NOT_MET)])
def test_a_limit_holds_for_every_run(values: list[float], verdict: str) -> None:
    assert judge(Limit(3.0), LESS, dict(enumerate(values)), {}).verdict == verdict


def test_a_lower_limit() -> None:
    assert judge(Limit(3.0, is_most=False), MORE, {1: 3.0}, {}).verdict == MET
    assert judge(Limit(3.0, is_most=False), MORE, {1: 2.9}, {}).verdict == NOT_MET


def test_runs_without_a_figure_that_a_reference_has_are_not_met() -> None:
    found = judge(STANDARD, LESS, {**spread(1), 0: None}, {"cubic": spread(1), "reno": spread(1)})
    assert found.verdict == NOT_MET
    assert "no figure in 1 of" in found.why
    assert judge(STANDARD, LESS, dict.fromkeys(spread(1)), {"cubic": spread(1), "reno": {}}).verdict == NOT_MET


def test_one_run_decides_nothing() -> None:
    one = {seed: value for seed, value in spread(1).items() if seed == 0}
    assert judge(STANDARD, LESS, one, {"cubic": spread(1), "reno": spread(1)}).verdict == INCONCLUSIVE


def test_a_case_without_figures_is_not_evaluated() -> None:
    assert judge(STANDARD, LESS, {1: None}, {"cubic": {1: None}, "reno": {}}).verdict == NOT_EVALUATED
    assert judge(STANDARD, LESS, spread(1), {"cubic": {1: None}, "reno": {}}).verdict == NOT_EVALUATED


def test_an_infinite_figure_is_no_figure() -> None:
    assert judge(Limit(3.0), LESS, {1: float("nan"), 2: 1.0}, {}).verdict == MET


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        ([MET, NOT_EVALUATED], MET),
        ([MET, INCONCLUSIVE], INCONCLUSIVE),
        ([INCONCLUSIVE, NOT_MET, MET], NOT_MET),
        ([NOT_MET, BROKEN], BROKEN),
        ([], NOT_EVALUATED),
    ],
)
def test_the_worst_verdict(verdicts: list[str], found: str) -> None:
    assert worst(verdicts) == found
