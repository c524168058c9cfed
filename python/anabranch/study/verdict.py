"""Judges claims: measures, tests the conditions, and gives the reason if a claim is not reproduced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anabranch.result.measure_names import UNITS
from anabranch.statistics import statistics
from anabranch.study.definition import Claim
from anabranch.study.expression import Source
from anabranch.study.functions import Value
from anabranch.study.series import Cell, NoValueError, Series, number

if TYPE_CHECKING:
    from anabranch.study.dependence import Split
    from anabranch.study.witness import WitnessResult

REPRODUCED = "reproduced"
FRAGILE = "reproduced (fragile)"
NOT_REPRODUCED = "not reproduced"
INCONCLUSIVE = "inconclusive"
INCONSISTENT = "paper inconsistent"
ARTEFACT = "artefact"
FRAGILE_ARTEFACT = "artefact (fragile)"
SETTLED = (REPRODUCED, INCONSISTENT, ARTEFACT)
"""Verdicts that settle a claim."""
_UNITS = UNITS | {"_percent": "%"}
FRAGILE_BELOW = 0.5
"""A verdict is fragile if it holds at less than this share of points, or of start-jitter seeds."""


@dataclass(frozen=True)
class Judgement:
    """One claim measured on one set of runs.

    Attributes:
        holds: Whether every condition held; ``None`` if that is undecided.
        measures: Name → measured value, for the measures that have one.
        reason: Why it does not hold or is undecided; empty if it holds.
    """

    holds: bool | None
    measures: dict[str, Cell] = field(default_factory=dict)
    reason: str = ""

    @property
    def word(self) -> str:
        """The verdict from these runs alone."""
        if self.holds is None:
            return INCONCLUSIVE
        return REPRODUCED if self.holds else NOT_REPRODUCED

    @property
    def measured(self) -> str:
        """The measured figures, for people."""
        return ", ".join(_said(name, value) for name, value in self.measures.items())


@dataclass(frozen=True)
class Checked:
    """A check and its result on a wrong system, on which it must fail.

    Attributes:
        plain: Whether it holds, with its measures.
        control: Its result on the wrong system; ``None`` if there is none.
    """

    plain: Judgement
    control: Judgement | None = None

    @property
    def holds(self) -> bool:
        """Whether the check holds, and fails on its wrong system."""
        return self.plain.holds is True and (self.control is None or self.control.holds is False)

    @property
    def accepts_wrong_system(self) -> bool:
        """Whether the check is invalid because it holds on its wrong system as well."""
        return self.control is not None and self.control.holds is True

    @property
    def reason(self) -> str:
        """Why the check shows nothing."""
        if self.plain.holds is not True:
            return self.plain.reason
        if self.accepts_wrong_system:
            return "it holds on its wrong system as well"
        return self.control.reason if self.control else ""


@dataclass(frozen=True)
class ClaimResult:
    """A claim with all its results.

    Attributes:
        robustness: Share of the open parameters' plausible points where it holds, if computed.
        stale: The inputs of the robustness have changed since.
        depends: The open parameters that separate the points with and without the claim most.
        jitter: Share of start-jitter seeds where it holds, if starts are spread.
        control: The result of the check on the wrong system; ``None`` if the claim declares that there is none.
        proof: The proof of the source's inconsistency, if the study declares one and it was judged.
        on_witnesses: The results of the check on witnesses.
    """

    claim: Claim
    plain: Judgement
    verdict: str
    why: str
    robustness: float | None = None
    stale: bool = False
    depends: Sequence[Split] = ()
    jitter: float | None = None
    control: Judgement | None = None
    proof: Checked | None = None
    on_witnesses: Sequence[WitnessResult] = ()

    @property
    def check_failed(self) -> bool:
        """Whether the check, also on a witness, or the proof of an inconsistency accepts its wrong system as well."""
        accepted = self.control is not None and self.control.holds is True
        proven = self.proof is not None and self.proof.accepts_wrong_system
        return accepted or proven or any(one.accepts_wrong_system for one in self.on_witnesses)


def judge(claim: Claim, results: Source) -> Judgement:
    """Measure a claim's figures and test its conditions."""
    values: dict[str, Value] = {}
    shown: dict[str, Cell] = {}
    missing = []
    for name, expression in claim.measures.items():
        try:
            values[name] = expression.evaluate(results, values, claim.experiment)
            shown.update(_shown(name, values[name]))
        except NoValueError as error:
            values[name] = None
            missing.append(f"{name}: {error}")
    failed, unknown = [], []
    for condition in claim.accept:
        try:
            if not _truth(condition.evaluate(results, values, claim.experiment)):
                failed.append(condition.text)
        except NoValueError as error:
            unknown.append(f"{condition.text}: {error}")
    if failed:
        undecided = _undecided(claim, results, values)
        return Judgement(None if undecided else False, shown, undecided or f"does not hold: {'; '.join(failed)}")
    if unknown:
        return Judgement(None, shown, "; ".join(missing or unknown))
    return Judgement(True, shown)


def conclude(
    claim: Claim,
    plain: Judgement,
    *,
    control: Judgement | None = None,
    jitter: float | None = None,
    robustness: float | None = None,
    stale: bool = False,
    depends: Sequence[Split] = (),
    proof: Checked | None = None,
    on_witnesses: Sequence[WitnessResult] = (),
) -> ClaimResult:
    """The verdict, from all results."""
    verdict, why = plain.word, plain.reason
    if plain.holds is False and claim.inconsistent is not None and proof is not None and proof.holds:
        verdict = INCONSISTENT
        why = f"{claim.inconsistent.argument} Shown by: {proof.plain.measured}"
    elif plain.holds is False and (shown := _artefact(claim, on_witnesses)):
        verdict, why = shown
    elif plain.holds is False:
        if claim.why:
            why = f"{why}. {claim.why}"
        if proof is not None:
            why = f"{why}. The proof that the source contradicts itself fails: {proof.reason}"
        failing = [one for one in on_witnesses if claim.artefact and one.witness.name == claim.artefact.witness]
        why = "".join(
            [why, *(f". Not shown to be an artefact of {one.witness.title}: {one.reason}" for one in failing)]
        )
    if control is not None and plain.holds is True:
        if control.holds is True:
            verdict = INCONCLUSIVE
            why = f"the check accepts the wrong system, too ({control.measured}): no number of runs settles it"
        elif control.holds is None:
            why = f"the check cannot be made on the wrong system: {control.reason}"
            verdict = INCONCLUSIVE
    if verdict == REPRODUCED:
        reasons = []
        if jitter is not None and jitter < FRAGILE_BELOW:
            reasons.append(f"with start jitter it holds for only {jitter:.0%} of the seeds")
        if robustness is not None and robustness < FRAGILE_BELOW:
            old = " (computed before the last change)" if stale else ""
            reasons.append(f"it holds at only {robustness:.0%} of the open parameters' plausible points{old}")
            if depends:
                reasons.append(f"the points differ most by {' and '.join(map(str, depends))}")
        if reasons:
            verdict, why = FRAGILE, "; ".join(reasons) + (f". {claim.why}" if claim.why else "")
    return ClaimResult(
        claim,
        plain,
        verdict,
        why,
        robustness=robustness,
        stale=stale,
        depends=depends,
        jitter=jitter,
        control=control,
        proof=proof,
        on_witnesses=on_witnesses,
    )


def _artefact(claim: Claim, on_witnesses: Sequence[WitnessResult]) -> tuple[str, str] | None:
    """The verdict on a claim that fails here and holds on its witness, and why; ``None`` if it does not."""
    if claim.artefact is None:
        return None
    for one in on_witnesses:
        if one.witness.name == claim.artefact.witness and one.holds:
            why = f"{claim.artefact.argument} {one.witness.title}: {one.plain.measured}"
            if one.share is None or one.share >= FRAGILE_BELOW:
                return ARTEFACT, why
            return FRAGILE_ARTEFACT, f"{why}; it holds at only {one.share:.0%} of the settings with runs there"
    return None


def show(value: Cell) -> str:
    """A measured value for people: four significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:.6g}" if float(value).is_integer() else f"{value:.4g}"
    return value


def _said(name: str, value: Cell) -> str:
    """``goodput_mbit_s`` and 9.5 as "goodput 9.5 Mbit/s"."""
    for suffix, unit in _UNITS.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {show(value)} {unit}"
    return f"{name.replace('_', ' ')} {show(value)}"


def _truth(value: Value) -> bool:
    if isinstance(value, Series):
        flat = value.collapsed()
        if len(flat.cells) != 1:
            raise NoValueError("several points; say all(…) or share(…)")
        value = next(iter(flat.cells.values()))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise NoValueError("no value")
    return bool(value)


def _shown(name: str, value: Value) -> dict[str, Cell]:
    """A measure for people: a single figure unchanged, a series not at all (later measures reduce it)."""
    if not isinstance(value, Series):
        if value is None:
            raise NoValueError("no value")
        return {name: value}
    flat = value.collapsed()
    return {name: next(iter(flat.cells.values()))} if len(flat.cells) == 1 else {}


def _undecided(claim: Claim, results: Source, values: dict[str, Value]) -> str:
    """Why more runs could reverse a failed check, and how many; empty if they could not or this is unknown."""
    if claim.undecided is None:
        return ""
    try:
        difference = claim.undecided.evaluate(results, values, claim.experiment)
    except NoValueError:
        return ""
    if not isinstance(difference, Series) or "seed" not in difference.axes:
        return ""
    _, groups = difference.groups("seed")
    needed: list[int | None] = []
    for rows in groups.values():
        sample = [number(v) for _, v in rows]
        interval = statistics.mean_interval(sample)
        if interval.lower is None or interval.upper is None:
            return f"one run per point; at least 2 are needed to compare {claim.undecided.text}"
        if interval.lower <= claim.undecided_from <= interval.upper:
            needed.append(statistics.runs_needed(sample, claim.undecided_from))
    if not needed:
        return ""
    known = [n for n in needed if n is not None]
    count = f"about {max(known)} runs per point would settle it" if len(known) == len(needed) else "no count settles it"
    return f"the 95 % interval holds {claim.undecided_from:g} at {len(needed)} point(s); {count}"
