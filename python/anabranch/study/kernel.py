"""Runs of a study in kernels in virtual time, in place of live runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from anabranch.errors import RunFailedError
from anabranch.kernel.engine import check, image_of
from anabranch.kernel.guests import Guests, Work
from anabranch.limits import thread_count
from anabranch.scenario import Scenario
from anabranch.study.live import LivePool, named

if TYPE_CHECKING:
    from anabranch.result.result import KeptRun
    from anabranch.study.definition import Definition
    from anabranch.study.results import Job


class KernelPool(LivePool):
    """Makes runs in kernels in parallel. No run is tainted, and none is repeated.

    Args:
        definition: The study.
        threads: Number of parallel kernels.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.
    """

    def __init__(self, definition: Definition, threads: int | None = None, kernel: str | None = None) -> None:
        super().__init__(definition, attempts=1)
        self.threads = threads
        self._kernel = kernel

    def check(self, jobs: Sequence[Job]) -> float:
        """The total duration of the runs, in seconds of virtual time.

        Raises:
            ScenarioError: A scenario is wrong, or needs a feature that no kernel in virtual time has.
            UserError: There is no such kernel.
        """
        total_s = 0.0
        for job in jobs:
            scenario = self._scenario(job)
            total_s += check(scenario, job.seed)
            image_of(scenario, self._kernel)
        return total_s

    def make(self, jobs: Sequence[Job], progress: Callable[[int], None] | None = None) -> None:
        """Make the missing runs of ``jobs``.

        Raises:
            ScenarioError: A scenario of the study is wrong, or cannot run in a kernel.
            RunFailedError: A run failed.
        """
        started = time.monotonic()
        todo = self.missing(jobs)

        def work() -> Iterator[Work]:
            for job in todo:
                yield Work(self._scenario(job), job.seed, job.samples_ms)

        guests = Guests(self._kernel)
        made = guests.side_by_side(work(), thread_count(self.threads, len(todo)))
        for done, (at, future) in enumerate(made, 1):
            try:
                result = future.result()
            except RunFailedError as error:
                raise RunFailedError(f"{named(todo[at])}: {error}") from None
            self._take(todo[at], cast("KeptRun", result._run))
            if progress:
                progress(done)
        self.audit.seconds += time.monotonic() - started

    def _scenario(self, job: Job) -> Scenario:
        text, file, sets, _ = self._task(job)
        return Scenario.from_text(text, file=file).with_sets(*sets)
