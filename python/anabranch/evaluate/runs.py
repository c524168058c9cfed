"""The runs of an evaluation: each distinct one is made once, and stored."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from anabranch.evaluate.build import Table, nearby
from anabranch.evaluate.measures import BIN_S, Summary
from anabranch.evaluate.subject import Subject
from anabranch.limits import thread_count
from anabranch.sweep.points import Depends, Keys, Points
from anabranch.text import toml_text
from anabranch.text.quantity import seconds

if TYPE_CHECKING:
    from anabranch._engine import Run

FORMAT = 1
"""Version of the stored form of a run."""
CHUNK = 24
"""Runs of one call of the engine: the work that an interrupt loses."""
FILE = "evaluation.toml"
"""Name of the scenarios in messages."""


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        text: The scenario.
        seed: The seed.
        is_sampled: Whether its goodput over time is needed.
        owner: The subject whose code runs in it, if that is the user's.
    """

    text: str
    seed: int
    is_sampled: bool = False
    owner: Subject | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Failure:
    """A run that could not be made.

    Attributes:
        why: The reason in one line.
        is_refused: Whether the engine does not have the feature, rather than a fault of the subject.
        is_skipped: Whether it was not tried.
    """

    why: str
    is_refused: bool = False
    is_skipped: bool = False


Outcome = Summary | Failure


class _Stored(TypedDict):
    summary: Any


def jobs_of(document: Table, seeds: Iterable[int], subject: Subject, *, is_sampled: bool) -> dict[int, Job]:
    """The runs of a scenario that was made for a subject, by seed."""
    owner = subject if subject.is_isolated and _mentions(document, subject.value) else None
    return {seed: Job(toml_text.write_document(nearby(document, seed)), seed, is_sampled, owner) for seed in seeds}


def _mentions(document: Any, value: Any) -> bool:
    if document == value:
        return True
    if isinstance(document, Mapping):
        return any(_mentions(one, value) for one in document.values())
    return isinstance(document, list) and any(_mentions(one, value) for one in document)


def extract(run: Run, *, is_sampled: bool) -> dict[str, Any]:
    """The stored part of a run's result."""
    summary: dict[str, Any] = json.loads(run.summary_json)
    resolved = summary.pop("resolved_scenario", {})
    summary.pop("engine_stats", None)
    summary["warmup_s"] = float(seconds(resolved.get("warmup", "0 s")))
    if is_sampled:
        from anabranch.result.table import Table as Samples

        samples, duration_s = Samples.of_any(run.table("samples")), float(summary["duration_s"])
        octets = _series(samples, "delivered_bytes", duration_s)
        summary["bins"] = {flow: [v * 8 / BIN_S / 1e6 for v in row] for flow, row in octets.items()}
        summary["losses"] = _series(samples, "retransmitted_packets", duration_s)
    return summary


def _series(samples: Any, column: str, duration_s: float) -> dict[str, list[float]]:
    """The growth of a counter of each flow in intervals of :data:`BIN_S`."""
    count = math.floor(duration_s / BIN_S + 1e-9)
    ends: dict[str, list[float]] = {}
    for time_s, flow, value in zip(samples["time_s"], samples["flow"], samples[column], strict=True):
        at = round(time_s / BIN_S)
        if 0 <= at <= count:
            ends.setdefault(flow, [0.0] * (count + 1))[at] = float(value)
    return {flow: [max(0.0, b - a) for a, b in itertools.pairwise(row)] for flow, row in ends.items()}


class Finished:
    """Finished runs on disk.

    Args:
        points: The store.
        engine: Describes an engine that is not the simulator.
    """

    def __init__(self, points: Points, engine: Sequence[str] = ()) -> None:
        self._points = points
        self._engine = tuple(engine)
        self._keys: dict[str, Keys] = {}

    def read(self, job: Job) -> Summary | None:
        """The stored summary of a run."""
        found = self._points.read(self._key(job), _Stored)
        return None if found is None else found["summary"]

    def write(self, made: Iterable[tuple[Job, Mapping[str, Any], Depends]]) -> None:
        """Store finished runs."""
        self._points.write(
            (self._key(job), json.dumps({"summary": summary}, allow_nan=False).encode(), depends)
            for job, summary, depends in made
        )

    def close(self) -> None:
        """Flush to disk."""
        self._points.close()

    def _key(self, job: Job) -> bytes:
        keys = self._keys.setdefault(job.text, Keys(job.text, digest=True))
        mark = job.owner.mark if job.owner is not None else ""
        return keys.of([], job.seed, "evaluate", FORMAT, job.is_sampled, mark, *self._engine)


def make(
    jobs: Sequence[Job],
    store: Finished,
    *,
    threads: int | None = None,
    kernel: str | None = None,
    engine: str = "sim",
    progress: Callable[[int, int], None] | None = None,
) -> dict[Job, Outcome]:
    """Make the runs that are not stored.

    Args:
        jobs: The runs, each once.
        store: Finisheds them.
        threads: Number of parallel runs.
        kernel: The kernel, as in :meth:`Scenario.run_kernel <anabranch.scenario.Scenario.run_kernel>`.
        engine: ``"sim"`` or ``"kernel"``.
        progress: Called with the number of finished runs, and of all.
    """
    outcomes: dict[Job, Outcome] = {}
    for job in jobs:
        found = store.read(job)
        if found is not None:
            outcomes[job] = found
    missing = [job for job in jobs if job not in outcomes]
    parts = _in_kernels(missing, threads, kernel) if engine == "kernel" else _in_simulator(missing, threads)
    if progress:
        progress(len(outcomes), len(jobs))
    for part in parts:
        store.write((job, result, depends) for job, result, depends in part if not isinstance(result, Failure))
        outcomes.update({job: result for job, result, _ in part})
        if progress:
            progress(len(outcomes), len(jobs))
    store.close()
    return outcomes


Made = list[tuple[Job, "dict[str, Any] | Failure", Depends]]


def _in_simulator(jobs: Sequence[Job], threads: int | None) -> Iterator[Made]:
    """Built-in code in this process; the user's code in separate processes."""
    here = [job for job in jobs if job.owner is None]
    for is_sampled in (False, True):
        some = [job for job in here if job.is_sampled == is_sampled]
        for start in range(0, len(some), CHUNK):
            yield _halved(some[start : start + CHUNK], threads)
    isolated = [job for job in jobs if job.owner is not None]
    if isolated:
        from anabranch.evaluate.isolated import run_isolated

        owner = isolated[0].owner
        if owner is not None:
            yield from run_isolated(owner, isolated, thread_count(threads, len(isolated)))


def _halved(jobs: Sequence[Job], threads: int | None) -> Made:
    """Make runs; after an error, find the faulty ones by halving."""
    try:
        return run_here(jobs, thread_count(threads, len(jobs)))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        if len(jobs) == 1:
            return [(jobs[0], failure(error), [])]
        half = len(jobs) // 2
        return _halved(jobs[:half], threads) + _halved(jobs[half:], threads)


def failure(error: BaseException, controls: Sequence[type] = ()) -> Failure:
    """The outcome of a run that raised an error; ``controls`` are the controls in Python that it may come from."""
    from anabranch._engine import ScenarioError
    from anabranch.control_errors import described

    if isinstance(error, ScenarioError):
        return Failure(error.message, is_refused=True)
    return Failure(described(error, controls)[:300])


def run_here(jobs: Sequence[Job], threads: int) -> Made:
    """Make runs in this process, all sampled or none.

    Raises:
        BaseException: Whatever a control raises, or a panic of the engine.
    """
    from anabranch import _engine

    owner = jobs[0].owner
    is_sampled = jobs[0].is_sampled
    runs = _engine.run_many(
        [(job.text, FILE, [], job.seed) for job in jobs],
        threads=threads,
        samples_ms=BIN_S * 1000 if is_sampled else None,
        controls=[(control.name, control) for control in owner.controls] if owner is not None else [],
    )
    return [(job, extract(run, is_sampled=is_sampled), list(run.depends)) for job, run in zip(jobs, runs, strict=True)]


def _in_kernels(jobs: Sequence[Job], threads: int | None, kernel: str | None) -> Iterator[Made]:
    """Make runs in Linux kernels in virtual time."""
    from anabranch.kernel.guests import Guests, Work
    from anabranch.scenario import Scenario

    guests = Guests(kernel)
    refusals = [(job, _refusal(job)) for job in jobs]
    usable = [job for job, why in refusals if why is None]
    refused = [(job, why) for job, why in refusals if why is not None]
    if refused:
        yield [(job, Failure(why, is_refused=True), []) for job, why in refused]
    work = (
        Work(Scenario.from_text(job.text, file=FILE), job.seed, BIN_S * 1000 if job.is_sampled else None)
        for job in usable
    )
    try:
        for at, future in guests.side_by_side(work, thread_count(threads, max(1, len(usable)))):
            job = usable[at]
            try:
                result = future.result()
            except (KeyboardInterrupt, SystemExit):
                raise
            except Exception as error:
                # A guest may fail without a fault of the control.
                yield [(job, replace(failure(error), is_refused=True), [])]
                continue
            yield [(job, extract(result, is_sampled=job.is_sampled), [])]  # type: ignore[arg-type]
    finally:
        guests.close()


def _refusal(job: Job) -> str | None:
    """The reason why a kernel cannot make a run; ``None`` if it can."""
    from anabranch._engine import ScenarioError
    from anabranch.errors import UserError
    from anabranch.kernel.engine import check
    from anabranch.scenario import Scenario

    if job.owner is not None and job.owner.controls:
        return "a kernel runs no congestion control in Python"
    try:
        check(Scenario.from_text(job.text, file=FILE), job.seed)
    except ScenarioError as error:
        return error.message
    except UserError as error:
        return error.message
    return None
