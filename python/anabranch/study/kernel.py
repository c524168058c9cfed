"""Runs of a study in kernels in virtual time, in place of live runs."""

from __future__ import annotations

import platform
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
    from anabranch.kernel.images import Image
    from anabranch.result.result import KeptRun
    from anabranch.study.definition import Definition
    from anabranch.study.keep import Kept
    from anabranch.study.results import Job


class KernelPool(LivePool):
    """Makes runs in kernels in parallel. No run is tainted, and none is repeated.

    Args:
        definition: The study.
        threads: Number of parallel kernels.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.
        kept: The finished runs, each under the release and the recipe of its kernel.
    """

    def __init__(
        self,
        definition: Definition,
        threads: int | None = None,
        kernel: str | None = None,
        kept: Kept | None = None,
    ) -> None:
        super().__init__(definition, attempts=1, kept=kept)
        self.threads = threads
        self._kernel = kernel
        self._images: dict[tuple[str, ...], Image] = {}

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
            self._image(job)
        return total_s

    def make(self, jobs: Sequence[Job], progress: Callable[[int], None] | None = None) -> None:
        """Make the missing runs of ``jobs``.

        Raises:
            ScenarioError: A scenario of the study is wrong, or cannot run in a kernel.
            RunFailedError: A run failed.
        """
        started = time.monotonic()
        asked = self.missing(jobs)
        recalled = self._recall(asked)
        todo = self.missing(asked)
        self.audit.runs += recalled
        if asked:
            # A guest has one processor.
            image = self._image(asked[0])
            self.audit.machine = {"kernel": image.release, "machine": platform.machine(), "processors": 1}
        if progress and recalled:
            progress(recalled)

        def work() -> Iterator[Work]:
            for job in todo:
                yield Work(self._scenario(job), job.seed, job.samples_ms)

        guests = Guests(self._kernel)
        made = guests.side_by_side(work(), thread_count(self.threads, len(todo)))
        for done, (at, future) in enumerate(made, recalled + 1):
            job = todo[at]
            try:
                run = cast("KeptRun", future.result()._run)
            except RunFailedError as error:
                raise RunFailedError(f"{named(job)}: {error}") from None
            if self._take(job, run):
                self._keep([job], [run], [self.outcomes[job.key]])
            if progress:
                progress(done)
        if self.kept is not None:
            self.kept.close()
        self.audit.seconds += time.monotonic() - started

    def _kept_key(self, kept: Kept, job: Job, *engine: str) -> bytes:
        image = self._image(job)
        return super()._kept_key(kept, job, "kernel", image.release, image.recipe, *engine)

    def _image(self, job: Job) -> Image:
        if job.sets not in self._images:
            self._images[job.sets] = image_of(self._scenario(job), self._kernel)
        return self._images[job.sets]

    def _scenario(self, job: Job) -> Scenario:
        text, file, sets, _ = self._task(job)
        return Scenario.from_text(text, file=file).with_sets(*sets)
