"""Studies in the live engine, compared with the simulator.

The claims named in ``[live]`` are judged by runs with this machine's kernel, and by the simulator's runs of the same
scenarios over the same grid.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from anabranch.errors import RunFailedError, UserError
from anabranch.limits import check_jobs
from anabranch.live import MAX_TAINTED, Machine, check, unavailable
from anabranch.result.table import Table, column_of
from anabranch.study.results import Condition, Job, Pool, Results
from anabranch.study.series import Cell
from anabranch.study.verdict import INCONCLUSIVE
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from anabranch import _engine
    from anabranch.result.result import KeptRun
    from anabranch.result.summary import LiveRunSummary
    from anabranch.study import ClaimJson, ClaimResult, Study, StudyResult, StudyTable
    from anabranch.study.definition import Definition
    from anabranch.study.keep import Kept

ATTEMPTS = 2
"""Largest number of attempts at a run that is tainted, by default."""

MAX_ATTEMPTS = 100

LATEST_SAMPLE_MS = 5.0
"""A socket sample more than this after its time is dropped. The limit is half the sampling interval of sockets."""

_FIGURES = re.compile(r"^[\d.,]+ |\bmore than [\d.]+ ms |\b[\d.]+ ms (?=late)|; .*$")
"""The parts of the audit's reasons that differ from run to run."""


class LiveAuditJson(TypedDict):
    """The audit of the live runs, with the largest number of attempts at one."""

    attempts: int
    runs: int
    tainted: int
    without_result: int
    reasons: dict[str, int]
    seconds: float


class LiveVerdictJson(TypedDict):
    """The result of one engine for a claim; the keys are those of the study's JSON."""

    measured: str
    verdict: str
    control: str | None
    why: NotRequired[str]
    measures: dict[str, Cell]


class LiveTableJson(TypedDict):
    """A table of one engine, as text."""

    engine: str
    head: list[str]
    cells: list[list[str]]
    id: str
    title: str


class PointsJson(TypedDict):
    """Means by point, as text: the heads, then the rows."""

    figure: str
    rows: list[list[str]]


class LiveClaimJson(TypedDict):
    """One claim with the results of both engines."""

    id: str
    claim: str
    published: str
    accept_if: str
    simulator: LiveVerdictJson
    live: LiveVerdictJson


class LiveStudyJson(TypedDict):
    """The JSON of ``anabranch study --engine live``."""

    study: str
    title: str
    mode: str
    engine: str
    about: str
    anabranch_version: str
    machine: Machine
    audit: LiveAuditJson
    repeats: NotRequired[dict[str, int]]
    claims: list[LiveClaimJson]
    tables: list[LiveTableJson]
    points: NotRequired[PointsJson]
    runs: NotRequired[str]
    resolved: NotRequired[str]


def on_grid(samples: Table, every_ms: float) -> Table:
    """Samples of sockets, moved to the sampling times of links and groups so that they can be compared.

    Live, a socket is sampled a little after its time, and every 10 ms, whatever the study's interval.

    Args:
        samples: Samples with ``time_s`` and ``flow``.
        every_ms: Interval of the sampling times, in ms.
    """
    import numpy as np

    step = every_ms / 1000
    times = samples.numbers("time_s")
    # The tolerance keeps a sample taken exactly at a grid time from being rounded down to the one before.
    place = np.floor(times / step + 1e-6)
    placed = samples.with_columns({"time_s": column_of(np.round(place * step, 9))})
    kept = placed.where(times - place * step < LATEST_SAMPLE_MS / 1000)
    firsts = [int(rows[0]) for rows in kept.groups("time_s", "flow").values()]
    return kept.take(np.array(firsts, dtype=np.int64))


def _too_many(audit: LiveAuditJson) -> bool:
    return audit["tainted"] > MAX_TAINTED * audit["runs"]


@dataclass
class Audit:
    """The audit of the live runs.

    Attributes:
        attempts: Largest number of attempts at a run.
        runs: Runs made, repeats included.
        tainted: Tainted runs among them: too late, or with packets lost on the way to the kernel.
        without_result: Jobs whose repeats were tainted as well.
        reasons: Number of runs by reason: the words of the audit, without their figures.
        seconds: Total duration.
        machine: The kernel and its machine.
    """

    attempts: int = ATTEMPTS
    runs: int = 0
    tainted: int = 0
    without_result: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    machine: Machine = field(default_factory=Machine)

    @property
    def failed(self) -> bool:
        """Whether more runs were tainted than permitted."""
        return _too_many(self.json())

    def json(self) -> LiveAuditJson:
        """The audit in the JSON document."""
        return {
            "attempts": self.attempts,
            "runs": self.runs,
            "tainted": self.tainted,
            "without_result": self.without_result,
            "reasons": dict(self.reasons),
            "seconds": round(self.seconds, 1),
        }


class LivePool(Pool):
    """Makes runs live, one after the other; a tainted run is repeated, up to ``attempts`` attempts."""

    def __init__(self, definition: Definition, attempts: int = ATTEMPTS, kept: Kept | None = None) -> None:
        super().__init__(definition, kept=kept)
        self.audit = Audit(attempts)

    def make(self, jobs: Sequence[Job], progress: Callable[[int], None] | None = None) -> None:
        """Make the missing runs of ``jobs``; a job that is tainted every time has no outcome and is ``lost``.

        Raises:
            ScenarioError: A scenario of the study is wrong, or cannot run live.
            UserError: This machine does not permit live runs.
            RunFailedError: A run failed.
        """
        import time

        started = time.monotonic()
        todo = [job for job in self.missing(jobs) if all(job.key != lost.key for lost in self.lost)]
        made = 0
        # A disturbance often lasts, so repeats come after all other runs.
        for _ in range(self.audit.attempts):
            again = []
            for job in todo:
                if progress:
                    progress(made)
                if self._succeeds(job):
                    made += 1
                else:
                    again.append(job)
            todo = again
        self.lost += todo
        self.audit.without_result += len(todo)
        self.audit.seconds += time.monotonic() - started

    def results(self, jobs: Sequence[Job]) -> Results:
        """The outcomes of the ``jobs`` that have one."""
        return Results(self.definition, [(j, self.outcomes[j.key]) for j in jobs if j.key in self.outcomes])

    def _succeeds(self, job: Job) -> bool:
        """Make a run. Returns whether it has a result."""
        return self._take(job, self._run(job))

    def _take(self, job: Job, run: _engine.Run | KeptRun) -> bool:
        """Record the outcome of a run. Returns whether it has a result."""
        summary: LiveRunSummary = json.loads(run.summary_json)
        reasons = summary["live"]["audit"]["reasons"]
        self.audit.runs += 1
        machine = summary["live"]["machine"]
        self.audit.machine = {
            "kernel": machine["kernel"],
            "machine": machine["machine"],
            "processors": machine["processors"],
        }
        if reasons:
            self.audit.tainted += 1
            self.audit.reasons.update(re.sub(_FIGURES, "", reason) for reason in reasons)
            return False
        outcome = self._outcome(run, job.samples_ms is not None)
        if job.samples_ms is not None and "samples" in outcome.tables:
            samples = on_grid(outcome.tables["samples"], job.samples_ms)
            outcome = replace(outcome, tables={**outcome.tables, "samples": samples})
        self.outcomes[job.key] = outcome
        return True

    def _run(self, job: Job) -> _engine.Run:
        from anabranch import _engine

        text, file, sets, seed = self._task(job)
        try:
            return _engine.run_live(text, file, sets, seed=seed, samples_ms=job.samples_ms)
        except _engine.LiveUnavailableError as error:
            raise unavailable(error) from None
        except RuntimeError as error:
            raise RunFailedError(f"the live run {named(job)} failed: {error}") from None


def named(job: Job) -> str:
    """A run in words."""
    return ", ".join(str(part) for part in (job.experiment, job.variant, *job.point, f"seed {job.seed}"))


@dataclass(frozen=True)
class LiveStudyResult:
    """A study that was run live.

    Attributes:
        definition: The part of the study that runs live.
        simulated: The simulator's verdicts on the same scenarios and grid.
        live: The verdicts of the runs with the kernel's TCP.
        audit: The audit of these runs.
        engine: ``"live"``, or ``"kernel"`` for runs in virtual time.
    """

    definition: Definition
    simulated: StudyResult
    live: StudyResult
    audit: Audit
    engine: str = "live"

    @property
    def claims(self) -> list[tuple[ClaimResult, ClaimResult]]:
        """Each claim with the verdicts of the simulator and of the live runs."""
        return list(zip(self.simulated.claims, self.live.claims, strict=True))

    @property
    def repeats(self) -> dict[str, int]:
        """The smallest number of runs with a result at a point, by experiment."""
        runs = Counter((job.experiment, job.variant, job.point) for job, _ in self.live.results.runs)
        fewest: dict[str, int] = {}
        for (experiment, *_), n in runs.items():
            fewest[experiment] = min(n, fewest.get(experiment, n))
        return fewest

    @property
    def tables(self) -> list[tuple[StudyTable, StudyTable]]:
        """The tables for which both engines have all runs, each from the simulator and from the live runs."""
        simulated = {made.table.id: made for made in self.simulated.tables}
        return [(simulated[made.table.id], made) for made in self.live.tables]

    def to_json(self) -> LiveStudyJson:
        """The document of ``anabranch study --engine live --json``."""
        simulated, live = self.simulated.to_json(), self.live.to_json()
        both = zip(simulated["claims"], live["claims"], strict=True)
        return {
            "study": live["study"],
            "title": live["title"],
            "mode": live["mode"],
            "engine": self.engine,
            "about": self.definition.about,
            "anabranch_version": live["anabranch_version"],
            "machine": self.audit.machine,
            "audit": self.audit.json(),
            "repeats": self.repeats,
            "claims": [
                {
                    "id": b["id"],
                    "claim": b["claim"],
                    "published": b["published"],
                    "accept_if": b["accept_if"],
                    "simulator": verdict_json(a),
                    "live": verdict_json(b),
                }
                for a, b in both
            ],
            "tables": [
                {"engine": engine, "head": made.head(), "cells": made.rows(), "id": made.table.id,
                 "title": made.table.title}
                for pair in self.tables
                for engine, made in zip(("simulator", self.engine), pair, strict=True)
            ],
        }  # fmt: skip

    def write(self, directory: str | Path) -> None:
        """Write ``study.json``, ``report.md`` and both engines' runs; the directory appears whole or not at all."""
        from anabranch.files.output import to_json, whole_directory
        from anabranch.result.table_file import write_table
        from anabranch.study.keep import carry_over

        with whole_directory(Path(directory), "study") as aside:
            document = self.to_json()
            (aside / "study.json").write_bytes(to_json(document))
            text = "\n".join([f"# {self.definition.title}: {self.engine}", "", *section(document), ""])
            (aside / "report.md").write_text(text, encoding="utf-8")
            for name, result in (("simulator", self.simulated), (self.engine, self.live)):
                write_table(aside, f"{name}-runs", result.results.plain())
            carry_over(Path(directory), aside)


def run_live(
    study: Study,
    *,
    quick: bool = False,
    jobs: int | None = None,
    attempts: int = ATTEMPTS,
    kernel: str | None = None,
    engine: str = "live",
    kept: Kept | None = None,
    announce: Callable[[int, float], None] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> LiveStudyResult:
    """See :meth:`Study.run_live <anabranch.study.Study.run_live>`."""
    planned = plan(study, quick=quick, jobs=jobs, attempts=attempts, engine=engine, kernel=kernel, kept=kept)
    return planned.run(announce=announce, progress=progress)


@dataclass
class Plan:
    """A live study whose runs have been checked but not made."""

    part: Study
    pool: LivePool
    quick: bool
    jobs: int | None
    runs: int
    """Number of live runs."""
    seconds: float
    """Their total duration."""
    engine: str = "live"

    def run(
        self,
        *,
        announce: Callable[[int, float], None] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> LiveStudyResult:
        """Make the runs of both engines, and judge them.

        Raises:
            RunFailedError: A run failed.
        """
        if announce:
            announce(self.runs, self.seconds)
        part, pool, definition = self.part, self.pool, self.part.definition
        live = part._judged(pool, quick=self.quick, progress=progress, spoilt=lambda n: _spoilt(pool, n))
        simulated = part._judged(Pool(definition, self.jobs), quick=self.quick, progress=progress)
        return LiveStudyResult(definition, simulated, live, pool.audit, self.engine)


def plan(
    study: Study,
    *,
    quick: bool = False,
    jobs: int | None = None,
    attempts: int = ATTEMPTS,
    engine: str = "live",
    kernel: str | None = None,
    kept: Kept | None = None,
) -> Plan:
    """Check every run of a study, so that a scenario or machine that cannot run live is reported before the first run.

    Raises:
        ScenarioError: A scenario is wrong, cannot run live, or needs a congestion control that the kernel lacks.
        UserError: The study has no ``[live]``, or this machine does not permit live runs.
    """
    from anabranch.study import Study

    check_jobs(jobs)
    if not 1 <= attempts <= MAX_ATTEMPTS:
        raise UserError(f"{argument('attempts', attempts)}: expected 1 to {MAX_ATTEMPTS}")
    definition = study.definition.live
    if definition is None:
        raise without_live(study)
    if engine == "kernel":
        from anabranch.study.kernel import KernelPool

        definition = definition.kernel or definition
        part = Study(definition)
        kernels = KernelPool(definition, jobs, kernel, kept)
        missing = kernels.missing(part._everything(kernels, quick=quick))
        return Plan(part, kernels, quick, jobs, len(missing), kernels.check(missing), engine)
    part = Study(definition)
    pool = LivePool(definition, attempts)
    everything = part._everything(pool, quick=quick)
    missing = pool.missing(everything)
    seconds = math.fsum(_check(pool, job) for job in missing)
    for job in _asks(pool, missing):
        _check(pool, job, machine=True)
    return Plan(part, pool, quick, jobs, len(missing), seconds)


def _asks(pool: LivePool, jobs: Sequence[Job]) -> list[Job]:
    """The first of each set of runs with the same flows and hosts, which need the same of the kernel."""
    from anabranch import _engine

    found: dict[str, Job] = {}
    for job in jobs:
        text, file, sets, seed = pool._task(job)
        scenario = json.loads(_engine.resolve(text, file, sets, seed, live=True))["resolved_scenario"]
        found.setdefault(json.dumps([scenario.get(key) for key in ("flow", "host")], sort_keys=True), job)
    return list(found.values())


def _check(pool: LivePool, job: Job, *, machine: bool = False) -> float:
    """The duration of a run, in seconds; ``machine`` checks also whether this machine can run it.

    Raises:
        ScenarioError: The run is not possible.
    """
    text, file, sets, seed = pool._task(job)
    return check(text, file, sets, seed, machine=machine)


def without_live(study: Study) -> UserError:
    """The error for a study without ``[live]``, with the reason why its first unsuitable run cannot run live."""
    from anabranch import _engine

    definition = study.definition
    reason = ""
    try:
        pool = LivePool(definition)
        for job in pool.plan(Condition()):
            _check(pool, job)
    except _engine.ScenarioError as error:
        reason = f": {error.message}"
    return UserError(
        f"the study {definition.name} has no [live] section, and cannot run live as it is{reason}"
        if reason
        else f"the study {definition.name} has no [live] section",
        file=str(definition.directory / "study.toml"),
        hint="[live] names the experiments that run on this machine's kernel, and their settings: docs/studies.md",
    )


def _spoilt(pool: LivePool, n: int) -> str:
    """The reason why a claim has no verdict if ``n`` of its runs have no result."""
    return f"{n} of its runs were tainted each time ({pool.audit.attempts}) and have no result"


def section(document: LiveStudyJson) -> list[str]:
    """The section on a live study in a page: lines of Markdown."""
    audit, machine = document["audit"], document["machine"]
    minutes = audit["seconds"] / 60
    engine = document["engine"]
    options = [f"--kernel {machine.get('kernel', '?')}"] if engine == "kernel" else []
    if document["mode"] == "quick":
        options.append("--quick")
    if audit["attempts"] != ATTEMPTS and engine == "live":
        options.append(f"--attempts {audit['attempts']}")
    lines = [
        document["about"],
        "",
        f"`{' '.join(['anabranch study', document['study'], f'--engine {engine}', *options])}`, "
        + (
            f"Linux {machine.get('kernel', '?')} in virtual time: {audit['runs']} runs, {minutes:.0f} minutes."
            if engine == "kernel"
            else f"Linux {machine.get('kernel', '?')}, {machine.get('processors', '?')} processors: {audit['runs']} "
            f"runs, {audit['tainted']} of them tainted, {audit['without_result']} without a result, "
            f"{minutes:.0f} minutes."
        )
        + (" More than a tenth are tainted: as a whole it has failed." if _too_many(audit) else ""),
        *_repeats(document),
        "",
        f"|  | claim | accept if | simulator | verdict | {engine} | verdict | {engine}, on its wrong system |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for item in document["claims"]:
        both = [item["simulator"], item["live"]]
        cells = [item["id"], item["claim"], item["accept_if"]]
        for one in both:
            cells += [one["measured"], f"**{one['verdict']}**" + (f": {one['why']}" if _tells(one) else "")]
        cells.append(item["live"]["control"] or "none")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    tables = document["tables"]
    for i in range(0, len(tables), 2):
        simulated, live = tables[i], tables[i + 1]
        lines += ["", f"{simulated['title']}: simulator / {engine}", ""]
        lines.append("| " + " | ".join(simulated["head"]) + " |")
        lines.append("| " + " | ".join("---" for _ in simulated["head"]) + " |")
        for a, b in zip(simulated["cells"], live["cells"], strict=True):
            lines.append("| " + " | ".join([a[0], *(f"{x} / {y}" for x, y in zip(a[1:], b[1:], strict=True))]) + " |")
    if "points" in document:
        head, *rows = document["points"]["rows"]
        lines += ["", f"`{document['points']['figure']}`, means over seeds; a dash: no run has a result", ""]
        lines += ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return lines


def _repeats(document: LiveStudyJson) -> list[str]:
    """The number of runs at each point: runs with the kernel do not repeat exactly."""
    if "repeats" not in document:
        return []
    told = ", ".join(f"{experiment} {n}" for experiment, n in document["repeats"].items())
    single = 1 in document["repeats"].values()
    more = " Live runs of one file differ, with one seed as well: a point with one run is a single sample."
    return ["", f"Runs at each point: {told}.{more if single and document['engine'] == 'live' else ''}"]


def verdict_json(claim: ClaimJson) -> LiveVerdictJson:
    """The part of a claim that each engine has."""
    whole = dict(claim)
    own = ("measured", "verdict", "control", "why", "measures")
    return cast("LiveVerdictJson", {key: whole[key] for key in own if key in whole})


def _tells(one: LiveVerdictJson) -> bool:
    """Whether a verdict needs its reason beside it; a failed condition explains itself."""
    return one["verdict"] == INCONCLUSIVE and bool(one.get("why"))


__all__ = ["Audit", "LivePool", "LiveStudyJson", "LiveStudyResult", "Plan", "plan", "run_live", "section"]
