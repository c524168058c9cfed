"""The pages of the multipath studies match the studies' output."""

from __future__ import annotations

import pytest
from anabranch import Study
from anabranch.study.results import Condition, Pool

from comparison import every, pages
from comparison.oracle import ROOT

LOSS = 0.01


@pytest.mark.slow
def test_all_of_the_study_is_up_to_date() -> None:
    assert pages.stale(every.comparison("multipath")) == [], "run make compare"


@pytest.mark.slow
def test_all_of_the_frontier_is_up_to_date() -> None:
    assert pages.stale(every.comparison("multipath-frontier")) == [], "run make compare"


@pytest.mark.parametrize(("variant", "title"), [("A", "Method A"), ("B", "Method B")])
def test_one_row_is_up_to_date(variant: str, title: str) -> None:
    """Every seed of one method with 50 ms of jitter and 1 % of loss."""
    study = Study.load(ROOT / "studies/multipath").definition
    pool = Pool(study)
    jobs = [
        job
        for job in pool.plan(Condition(full=True))
        if job.experiment == "both" and job.variant == variant and job.point == (50, LOSS)
    ]
    pool.make(jobs)
    found = next(value for _, value in pool.results(jobs).quantity("throughput", "both").collapsed())
    head, _, *rows = pages.cells("docs/studies/multipath.md", "lossy")
    row = next(row for row in rows if row[0] == "50")
    assert dict(zip(head, row, strict=True))[title].split(" ± ")[0] == f"{found:.4f}", "run make compare"


def test_one_situation_is_up_to_date() -> None:
    """Every seed of the adaptive pair under BBR."""
    study = Study.load(ROOT / "studies/multipath-frontier").definition
    pool = Pool(study)
    jobs = [job for job in pool.plan(Condition(full=True)) if job.experiment == "bbr_plain" and job.variant == "ours"]
    pool.make(jobs)
    found = next(value for _, value in pool.results(jobs).quantity("goodput", "bbr_plain").collapsed())
    head, _, *rows = pages.cells("docs/studies/multipath-frontier.md", "situations")
    row = next(row for row in rows if row[0] == study.experiments["bbr_plain"].label)
    cells = dict(zip(head, row, strict=True))
    assert cells[study.variants["ours"].label].split(" ± ")[0] == f"{found:.2f}", "run make compare"
