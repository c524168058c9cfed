"""The pages of the studies of the field's disputes match their output."""

from __future__ import annotations

import pytest
from anabranch import Study
from anabranch.study.results import Condition, Pool

from comparison import every, pages
from comparison.oracle import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rfc9438", "rfc9406", "rfc9332", "rfc8511", "bbr-share", "prague-cubic"])
def test_all_of_a_study_is_up_to_date(name: str) -> None:
    assert pages.stale(every.comparison(name)) == [], "run make compare"


@pytest.mark.parametrize(("variant", "column"), [("reno", 1), ("c_default", 3)])
def test_one_cell_is_up_to_date(variant: str, column: int) -> None:
    """The window at a loss rate of 10^-3, RTT 0.1 s."""
    study = Study.load(ROOT / "studies/rfc9438").definition
    pool = Pool(study)
    jobs = [
        job
        for job in pool.plan(Condition(full=True))
        if job.experiment == "long" and job.variant == variant and job.point == (3,)
    ]
    pool.make(jobs)
    found = next(value for _, value in pool.results(jobs).quantity("window", "long").collapsed())
    _, _, *rows = pages.cells("docs/studies/rfc9438.md", "long")
    row = next(row for row in rows if row[0] == "3")
    assert row[column] == f"{found:.4g}", "run make compare"
