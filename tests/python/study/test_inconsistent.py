"""The verdict *paper inconsistent*: its proof is a check that can fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from anabranch.study import Study
from anabranch.study.definition import Claim
from anabranch.study.inconsistency import exclusion
from anabranch.study.parse import load
from anabranch.study.robustness import Robustness
from anabranch.study.verdict import INCONSISTENT, NOT_REPRODUCED, REPRODUCED, Checked, Judgement, conclude

from ..sample import copied
from .mistakes import change, refused

FAILS = 'accept = "0.40 <= lowest <= 0.60"'


def declared(tmp_path: Path, text: str) -> Path:
    """The sample with an inconsistency added to claim S2."""
    target = copied(tmp_path / "study")
    path = target / "study.toml"
    before = path.read_text(encoding="utf-8")
    start = before.index('id = "S2"')
    end = before.index("[[claim]]", start)
    path.write_text(f"{before[:end]}{text}\n{before[end:]}", encoding="utf-8")
    return target


EXCLUDES = """\
[claim.inconsistent]
statements = ["NewReno loses half", "CUBIC is below NewReno"]
argument = "Both cannot be."
excludes = ["S4"]
"""

RUN = """\
[claim.inconsistent]
statements = ["NewReno loses half", "NewReno loses nothing"]
argument = "Both cannot be."
measure = { lowest = "min(normalised[newreno])" }
accept = "lowest < 0.99"
control = "nothing_reordered"
"""


@pytest.fixture
def excluding(tmp_path: Path) -> Claim:
    study = load(declared(tmp_path, EXCLUDES))
    return next(claim for claim in study.claims if claim.id == "S2")


def known(*points: Mapping[str, bool | None], stale: bool = False) -> Robustness:
    return Robustness({}, len(points), stale, points)


def test_an_exclusion_holds_if_no_setting_has_both(excluding: Claim) -> None:
    judged = exclusion(
        excluding, known({"S2": True, "S4": False}, {"S2": False, "S4": True}), {"S2": False, "S4": True}
    )
    assert judged.holds is True
    assert judged.measures == {"settings": 3, "S2_holds_at": 1, "S4_holds_at": 2}


@pytest.mark.parametrize(
    ("points", "plain", "says"),
    [
        ([{"S2": True, "S4": True}], {"S2": False, "S4": True}, "S2 and S4 hold together in 1 settings"),
        ([{"S2": True, "S4": False}], {"S2": True, "S4": True}, "S2 and S4 hold together in 1 settings"),
        ([{"S2": False, "S4": True}], {"S2": False, "S4": True}, "S2 holds in no setting"),
        ([{"S2": True, "S4": None}], {"S2": False, "S4": False}, "S4 holds in no setting"),
    ],
)
def test_an_exclusion_fails_if_both_hold_or_one_never_does(
    excluding: Claim, points: list[dict[str, bool | None]], plain: dict[str, bool | None], says: str
) -> None:
    judged = exclusion(excluding, known(*points), plain)
    assert judged.holds is False
    assert says in judged.reason


def test_an_exclusion_needs_current_points(excluding: Claim) -> None:
    plain = {"S2": False, "S4": True}
    assert exclusion(excluding, None, plain).holds is None
    assert exclusion(excluding, known({"S2": True, "S4": False}, stale=True), plain).holds is None


def test_only_a_failing_claim_is_inconsistent(excluding: Claim) -> None:
    proof = Checked(Judgement(True, {"highest": 0.5}), Judgement(False))
    failed = Judgement(False, {}, "does not hold: x")
    assert conclude(excluding, failed, proof=proof).verdict == INCONSISTENT
    assert conclude(excluding, failed, proof=proof).why == "Both cannot be. Shown by: highest 0.5"
    assert conclude(excluding, Judgement(True), proof=proof).verdict == REPRODUCED


@pytest.mark.parametrize(
    ("proof", "says"),
    [
        (Checked(Judgement(False, {}, "does not hold: y"), Judgement(False)), "fails: does not hold: y"),
        (Checked(Judgement(None, {}, "no points"), None), "fails: no points"),
        (Checked(Judgement(True), Judgement(True)), "fails: it holds on its wrong system as well"),
        (Checked(Judgement(True), Judgement(None, {}, "not measured")), "fails: not measured"),
    ],
)
def test_a_failing_proof_settles_nothing(excluding: Claim, proof: Checked, says: str) -> None:
    result = conclude(excluding, Judgement(False, {}, "does not hold: x"), proof=proof)
    assert result.verdict == NOT_REPRODUCED
    assert says in result.why
    assert result.check_failed is proof.accepts_wrong_system


def test_a_proof_by_runs_is_judged_on_its_wrong_system(tmp_path: Path) -> None:
    directory = declared(tmp_path, RUN)
    change(directory, FAILS, 'accept = "lowest > 2"')
    result = Study.load(directory).run(quick=True, figures=False)
    claim = next(c for c in result.to_json()["claims"] if c["id"] == "S2")
    assert claim["verdict"] == INCONSISTENT
    assert claim["inconsistency"]["holds"] is True
    assert claim["inconsistency"]["control"] == NOT_REPRODUCED
    assert claim["inconsistency"]["statements"] == ["NewReno loses half", "NewReno loses nothing"]


def test_a_proof_that_accepts_its_wrong_system_fails_the_study(tmp_path: Path) -> None:
    directory = declared(tmp_path, RUN.replace("lowest < 0.99", "lowest < 99"))
    change(directory, FAILS, 'accept = "lowest > 2"')
    result = Study.load(directory).run(quick=True, figures=False)
    assert result.failed
    assert next(c for c in result.claims if c.claim.id == "S2").verdict == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["NewReno loses half", "CUBIC is below NewReno"]', '["one"]', "at least two sentences"),
        ("statements =", "statments =", 'unknown key "statments"'),
        ('excludes = ["S4"]', "", "a proof is missing"),
        ('excludes = ["S4"]', 'excludes = ["S44"]', '"S44" is no other claim'),
        ('excludes = ["S4"]', 'excludes = ["S2"]', '"S2" is no other claim'),
        ('excludes = ["S4"]', 'excludes = ["S4"]\naccept = "True"', "a proof is either excludes or a check on runs"),
        ('excludes = ["S4"]', 'accept = "True"', "a claim needs measure"),
        ('argument = "Both cannot be."\n', "", '"argument" is missing'),
    ],
)
def test_a_malformed_proof_is_an_error_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    directory = declared(tmp_path, EXCLUDES)
    change(directory, old, new)
    refused(directory, says)
