"""Corrections of a reading: the results of claims before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.report.study_output import markdown
from anabranch.study import Study
from anabranch.study.results import Condition, grid
from anabranch.study.verdict import NOT_REPRODUCED, REPRODUCED

from ..sample import copied
from .mistakes import change, refused

SETTING = """\
[correction.reordered]
date = 2026-11-26
title = "The bottleneck reorders"
sentence = "Die Pakete werden vertauscht"
translation = "Packets are swapped"
why = "We read that they are not."
claims = ["S2"]
before = { set = { "flow.main.cc" = "cubic" }, experiments = ["reordering"] }

"""

CHECK = """\
[correction.half]
date = 2026-11-27
title = "About half"
sentence = "about 50 %"
why = "We read exactly half."

"""

EARLIER = """\
[claim.before]
correction = "half"
accept_if = "exactly half"
measure = { lowest = "min(normalised[newreno])" }
accept = "lowest == 0.5"

"""


@pytest.fixture
def corrected(tmp_path: Path) -> Path:
    """The sample with both kinds of correction of claim S2, and a full grid of two points."""
    target = copied(tmp_path / "study")
    change(target, "[[claim]]", f"{SETTING}{CHECK}[[claim]]")
    change(target, '[[claim]]\nid = "S4"', f'{EARLIER}[[claim]]\nid = "S4"')
    change(target, "full = { from = 4, to = 100, step = 4 }", "full = [8, 30]")
    return target


def test_the_full_grid_judges_a_claim_before_and_after(corrected: Path) -> None:
    result = Study.load(corrected).run(figures=False)
    setting, check = result.corrections
    (before,) = setting.claims
    now = next(c for c in result.claims if c.claim.id == "S2")
    assert before.since is now
    assert now.verdict == REPRODUCED
    # With CUBIC for every variant the figure differs.
    assert before.before.measures["lowest"] != now.plain.measures["lowest"]
    (before,) = check.claims
    assert before.before.word == NOT_REPRODUCED
    assert before.before.measures == now.plain.measures
    document = result.to_json()["corrections"]
    assert [c["date"] for c in document] == ["2026-11-26", "2026-11-27"]
    assert document[1]["claims"][0]["before"]["verdict"] == NOT_REPRODUCED
    assert document[1]["claims"][0]["since"]["verdict"] == REPRODUCED
    told = markdown(result, [])
    assert "Corrected on 2026-11-26: The bottleneck reorders" in told
    assert "Die Pakete werden vertauscht" in told
    assert "accepted if: exactly half" in told


def test_an_earlier_reading_may_have_other_axis_values(corrected: Path) -> None:
    change(corrected, 'before = { set = { "flow.main.cc" = "cubic" }, ', "before = { axes = { ri = [50, 70] }, ")
    study = Study.load(corrected).definition
    before = study.corrections["reordered"].before
    assert before is not None
    experiment = study.experiments["reordering"]
    assert grid(study, experiment, Condition(full=True, wrong=before)) == [(50,), (70,)]
    assert grid(study, experiment, Condition(full=True)) == [(8,), (30,)]


def test_the_quick_grid_makes_no_runs_of_earlier_readings(corrected: Path) -> None:
    result = Study.load(corrected).run(quick=True, figures=False)
    setting, check = result.corrections
    assert setting.claims == ()
    assert [one.since.claim.id for one in check.claims] == ["S2"]
    assert "The full grid shows the claims before and since" in markdown(result, [])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("date = 2026-11-26", 'date = "yesterday"', "date must be the day of the correction, as 2026-11-26"),
        ("date = 2026-11-26\n", "", "date must be the day of the correction"),
        ("date = 2026-11-26", "date = 2026-11-26T12:00:00", "date must be the day"),
        ('claims = ["S2"]', 'claims = ["S3"]', 'there is no claim "S3"'),
        ('claims = ["S2"]\n', "", "before and claims belong together"),
        ('experiments = ["reordering"] }\n\n', 'experiment = ["reordering"] }\n\n', 'unknown key "experiment"'),
        ('sentence = "about 50 %"\n', "", '"sentence" is missing'),
        ('correction = "half"', 'correction = "halve"', 'there is no correction "halve"'),
        ('before = { set = { "flow.main.cc" = "cubic" }', "before = { axes = { ro = [4] }", '"ro" is no axis'),
        (EARLIER, "", "nothing was different before"),
        ('accept_if = "exactly half"', 'acept_if = "exactly half"', 'unknown key "acept_if"'),
    ],
)
def test_mistakes_have_a_location(corrected: Path, old: str, new: str, says: str) -> None:
    change(corrected, old, new)
    refused(corrected, says)
