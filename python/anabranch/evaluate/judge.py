"""Verdicts: figures of the subject against those of references in the same place, or against a limit.

A comparison is a test of non-inferiority. The subject is worse if the interval of the paired difference is beyond the
smallest difference that counts, and not worse if the interval is within it. RFC 9743 §5, RFC 5166 and RFC 7928 leave
that difference to their readers, so it is ours: :data:`MARGIN` of the reference, or the measure's floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.evaluate.measures import Measure
from anabranch.statistics.statistics import Interval, mean_interval, t_quantile

MARGIN = 0.05
"""Share of the reference's mean that counts as a difference."""
LEVEL = 0.95
"""Confidence of the verdict of a check; the cases of a check share its error."""

MET = "met"
NOT_MET = "not met"
INCONCLUSIVE = "inconclusive"
BROKEN = "broken"
NOT_EVALUATED = "not evaluated"
VERDICTS = (BROKEN, NOT_MET, INCONCLUSIVE, MET, NOT_EVALUATED)
"""All verdicts, the worst first."""

Values = Mapping[int, float | None]
"""The figure of each seed."""


@dataclass(frozen=True)
class NoWorse:
    """The subject is not worse than at least one reference in the same scenario.

    Attributes:
        references: Names of the references; of several, the subject must be no worse than the worst of them.
    """

    references: tuple[str, ...]


@dataclass(frozen=True)
class Limit:
    """The figure of every run is within a limit that a source states."""

    value: float
    is_most: bool = True


Rule = NoWorse | Limit


@dataclass(frozen=True)
class Difference:
    """The paired difference of the subject and a reference.

    Attributes:
        reference: Its name.
        mean: The mean of subject − reference.
        lower: Lower end of the interval.
        upper: Upper end.
        margin: The smallest difference that counts.
        verdict: The result for this reference.
    """

    reference: str
    mean: float
    lower: float
    upper: float
    margin: float
    verdict: str


@dataclass(frozen=True)
class Judgement:
    """The verdict of a case, and its reasons."""

    verdict: str
    why: str
    interval: Interval | None = None
    differences: tuple[Difference, ...] = ()


def known(values: Values) -> dict[int, float]:
    """The finite figures."""
    return {seed: v for seed, v in values.items() if v is not None and math.isfinite(v)}


def interval_of(values: Values) -> Interval | None:
    """Mean and interval over the seeds; ``None`` without a figure."""
    found = list(known(values).values())
    return mean_interval(found, LEVEL) if found else None


def judge(rule: Rule, measure: Measure, own: Values, references: Mapping[str, Values], cases: int = 1) -> Judgement:
    """The verdict of a case.

    Args:
        rule: The criterion.
        measure: The figure.
        own: The subject's figures.
        references: The figures of the references, by name.
        cases: Cases of the check, which share the error of its verdict.
    """
    level = 1 - (1 - LEVEL) / max(cases, 1)
    interval = interval_of(own)
    if isinstance(rule, NoWorse):
        # A transfer that never completes has no time: without this rule such runs would not count.
        finite = known(own).keys()
        lost = {seed for name in rule.references for seed in known(references[name]) if seed in own} - finite
        if lost:
            told = f"no figure in {len(lost)} of {len(own)} runs in which a reference has one"
            return Judgement(NOT_MET, told, interval)
    if interval is None:
        return Judgement(NOT_EVALUATED, f"no run has a figure for the {measure.name}")
    if isinstance(rule, Limit):
        return _limited(rule, measure, own, interval)
    found = [difference(measure, own, references[name], name, level) for name in rule.references]
    usable = tuple(one for one in found if one is not None)
    if not usable:
        return Judgement(NOT_EVALUATED, "no reference has the figure", interval)
    # The worst reference decides: the one beside which the subject looks best.
    order = (MET, INCONCLUSIVE, NOT_MET)
    best = min(usable, key=lambda one: order.index(one.verdict))
    return Judgement(best.verdict, _why(best, usable, measure), interval, usable)


def difference(measure: Measure, own: Values, other: Values, name: str, level: float = LEVEL) -> Difference | None:
    """The paired difference to a reference over common seeds; ``None`` without one."""
    mine, theirs = known(own), known(other)
    seeds = sorted(mine.keys() & theirs.keys())
    if not seeds:
        return None
    gaps = [mine[seed] - theirs[seed] for seed in seeds]
    base = abs(math.fsum(theirs[seed] for seed in seeds) / len(seeds))
    margin = max(MARGIN * base, measure.floor)
    mean = math.fsum(gaps) / len(gaps)
    half = _half(gaps, level)
    lower, upper = mean - half, mean + half
    worst, best = (upper, lower) if measure.is_less_better else (-lower, -upper)
    # The spread of one run is unknown.
    is_known = len(seeds) > 1
    verdict = INCONCLUSIVE if not is_known else MET if worst <= margin else NOT_MET if best > margin else INCONCLUSIVE
    return Difference(name, mean, lower, upper, margin, verdict)


def _half(gaps: Sequence[float], level: float) -> float:
    """Half of Student's interval; 0 if all are equal, as in runs without random input, or with one seed."""
    if len(gaps) < 2 or min(gaps) == max(gaps):
        return 0.0
    mean = math.fsum(gaps) / len(gaps)
    variance = math.fsum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    return t_quantile(0.5 + level / 2, len(gaps) - 1) * math.sqrt(variance / len(gaps))


def _limited(rule: Limit, measure: Measure, own: Values, interval: Interval) -> Judgement:
    """A limit holds for every run: one run that breaks it suffices."""
    kept = [value <= rule.value if rule.is_most else value >= rule.value for value in known(own).values()]
    verdict = MET if all(kept) else NOT_MET
    word = "at most" if rule.is_most else "at least"
    count = "" if all(kept) else f", which {kept.count(False)} of {len(kept)} runs break"
    told = f"{shown(interval.mean, measure.unit)}; {word} {shown(rule.value, measure.unit)}{count}"
    return Judgement(verdict, told, interval)


def _why(best: Difference, all_of: Sequence[Difference], measure: Measure) -> str:
    names = " and ".join(one.reference for one in all_of)
    told = {MET: "not worse than", NOT_MET: "worse than", INCONCLUSIVE: "the interval does not decide beside"}
    gap = shown(best.mean, measure.unit, sign=True)
    chosen = names if best.verdict == NOT_MET else best.reference
    return f"{told[best.verdict]} {chosen}: {gap}"


def shown(value: float, unit: str = "", *, sign: bool = False) -> str:
    """A figure for people."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.01 or size == 0 else 4
    text = f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")
    return f"{text} {unit}".strip()


def worst(verdicts: Sequence[str]) -> str:
    """The verdict of several: the worst of those that were evaluated."""
    return min(verdicts, key=VERDICTS.index, default=NOT_EVALUATED)
