"""Parallel guests: the runs of a sweep or a study, each in a separate kernel.

One guest makes one run. A second run in the same guest would begin at another time and with other random numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.kernel.engine import image_of, run
from anabranch.kernel.images import Image
from anabranch.kernel.machine import Job as Guest
from anabranch.limits import thread_count
from anabranch.sweep.maker import FailedRunError, Jobs, Made, Order

if TYPE_CHECKING:
    from anabranch.result.result import LiveRunResult
    from anabranch.scenario import Scenario


@dataclass(frozen=True)
class Work:
    """A run to be made."""

    scenario: Scenario
    seed: int | None = None
    samples_ms: float | None = None


class Guests:
    """Makes runs in several parallel guests.

    Args:
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`; default: the scenario's.
        untrusted: Whether the scenarios are untrusted.
    """

    def __init__(self, kernel: str | None = None, *, untrusted: bool = False) -> None:
        self._kernel = kernel
        self._untrusted = untrusted
        self._lock = threading.Lock()
        self._running: set[Guest] = set()
        self._is_closed = False
        self._images: dict[tuple[str, ...], Image] = {}

    def close(self) -> None:
        """End all guests. Their runs fail."""
        with self._lock:
            self._is_closed = True
            for guest in self._running:
                guest.end()

    def identity(self, jobs: Jobs, run: int) -> tuple[str, ...]:
        """See :class:`anabranch.sweep.maker.Engine`: the release and the recipe of the kernel."""
        text, file, sets, _ = jobs[run]
        image = self._images.get(tuple(sets))
        if image is None:
            image = self._images[tuple(sets)] = image_of(self._scenario(text, file, sets), self._kernel)
        return "kernel", image.release, image.recipe

    def make(
        self, jobs: Jobs, runs: Sequence[int], order: Order, report: Callable[[int], None]
    ) -> Iterator[tuple[Sequence[int], list[Made]]]:
        """See :class:`anabranch.sweep.maker.Engine`.

        Raises:
            FailedRunError: A run cannot be made.
            RunFailedError: A guest failed.
        """
        from anabranch import _engine

        files = _Files()

        def work() -> Iterator[Work]:
            for number in runs:
                text, file, sets, seed = jobs[number]
                yield Work(self._scenario(text, file, sets), seed)

        parts = self.side_by_side(work(), thread_count(order.jobs, len(runs)))
        for made, (at, future) in enumerate(parts, 1):
            try:
                result = future.result()
            except _engine.ScenarioError as error:
                raise FailedRunError(runs[at], error) from None
            summary = result.summary_json if order.digest else _without_digest(result.summary_json)
            text, file, sets, _ = jobs[runs[at]]
            yield [runs[at]], [(summary, files.of(self._scenario(text, file, sets)))]
            report(made)

    def side_by_side(self, work: Iterator[Work], most: int) -> Iterator[tuple[int, Future[LiveRunResult]]]:
        """Make runs, ``most`` at a time. Yields each with its number in ``work``, in the order in which they end.

        Leaving this early ends the guests.
        """
        waiting: dict[Future[LiveRunResult], int] = {}
        numbered = enumerate(work)
        pool = ThreadPoolExecutor(most, thread_name_prefix="guest")
        try:
            while True:
                while len(waiting) < most and (next_ := next(numbered, None)) is not None:
                    waiting[pool.submit(self._run, next_[1])] = next_[0]
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future
        except BaseException:
            self.close()
            raise
        finally:
            if waiting:
                self.close()
            pool.shutdown(cancel_futures=True)

    def _run(self, work: Work) -> LiveRunResult:
        with Guest() as guest:
            with self._lock:
                if self._is_closed:
                    guest.end()
                self._running.add(guest)
            try:
                return run(work.scenario, kernel=self._kernel, seed=work.seed, job=guest, samples_ms=work.samples_ms)
            finally:
                with self._lock:
                    self._running.discard(guest)

    def _scenario(self, text: str, file: str, sets: Sequence[str]) -> Scenario:
        from anabranch.scenario import Scenario

        return Scenario.from_text(text, file=file, untrusted=self._untrusted).with_sets(*sets)


class _Files:
    """The files that scenarios name, with a hash of the content of each."""

    def __init__(self) -> None:
        self._hashes: dict[str, str | None] = {}

    def of(self, scenario: Scenario) -> list[tuple[str, str]]:
        from anabranch import _engine

        found = []
        for name in scenario.resolve(live=True)["files"]:
            if name not in self._hashes:
                self._hashes[name] = _engine.file_hash(name)
            hashed = self._hashes[name]
            if hashed is not None:
                found.append((name, hashed))
        return found


def _without_digest(summary: str) -> str:
    import json

    content: dict[str, Any] = {**json.loads(summary), "digest": None}
    return json.dumps(content)
