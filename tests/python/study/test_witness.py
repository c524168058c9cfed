"""Witnesses: claims judged on runs of another implementation, and the verdict *artefact*."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Study, UserError
from anabranch.study.parse import load
from anabranch.study.verdict import ARTEFACT, FRAGILE_ARTEFACT, NOT_REPRODUCED, REPRODUCED, Judgement, conclude
from anabranch.study.witness import judge_on_witnesses

from ..sample import copied
from .mistakes import refused

HEAD = "experiment,variant,ri,throughput,wrong\n"
RUNS = HEAD + "".join(
    f"{experiment},{variant},{ri},{value},{wrong}\n"
    for experiment, variant, ri, value, wrong in [
        ("plain", "newreno", "", 9.5, ""),
        ("reordering", "newreno", 4, 5.0, ""),
        ("reordering", "newreno", 70, 9.0, ""),
        ("plain", "newreno", "", 9.5, "nothing_reordered"),
        ("reordering", "newreno", 4, 9.5, "nothing_reordered"),
        ("reordering", "newreno", 70, 9.5, "nothing_reordered"),
    ]
)
DECLARED = """\
[claim.artefact]
witness = "other"
argument = "The other one counts twice."

[witness.other]
title = "Other 1.0"
about = "The same path."
command = "python other.py"
date = 2026-11-29
runs = "other.csv"
claims = ["S2"]

"""


def declared(tmp_path: Path, runs: str = RUNS, text: str = DECLARED) -> Path:
    """The sample with a witness of claim S2."""
    target = copied(tmp_path / "study")
    path = target / "study.toml"
    before = path.read_text(encoding="utf-8")
    end = before.index("[[claim]]", before.index('id = "S2"'))
    path.write_text(f"{before[:end]}{text}{before[end:]}", encoding="utf-8")
    (target / "other.csv").write_text(runs, encoding="utf-8")
    return target


def test_a_claim_that_fails_here_and_holds_on_its_witness_is_an_artefact(tmp_path: Path) -> None:
    study = load(declared(tmp_path))
    claim = next(claim for claim in study.claims if claim.id == "S2")
    (one,) = on_witnesses = judge_on_witnesses(study, claim)
    assert one.plain.measures == {"lowest": 5.0 / 9.5}
    assert one.holds
    failed = Judgement(False, {}, "does not hold: x")
    result = conclude(claim, failed, on_witnesses=on_witnesses)
    assert result.verdict == ARTEFACT
    assert result.why == "The other one counts twice. Other 1.0: lowest 0.5263"
    assert conclude(claim, Judgement(True), on_witnesses=on_witnesses).verdict == REPRODUCED


@pytest.mark.parametrize(
    ("runs", "says", "accepts"),
    [
        (RUNS.replace(",4,5.0,", ",4,9.0,"), "does not hold: 0.40 <= lowest", False),
        (RUNS.replace(",4,9.5,n", ",4,5.0,n"), "holds on its wrong system as well", True),
        (HEAD + "plain,newreno,,9.5,\nreordering,newreno,4,5.0,\n", "no throughput in the experiment", False),
        (HEAD + "plain,newreno,,9.5,\n", "no throughput in the experiment reordering", False),
    ],
)
def test_a_witness_that_does_not_hold_settles_nothing(tmp_path: Path, runs: str, says: str, accepts: bool) -> None:
    study = load(declared(tmp_path, runs))
    claim = next(claim for claim in study.claims if claim.id == "S2")
    result = conclude(claim, Judgement(False, {}, "does not hold: x"), on_witnesses=judge_on_witnesses(study, claim))
    assert result.verdict == NOT_REPRODUCED
    assert "Not shown to be an artefact of Other 1.0: " in result.why
    assert says in result.why
    assert result.check_failed is accepts


def test_a_wrong_system_that_only_replaces_variants_needs_no_runs(tmp_path: Path) -> None:
    runs = HEAD + "reordering,cubic_plus,4,9.0,\nreordering,cubic,4,4.0,\n"
    text = DECLARED.replace('["S2"]', '["S2", "S9"]')
    study = load(declared(tmp_path, runs, text))
    (one,) = judge_on_witnesses(study, next(claim for claim in study.claims if claim.id == "S9"))
    assert one.plain.measures == {"largest_ratio": 2.25}
    assert one.control is not None
    assert one.control.measures == {"largest_ratio": 1.0}
    assert one.holds


def test_runs_with_another_open_parameter_are_further_settings(tmp_path: Path) -> None:
    rows = [(100, 9.0), (80, 9.0), (60, 4.0)]
    runs = "experiment,variant,ri,queue,throughput\n" + "".join(
        f"reordering,cubic_plus,4,{queue},{value}\nreordering,cubic,4,{queue},4.0\n" for queue, value in rows
    )
    study = load(declared(tmp_path, runs, DECLARED.replace('["S2"]', '["S2", "S9"]')))
    (one,) = judge_on_witnesses(study, next(claim for claim in study.claims if claim.id == "S9"))
    assert one.plain.measures == {"largest_ratio": 2.25}
    assert one.share == pytest.approx(2 / 3)


def test_an_artefact_of_few_settings_is_fragile(tmp_path: Path) -> None:
    rows = [("", 5.0), (60, 9.0), (80, 9.0)]
    runs = "experiment,variant,ri,queue,throughput,wrong\n" + "".join(
        f"plain,newreno,,{queue},9.5,{wrong}\nreordering,newreno,4,{queue},{9.5 if wrong else value},{wrong}\n"
        for queue, value in rows
        for wrong in ("", "nothing_reordered")
    )
    study = load(declared(tmp_path, runs))
    claim = next(claim for claim in study.claims if claim.id == "S2")
    failed = Judgement(False, {}, "does not hold: x")
    result = conclude(claim, failed, on_witnesses=judge_on_witnesses(study, claim))
    assert result.verdict == FRAGILE_ARTEFACT
    assert "it holds at only 33% of the settings with runs there" in result.why


def test_reports_name_the_command_and_the_day(tmp_path: Path) -> None:
    result = Study.load(declared(tmp_path)).run(quick=True, figures=False)
    claim = next(claim for claim in result.to_json()["claims"] if claim["id"] == "S2")
    assert claim["witnesses"] == [
        {
            "witness": "Other 1.0",
            "command": "python other.py",
            "date": "2026-11-29",
            "measured": "lowest 0.5263",
            "verdict": "reproduced",
            "control": "not reproduced",
            "share": None,
        }
    ]
    assert "S2: also judged on stored runs of Other 1.0 (python other.py, 2026-11-29)." in result.notes


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('witness = "other"', 'witness = "othr"', 'there is no witness "othr"'),
        ('claims = ["S2"]', 'claims = ["S4"]', "does not judge S2"),
        ('claims = ["S2"]', 'claims = ["S3"]', '"S3" is no claim'),
        ('claims = ["S2"]\n', "", '"claims" is missing'),
        ("date = 2026-11-29", 'date = "today"', "date must be the day of the runs"),
        ('runs = "other.csv"', 'runs = "none.csv"', "none.csv"),
    ],
)
def test_mistakes_in_the_tables_have_a_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in DECLARED
    refused(declared(tmp_path, text=DECLARED.replace(old, new)), says)


@pytest.mark.parametrize(
    ("runs", "line", "says"),
    [
        (RUNS.replace("throughput", "throughputs", 1), 1, '"throughputs" is no axis, open parameter or quantity'),
        (RUNS.replace("variant,", "", 1), 1, 'the column "variant" is missing'),
        (RUNS.replace("4,5.0", "4,fast"), 3, 'throughput: "fast" is no number'),
        (RUNS.replace("newreno,4", "newrenp,4", 1), 3, '"newrenp" is no variant of reordering'),
        (RUNS.replace("plain,", "plane,", 1), 2, '"plane" is no experiment'),
        (RUNS.replace("nothing_reordered", "nothing", 1), 5, '"nothing" is no wrong system'),
        (RUNS.replace("newreno,4", "newreno,", 1), 3, "a value of ri is missing"),
        (RUNS.replace("9.0,\n", "9.0\n", 1), 4, "4 cells; the head has 5"),
        (HEAD, 1, "there are no runs"),
    ],
)
def test_mistakes_in_the_file_have_a_line(tmp_path: Path, runs: str, line: int, says: str) -> None:
    assert runs != RUNS
    with pytest.raises(UserError) as caught:
        load(declared(tmp_path, runs))
    assert caught.value.line == line
    assert says in str(caught.value)
    assert "other.csv" in str(caught.value)
