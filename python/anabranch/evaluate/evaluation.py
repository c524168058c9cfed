"""Evaluates a congestion control or a queue: makes the runs of all checks, and judges every item."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from anabranch.errors import UserError
from anabranch.evaluate import control_mixed, control_single, judge, queue_checks
from anabranch.evaluate.build import Path as PathOf
from anabranch.evaluate.build import flow, scenario
from anabranch.evaluate.check import Case, Check, Plan
from anabranch.evaluate.items import Item, items_of
from anabranch.evaluate.judge import BROKEN, NOT_EVALUATED, Judgement, NoWorse
from anabranch.evaluate.queue_file import refusal
from anabranch.evaluate.runs import Failure, Finished, Job, Outcome, jobs_of, make
from anabranch.evaluate.subject import CONTROL, QUEUE, Subject, builtin, to_json
from anabranch.text import toml_text

FORMAT = 1
SEEDS = 10
"""Seeds of a full evaluation."""
QUICK_SEEDS = 5
AGAINST = ("cubic", "bbr3", "reno")
"""Competitors by default."""


@dataclass(frozen=True)
class Options:
    """The options of an evaluation.

    Attributes:
        against: Competitors of a control.
        engine: ``"sim"`` or ``"kernel"``.
        kernel: The kernel, as in :meth:`Scenario.run_kernel <anabranch.scenario.Scenario.run_kernel>`.
        is_quick: The small set of scenarios and seeds.
        seed: The first seed.
        repeat: The number of seeds; that of the set when left out.
        jobs: Number of parallel runs.
    """

    against: tuple[str, ...] = AGAINST
    engine: str = "sim"
    kernel: str | None = None
    is_quick: bool = False
    seed: int = 1
    repeat: int | None = None
    jobs: int | None = None

    @property
    def seeds(self) -> range:
        """The seeds of each run."""
        usual = QUICK_SEEDS if self.is_quick else SEEDS
        return range(self.seed, self.seed + (usual if self.repeat is None else self.repeat))


@dataclass(frozen=True)
class CaseResult:
    """A case with its figures and verdict.

    Attributes:
        case: The case.
        judgement: The verdict.
        values: The figure of each seed, of the subject (``"subject"``) and of each reference.
        text: The scenario that shows it.
        seed: The seed of a run that shows a failure.
        is_skipped: Whether its runs were not made, because others did not end.
    """

    case: Case
    judgement: Judgement
    values: Mapping[str, judge.Values]
    text: str
    seed: int
    is_skipped: bool = False

    @property
    def name(self) -> str:
        """Its name in tables."""
        return ", ".join(part for part in (self.case.group, self.case.label) if part)


@dataclass(frozen=True)
class CheckResult:
    """A check with its cases."""

    check: Check
    cases: tuple[CaseResult, ...]

    @cached_property
    def verdict(self) -> str:
        """The worst verdict of its cases; not "met" if a case was left out."""
        return _verdict([one.judgement.verdict for one in self.cases], is_partial=self.is_partial)

    @property
    def is_partial(self) -> bool:
        """Whether a case was left out, because other runs did not end."""
        return any(one.is_skipped for one in self.cases)

    @property
    def worst(self) -> CaseResult | None:
        """A case with this verdict, the one with the largest difference."""
        found = [one for one in self.cases if one.judgement.verdict == self.verdict]
        return max(found, key=_distance, default=None)


def _verdict(verdicts: Sequence[str], *, is_partial: bool) -> str:
    found = judge.worst(verdicts)
    return NOT_EVALUATED if is_partial and found == judge.MET else found


def _distance(one: CaseResult) -> float:
    """The smallest difference of a case to a reference, in margins."""
    gaps = [abs(d.mean) / d.margin for d in one.judgement.differences if d.margin]
    return min(gaps, default=0.0)


@dataclass(frozen=True)
class ItemResult:
    """An item with the verdict of its checks."""

    item: Item
    checks: tuple[CheckResult, ...]

    @property
    def verdict(self) -> str:
        """The worst verdict of its checks."""
        return _verdict([one.verdict for one in self.checks], is_partial=any(one.is_partial for one in self.checks))


@dataclass(frozen=True)
class Evaluation:
    """The result.

    Attributes:
        subject: The evaluated control or queue.
        options: The options.
        checks: Every check with its cases.
        digest: A hash of the digests of all runs.
        runs: The number of runs.
    """

    subject: Subject
    options: Options
    checks: tuple[CheckResult, ...]
    digest: str | None
    runs: int
    remarks: tuple[str, ...] = field(default=())

    @cached_property
    def items(self) -> tuple[ItemResult, ...]:
        """The items for the subject's role, in the order of the documents."""
        found = {one.check.id: one for one in self.checks}
        return tuple(
            ItemResult(item, tuple(found[name] for name in item.checks if name in found))
            for item in items_of(self.subject.role)
        )

    @property
    def counts(self) -> Counter[str]:
        """The number of items with each verdict."""
        return Counter(one.verdict for one in self.items)


def checks_of(role: str) -> tuple[Check, ...]:
    """All checks for a role of a subject."""
    return queue_checks.CHECKS if role == QUEUE else control_single.CHECKS + control_mixed.CHECKS


def evaluate(
    subject: Subject, options: Options, store: Finished, progress: Callable[[int, int], None] | None = None
) -> Evaluation:
    """Make all runs, and judge.

    Raises:
        UserError: A competitor does not exist, or the subject cannot begin.
    """
    plan = Plan(tuple(builtin(name) for name in options.against), options.is_quick)
    _try(subject)
    work = list(_work(subject, plan, options))
    jobs = list(dict.fromkeys(job for _, _, sides in work for side in sides.values() for job in _jobs(side)))
    outcomes = make(
        jobs,
        store,
        threads=options.jobs,
        kernel=options.kernel,
        engine=options.engine,
        progress=progress,
    )
    found: dict[str, list[CaseResult]] = {}
    sizes = Counter(check.id for check, _, _ in work)
    for check, case, sides in work:
        found.setdefault(check.id, []).append(_judged(case, sides, outcomes, sizes[check.id]))
    checks = tuple(CheckResult(check, tuple(found.get(check.id, ()))) for check in checks_of(subject.role))
    return Evaluation(subject, options, checks, _digest(jobs, outcomes), len(jobs), remarks=_remarks(subject, work))


def _remarks(subject: Subject, work: Sequence[tuple[Check, Case, dict[str, Side]]]) -> tuple[str, ...]:
    """Facts that a reader of the verdicts must know."""
    names = {name for _, case, _ in work if isinstance(case.rule, NoWorse) for name in case.rule.references}
    # A file may have the name of a reference.
    if all(_reference(subject, name).value != subject.value for name in names):
        return ()
    told = f"{subject.name} is one of its references: a criterion with itself alone is met by construction."
    return (told,)


Side = Mapping[str, Mapping[int, Job]]
"""The runs of one control or queue in a case, by role and seed."""
OWN = "subject"


def _jobs(side: Side) -> Iterator[Job]:
    for seeds in side.values():
        yield from seeds.values()


def _work(subject: Subject, plan: Plan, options: Options) -> Iterator[tuple[Check, Case, dict[str, Side]]]:
    """Every case with its runs."""
    for check in checks_of(subject.role):
        for case in check.cases(plan):
            if plan.is_quick and not case.is_quick:
                continue
            sides = {OWN: _side(case, subject, options)}
            if isinstance(case.rule, NoWorse):
                for name in case.rule.references:
                    sides[name] = _side(case, _reference(subject, name), options)
            yield check, case, sides


def _reference(subject: Subject, name: str) -> Subject:
    return queue_checks.REFERENCES[name] if subject.role == QUEUE else builtin(name)


def _side(case: Case, one: Subject, options: Options) -> Side:
    return {role: jobs_of(build(one), options.seeds, one, is_sampled=case.sampled) for role, build in case.runs.items()}


def _judged(case: Case, sides: Mapping[str, Side], outcomes: Mapping[Job, Outcome], cases: int) -> CaseResult:
    own = sides[OWN]
    shows = next(iter(own.values()))
    seed, first = next(iter(shows.items()))
    values = {name: _values(case, side, outcomes) for name, side in sides.items()}
    for job in sorted(_jobs(own), key=lambda job: _is_fault(outcomes[job]), reverse=True):
        outcome = outcomes[job]
        if isinstance(outcome, Failure):
            # A run that was not made must not leave the verdict to the others.
            verdict = BROKEN if _is_fault(outcome) else NOT_EVALUATED
            told = f"the engine refuses the scenario: {outcome.why}" if outcome.is_refused else outcome.why
            return CaseResult(case, Judgement(verdict, told), values, job.text, job.seed, outcome.is_skipped)
    stalled = _stalled(case, sides, outcomes)
    if stalled is not None:
        why = "the flow delivers nothing, and that of the references does"
        return CaseResult(case, Judgement(BROKEN, why), values, stalled.text, stalled.seed)
    references = {name: found for name, found in values.items() if name != OWN}
    judgement = judge.judge(case.rule, case.measure, values[OWN], references, cases)
    return CaseResult(case, judgement, values, first.text, seed)


def _is_fault(outcome: Outcome) -> bool:
    """Whether a run failed by a fault of the subject."""
    return isinstance(outcome, Failure) and not outcome.is_refused and not outcome.is_skipped


def _values(case: Case, side: Side, outcomes: Mapping[Job, Outcome]) -> dict[int, float | None]:
    found: dict[int, float | None] = {}
    for seed in next(iter(side.values())):
        runs = {role: outcomes[jobs[seed]] for role, jobs in side.items()}
        usable = {role: one for role, one in runs.items() if not isinstance(one, Failure)}
        found[seed] = case.measure.of(usable) if len(usable) == len(runs) else None
    return found


def _stalled(case: Case, sides: Mapping[str, Side], outcomes: Mapping[Job, Outcome]) -> Job | None:
    """A run whose flows of the subject deliver nothing, although those of a reference do in the same place."""
    if not isinstance(case.rule, NoWorse):
        return None
    role = next(iter(case.runs))
    others = [outcomes[job] for name, side in sides.items() if name != OWN for job in side[role].values()]
    if not any(_delivers(one) for one in others):
        return None
    return next((job for job in sides[OWN][role].values() if not _delivers(outcomes[job])), None)


def _delivers(outcome: Outcome) -> bool:
    if isinstance(outcome, Failure):
        return False
    flows = [flow for name, flow in outcome["flows"].items() if name.partition("/")[0] == "x"]
    return not flows or any(flow["delivered_bytes"] for flow in flows)


def _digest(jobs: Sequence[Job], outcomes: Mapping[Job, Outcome]) -> str | None:
    """A hash over the digests of all runs; ``None`` if they have none, as in kernels."""
    found = []
    for job in jobs:
        outcome = outcomes[job]
        told = outcome.why if isinstance(outcome, Failure) else outcome.get("digest")
        found.append(f"{hashlib.sha256(job.text.encode()).hexdigest()} {job.seed} {told}")
    if all(line.endswith(" None") for line in found):
        return None
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


def _try(subject: Subject) -> None:
    """Resolve a small scenario, so that a program that does not compile is bad input.

    Raises:
        UserError: The engine rejects the subject.
    """
    from anabranch import _engine

    path = PathOf(10, 20)
    if subject.role == CONTROL:
        document = scenario(path, {"x": flow(subject)}, duration=0.1, warmup=0)
    else:
        link = path.link(queue=queue_checks.table_of(subject, path))
        document = scenario(None, {"x": flow(builtin("reno"))}, duration=0.1, warmup=0, links={"bottleneck": link})
    controls = [(one.name, one) for one in subject.controls]
    text = toml_text.write_document(document)
    try:
        _engine.resolve(text, subject.name, [], 1, controls=controls)
    except _engine.ScenarioError as error:
        if subject.file is not None:
            raise refusal(*subject.file, error) from None
        raise UserError(f"{subject.source or subject.name} cannot be used: {error.message}") from None


def document(result: Evaluation) -> dict[str, Any]:
    """The content of ``evaluation.json``."""
    from anabranch import _engine

    options = result.options
    return {
        "format": FORMAT,
        "kind": "evaluation",
        "subject": to_json(result.subject),
        "against": list(options.against) if result.subject.role == CONTROL else [],
        "engine": options.engine,
        "quick": options.is_quick,
        "seeds": list(options.seeds),
        "runs": result.runs,
        "margin": judge.MARGIN,
        "anabranch_version": _engine.version(),
        "digest": result.digest,
        "counts": {verdict: result.counts.get(verdict, 0) for verdict in judge.VERDICTS},
        "items": [_item(one) for one in result.items],
        "checks": [_check(one) for one in result.checks],
    }


def _item(one: ItemResult) -> dict[str, Any]:
    item = one.item
    return {
        "id": item.id,
        "document": item.document,
        "section": item.section,
        "title": item.title,
        "verdict": one.verdict,
        "checks": list(item.checks),
        "why_not": item.why_not or None,
    }


def _check(one: CheckResult) -> dict[str, Any]:
    check = one.check
    return {
        "id": check.id,
        "title": check.title,
        "about": check.about,
        "criterion": check.criterion,
        "source": check.source,
        "verdict": one.verdict,
        "cases": [_case(case) for case in one.cases],
    }


def _case(one: CaseResult) -> dict[str, Any]:
    measure, interval = one.case.measure, one.judgement.interval
    return {
        "group": one.case.group,
        "label": one.case.label,
        "measure": measure.name,
        "unit": measure.unit,
        "less_is_better": measure.is_less_better,
        "verdict": one.judgement.verdict,
        "why": one.judgement.why,
        "mean": interval.mean if interval else None,
        "lower": interval.lower if interval else None,
        "upper": interval.upper if interval else None,
        "values": {name: {str(seed): v for seed, v in values.items()} for name, values in one.values.items()},
        "differences": [
            {
                "reference": d.reference,
                "mean": d.mean,
                "lower": d.lower,
                "upper": d.upper,
                "margin": d.margin,
                "verdict": d.verdict,
            }
            for d in one.judgement.differences
        ],
    }
