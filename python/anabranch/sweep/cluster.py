"""Runs of a sweep on a Ray cluster, in tasks of about a second. Tasks of a lost node are repeated.

Every node needs this build of Anabranch, and the files of the scenario at the same paths.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import RunFailedError, UserError
from anabranch.sweep.build import fingerprint
from anabranch.sweep.cluster_driver import LOCAL, Answer, Done, Driver, Failure, Ready
from anabranch.sweep.maker import FailedRunError, Jobs, Made, Order
from anabranch.text.spoken import argument

CHUNK_S = 1.2
"""Intended seconds of a task, from the second one on; Ray's own overhead is small in comparison."""
FIRST_CHUNK = 8
MOST_OF_A_CHUNK = 8192
MOST_GROWTH = 8
AHEAD = 2
"""Tasks per processor: one is queued while the other runs."""
ATTEMPTS = 5
"""Attempts at a task whose worker or node is lost. A task that is lost more often is assumed to crash its worker."""
CONNECT_S = 5.0
"""Seconds in which a cluster's port must answer."""

_WORDS = {
    "import": ("Ray cannot be loaded", "pip install --force-reinstall 'anabranch[ray]'"),
    "start": ("Ray did not start or connect", "the nodes and this machine need the same versions of Ray and Python"),
    "late": ("Ray did not start or connect", "`ray status` shows whether a cluster runs at that address"),
    "version": ("a node cannot load this version of Anabranch", "install the same on all nodes"),
    "memory": ("a node ran out of memory", "start the nodes with fewer processors: `ray start --num-cpus N`"),
    "store": ("a node's object store or disk is full", "free space there, or `ray start --object-store-memory`"),
    "lost": (f"a task lost its node or worker {ATTEMPTS} times", "`ray status` lists the nodes; the log says why"),
    "task": ("a task raised an error", "the same sweep without Ray shows whether the scenario raises it"),
    "gone": ("the head, or Ray on this machine, ended", "start the cluster, then repeat the command"),
}  # fmt: skip
"""For each kind of failure: the fact, and the next step."""


class ClusterError(RunFailedError):
    """A failure of the cluster, not of the scenario.

    Attributes:
        fact: The failure.
        reason: Ray's message.
        log: The location of the cluster's log.
        hint: The remedy.
    """

    def __init__(self, told: str, failure: Failure, log: str) -> None:
        self.fact, self.hint = _WORDS[failure.kind]
        self.reason, self.log = failure.text, log
        super().__init__(f"{told}: the cluster failed: {self.fact}: {self.reason}\n  log: {log}\n  {self.hint}")


@dataclass
class _Waiting:
    """A submitted task."""

    runs: Sequence[int]
    attempts: int = 1


class Ray:
    """The processors of a Ray cluster.

    Args:
        address: The cluster's address (``HOST:PORT`` or ``auto``); ``local`` starts one on this machine.
        jobs: Number of processors of a cluster started here.

    Raises:
        UserError: Ray is not installed, or there is no cluster at that address.
        ClusterError: Ray cannot be loaded, does not start, or does not answer.
    """

    def __init__(self, address: str, jobs: int | None = None) -> None:
        self._told = argument("ray", address)
        if importlib.util.find_spec("ray") is None:
            raise UserError(f"{self._told}: Ray is not installed", hint="pip install 'anabranch[ray]'")
        if address not in (LOCAL, "auto"):
            _check_reachable(address, self._told)
        self._driver = Driver(address, jobs)
        self._number = 0
        try:
            ready = self._driver.ready()
        except BaseException:
            self._driver.kill()
            raise
        if isinstance(ready, Failure):
            self._driver.kill()
            if ready.kind == "none":
                raise UserError(f"{self._told}: no cluster runs here", hint="`ray start --head` starts one")
            raise ClusterError(self._told, ready, _logs(""))
        if ready.processors < 1:
            self._driver.close()
            raise UserError(f"{self._told}: the cluster has no processors", hint="`ray start --num-cpus N` on a node")
        self._ready: Ready = ready

    def identity(self, _jobs: Jobs, _run: int) -> tuple[str, ...]:
        """See :class:`anabranch.sweep.maker.Engine`."""
        return ()

    def close(self) -> None:
        """Disconnect from the cluster; shut it down if it was started here."""
        self._driver.close()

    def make(
        self, jobs: Jobs, runs: Sequence[int], order: Order, report: Callable[[int], None]
    ) -> Iterator[tuple[Sequence[int], list[Made]]]:
        """See :class:`anabranch.sweep.maker.Engine`.

        Raises:
            UserError: A node has another build.
            ClusterError: The cluster failed, or a task was lost repeatedly.
        """
        waiting: dict[int, _Waiting] = {}
        start, made, size, processors = 0, 0, FIRST_CHUNK, self._ready.processors
        failed: FailedRunError | None = None
        try:
            while waiting or (start < len(runs) and failed is None):
                while start < len(runs) and len(waiting) < AHEAD * max(1, processors) and failed is None:
                    chunk = runs[start : start + size]
                    self._submit(jobs, _Waiting(chunk), order, waiting)
                    start += len(chunk)
                done = self._next(waiting)
                processors, task = done.processors, waiting.pop(done.number)
                if isinstance(done.outcome, Failure):
                    if done.outcome.raised and order.controls:
                        # An error of a congestion control in Python, raised as without Ray.
                        raise pickle.loads(done.outcome.raised)  # noqa: S301 - from our own task
                    if done.outcome.kind != "lost" or task.attempts >= ATTEMPTS:
                        raise self._error(done.outcome)
                    self._submit(jobs, _Waiting(task.runs, task.attempts + 1), order, waiting)
                    continue
                answer = self._checked(done.outcome)
                if answer.made:
                    yield [task.runs[at] for at, _ in answer.made], [one for _, one in answer.made]
                    made += len(answer.made)
                    report(made)
                    growth = min(CHUNK_S / max(answer.seconds, 1e-6), MOST_GROWTH)
                    size = max(1, min(MOST_OF_A_CHUNK, int(len(answer.made) * growth) + 1))
                if answer.wrong is not None and failed is None:
                    at, attributes = answer.wrong
                    failed = FailedRunError(task.runs[at], _error(attributes))
            if failed is not None:
                raise failed
        finally:
            if waiting:
                self._driver.cancel()

    def _submit(self, jobs: Jobs, task: _Waiting, order: Order, waiting: dict[int, _Waiting]) -> None:
        self._number += 1
        waiting[self._number] = task
        self._driver.submit(self._number, [jobs[run] for run in task.runs], order)

    def _next(self, waiting: dict[int, _Waiting]) -> Done:
        while True:
            done = self._driver.next()
            if isinstance(done, Failure):
                raise self._error(done)
            # Abandoned tasks of an earlier call may still end.
            if done.number in waiting:
                return done

    def _error(self, failure: Failure) -> ClusterError:
        return ClusterError(self._told, failure, _logs(self._ready.logs))

    def _checked(self, answer: Answer) -> Answer:
        if answer.build != fingerprint():
            raise UserError(
                f"{self._told}: a node has build {answer.build}, and here is {fingerprint()}",
                hint="install the same on all nodes",
            )
        return answer


def _logs(known: str) -> str:
    """The location of the logs: the directory that Ray reports, else that of the latest cluster here."""
    if known:
        return known
    latest = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "session_latest" / "logs"  # noqa: S108 - Ray's own
    return str(latest) if latest.is_dir() else f"{latest} on the head"


def _error(attributes: dict[str, Any]) -> Any:
    from anabranch import _engine

    error = _engine.ScenarioError.__new__(_engine.ScenarioError)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def _check_reachable(address: str, told: str) -> None:
    """Check the address first: Ray itself would retry for minutes and print pages.

    Raises:
        UserError: Nothing answers, or the address is malformed.
    """
    plain = address.removeprefix("ray://")
    host, colon, port = plain.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise UserError(f"{told}: HOST:PORT, auto or local was expected", hint=argument("ray", "head:6379"))
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
            pass
    except OSError as error:
        raise UserError(
            f"{told}: cannot be reached: {error.strerror or error}", hint="`ray start --head` starts a cluster there"
        ) from None
