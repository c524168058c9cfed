"""The runs of a study: the plan of runs, making each once, and reading quantities from them."""

from __future__ import annotations

import fnmatch
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError, nearest
from anabranch.limits import check_jobs, thread_count
from anabranch.result.flat import PARTS, flatten, without_copy
from anabranch.result.measure_names import figures_named, one_name
from anabranch.result.table import Table, column_of, for_user, joined
from anabranch.statistics import fairness
from anabranch.study.definition import Definition, Experiment, Quantity, RobustnessGrid, Wrong, as_sets, fill
from anabranch.study.series import Cell, Key, NoValueError, Series

if TYPE_CHECKING:
    import polars as pl

    from anabranch import _engine
    from anabranch.result.result import KeptRun
    from anabranch.study.keep import Kept


@dataclass(frozen=True)
class Condition:
    """The condition under which a study is run.

    Attributes:
        full: The full grid rather than the quick one.
        opens: Values of open parameters that differ from the study's.
        wrong: A wrong system in place of the right one.
        jitter: Spread start times, with one seed after the other.
        grid: Values of axes and seeds that differ from the grid's.
    """

    full: bool = False
    opens: tuple[tuple[str, Any], ...] = ()
    wrong: Wrong | None = None
    jitter: bool = False
    grid: RobustnessGrid | None = None


@dataclass(frozen=True)
class Job:
    """One run: its position in the experiment, and the engine's input."""

    experiment: str
    variant: str
    point: tuple[float, ...]
    seed: int
    scenario: Path
    sets: tuple[str, ...]
    samples_ms: float | None

    @property
    def key(self) -> tuple[Path, tuple[str, ...], int, float | None]:
        """The key of the run, equal for jobs that are the same for the engine."""
        return (self.scenario, self.sets, self.seed, self.samples_ms)


@dataclass(frozen=True)
class Outcome:
    """The stored result of a run."""

    figures: Mapping[str, float | None]
    digest: str | None
    tables: Mapping[str, Table]
    demands: Mapping[str, float] = field(default_factory=dict)
    """The demand of each flow, in Mbit/s: see :func:`anabranch.statistics.fairness.demands_of`."""
    depends: tuple[tuple[str, str], ...] = ()
    """The files that the run read, relative to the study's directory, each with a hash of its content."""


def plan(definition: Definition, condition: Condition, first_seed: Callable[[Path], int]) -> list[Job]:
    """Every run of the study under a condition, in a fixed order."""
    jobs: list[Job] = []
    for experiment in definition.experiments.values():
        repeat = experiment.repeat_full if condition.full else experiment.repeat_quick
        if condition.grid and condition.grid.repeat is not None:
            repeat = condition.grid.repeat
        if condition.jitter and definition.jitter:
            repeat = definition.jitter.seeds
        first = first_seed(experiment.scenario)
        for point in grid(definition, experiment, condition):
            for variant in experiment.variants or ("",):
                sets = tuple(as_sets(_changes(definition, experiment, variant, point, condition)))
                samples = experiment.samples_ms if _wants_samples(experiment, point) else None
                jobs.extend(
                    Job(experiment.name, variant, point, seed, experiment.scenario, sets, samples)
                    for seed in range(first, first + repeat)
                )
    return jobs


def grid(definition: Definition, experiment: Experiment, condition: Condition) -> list[tuple[float, ...]]:
    """The points of an experiment, in the order of its axes."""
    other = dict(condition.grid.axes) if condition.grid else {}
    if condition.wrong and experiment.name in condition.wrong.experiments:
        other.update(condition.wrong.axes)

    def values(name: str) -> Sequence[float]:
        axis = definition.axes[name]
        return other.get(name, axis.full if condition.full else axis.quick)

    points = list(itertools.product(*map(values, experiment.axes)))
    if experiment.where is None:
        return points
    where = experiment.where
    return [p for p in points if where.evaluate(_Nothing(), dict(zip(experiment.axes, p, strict=True)))]


class Pool:
    """Makes runs, each distinct one once, and stores their outcomes."""

    def __init__(self, definition: Definition, threads: int | None = None, kept: Kept | None = None) -> None:
        check_jobs(threads)
        self.kept = kept
        self.definition = definition
        self.threads = threads
        self.outcomes: dict[tuple[Path, tuple[str, ...], int, float | None], Outcome] = {}
        self.lost: list[Job] = []
        """Runs that were made and have no result; the simulator has none."""
        self.first_seed = cache(self._first_seed)
        # Reordering distributions have a figure for each bin of each flow: read them only if a quantity uses them.
        paths = [q.path for q in definition.quantities.values() if q.path]
        self._distributions = any(".reordering." in path or path.endswith("*") for path in paths)

    def plan(self, condition: Condition) -> list[Job]:
        """The runs of a condition."""
        return plan(self.definition, condition, self.first_seed)

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs without an outcome, each once."""
        return list({j.key: j for j in jobs if j.key not in self.outcomes}.values())

    def make(self, jobs: Sequence[Job], progress: Callable[[int], None] | None = None) -> None:
        """Make the missing runs of ``jobs``; ``progress`` gets the number of completed runs.

        Raises:
            ScenarioError: A scenario of the study is wrong.
        """
        from anabranch import _engine

        asked = self.missing(jobs)
        made = self._recall(asked)
        todo = self.missing(asked)
        if progress and made:
            progress(made)
        # Bounded batches limit the memory of the engine's results, and the work lost by an interrupt.
        size = 256 if self.kept is None else max(8 * thread_count(self.threads, len(todo)), 16)
        for samples_ms in sorted({j.samples_ms for j in todo}, key=lambda v: v or 0):
            batch = [j for j in todo if j.samples_ms == samples_ms]
            for start in range(0, len(batch), size):
                chunk = batch[start : start + size]
                base = made

                def report(n: int, base: int = base) -> None:
                    if progress:
                        progress(base + n)

                runs = _engine.run_many(
                    [self._task(j) for j in chunk],
                    threads=thread_count(self.threads, len(chunk)),
                    samples_ms=samples_ms,
                    progress=report,
                )
                outcomes = [
                    self._outcome(run, job.samples_ms is not None) for job, run in zip(chunk, runs, strict=True)
                ]
                self.outcomes.update(zip((job.key for job in chunk), outcomes, strict=True))
                self._keep(chunk, runs, outcomes)
                made += len(chunk)
        if self.kept is not None:
            self.kept.close()

    def _keep(self, jobs: Sequence[Job], runs: Sequence[_engine.Run | KeptRun], outcomes: Sequence[Outcome]) -> None:
        from anabranch.study.keep import content

        if self.kept is None:
            return
        self.kept.write(
            (
                self._kept_key(self.kept, job),
                run.summary_json if job.samples_ms is None else content(outcome),
                run.depends,
            )
            for job, run, outcome in zip(jobs, runs, outcomes, strict=True)
        )

    def _recall(self, jobs: Sequence[Job]) -> int:
        """Load the stored outcomes of ``jobs``. Returns their number."""
        if self.kept is None:
            return 0
        found = 0
        for job in jobs:
            outcome = self._kept_outcome(self.kept, job)
            if outcome is not None:
                self.outcomes[job.key] = outcome
                found += 1
        self.kept.said()
        return found

    def _kept_outcome(self, kept: Kept, job: Job) -> Outcome | None:
        key = self._kept_key(kept, job)
        if job.samples_ms is not None:
            return kept.outcome(key)
        found = kept.summary(key)
        if found is None:
            return None
        try:
            return self._of_summary(found[0], {}, found[1])
        except (LookupError, TypeError, ValueError, AttributeError):
            # The resolved scenario in the file is the engine's and has no type here.
            kept.reject("its resolved scenario is not as it was written")
            return None

    def _kept_key(self, kept: Kept, job: Job, *engine: str) -> bytes:
        """The key of a run; ``engine`` describes an engine that is not the simulator."""
        from anabranch.study.keep import FORMAT

        text, _, sets, seed = self._task(job)
        sampled = (FORMAT, job.samples_ms, self._tables(), self._distributions)
        return kept.key(text, sets, seed, *engine, *(sampled if job.samples_ms is not None else ()))

    def results(self, jobs: Sequence[Job]) -> Results:
        """The outcomes of ``jobs``, which have been made."""
        return Results(self.definition, [(j, self.outcomes[j.key]) for j in jobs])

    def _task(self, job: Job) -> tuple[str, str, list[str], int | None]:
        file = str(self.definition.directory / job.scenario)
        return (self.definition.texts[job.scenario], file, list(job.sets), job.seed)

    def _first_seed(self, scenario: Path) -> int:
        from anabranch import _engine

        file = str(self.definition.directory / scenario)
        return int(json.loads(_engine.resolve(self.definition.texts[scenario], file, [], None))["seed"])

    def _tables(self) -> list[str]:
        """The tables used by quantities."""
        return sorted({q.table for q in self.definition.quantities.values() if q.table})

    def _outcome(self, run: _engine.Run | KeptRun, samples: bool) -> Outcome:
        tables = {name: Table.of_any(run.table(name)) for name in (self._tables() if samples else ())}
        depends = sorted((os.path.relpath(file, self.definition.directory), hashed) for file, hashed in run.depends)
        return self._of_summary(json.loads(run.summary_json), tables, depends)

    def _of_summary(self, summary: Any, tables: Mapping[str, Table], depends: Sequence[tuple[str, str]]) -> Outcome:
        demands = fairness.demands_of(summary["resolved_scenario"], list(summary["flows"]))
        figures = flatten(summary, distributions=self._distributions)
        return Outcome(figures, summary.get("digest"), tables, demands, tuple(depends))


class Results:
    """The outcomes of a study's runs, as the quantities used in claims."""

    def __init__(self, definition: Definition, runs: Sequence[tuple[Job, Outcome]]) -> None:
        self.definition = definition
        self.runs = runs
        self._cache: dict[tuple[str, str], Series] = {}

    def only_seed(self, seed: int) -> Results:
        """The runs of one seed."""
        return Results(self.definition, [(j, o) for j, o in self.runs if j.seed == seed])

    def seeds(self) -> list[int]:
        """The seeds of all runs."""
        return sorted({j.seed for j, _ in self.runs})

    def digests(self) -> list[str | None]:
        """The digest of every run, in order."""
        return [o.digest for _, o in self.runs]

    def files(self) -> list[tuple[str, str]]:
        """The files that the runs read, each with a hash of its content."""
        return sorted({read for _, o in self.runs for read in o.depends})

    def axis(self, name: str, experiment: str | None) -> Series:
        """An axis as a series of its coordinates."""
        chosen = experiment or self.definition.default_experiment
        order = self._axes(chosen)
        if name == "time_s" or name not in order:
            having = [e.name for e in self.definition.experiments.values() if name in e.axes]
            if not having:
                raise NoValueError(f"the experiment {chosen} has no axis {name}")
            chosen, order = having[0], self._axes(having[0])
        at = order.index(name)
        cells: dict[Key, Cell] = {}
        for job, _ in self._of(chosen):
            key: Key = (job.variant, *job.point, job.seed)
            cells[(key[at],)] = key[at]
        return Series((name,), cells)

    def quantity(self, name: str, experiment: str | None) -> Series:
        """Every value of a quantity in an experiment."""
        chosen = experiment or self.definition.default_experiment
        if (name, chosen) not in self._cache:
            self._cache[name, chosen] = self._compute(self.definition.quantities[name], chosen)
        return self._cache[name, chosen]

    def frame(self) -> pl.DataFrame:
        """The rows of :meth:`plain` as a frame of polars, if that is installed."""
        frame: pl.DataFrame = for_user(self.plain())
        return frame

    def plain(self) -> Table:
        """One row per run: experiment, variant, axes, seed, digest, every figure."""
        names = list(dict.fromkeys(n for _, o in self.runs for n in o.figures if ".reordering." not in n))
        columns: dict[str, list[Any]] = {
            "experiment": [j.experiment for j, _ in self.runs],
            "variant": [j.variant for j, _ in self.runs],
        }
        for axis in self.definition.axes:
            columns[axis] = [self._coordinate(j, axis) for j, _ in self.runs]
        columns["seed"] = [j.seed for j, _ in self.runs]
        columns["digest"] = [o.digest for _, o in self.runs]
        figures = {n: column_of([o.figures.get(n) for _, o in self.runs], "f8") for n in names}
        return Table.of(columns).with_columns(figures)

    def samples(self, table: str) -> pl.DataFrame | None:
        """The samples of every run that stored any, with the run's coordinates; ``None`` if none did."""
        found = self.plain_samples(table)
        return None if found is None else for_user(found)

    def plain_samples(self, table: str) -> Table | None:
        """The same samples in plain Python."""
        import numpy as np

        parts = []
        for job, outcome in self.runs:
            if table in outcome.tables:
                axes = self.definition.experiments[job.experiment].axes
                own = outcome.tables[table]
                where = {"experiment": job.experiment, "variant": job.variant,
                         **dict(zip(axes, job.point, strict=True)), "seed": job.seed}  # fmt: skip
                repeated = np.zeros(own.height, dtype=np.int64)
                coordinates = {name: column_of([value]).take(repeated) for name, value in where.items()}
                parts.append(Table(coordinates).with_columns({name: own.column(name) for name in own.columns}))
        return joined(parts) if parts else None

    def _coordinate(self, job: Job, axis: str) -> float | None:
        axes = self.definition.experiments[job.experiment].axes
        return float(job.point[axes.index(axis)]) if axis in axes else None

    def _of(self, experiment: str) -> list[tuple[Job, Outcome]]:
        return [(j, o) for j, o in self.runs if j.experiment == experiment]

    def _axes(self, experiment: str) -> tuple[str, ...]:
        return ("variant", *self.definition.experiments[experiment].axes, "seed")

    def _compute(self, quantity: Quantity, experiment: str) -> Series:
        if quantity.expression is not None:
            value = quantity.expression.evaluate(self, {}, experiment)
            return value if isinstance(value, Series) else Series((), {(): value})
        axes = self._axes(experiment)
        cells: dict[Key, Cell] = {}
        for job, outcome in self._of(experiment):
            key: Key = (job.variant, *job.point, job.seed)
            if quantity.path is not None:
                cells[key] = self._figure(quantity, outcome)
            elif quantity.table is not None and quantity.table in outcome.tables:
                for time_s, value in self._samples(quantity, outcome.tables[quantity.table]):
                    moment: Key = (*key, time_s)
                    cells[moment] = value
        if quantity.path is None:
            axes = (*axes, "time_s")
            if not cells:
                raise NoValueError(f"no samples were kept for {quantity.name}")
        series = Series(axes, cells)
        if self.definition.experiments[experiment].variants == ():
            series = series.drop("variant")
        return series

    def _figure(self, quantity: Quantity, outcome: Outcome) -> Cell:
        path = quantity.path or ""
        if "*" not in path and quantity.capacity is None:
            if path not in outcome.figures:
                # As everywhere, a flow's name means the mean over its copies.
                copies = [value for name, value in outcome.figures.items() if without_copy(name) == path]
                if copies:
                    return None if None in copies else math.fsum(v for v in copies if v is not None) / len(copies)
                part = path.rpartition(".")[0]
                if part.rpartition(".")[2] in PARTS and not any(
                    name.startswith(f"{part}.") for name in outcome.figures
                ):
                    # This variant's flow lacks the whole part, for example error correction.
                    return None
                raise self._unknown(quantity, path, outcome.figures)
            return outcome.figures[path]
        values = {n: v for n, v in outcome.figures.items() if fnmatch.fnmatchcase(n, path)}
        if not values:
            raise self._unknown(quantity, path, outcome.figures)
        known = [v for v in values.values() if v is not None]
        if len(known) < len(values):
            return None
        if quantity.capacity is not None:
            got = {n.removeprefix("flow.").rpartition(".")[0]: v for n, v in zip(values, known, strict=True)}
            shares = fairness.of_max_min(got, quantity.capacity, outcome.demands)
            return fairness.jain(shares) if quantity.combine == "jain" else min(shares, default=None)
        if quantity.combine == "min":
            return min(known)
        if quantity.combine == "max":
            return max(known)
        total = math.fsum(known)
        return total if quantity.combine == "sum" else total / len(known)

    def _unknown(self, quantity: Quantity, path: str, valid: Iterable[str]) -> UserError:
        where = f"[quantity.{quantity.name}]"
        file = str(self.definition.directory / "study.toml")
        names = [v for v in valid if ".reordering." not in v]
        told = f"{where}: the summary has no figure"
        try:
            figures_named(path, names, told)
        except UserError as error:
            return UserError(error.message, file=file, hint=error.hint)
        return UserError(f'{told} "{path}"', file=file, hint=nearest(path, names))

    def _samples(self, quantity: Quantity, table: Table) -> list[tuple[Cell, Cell]]:
        file = str(self.definition.directory / "study.toml")
        time = "time_s" if "time_s" in table.columns else "sent_s"
        told = f"[quantity.{quantity.name}]: the table {quantity.table} has no column"
        try:
            column = one_name(quantity.column or "", table.columns, told)
            for name in quantity.select:
                one_name(name, table.columns, told)
        except UserError as error:
            raise UserError(error.message, file=file, hint=error.hint) from None
        for name, wanted in quantity.select.items():
            table = table.where(table.is_in(name, wanted))
        values = table[column]
        # A slow-start threshold that was never set is infinite, not missing.
        if column == "ssthresh_packets":
            values = [math.inf if v is None else v for v in values]
        return list(zip(table[time], values, strict=True))


class _Nothing:
    """A source for conditions over axes alone."""

    def quantity(self, name: str, experiment: str | None) -> Series:
        raise NoValueError(f"{name} is not known before the runs (experiment {experiment})")

    def axis(self, name: str, experiment: str | None) -> Series:
        raise NoValueError(f"{name} is not an axis here (experiment {experiment})")


def _wants_samples(experiment: Experiment, point: tuple[float, ...]) -> bool:
    if experiment.samples is None:
        return False
    here = dict(zip(experiment.axes, point, strict=True))
    return bool(experiment.samples.evaluate(_Nothing(), here))


def _changes(
    definition: Definition,
    experiment: Experiment,
    variant: str,
    point: tuple[float, ...],
    condition: Condition,
) -> dict[str, Any]:
    """All changes to the scenario, in order of priority: setting, open, experiment, variant, axes, wrong."""
    changes: dict[str, Any] = dict(definition.setting)
    other = dict(condition.opens)
    opens = [
        (
            parameter.variants,
            {path: fill(t, other.get(parameter.name, parameter.value)) for path, t in parameter.set.items()},
        )
        for parameter in definition.opens
        if experiment.name in parameter.experiments
    ]
    for variants, sets in opens:
        if not variants:
            changes.update(sets)
    wrong = condition.wrong if condition.wrong and experiment.name in condition.wrong.experiments else None
    _override(changes, experiment.set)
    if variant:
        stands_for = wrong.replace.get(variant, variant) if wrong else variant
        _override(changes, definition.variants[stands_for].set)
        for variants, sets in opens:
            if stands_for in variants:
                _override(changes, sets)
    for name, value in zip(experiment.axes, point, strict=True):
        templates = definition.axes[name].set
        _override(changes, {path: fill(template, value) for path, template in templates.items()})
    if wrong:
        _override(changes, wrong.set)
    if condition.jitter and definition.jitter:
        _override(changes, definition.jitter.set)
    return changes


def _override(changes: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Move a path that is changed again to the end: an enclosing table may have been set in between."""
    for path, value in more.items():
        changes.pop(path, None)
        changes[path] = value
