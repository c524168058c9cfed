"""Runs of a search with the user's code in separate processes: a crash or an endless loop ends the search alone."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunFailedError
from anabranch.evaluate.isolated import LIMIT_S, Answer, Worker, answering
from anabranch.limits import thread_count
from anabranch.sweep.maker import Made, Order, make_here

if TYPE_CHECKING:
    from anabranch.sweep.maker import Jobs

MODULE = "anabranch.stress.isolated"


class BudgetEndedError(Exception):
    """The budget ended before a run did."""


class Isolated:
    """Processes that make the runs of controls in Python; an engine of a search.

    Args:
        sources: The controls, as ``module:Class``.
        jobs: Number of processes; default: the cores.
        until: End of the budget, on the monotonic clock; ``None``: no end.
    """

    def __init__(self, sources: Sequence[str], jobs: int | None, until: float | None) -> None:
        self._names = " or ".join(dict.fromkeys(sources))
        self._until = until
        # The work of a generation is not known yet; a process starts with its first run.
        self._workers = [Worker(MODULE, list(dict.fromkeys(sources))) for _ in range(thread_count(jobs, sys.maxsize))]

    def identity(self, _jobs: Jobs, _run: int) -> tuple[str, ...]:
        """See :class:`anabranch.sweep.maker.Engine`."""
        return ()

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()

    def make(
        self, jobs: Jobs, runs: Sequence[int], _order: Order, report: Callable[[int], None]
    ) -> Iterator[tuple[Sequence[int], list[Made]]]:
        """See :class:`anabranch.sweep.maker.Engine`.

        Raises:
            BudgetEndedError: The budget ended first; all processes have been ended.
            RunFailedError: A run failed.
        """
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        for run in runs:
            waiting.put(run)

        def work(worker: Worker) -> None:
            while True:
                try:
                    run = waiting.get_nowait()
                except queue.Empty:
                    return
                text, file, sets, seed = jobs[run]
                given = {"text": text, "file": file, "sets": list(sets), "seed": seed}
                done.put((run, worker.ask(given, LIMIT_S)))

        for worker in self._workers[: len(runs)]:
            # The process ends with the thread that starts it.
            worker.start()
            threading.Thread(target=work, args=(worker,), daemon=True).start()
        for count in range(len(runs)):
            run, answer = self._next(done)
            report(count + 1)
            yield [run], [(self._summary(answer), [])]

    def _next(self, done: queue.SimpleQueue[tuple[int, Answer]]) -> tuple[int, Answer]:
        try:
            return done.get(timeout=None if self._until is None else max(0.0, self._until - time.monotonic()))
        except queue.Empty:
            self.close()
            raise BudgetEndedError from None

    def _summary(self, answer: Answer) -> str:
        content = answer.content
        if content is not None and "summary" in content:
            summary: str = content["summary"]
            return summary
        self.close()
        why = answer.why if content is None else content["error"]
        raise RunFailedError(f"the congestion control {self._names} failed: {why}")


def serve(sources: Sequence[str]) -> None:
    """Make the runs that standard input describes, one a line; answer each with a line."""
    from anabranch.evaluate.runs import failure
    from anabranch.evaluate.subject import find

    with answering() as questions:
        controls = [control for source in sources for control in find(source).controls]
        pairs: list[tuple[str, Any]] = [(control.name, control) for control in controls]
        order = Order(digest=False, untrusted=False, controls=pairs, jobs=1)
        for asked, answer in questions:
            job = (asked["text"], asked["file"], asked["sets"], asked["seed"])
            try:
                ((summary, _),) = make_here([job], 1, order)
                answer({"summary": summary})
            except BaseException as error:
                answer({"error": failure(error, controls).why})


if __name__ == "__main__":
    serve(sys.argv[1:])
