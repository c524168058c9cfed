"""Comparison of an evaluation with a stored one: figures that became worse, outside their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from anabranch.errors import UserError
from anabranch.evaluate import judge
from anabranch.evaluate.evaluation import OWN, CaseResult, Evaluation
from anabranch.evaluate.judge import NOT_MET, difference, known, shown
from anabranch.evaluate.output import FILE
from anabranch.files.stored import StoredKind
from anabranch.statistics.statistics import welch_test


class _Case(TypedDict):
    group: str
    label: str
    verdict: str
    values: dict[str, dict[str, float | None]]


class _Check(TypedDict):
    id: str
    verdict: str
    cases: list[_Case]


class Stored(TypedDict):
    """The part of ``evaluation.json`` that is compared."""

    kind: str
    subject: dict[str, Any]
    engine: str
    quick: bool
    checks: list[_Check]


_STORED = StoredKind(Stored, "an evaluation")


@dataclass(frozen=True)
class Change:
    """A case that became worse.

    Attributes:
        check: The check.
        case: The case.
        why: The figures.
    """

    check: str
    case: str
    why: str


def read(path: Path) -> Stored:
    """A stored evaluation: its directory or its file.

    Raises:
        UserError: There is none.
    """
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"{path} has no evaluation", hint=f"a directory of `evaluate --out` or its {FILE} was expected")
    stored = _STORED.read(file)
    if stored["kind"] != "evaluation":
        raise UserError(f"{file} is no evaluation but a {stored['kind']}")
    return stored


def check_same(stored: Stored, *, role: str, engine: str, is_quick: bool) -> None:
    """Refuse a stored evaluation that cannot be compared.

    Raises:
        UserError: It is of another role, engine or size.
    """
    if stored["subject"].get("role") != role:
        raise UserError(f"the baseline is an evaluation of a {stored['subject'].get('role')}, and this one of a {role}")
    if stored["engine"] != engine:
        raise UserError(
            f"the baseline was made with --engine {stored['engine']}", hint=f"give --engine {stored['engine']}"
        )
    if stored["quick"] != is_quick:
        size, hint = ("the quick", "give --quick") if stored["quick"] else ("the full", "leave out --quick")
        raise UserError(f"the baseline is of {size} set of scenarios", hint=hint)


@dataclass(frozen=True)
class Comparison:
    """An evaluation beside a stored one.

    Attributes:
        changes: The cases that became worse, by more than their intervals and the margin.
        cases: The number of cases that both have.
        unpaired: The number of cases that only one of them has, such as those beside another competitor.
    """

    changes: tuple[Change, ...]
    cases: int
    unpaired: int


def compare(result: Evaluation, stored: Stored) -> Comparison:
    """The cases of both evaluations, compared."""
    before = {
        (check["id"], case["group"], case["label"]): case for check in stored["checks"] for case in check["cases"]
    }
    now = {(check.check.id, one.case.group, one.case.label): one for check in result.checks for one in check.cases}
    pairs = [(key[0], one, before[key]) for key, one in now.items() if key in before]
    changes = ((name, one, _change(one, old, len(pairs))) for name, one, old in pairs)
    found = tuple(Change(name, one.name, why) for name, one, why in changes if why is not None)
    return Comparison(found, len(pairs), len(now) + len(before) - 2 * len(pairs))


def _change(one: CaseResult, old: _Case, comparisons: int) -> str | None:
    """The reason why a case is a regression; ``None`` if it is none."""
    if one.judgement.verdict == judge.BROKEN:
        return None if old["verdict"] == judge.BROKEN else f"broken: {one.judgement.why}"
    measure, mine = one.case.measure, one.values[OWN]
    theirs = {int(seed): value for seed, value in old["values"].get(OWN, {}).items()}
    lost = sum(seed in mine for seed in known(theirs)) - sum(seed in theirs for seed in known(mine))
    if lost > 0:
        return f"no {measure.name} in {lost} more runs than before"
    level = 1 - (1 - judge.LEVEL) / max(comparisons, 1)
    gap = difference(measure, mine, theirs, "baseline", level)
    if gap is None:
        return _unpaired(one, theirs, level)
    if gap.verdict != NOT_MET:
        return None
    before = _mean(theirs)
    return f"{measure.name} {shown(_mean(mine), measure.unit)}, before {shown(before, measure.unit)}"


def _unpaired(one: CaseResult, theirs: Mapping[int, float | None], level: float) -> str | None:
    """The same with other seeds: Welch's test."""
    measure, mine = one.case.measure, known(one.values[OWN])
    other = known(theirs)
    if min(len(mine), len(other)) < 2:
        return None
    test = welch_test(list(other.values()), list(mine.values()), level)
    margin = max(judge.MARGIN * abs(_mean(theirs)), measure.floor)
    bad = test.lower > margin if measure.is_less_better else test.upper < -margin
    if not bad:
        return None
    return f"{measure.name} {shown(_mean(one.values[OWN]), measure.unit)}, before {shown(_mean(theirs), measure.unit)}"


def _mean(values: Mapping[int, float | None]) -> float:
    found = list(known(values).values())
    return sum(found) / len(found) if found else float("nan")
