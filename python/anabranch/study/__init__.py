"""Studies: published results as claims, checked by running them.

from anabranch import Study

result = Study.load("reordering").run(quick=True)
for claim in result.claims:
    print(claim.claim.id, claim.verdict, claim.plain.measured)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, overload

from anabranch.errors import UserError, nearest
from anabranch.study import dependence, needs, tables
from anabranch.study import robustness as robustness_module
from anabranch.study.correction import Corrected, CorrectionJson, CorrectionResult
from anabranch.study.definition import Claim, Definition
from anabranch.study.inconsistency import exclusion
from anabranch.study.keep import Kept
from anabranch.study.parse import load
from anabranch.study.results import Condition, Job, Pool, Results
from anabranch.study.robustness import Robustness
from anabranch.study.series import Cell
from anabranch.study.tables import Record, StudyTable
from anabranch.study.verdict import Checked, ClaimResult, Judgement, conclude, judge
from anabranch.study.witness import WitnessResultJson, judge_on_witnesses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anabranch.study.live import LiveStudyResult

__all__ = ["ClaimJson", "ClaimResult", "Study", "StudyJson", "StudyResult", "StudyTable", "TableJson"]


class ClaimJson(TypedDict, total=False):
    """One claim in the JSON of ``anabranch study``; shares are ratios. ``why`` is absent if the claim was reproduced.

    ``section`` is present only if the claim is not the source's own.
    """

    id: str
    section: str
    claim: str
    published: str
    accept_if: str
    measured: str
    verdict: str
    robustness: float | None
    robustness_stale: bool
    jitter: float | None
    control: str | None
    why: str
    measures: dict[str, Cell]
    inconsistency: InconsistencyJson
    witnesses: list[WitnessResultJson]


class InconsistencyJson(TypedDict):
    """Why the source contradicts itself: the statements, the argument, and the measured proof."""

    statements: list[str]
    argument: str
    measured: str
    holds: bool
    control: str | None


class TableJson(TypedDict):
    """One table in the JSON of ``anabranch study``: the titles of its columns, and a record for each row."""

    id: str
    title: str
    columns: dict[str, str]
    rows: list[Record]


class StudyJson(TypedDict):
    """The JSON of ``anabranch study``."""

    study: str
    title: str
    mode: str
    engine: str
    anabranch_version: str
    claims: list[ClaimJson]
    tables: list[TableJson]
    corrections: list[CorrectionJson]


@dataclass(frozen=True)
class StudyResult:
    """A study that was run.

    Attributes:
        definition: The study.
        mode: ``"quick"`` or ``"full"``.
        claims: Every claim with its verdict, in the order of the study.
        tables: The tables that the study declares.
        corrections: Results of the claims before a reading was corrected.
        results: The runs themselves.
        robustness: The known robustness, if any.
        notes: Remarks on the runs as a whole.
    """

    definition: Definition
    mode: str
    claims: list[ClaimResult]
    tables: list[StudyTable]
    results: Results
    robustness: Robustness | None
    notes: list[str]
    runs: int
    corrections: list[CorrectionResult] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a check is invalid because it also accepts the wrong system."""
        return any(c.check_failed for c in self.claims)

    @property
    def by_section(self) -> list[tuple[str, list[ClaimResult]]]:
        """The claims by section. The source's own claims come first, without a title."""
        titles: dict[str | None, str] = {
            None: "",
            **{name: section.title for name, section in self.definition.sections.items()},
        }
        groups = ((title, [c for c in self.claims if c.claim.section == name]) for name, title in titles.items())
        return [(title, claims) for title, claims in groups if claims]

    @overload
    def plot(
        self,
        y: str,
        *,
        x: str | None = None,
        color: str | None = None,
        col: None = None,
        experiment: str | None = None,
        ax: Axes | None = None,
    ) -> Axes: ...

    @overload
    def plot(
        self, y: str, *, x: str | None = None, color: str | None = None, col: str, experiment: str | None = None
    ) -> Figure: ...

    def plot(
        self,
        y: str,
        *,
        x: str | None = None,
        color: str | None = None,
        col: str | None = None,
        experiment: str | None = None,
        ax: Axes | None = None,
    ) -> Axes | Figure:
        """Draw a quantity over an axis, with 95 % intervals over seeds, like :meth:`SweepResult.plot` for a sweep.

        Args:
            y: A quantity of the study, or an expression in the language of claims.
            x: The x axis; default: the first axis of the experiment.
            color: The axis that differs in colour; default: ``"variant"`` if there are variants.
            col: The axis whose values have a panel each.
            experiment: The experiment; default: the study's first.
            ax: The axes to draw into; default: axes of a new figure.

        Returns:
            The axes drawn into; with ``col`` the figure.

        Raises:
            UserError: There is no such quantity or axis.
        """
        from anabranch.plot.study_points import plot_study

        return plot_study(self, y, x=x, color=color, col=col, experiment=experiment, ax=ax)

    def to_json(self) -> StudyJson:
        """The document of ``anabranch study --json``."""
        from anabranch import _engine

        return {
            "study": self.definition.name,
            "title": self.definition.title,
            "mode": self.mode,
            "engine": "sim",
            "anabranch_version": _engine.version(),
            "claims": [_claim_json(c, self.definition) for c in self.claims],
            "tables": [_table_json(t) for t in self.tables],
            "corrections": [c.to_json() for c in self.corrections],
        }

    def write(self, directory: str | Path) -> None:
        """Write figures, tables and reports into a directory, which appears whole or not at all."""
        from anabranch.report.study_output import write_study

        write_study(self, Path(directory))


class Study:
    """A study's directory, read and checked."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    @classmethod
    def load(cls, name: str | Path) -> Study:
        """A study that ships, by name, or any directory with a ``study.toml``.

        Raises:
            UserError: There is no such study, or it is wrong; the message has file, line and column.
        """
        return cls(load(find(name)))

    def run(
        self,
        *,
        quick: bool = False,
        robustness: bool = False,
        figures: bool = True,
        jobs: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        keep: str | Path | None = None,
        store: str | Path | None = None,
        remark: Callable[[str], None] | None = None,
    ) -> StudyResult:
        """Run everything and judge every claim: unmodified, with start jitter, and on its wrong system.

        Args:
            quick: The quick grid rather than the full one.
            robustness: Also judge over the open parameters' ranges, which multiplies the time by the number of points.
            figures: Also make the runs that no claim or table needs, for the figures of :meth:`StudyResult.write`.
            jobs: Threads; default: all cores.
            progress: Called with (stage, finished, total).
            keep: Directory of the results, which stores finished runs: after an interrupt, the same call resumes there.
                Pass the same directory to :meth:`StudyResult.write`.
            store: Directory of finished runs that sweeps, studies and comparisons share, instead of ``keep``.
            remark: Called with a sentence for each run that is unusable and is made again.

        Raises:
            ScenarioError: A scenario of the study is wrong.
            UserError: The study refers to a figure that does not exist.
        """
        pool = Pool(self.definition, jobs, self._kept(keep, store, remark))
        return self._judged(pool, quick=quick, robustness=robustness, figures=figures, progress=progress)

    def run_live(
        self,
        *,
        quick: bool = False,
        jobs: int | None = None,
        attempts: int = 2,
        announce: Callable[[int, float], None] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> LiveStudyResult:
        """Run the study's ``[live]`` part with this machine's kernel, in real time, and in the simulator.

        Args:
            quick: The quick grid of ``[live]``.
            jobs: Threads of the simulator's runs; live runs are sequential.
            attempts: Largest number of attempts at a tainted run.
            announce: Called with the number of live runs and their duration in seconds, before the first.
            progress: As in :meth:`run`.

        Raises:
            ScenarioError: A scenario is wrong, or needs a feature that no live run has.
            UserError: The study has no ``[live]``, or this machine does not permit live runs.
            RunFailedError: A run failed.
        """
        from anabranch.study.live import run_live

        return run_live(self, quick=quick, jobs=jobs, attempts=attempts, announce=announce, progress=progress)

    def run_kernel(
        self,
        *,
        quick: bool = False,
        jobs: int | None = None,
        kernel: str | None = None,
        announce: Callable[[int, float], None] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        keep: str | Path | None = None,
        store: str | Path | None = None,
        remark: Callable[[str], None] | None = None,
    ) -> LiveStudyResult:
        """Run the study's ``[live]`` part in Linux kernels in virtual time, and in the simulator.

        Args:
            quick: The quick grid of ``[live]``.
            jobs: Number of parallel kernels, and threads of the simulator's runs; default: all cores.
            kernel: The kernel, as in :meth:`Scenario.run_kernel <anabranch.scenario.Scenario.run_kernel>`.
            announce: Called with the number of runs in kernels and their virtual seconds, before the first.
            progress: As in :meth:`run`.
            keep: As in :meth:`run`.
            store: As in :meth:`run`.
            remark: As in :meth:`run`.

        Raises:
            ScenarioError: A scenario is wrong, or needs a feature that no kernel in virtual time has.
            UserError: The study has no ``[live]``, or no such kernel is built.
            RunFailedError: A run failed.
        """
        from anabranch.study.live import run_live

        kept = self._kept(keep, store, remark)
        return run_live(
            self,
            quick=quick,
            jobs=jobs,
            engine="kernel",
            kernel=kernel,
            kept=kept,
            announce=announce,
            progress=progress,
        )

    def _kept(
        self, keep: str | Path | None, store: str | Path | None, remark: Callable[[str], None] | None
    ) -> Kept | None:
        """The finished runs in a directory of results, or in one that others share."""
        if keep is None and store is None:
            return None
        own, common = (None if place is None else Path(place) for place in (keep, store))
        return Kept(own, self.definition.directory, remark, common)

    def _everything(self, pool: Pool, *, quick: bool) -> list[Job]:
        """Every run that verdicts and tables need."""
        return [job for plan in self.plans(pool, quick=quick).values() for job in plan]

    def plans(self, pool: Pool, *, quick: bool, figures: bool = True) -> dict[str, list[Job]]:
        """The runs by their condition: ``plain``, ``jitter``, ``wrong NAME``, ``before NAME``.

        Args:
            pool: Knows the scenarios' first seeds.
            quick: The quick grid rather than the full one.
            figures: Also the runs that no claim or table needs.
        """
        definition = self.definition
        conditions = {"plain": Condition(full=not quick)}
        if definition.jitter:
            conditions["jitter"] = Condition(full=not quick, jitter=True)
        for name in dict.fromkeys(c.control for c in definition.checks if c.control):
            conditions[f"wrong {name}"] = Condition(full=not quick, wrong=definition.wrongs[name])
        # The quick grid leaves corrections out, because they would double its time.
        for name, correction in definition.corrections.items() if not quick else ():
            if correction.before:
                conditions[f"before {name}"] = Condition(full=True, wrong=correction.before)
        plans = {name: self._plan(pool, name, condition) for name, condition in conditions.items()}
        if not figures:
            asked = needs.of_claims(definition, [c for c in definition.checks if not (quick and c.full_only)])
            plans["plain"] = needs.only(
                plans["plain"], asked.union(*(needs.of_table(definition, table) for table in definition.tables))
            )
        return plans

    def _judged(
        self,
        pool: Pool,
        *,
        quick: bool,
        robustness: bool = False,
        figures: bool = True,
        progress: Callable[[str, int, int], None] | None = None,
        spoilt: Callable[[int], str] | None = None,
    ) -> StudyResult:
        """Make the runs that are missing in ``pool``, and judge every claim.

        ``spoilt`` returns the reason why a claim has no verdict, given the number of its runs without a result.
        """
        definition = self.definition
        plans = self.plans(pool, quick=quick, figures=figures)
        everything = [job for plan in plans.values() for job in plan]
        total = len(pool.missing(everything))
        pool.make(everything, lambda n: progress(f"study {definition.name}", n, total) if progress else None)
        results = {name: pool.results(plan) for name, plan in plans.items()}
        # By key: runs that are equal for the engine are made once, under the name of one of them.
        lost = {job.key for job in pool.lost}

        known: Robustness | None
        if robustness:
            known = robustness_module.compute(
                definition, pool, lambda n, of: progress("robustness", n, of) if progress else None
            )
        elif definition.is_live:
            # The stored robustness belongs to the study's unmodified setting.
            known = None
        else:
            known = robustness_module.kept(definition, lambda: self._quick(pool))
        holds_plainly = {
            claim.id: judge(claim, results["plain"]).holds
            for claim in definition.claims
            if any(
                claim.id in (other.id, *other.inconsistent.excludes)
                for other in definition.claims
                if other.inconsistent
            )
        }
        claims = []
        for claim in definition.claims:
            share = known.claims.get(claim.id) if known else None
            asked = needs.of_claims(definition, [claim])
            judging = [plans["plain"], plans[f"wrong {claim.control}"] if claim.control else []]
            without = {job.key for plan in judging for job in needs.only(plan, asked)} & lost
            reason = spoilt(len(without)) if spoilt and without else ""
            # The measures of the available runs are shown, but are no verdict.
            measures = judge(claim, results["plain"]).measures if reason else {}
            if quick and claim.full_only:
                reason, measures = "the quick grid cannot judge it; run the full study (one run per point)", {}
            if reason:
                plain = Judgement(None, measures, reason)
                claims.append(conclude(claim, plain, robustness=share, stale=bool(known and known.stale)))
                continue
            jitter = results.get("jitter")
            held = [judge(claim, jitter.only_seed(s)).holds is True for s in jitter.seeds()] if jitter else []
            claims.append(
                conclude(
                    claim,
                    judge(claim, results["plain"]),
                    control=judge(claim, results[f"wrong {claim.control}"]) if claim.control else None,
                    jitter=sum(held) / len(held) if held else None,
                    robustness=share,
                    stale=bool(known and known.stale),
                    depends=dependence.splits(definition, claim, known.judged(claim.id)) if known else (),
                    proof=_proof(claim, results, known, holds_plainly),
                    on_witnesses=judge_on_witnesses(definition, claim),
                )
            )
        notes = self._notes(results["plain"])
        mode = "quick" if quick else "full"
        # A table with a run that has no result would have a gap.
        whole = [
            table
            for table in definition.tables
            if all(job.key not in lost for job in needs.only(plans["plain"], needs.of_table(definition, table)))
        ]
        made = [tables.one(results["plain"], table, full=not quick) for table in whole]
        corrections = _corrected(definition, results, claims)
        return StudyResult(
            definition=definition,
            mode=mode,
            claims=claims,
            tables=made,
            results=results["plain"],
            robustness=known,
            notes=notes,
            runs=total,
            corrections=corrections,
        )

    def _plan(self, pool: Pool, name: str, condition: Condition) -> list[Job]:
        """All runs under the condition "plain"; under other conditions, only the runs that judge a claim."""
        jobs = pool.plan(condition)
        if name == "plain":
            return jobs
        if name.startswith("before "):
            changed = self.definition.corrections[name.removeprefix("before ")].claims
            judged = [claim for claim in self.definition.claims if claim.id in changed]
        else:
            judged = [
                c for c in self.definition.checks
                if (condition.wrong is None or c.control == condition.wrong.name)
                and (condition.full or not c.full_only)
            ]  # fmt: skip
        wrong = condition.wrong
        if wrong is not None and wrong.variants:
            jobs = [job for job in jobs if job.experiment not in wrong.experiments or job.variant in wrong.variants]
        return needs.only(jobs, needs.of_claims(self.definition, judged))

    def _quick(self, pool: Pool) -> Results:
        jobs = robustness_module.asked(self.definition, pool)
        pool.make(jobs)
        return pool.results(jobs)

    def _notes(self, plain: Results) -> list[str]:
        stored = [
            f"{', '.join(w.claims)}: also judged on stored runs of {w.title} ({w.command}, {w.date})."
            for w in self.definition.witnesses.values()
        ]
        if not plain.runs or self.definition.jitter or len(plain.seeds()) > 1:
            return stored
        return [
            *stored,
            "One seed and no [jitter]: where nothing in a scenario is random, every figure is a single sample.",
        ]


def find(name: str | Path) -> Path:
    """The directory of a study, by path or by the name of a shipped study.

    Raises:
        UserError: There is none.
    """
    from anabranch.files.checkout import shipped_studies

    path = Path(name)
    try:
        if (path / "study.toml").is_file():
            return path
    except PermissionError as error:
        raise UserError(f"{name}: {error.strerror}") from None
    shipped = shipped_studies()
    if str(name) in shipped:
        return shipped[str(name)]
    if path.is_file():
        raise UserError(f"{name} is a file; a study is a directory with a study.toml")
    if path.is_dir():
        raise UserError(f"{name} has no study.toml", hint="a study is a directory with a study.toml")
    raise UserError(f'there is no study "{name}"', hint=nearest(str(name), shipped) if shipped else "give a directory")


def _proof(
    claim: Claim, results: Mapping[str, Results], known: Robustness | None, plain: Mapping[str, bool | None]
) -> Checked | None:
    """The result of the proof that the source contradicts itself, if the study declares one."""
    if claim.inconsistent is None:
        return None
    check = claim.inconsistent.proof
    if check is None:
        return Checked(exclusion(claim, known, plain))
    return Checked(judge(check, results["plain"]), judge(check, results[f"wrong {check.control}"]))


def _corrected(
    definition: Definition, results: Mapping[str, Results], claims: list[ClaimResult]
) -> list[CorrectionResult]:
    """Results of the claims before each correction: with the earlier setting, or with the earlier check."""
    made = []
    for name, correction in definition.corrections.items():
        before = results.get(f"before {name}")
        corrected = []
        for one in claims:
            earlier = one.claim.before
            if earlier is not None and earlier.correction == name:
                if correction.before is not None and before is None:
                    continue
                found = judge(earlier.check, before if before is not None else results["plain"])
                corrected.append(Corrected(one, found, earlier.check.accept_if))
            elif before is not None and one.claim.id in correction.claims:
                corrected.append(Corrected(one, judge(one.claim, before)))
        made.append(CorrectionResult(correction, tuple(corrected)))
    return made


def _table_json(made: StudyTable) -> TableJson:
    return {
        "id": made.table.id,
        "title": made.table.title,
        "columns": {column.name: column.title for column in made.columns},
        "rows": [{k: _finite(v) for k, v in record.items()} for record in made.records],
    }


def _finite(value: Cell) -> Cell:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _claim_json(result: ClaimResult, definition: Definition) -> ClaimJson:
    claim: ClaimJson = {
        "id": result.claim.id,
        "claim": result.claim.claim,
        "published": result.claim.published,
        "accept_if": result.claim.accept_if,
        "measured": result.plain.measured,
        "verdict": result.verdict,
        "robustness": result.robustness,
        "robustness_stale": result.stale,
        "jitter": result.jitter,
        "control": result.control.word if result.control else None,
        "measures": {k: _finite(v) for k, v in result.plain.measures.items()},
    }
    if result.claim.section is not None:
        claim["section"] = definition.sections[result.claim.section].title
    if result.verdict != "reproduced":
        claim["why"] = result.why
    declared = result.claim.inconsistent
    if declared is not None and result.proof is not None:
        claim["inconsistency"] = {
            "statements": list(declared.statements),
            "argument": declared.argument,
            "measured": result.proof.plain.measured,
            "holds": result.proof.holds,
            "control": result.proof.control.word if result.proof.control else None,
        }
    if result.on_witnesses:
        claim["witnesses"] = [one.to_json() for one in result.on_witnesses]
    return claim
