"""The page of the fairness study matches the study's output."""

from __future__ import annotations

import pytest
from anabranch import Study
from anabranch.study.results import Condition, Pool, Results

from comparison import every, pages
from comparison.oracle import ROOT

RTT = 32


@pytest.mark.slow
def test_all_of_it_is_up_to_date() -> None:
    assert pages.stale(every.comparison("fairness")) == [], "run make compare"


METHODS = ["static", pytest.param("tail_drop", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def results(method: str) -> Results:
    """Every seed of a method at one round-trip time."""
    study = Study.load(ROOT / "studies/fairness").definition
    pool = Pool(study)
    jobs = [
        job
        for job in pool.plan(Condition(full=True))
        if job.experiment == "pair" and job.variant == method and job.point == (RTT,)
    ]
    pool.make(jobs)
    return pool.results(jobs)


@pytest.mark.parametrize(("part", "quantity", "digits"), [("ratio", "ratio", 2), ("total", "total", 1)])
def test_one_row_is_up_to_date(results: Results, method: str, part: str, quantity: str, digits: int) -> None:
    found = {str(point["variant"]): value for point, value in results.quantity(quantity, "pair").collapsed()}
    head, _, *rows = pages.cells("docs/studies/fairness.md", part)
    row = next(row for row in rows if row[0] == str(RTT))
    cells = dict(zip(head, row, strict=True))
    assert cells[results.definition.variants[method].label] == f"{found[method]:.{digits}f}", "run make compare"
