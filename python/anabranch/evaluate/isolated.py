"""Runs of the user's code in separate processes: a crash or an endless loop ends a run and not the evaluation."""

from __future__ import annotations

import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any

from anabranch.evaluate.runs import Failure, Job, Made, failure, run_here
from anabranch.evaluate.subject import Subject

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
    running = [_Worker(owner) for _ in range(workers)]

    def work(worker: _Worker) -> None:
        while (job := waiting.get()) is not None:
            if len(stalls) >= MOST_STALLS:
                told = f"not made, because {MOST_STALLS} other runs did not end"
                done.put([(job, Failure(told, is_skipped=True), [])])
                continue
            made, stalled = worker.make(job, limit_s)
            if stalled:
                stalls.append(job.text)
            done.put(made)

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


class _Worker:
    """A process that makes runs of one subject."""

    def __init__(self, owner: Subject) -> None:
        self._owner = owner
        self._lock = threading.Lock()
        self._is_closed = False
        self._process: subprocess.Popen[bytes] | None = None

    def make(self, job: Job, limit_s: float) -> tuple[Made, bool]:
        """Make a run. Returns it, and whether it did not end."""
        process = self._started()
        if process is None:
            return [(job, Failure("interrupted"), [])], False
        asked = json.dumps({"text": job.text, "seed": job.seed, "sampled": job.is_sampled, "limit_s": limit_s})
        try:
            _pipe(process.stdin).write(f"{asked}\n".encode())
            _pipe(process.stdin).flush()
            line = _line(_pipe(process.stdout), process.pid, limit_s)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self._end()
            return [(job, Failure(f"the run did not end, and made no progress for {limit_s:g} s"), [])], True
        if not line:
            code = self._end()
            if code == -signal.SIGXCPU:
                return [(job, Failure(f"the run did not end within {limit_s:g} s of processor time"), [])], True
            return [(job, Failure(_ending(code)), [])], False
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            return [(job, Failure(answer["error"], is_refused=answer["refused"]), [])], False
        return [(job, answer["summary"], [tuple(one) for one in answer["depends"]])], False

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._is_closed = True
        self._end()

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._is_closed:
                return None
            if self._process is None:
                name = str(self._owner.source)
                self._process = subprocess.Popen(  # noqa: S603 - this program
                    [sys.executable, "-m", "anabranch.evaluate.isolated", name],
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
    """Make the runs that standard input describes, one a line; answer each with a line on standard output."""
    from anabranch.evaluate.subject import find

    _die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    # The user's code may print.
    os.dup2(2, 1)
    subject = find(name)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        job = Job(asked["text"], asked["seed"], asked["sampled"], subject)
        _limit(asked["limit_s"])
        try:
            ((_, summary, depends),) = run_here([job], 1)
            answer: dict[str, Any] = {"summary": summary, "depends": list(depends)}
        except BaseException as error:
            why = failure(error)
            answer = {"error": why.why, "refused": why.is_refused}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


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
