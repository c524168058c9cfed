"""Runs of a sweep on a Ray cluster, in tasks of about a second. Tasks of a node that is lost are repeated.

Every node needs this build of Anabranch, and the files that the scenario names at the same paths.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.build import fingerprint
from anabranch.errors import RunFailedError, UserError
from anabranch.maker import FailedRunError, Jobs, Made, Order, make_here
from anabranch.points import Job
from anabranch.spoken import argument

CHUNK_S = 1.2
"""Of a task, from the second on: what Ray itself takes is little beside it."""
FIRST_CHUNK = 8
MOST_OF_A_CHUNK = 8192
MOST_GROWTH = 8
AHEAD = 2
"""Tasks for each processor: one waits where the other is made."""
REPEATS = 20
"""Of a task whose node is lost. A cluster that loses more falls apart."""
CONNECT_S = 5.0
"""Seconds in which a cluster's port has to answer."""
LOCAL = "local"


@dataclass(frozen=True)
class Answer:
    """What a task has given.

    Attributes:
        build: Of the engine there.
        seconds: How long it took.
        made: The place in the task of each run that was made, and what it gave.
        wrong: The place of a run that the engine refuses, and the attributes of its error.
    """

    build: str
    seconds: float
    made: list[tuple[int, Made]]
    wrong: tuple[int, dict[str, Any]] | None = None


class Ray:
    """The processors of a Ray cluster.

    Args:
        address: Of the cluster (``HOST:PORT`` or ``auto``); ``local`` starts one on this machine.
        jobs: Processors of a cluster that is started here.

    Raises:
        UserError: Ray is not installed, or the cluster cannot be reached.
    """

    def __init__(self, address: str, jobs: int | None = None) -> None:
        self._told = argument("ray", address)
        if importlib.util.find_spec("ray") is None:
            raise UserError(f"{self._told}: Ray is not installed", hint="pip install 'anabranch[ray]'")
        if address not in (LOCAL, "auto"):
            _check_reachable(address, self._told)
        # Ray reports its use to its makers unless that is switched off.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray: Any = importlib.import_module("ray")
        place: dict[str, Any] = {"address": address}
        if address == LOCAL:
            place = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
        try:
            self._ray.init(**place, log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise UserError(f"{self._told}: {_first_line(error)}", hint="`ray status` says what runs there") from None

    def make(
        self, jobs: Jobs, runs: Sequence[int], order: Order, report: Callable[[int], None]
    ) -> Iterator[tuple[Sequence[int], list[Made]]]:
        """See :class:`anabranch.maker.Engine`.

        Raises:
            UserError: A node has another build.
            RunFailedError: Tasks were lost again and again.
        """
        task = self._ray.remote(num_cpus=1, max_retries=REPEATS)(work)
        waiting: dict[Any, Sequence[int]] = {}
        start, made, size = 0, 0, FIRST_CHUNK
        failed: FailedRunError | None = None
        try:
            while waiting or (start < len(runs) and failed is None):
                most = AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
                while start < len(runs) and len(waiting) < most and failed is None:
                    chunk = runs[start : start + size]
                    work_of_it = [jobs[run] for run in chunk]
                    waiting[task.remote(work_of_it, order.digest, order.untrusted, order.controls)] = chunk
                    start += len(chunk)
                (done,), _ = self._ray.wait(list(waiting), num_returns=1)
                chunk = waiting.pop(done)
                answer = self._answer(done)
                if answer.made:
                    yield [chunk[at] for at, _ in answer.made], [one for _, one in answer.made]
                    made += len(answer.made)
                    report(made)
                    growth = min(CHUNK_S / max(answer.seconds, 1e-6), MOST_GROWTH)
                    size = max(1, min(MOST_OF_A_CHUNK, int(len(answer.made) * growth) + 1))
                if answer.wrong is not None and failed is None:
                    at, attributes = answer.wrong
                    failed = FailedRunError(chunk[at], _error(attributes))
            if failed is not None:
                raise failed
        finally:
            for left in waiting:
                self._ray.cancel(left, force=True)

    def _answer(self, done: Any) -> Answer:
        try:
            answer: Answer = self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, ImportError) or "ModuleNotFoundError" in str(error):
                raise UserError(
                    f"{self._told}: a node cannot load this version of Anabranch", hint="install the same on all nodes"
                ) from None
            raise RunFailedError(f"{self._told}: a task failed: {_first_line(error)}") from None
        if answer.build != fingerprint():
            raise UserError(
                f"{self._told}: a node has build {answer.build}, and here is {fingerprint()}",
                hint="install the same on all nodes",
            )
        return answer


def work(jobs: list[Job], digest: bool, untrusted: bool, controls: list[tuple[str, type]]) -> Answer:
    """Make runs on a node; called by Ray."""
    from anabranch import _engine

    order = Order(digest, untrusted, controls)
    began = time.monotonic()
    wrong: tuple[int, dict[str, Any]] | None = None
    try:
        made = list(enumerate(make_here(jobs, 1, order)))
    except _engine.ScenarioError:
        made = []
        for at, job in enumerate(jobs):
            try:
                made += [(at, one) for one in make_here([job], 1, order)]
            except _engine.ScenarioError as error:
                wrong = wrong or (at, _attributes(error))
    return Answer(fingerprint(), time.monotonic() - began, made, wrong)


_NAMES = ("file", "line", "column", "message", "more")


def _attributes(error: Any) -> dict[str, Any]:
    """What an error of the engine says, as plain values: it is not pickled itself."""
    return {"args": error.args, **{name: getattr(error, name, None) for name in _NAMES}}


def _error(attributes: dict[str, Any]) -> Any:
    from anabranch import _engine

    error = _engine.ScenarioError.__new__(_engine.ScenarioError)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def _check_reachable(address: str, told: str) -> None:
    """Ray itself tries for minutes, and writes pages.

    Raises:
        UserError: Nothing answers, or the address is none.
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


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
