"""The page on fairness over mixes of traffic matches the output of its study."""

from __future__ import annotations

import pytest
from anabranch import Study
from anabranch.study.results import Condition, Pool

from comparison import every, pages
from comparison.oracle import ROOT

ROW = "four_to_one"


@pytest.mark.slow
def test_all_of_it_is_up_to_date() -> None:
    assert pages.stale(every.comparison("fairness-mixes")) == [], "run make compare"


@pytest.mark.parametrize(
    ("part", "quantity", "digits"),
    [("worst-share", "worst_share", 2), pytest.param("total", "total", 1, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("queue", ["share_red", pytest.param("drr", marks=pytest.mark.long)])
def test_one_row_is_up_to_date(queue: str, part: str, quantity: str, digits: int) -> None:
    """Every seed of one mix under a queue."""
    study = Study.load(ROOT / "studies/fairness-mixes").definition
    pool = Pool(study)
    jobs = [j for j in pool.plan(Condition(full=True)) if j.experiment == ROW and j.variant == queue]
    pool.make(jobs)
    means = {str(p["variant"]): v for p, v in pool.results(jobs).quantity(quantity, ROW).collapsed()}
    head, _, *rows = pages.cells("docs/studies/fairness-mixes.md", part)
    cells = dict(zip(head, next(row for row in rows if row[0] == study.experiments[ROW].label), strict=True))
    mean = cells[study.variants[queue].label].partition(" ± ")[0]
    assert mean == f"{means[queue]:.{digits}f}", "run make compare"
