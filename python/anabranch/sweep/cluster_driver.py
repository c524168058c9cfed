"""The process that talks to Ray for a sweep (:mod:`anabranch.sweep.cluster`).

Ray writes to the standard streams of its process, waits without end for a cluster that does not answer, and ends the
process when the cluster's head is lost. A separate process shields the sweep from all of that.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from anabranch.sweep.maker import Made, Order, make_here
from anabranch.sweep.points import Job

LOCAL = "local"
LOOPBACK = "127.0.0.2"
"""Address of a cluster started here, which other machines cannot reach. Ray replaces 127.0.0.1 by a public address."""
READY_S = 120.0
"""Seconds in which Ray must connect, or start."""
POLL_S = 0.05
"""Seconds between two polls for new tasks while tasks run."""
_PLACE = re.compile(r"^\[[^\]]*\] (\(\S+\) )?\S+:\d+: ")
"""Time, process and source line before a message of Ray."""
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; from anabranch.sweep.cluster_driver import main; main(int(sys.argv[1]))"
)


@dataclass(frozen=True)
class Answer:
    """The result of a task.

    Attributes:
        build: The node's build of the engine.
        seconds: Duration of the task.
        made: Index of each completed run in the task, and its result.
        wrong: Index of a run that the engine rejects, and the attributes of its error.
    """

    build: str
    seconds: float
    made: list[tuple[int, Made]]
    wrong: tuple[int, dict[str, Any]] | None = None


@dataclass(frozen=True)
class Failure:
    """A failed task, or a failure of the cluster.

    Attributes:
        kind: ``import`` (Ray cannot be loaded), ``start``, ``none`` (no cluster for ``auto``), ``version`` (a node
            cannot load Anabranch), ``memory``, ``store`` (the object store or the disk is full), ``lost`` (the worker
            or its node), ``task`` (an error in the task), ``gone`` (the driver ended), ``late`` (no answer in time).
        text: The error in one line.
        raised: The pickled error of a task.
    """

    kind: str
    text: str
    raised: bytes = b""


@dataclass(frozen=True)
class Ready:
    """Ray is connected.

    Attributes:
        logs: Directory of Ray's logs on this machine; empty if the cluster is elsewhere.
        processors: Number of processors of the cluster.
    """

    logs: str
    processors: int


@dataclass(frozen=True)
class Done:
    """The outcome of a task that has ended."""

    number: int
    outcome: Answer | Failure
    processors: int


@dataclass(frozen=True)
class Task:
    """A task to submit."""

    number: int
    arguments: tuple[list[Job], bool, bool, bytes]


@dataclass(frozen=True)
class Start:
    """The first message to the driver."""

    address: str
    jobs: int | None
    script: str


class _Cancel:
    """The message that cancels all tasks."""


class Driver:
    """The sweep's handle of the driver process.

    Args:
        address: The address of the cluster.
        jobs: Number of processors of a cluster started here.
    """

    def __init__(self, address: str, jobs: int | None) -> None:
        # Ray reports usage statistics to its makers unless they are switched off.
        environment = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": "0", **os.environ}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the driver
        ours, theirs = socket.socketpair()
        # A new session: Ctrl-C reaches only the sweep, whose end ends the driver.
        process = subprocess.Popen(  # noqa: S603 - this Python
            [sys.executable, "-c", _START, str(theirs.fileno()), *sys.path], env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, pass_fds=[theirs.fileno()],
        )  # fmt: skip
        theirs.close()
        threading.Thread(target=process.wait, name="driver", daemon=True).start()
        self._process = process
        self._link = Connection(ours.detach())
        self.close = weakref.finalize(self, self._link.close)
        self._link.send(Start(address, jobs, sys.argv[0] if sys.argv else ""))

    def ready(self) -> Ready | Failure:
        """Wait until Ray is connected. Returns its answer, or the failure."""
        try:
            if not self._link.poll(READY_S):
                return Failure("late", f"no answer in {READY_S:.0f} s{self._last_words()}")
            answer: Ready | Failure = self._link.recv()
        except (EOFError, OSError):
            return self._gone()
        return answer

    def submit(self, number: int, jobs: list[Job], order: Order) -> None:
        """Submit a task."""
        task = Task(number, (jobs, order.digest, order.untrusted, _controls(order)))
        try:
            self._link.send(task)
        except OSError:
            # The next call of `next` reports the failure.
            return

    def next(self) -> Done | Failure:
        """The next finished task, or a failure of the driver itself."""
        try:
            done: Done = self._link.recv()
        except (EOFError, OSError):
            return self._gone()
        return done

    def cancel(self) -> None:
        """Cancel all tasks."""
        try:
            self._link.send(_Cancel())
        except OSError:
            return

    def kill(self) -> None:
        """End the driver at once."""
        self.close()
        self._process.kill()

    def _gone(self) -> Failure:
        return Failure("gone", f"the connection was lost{self._last_words()}")

    def _last_words(self) -> str:
        """The first sentence of the last line that Ray wrote."""
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").split("\n")
        line = next((plain(line) for line in reversed(lines) if line.strip()), "")
        sentence = _PLACE.sub("", line).partition(". ")[0].rstrip(".")
        return f": {_cut(sentence)}" if sentence else ""


def _controls(order: Order) -> bytes:
    """Congestion controls in Python, pickled by value, because the nodes may lack the module that defines them."""
    if not order.controls:
        return pickle.dumps([])
    pickled: bytes = importlib.import_module("ray.cloudpickle").dumps(order.controls)
    return pickled


def main(number: int) -> None:
    """Serve the sweep at the other end of this descriptor."""
    link = Connection(number)
    start: Start = link.recv()
    sys.argv[:] = [start.script]
    inbox: queue.SimpleQueue[Task | _Cancel | None] = queue.SimpleQueue()
    is_ready = threading.Event()
    threading.Thread(target=_receive, args=(link, inbox, is_ready), daemon=True).start()
    try:
        ray = importlib.import_module("ray")
    except BaseException as error:
        link.send(Failure("import", _in_one_line(error)))
        return
    try:
        _connect(ray, start)
        ready = Ready(_logs(ray), _processors(ray))
    except ConnectionError as error:
        link.send(Failure("none" if start.address == "auto" else "start", _in_one_line(error)))
        return
    except BaseException as error:
        link.send(Failure("start", _in_one_line(error)))
        return
    is_ready.set()
    try:
        link.send(ready)
        _serve(ray, link, inbox)
    except OSError:
        # The sweep has ended.
        pass
    finally:
        ray.shutdown()


def _connect(ray: Any, start: Start) -> None:
    place: dict[str, object] = {"address": start.address}
    if start.address == LOCAL:
        place |= {"num_cpus": start.jobs, "include_dashboard": False, "_node_ip_address": LOOPBACK}
    ray.init(**place, log_to_driver=False, logging_level="ERROR")


def _receive(link: Connection, inbox: queue.SimpleQueue[Task | _Cancel | None], is_ready: threading.Event) -> None:
    """Receive messages at all times: each end may send more than the socket buffers."""
    try:
        while True:
            inbox.put(link.recv())
    except (EOFError, OSError):
        inbox.put(None)
        if not is_ready.is_set():
            # Ray may wait for minutes. It ends the processes that it started.
            os._exit(1)


def _serve(ray: Any, link: Connection, inbox: queue.SimpleQueue[Task | _Cancel | None]) -> None:
    """Submit tasks to Ray, and send their results to the sweep, until the sweep closes the connection."""
    # The sweep repeats tasks itself, because Ray writes a page for each repeat.
    remote = ray.remote(num_cpus=1, max_retries=0)(work)
    running: dict[Any, int] = {}
    while True:
        for message in _messages(inbox, wait=not running):
            if isinstance(message, Task):
                running[remote.remote(*message.arguments)] = message.number
                continue
            for left in running:
                ray.cancel(left, force=True)
            running.clear()
            if message is None:
                return
        done, _ = ray.wait(list(running), num_returns=1, timeout=POLL_S) if running else ([], [])
        for one in done:
            number, outcome = running.pop(one), _outcome(ray, one)
            link.send(Done(number, outcome, _processors(ray)))


def _messages(inbox: queue.SimpleQueue[Task | _Cancel | None], *, wait: bool) -> Iterator[Task | _Cancel | None]:
    if wait:
        yield inbox.get()
    while not inbox.empty():
        yield inbox.get()


def _outcome(ray: Any, done: Any) -> Answer | Failure:
    wrong = ray.exceptions
    try:
        answer: Answer = ray.get(done)
    except wrong.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, ImportError) or "ModuleNotFoundError" in str(error):
            return Failure("version", _last_line(error))
        if isinstance(cause, (wrong.ObjectStoreFullError, wrong.OutOfDiskError)):
            return Failure("store", _in_one_line(cause))
        return Failure("task", _last_line(error), _pickled(ray, cause))
    except wrong.OutOfMemoryError as error:
        return Failure("memory", _in_one_line(error))
    except (wrong.ObjectStoreFullError, wrong.OutOfDiskError) as error:
        return Failure("store", _in_one_line(error))
    except (wrong.RayError, OSError) as error:
        return Failure("lost", _in_one_line(error))
    return answer


def _pickled(ray: Any, error: BaseException | None) -> bytes:
    try:
        pickled: bytes = ray.cloudpickle.dumps(error) if isinstance(error, Exception) else b""
        pickle.loads(pickled or pickle.dumps(None))  # noqa: S301 - our own
    except Exception:
        # An error of a congestion control in Python may contain anything.
        return b""
    return pickled


def _processors(ray: Any) -> int:
    return int(ray.cluster_resources().get("CPU", 0))


def _logs(ray: Any) -> str:
    node = getattr(getattr(getattr(ray, "_private", None), "worker", None), "_global_node", None)
    try:
        found = Path(node.get_logs_dir_path()) if node is not None else None
    except AttributeError:
        found = None
    return str(found) if found is not None and found.is_dir() else ""


def plain(text: str) -> str:
    """A text without Ray's control characters for colour."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


def _in_one_line(error: BaseException) -> str:
    return _cut(plain(str(error))) or type(error).__name__


def _last_line(error: BaseException) -> str:
    """The exception at the end of a traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if not line[:1].isspace()]
    return _cut(plain((own or lines or [type(error).__name__])[-1]))


def _cut(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def work(jobs: list[Job], digest: bool, untrusted: bool, controls: bytes) -> Answer:
    """Make runs on a node. Called by Ray."""
    from anabranch import _engine
    from anabranch.sweep.build import fingerprint

    order = Order(digest, untrusted, pickle.loads(controls))  # noqa: S301 - from the sweep
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
    """The content of an engine's error as plain values, because the error itself cannot be pickled."""
    return {"args": error.args, **{name: getattr(error, name, None) for name in _NAMES}}
