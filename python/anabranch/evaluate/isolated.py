"""Runs of the user's code in separate processes: a crash or an endless loop ends a run and not the evaluation."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from anabranch.evaluate.runs import Failure, Job, Made, failure, run_here
from anabranch.evaluate.subject import Subject

MODULE = "anabranch.evaluate.isolated"
LIMIT_S = 120.0
"""Most processor time of a run. A control in Python needs some seconds; one that needs minutes has stalled."""
LEAST_SHARE = 1 / 200
"""A run that waits for something else than a processor: it has less than this share of one as long as the limit."""
MOST_STALLS = 2
"""After this number of runs that did not end, the others are not made."""


def run_isolated(owner: Subject, jobs: Sequence[Job], workers: int, limit_s: float = LIMIT_S) -> Iterator[Made]:
    """Make runs of a subject in parallel processes. Yields each as it ends."""
    waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[Made] = queue.SimpleQueue()
    stalls: list[str] = []
    for job in jobs:
        waiting.put(job)
    running = [Worker(MODULE, [str(owner.source)]) for _ in range(workers)]

    def work(worker: Worker) -> None:
        while (job := waiting.get()) is not None:
            if len(stalls) >= MOST_STALLS:
                told = f"not made, because {MOST_STALLS} other runs did not end"
                done.put([(job, Failure(told, is_skipped=True), [])])
                continue
            given = {"text": job.text, "seed": job.seed, "sampled": job.is_sampled}
            answer = worker.ask(given, limit_s)
            if answer.is_stalled:
                stalls.append(job.text)
            done.put(_made(job, answer))

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in running]
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.start()
    try:
        for _ in jobs:
            yield done.get()
    finally:
        for worker in running:
            worker.close()


def _made(job: Job, answer: Answer) -> Made:
    content = answer.content
    if content is None:
        return [(job, Failure(answer.why), [])]
    if "error" in content:
        return [(job, Failure(content["error"], is_refused=content["refused"]), [])]
    return [(job, content["summary"], [tuple(one) for one in content["depends"]])]


@dataclass(frozen=True)
class Answer:
    """The end of a run in a process.

    Attributes:
        content: The answer of the process; ``None`` without one.
        why: The reason why there is none.
        is_stalled: Whether the run did not end.
    """

    content: dict[str, Any] | None
    why: str = ""
    is_stalled: bool = False


class Worker:
    """A process that makes runs with the user's code.

    Args:
        module: The module that serves in the process.
        arguments: Its arguments.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._lock = threading.Lock()
        self._is_closed = False
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, given: dict[str, Any], limit_s: float) -> Answer:
        """Make a run that ``given`` describes, in at most ``limit_s`` of processor time."""
        process = self.start()
        if process is None:
            return Answer(None, "interrupted")
        asked = json.dumps({**given, "limit_s": limit_s})
        try:
            _pipe(process.stdin).write(f"{asked}\n".encode())
            _pipe(process.stdin).flush()
            line = _line(_pipe(process.stdout), process.pid, limit_s)
        except TimeoutError:
            self._end()
            return Answer(None, f"the run did not end, and made no progress for {limit_s:g} s", is_stalled=True)
        except (OSError, ValueError):
            # Another thread may have closed the pipes.
            line = b""
        if not line:
            code = self._end()
            if code == -signal.SIGXCPU:
                return Answer(None, f"the run did not end within {limit_s:g} s of processor time", is_stalled=True)
            return Answer(None, _ending(code))
        content: dict[str, Any] = json.loads(line)
        return Answer(content)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._is_closed = True
        self._end()

    def start(self) -> subprocess.Popen[bytes] | None:
        """The process, which is started if there is none; it ends with the thread that starts it."""
        with self._lock:
            if self._is_closed:
                return None
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603 - this program
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            return self._process

    def _end(self) -> int:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return 0
        code = process.poll()
        if code is None:
            process.kill()
            code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        return code


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise BrokenPipeError
    return pipe


def _line(pipe: IO[bytes], process: int, limit_s: float) -> bytes:
    """A line, or nothing at the end of the stream.

    Raises:
        TimeoutError: The process waits, and not for a processor.
    """
    parts: list[bytes] = []
    used = _used_s(process)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(limit_s):
                before, used = used, _used_s(process)
                if used - before < LEAST_SHARE * limit_s:
                    raise TimeoutError
                continue
            part = os.read(pipe.fileno(), 1 << 20)
            parts.append(part)
            if not part or part.endswith(b"\n"):
                return b"".join(parts) if part else b""


def _used_s(process: int) -> float:
    """The processor time of a process; 0 if it is unknown."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    # User and system time (proc_pid_stat(5)); the list begins with the third field.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ending(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"the process of the run was ended by {name}"
    return f"the process of the run ended with status {code}"


def serve(name: str) -> None:
    """Make the runs of a subject that standard input describes, one a line; answer each with a line."""
    from anabranch.evaluate.subject import find

    with answering() as questions:
        subject = find(name)
        for asked, answer in questions:
            job = Job(asked["text"], asked["seed"], asked["sampled"], subject)
            try:
                ((_, summary, depends),) = run_here([job], 1)
                answer({"summary": summary, "depends": list(depends)})
            except BaseException as error:
                why = failure(error, subject.controls)
                answer({"error": why.why, "refused": why.is_refused})


Question = tuple[dict[str, Any], Callable[[dict[str, Any]], None]]
"""The description of a run, and the function that answers it."""


@contextmanager
def answering() -> Iterator[Iterator[Question]]:
    """The questions of :class:`Worker`, in its process; each limits the processor time of the following code."""
    _die_with_parent()
    # The user's code may print.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)

        def answer(content: dict[str, Any]) -> None:
            answers.write(json.dumps(content).encode() + b"\n")
            answers.flush()

        def questions() -> Iterator[Question]:
            for line in sys.stdin.buffer:
                asked = json.loads(line)
                _limit(asked["limit_s"])
                yield asked, answer

        yield questions()


def _limit(seconds: float) -> None:
    """End this process by SIGXCPU after some more seconds of processor time, without a file of its memory."""
    import math
    import resource
    import time

    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _die_with_parent() -> None:
    """End this process if its parent ends (prctl(2) PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1])
