"""The pages of the reordering study match the output of its scripts; ``tests/studies`` has the judgements."""

from __future__ import annotations

import itertools
import json

import pytest
from anabranch import Study
from anabranch.result.format import share
from anabranch.study import needs, robustness
from anabranch.study.definition import Definition
from anabranch.study.results import Condition, Pool
from anabranch.study.verdict import judge

from comparison import ns3_reordering, pages, scripts, studies
from comparison.judging import Verdict
from comparison.oracle import ROOT, spec


def test_the_comparison_with_ns3_is_up_to_date() -> None:
    assert pages.stale(ns3_reordering.comparison()) == [], "run make compare"


def shown(part: str) -> list[str]:
    """The lines of a generated part of the study's page."""
    return pages.shown("docs/studies/reordering.md", part)


@pytest.fixture(scope="module")
def study() -> Definition:
    return Study.load(ROOT / "studies/reordering").definition


@pytest.mark.slow
def test_the_studys_parts_are_up_to_date() -> None:
    """The whole page: every remedy, start jitter and wrong systems on the full grid."""
    done = Study.load(ROOT / "studies/reordering").run(quick=False)
    for part, text in studies.of_study(done, spec("reordering")).items():
        assert shown(part) == text.splitlines(), "run make compare"


def test_the_studys_measures_are_up_to_date(study: Definition) -> None:
    """Every claim on the full grid, once: the measured figure, and the kept robustness."""
    pool = Pool(study)
    jobs = needs.only(pool.plan(Condition(full=True)), needs.of_claims(study, study.claims))
    pool.make(jobs)
    results = pool.results(jobs)
    kept = json.loads((study.directory / robustness.FILE).read_bytes())["claims"]
    rows = {line.split(" | ")[0].strip("| "): line for part in ("results", "beyond") for line in shown(part)}
    for claim in study.claims:
        judged = judge(claim, results)
        assert f" | {judged.measured} | {judged.word}" in rows[claim.id], "run make compare"
        assert f" | {share(kept[claim.id])} | " in rows[claim.id], "run make compare"


def test_every_remedy_has_its_lowest_value_where_the_page_shows_it(study: Definition) -> None:
    """One interval of each remedy, which decides its row, and the same interval in order."""
    lowest = {}
    for line in shown("remedies")[2:]:
        label, cell = line.strip("| ").split(" | ")[:2]
        share, _, interval = cell.partition(" (RI ")
        lowest[label] = (share, float(interval.rstrip(")")))
    by_label = {study.variants[name].label: name for name in study.experiments["remedies"].variants}
    assert set(lowest) == set(by_label), "run make compare"
    pool = Pool(study)
    jobs = [
        job
        for job in pool.plan(Condition(full=True))
        if job.experiment == "in_order"
        or (job.experiment == "remedies" and job.point[0] == lowest[study.variants[job.variant].label][1])
    ]
    pool.make(jobs)
    kept = pool.results(jobs).quantity("kept", "remedies").collapsed()
    made = {str(point["variant"]): value for point, value in kept}
    for label, (share, _) in lowest.items():
        assert f"{made[by_label[label]]:.3f}" == share, f"{label}: run make compare"


def test_the_studys_comparison_is_up_to_date() -> None:
    groups = ns3_reordering.groups().values()
    assert shown("ns3") == ns3_reordering.study().markdown([row for group in groups for row in group]).splitlines()


def test_the_studys_choices_are_up_to_date() -> None:
    """The first few: all of them take a minute."""
    rows = scripts.load("studies/reordering/sensitivity.py").rows(full=True)
    for row in itertools.islice(rows, 3):
        assert f"| {' | '.join(row)} |" in shown("sensitivity"), "run make compare"


def test_every_setting_is_judged() -> None:
    groups = ns3_reordering.groups()
    assert len(groups) == 8
    judged: list[Verdict] = ns3_reordering.verdicts(groups)
    for setting, control in groups:
        assert any(f"{setting}, {control}:" in verdict.condition for verdict in judged)


def test_a_row_out_of_range_is_reported() -> None:
    script = ns3_reordering.study()
    row = script.Row("iw1-nodelack-sack", "Cubic", 30, {"3.37": 0.9}, {"3.37": 0.75}, {"3.37": 0}, {"3.37": 0})
    (verdict,) = ns3_reordering.verdicts({("iw1-nodelack-sack", "Cubic"): [row]})
    assert (verdict.found, verdict.held) == ("0 of 1", False)
