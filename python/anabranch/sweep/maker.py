"""Makes the missing runs of a sweep: the engine makes runs while a thread stores the previous ones."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from anabranch.limits import thread_count
from anabranch.result.flat import read_summary
from anabranch.result.summary import AnySummary
from anabranch.sweep.figures import Figures
from anabranch.sweep.points import Job, Keys, Points

if TYPE_CHECKING:
    from anabranch._engine import ScenarioError
    from anabranch.sweep.design import Point

CHUNK_S = 0.5
"""Seconds of one call of the engine: it limits the work lost by a kill, and the call's overhead is small beside it."""
LEAST_OF_A_CHUNK = 16
MOST_OF_A_CHUNK = 2048
"""Limits the memory of the engine's results."""
LEAST_PER_THREAD = 8
"""With several runs per thread, no core is idle."""
MOST_GROWTH = 4
"""Largest growth from one chunk to the next: the previous runs may be the fast corner of the grid."""

Made = tuple[str, list[tuple[str, str]]]
"""A run's summary as JSON, and the files that it read."""


@dataclass(frozen=True)
class Order:
    """Options of the runs."""

    digest: bool
    untrusted: bool
    controls: list[tuple[str, type]]
    jobs: int | None = None


class Jobs:
    """The engine's input for each point of a sweep."""

    def __init__(self, text: str, file: str, sets: Sequence[str], axes: Sequence[str], points: Sequence[Point]) -> None:
        self._text = text
        self._file = file
        self._sets = list(sets)
        self._axes = dict.fromkeys(axes, ())
        self.points = points
        # The seeds of a point are consecutive.
        self._last: tuple[tuple[Any, ...], list[str]] | None = None

    def varied(self, run: int) -> list[str]:
        """The changes by the grid, as ``PATH=VALUE``."""
        return self._of(self.points[run])[len(self._sets) :]

    def __getitem__(self, run: int) -> Job:
        point = self.points[run]
        return self._text, self._file, self._of(point), point.seed

    def _of(self, point: Point) -> list[str]:
        from anabranch.keys.grid import sets_of

        last = self._last
        if last is None or last[0] is not point.values:
            # Compare by identity: 1 and true are equal.
            last = self._last = (point.values, [*self._sets, *sets_of(self._axes, point.values)])
        return last[1]


class FailedRunError(Exception):
    """A run that the engine rejects."""

    def __init__(self, run: int, error: ScenarioError) -> None:
        super().__init__(str(error))
        self.run = run
        self.error = error


class Engine(Protocol):
    """The place of the runs: this machine, other machines, or kernels."""

    def identity(self, jobs: Jobs, run: int) -> tuple[str, ...]:
        """The dependencies of a run other than the scenario and this build."""
        ...

    def make(
        self, jobs: Jobs, runs: Sequence[int], order: Order, report: Callable[[int], None]
    ) -> Iterator[tuple[Sequence[int], list[Made]]]:
        """Make runs. Yields finished runs in parts, in any order; ``report`` receives the number made.

        Raises:
            FailedRunError: A run cannot be made; completed runs of the same part have been yielded.
        """
        ...

    def close(self) -> None:
        """Release the machines."""
        ...


class Here:
    """The cores of this machine."""

    def identity(self, _jobs: Jobs, _run: int) -> tuple[str, ...]:
        """See :class:`Engine`."""
        return ()

    def close(self) -> None:
        """See :class:`Engine`."""

    def make(
        self, jobs: Jobs, runs: Sequence[int], order: Order, report: Callable[[int], None]
    ) -> Iterator[tuple[Sequence[int], list[Made]]]:
        """See :class:`Engine`."""
        from anabranch import _engine

        threads = thread_count(order.jobs, len(runs))
        least = max(LEAST_PER_THREAD * threads, LEAST_OF_A_CHUNK)
        size, start = least, 0
        while start < len(runs):
            # The last chunks are small, because no core works while their runs are stored.
            chunk = runs[start : start + min(size, max(least, (len(runs) - start) // 2))]
            began = time.monotonic()
            try:
                made = make_here([jobs[run] for run in chunk], threads, order, _after(start, report))
            except _engine.ScenarioError:
                failed: list[FailedRunError] = []
                yield from _good(jobs, chunk, order, failed)
                raise failed[0] from None
            took = max(time.monotonic() - began, 1e-6)
            yield chunk, made
            start += len(chunk)
            size = max(least, min(MOST_OF_A_CHUNK, int(len(chunk) * min(CHUNK_S / took, MOST_GROWTH))))


def _after(before: int, report: Callable[[int], None]) -> Callable[[int], None]:
    return lambda n: report(before + n)


def make_here(work: list[Job], threads: int, order: Order, report: Callable[[int], None] | None = None) -> list[Made]:
    """Make runs on the cores of this machine.

    Raises:
        ScenarioError: A run cannot be made; the engine does not identify it.
    """
    from anabranch import _engine

    return _engine.summarize_many(
        work,
        threads=threads,
        digest=order.digest,
        untrusted=order.untrusted,
        controls=order.controls,
        progress=report,
    )


def _good(
    jobs: Jobs, chunk: Sequence[int], order: Order, failed: list[FailedRunError]
) -> Iterator[tuple[Sequence[int], list[Made]]]:
    """Make the valid runs of a chunk in which a run fails, by repeated halving until failing runs are isolated."""
    from anabranch import _engine

    try:
        threads = thread_count(order.jobs, len(chunk))
        yield chunk, make_here([jobs[run] for run in chunk], threads, order)
    except _engine.ScenarioError as error:
        if len(chunk) == 1:
            failed.append(FailedRunError(chunk[0], error))
            return
        half = len(chunk) // 2
        yield from _good(jobs, chunk[:half], order, failed)
        yield from _good(jobs, chunk[half:], order, failed)


class Maker:
    """Loads the stored runs, and makes the others.

    Args:
        jobs: The runs.
        keys: Their keys in the store.
        kept: The store.
        order: The options of the runs.
        figures: Append the figures of the runs to these.
    """

    def __init__(self, jobs: Jobs, keys: Keys, kept: Points, order: Order, figures: Figures | None = None) -> None:
        self.jobs = jobs
        self.keys = keys
        self.kept = kept
        self.order = order
        self.figures = Figures() if figures is None else figures
        self._engine: Engine = Here()
        self._base = len(self.figures)
        self.figures.grow(len(jobs.points))

    def make(self, engine: Engine, progress: Callable[[int, int], None] | None = None) -> Figures:
        """The figures of all runs.

        Raises:
            FailedRunError: A run cannot be made; the other runs made with it are stored.
        """
        total = len(self.jobs.points)
        self._engine = engine
        missing = self._recall(total)
        self.kept.said()
        finished = total - len(missing)

        def report(n: int) -> None:
            if progress:
                progress(finished + n, total)

        report(0)
        self._make(engine.make(self.jobs, missing, self.order, report))
        return self.figures

    def _recall(self, total: int) -> Sequence[int]:
        """Load the stored runs. Returns the numbers of the others."""
        if self.kept.is_empty():
            return range(total)
        missing = array("q")
        for run in range(total):
            summary = self.kept.read(self._key(run), AnySummary)
            if summary is None:
                missing.append(run)
            else:
                self.figures.add(self._base + run, summary)
        return missing

    def _make(self, parts: Iterator[tuple[Sequence[int], list[Made]]]) -> None:
        # Reading and writing summaries takes Python's lock, which the engine does not need.
        with ThreadPoolExecutor(1, thread_name_prefix="keeper") as keeper:
            keeping: Future[None] | None = None
            for runs, made in parts:
                if keeping is not None:
                    keeping.result()
                keeping = keeper.submit(self._keep, runs, made)
            if keeping is not None:
                keeping.result()

    def _keep(self, runs: Sequence[int], made: list[Made]) -> None:
        points = zip(runs, made, strict=True)
        self.kept.write((self._key(run), summary, depends) for run, (summary, depends) in points)
        for run, (summary, _) in zip(runs, made, strict=True):
            self.figures.add(self._base + run, read_summary(summary))

    def _key(self, run: int) -> bytes:
        _, _, sets, seed = self.jobs[run]
        return self.keys.of(sets, seed, *self._engine.identity(self.jobs, run))
