"""In a guest: answers the request in the job's folder: to call the engine, to run a behaviour script, or a program.

:mod:`anabranch.kernel.calls` writes the request and starts this file. An import in a guest costs ten times its cost on
the host. This module therefore imports only built-in modules and the engine, and loads the engine without a search of
folders.
"""

import _imp
import _signal  # type: ignore[import-not-found] # `signal` imports enum
import marshal
import os
import sys
import time

# Type checkers take the name for true, in whatever module it is defined.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

REQUEST, ANSWER, PROGRESS = "request", "answer", "progress"
"""Files of the job: the request, the result or the error, and the share that is done."""
_KEPT = ("TMPDIR",)
"""Variables that the guest's first process sets."""
_STEP = 0.005
"""Progress is written in steps of this share."""
_TERMINAL = "/dev/tty1"
_GRACE_S = 1.0
"""Seconds of virtual time for the last output."""
_NOT_STARTED = 127
"""Status of a program that cannot be started, as in a shell."""


def main(job: str) -> int:
    """Answer the request.

    Args:
        job: The job's folder.

    Returns:
        The exit status.
    """
    with open(f"{job}/{REQUEST}", "rb") as file:
        request: dict[str, Any] = marshal.load(file)  # noqa: S302 - our own process wrote it
    os.environ.update({name: value for name, value in request["environment"].items() if name not in _KEPT})
    if request["for_programs"]:
        sys.path.append(request["package"])
        from anabranch.kernel import folders

        folders.settle(request["folder"])
    if request["folder"] is not None and os.path.isdir(request["folder"]):
        os.chdir(request["folder"])
    if request["terminal"]:
        _take_terminal()
    if request["input"] is not None:
        os.dup2(os.open(request["input"], os.O_RDONLY), 0)
    children = [_pipe(descriptor) for descriptor in request["piped"]]
    try:
        if request["program"]:
            return _run(request["program"])
        if request["script"] is not None:
            arguments, keywords = request["script"]
            answer = "script", _load("anabranch._engine", request["engine"]).run_script(*arguments, **keywords)
        else:
            answer = _call(job, request["engine"], request["call"], request["tables"], request["captures"])
        with open(f"{job}/{ANSWER}.new", "wb") as file:
            marshal.dump(answer, file)
        os.rename(f"{job}/{ANSWER}.new", f"{job}/{ANSWER}")
    except BaseException as error:
        # The engine's panics are no `Exception`.
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    else:
        return 0
    finally:
        _end_pipes(request["piped"], children)


def _call(
    job: str,
    library: str,
    call: "tuple[tuple[Any, ...], dict[str, Any]]",
    tables: "list[str]",
    captures: "list[tuple[str, str | None]]",
) -> "tuple[Any, ...]":
    """Call the engine. Returns its result or its error in plain values."""
    engine = _load("anabranch._engine", library)
    arguments, keywords = call
    told = -_STEP

    def progress(share: float) -> None:
        nonlocal told
        if share - told >= _STEP or share >= 1:
            told = share
            with open(f"{job}/{PROGRESS}", "w", encoding="ascii") as file:
                file.write(f"{share:.3f}")

    try:
        run = engine.run_live(*arguments, **keywords, progress=progress)
    except (RuntimeError, ValueError) as error:
        return "error", type(error).__name__, error.args, vars(error)
    made = {name: table.columns() for name in tables if (table := _unless_missing(run.table, name)) is not None}
    captured = {place: octets for place in captures if (octets := _unless_missing(run.pcapng, *place)) is not None}
    return "run", run.summary_json, made, captured, run.left_out_packets()


def _load(name: str, library: str) -> "Any":
    """Load a compiled module from its file."""
    specification = type(sys.__spec__)(name, None, origin=library)
    module = _imp.create_dynamic(specification)
    _imp.exec_dynamic(module)
    return module


def _unless_missing(make: "Any", *arguments: "Any") -> "Any":
    """The engine's output for a run; ``None`` if the run does not have it."""
    try:
        return make(*arguments)
    except (KeyError, ValueError):
        return None


def _run(words: "list[str]") -> int:
    try:
        # Python ignores these signals.
        process = os.posix_spawnp(words[0], words, os.environ, setsigdef=[_signal.SIGPIPE, _signal.SIGXFSZ])
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NOT_STARTED
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status if status >= 0 else 128 - status


def _take_terminal() -> None:
    """Make the console the terminal of this session, whose leader this process is."""
    terminal = os.open(_TERMINAL, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(terminal, descriptor)
    os.tcsetpgrp(0, os.getpgrp())
    # Only the program handles Ctrl-C. A handler does not pass to it; an ignored signal would.
    _signal.signal(_signal.SIGINT, lambda *_: None)


def _pipe(descriptor: int) -> int:
    """Replace a descriptor by a pipe. Returns the process that copies the pipe to it.

    A program that opens ``/dev/stderr`` would empty a file. The process must have one thread.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(reader, 0)
        os.dup2(descriptor, 1)
        os.closerange(2, writer + 1)
        while part := os.read(0, 1 << 16):
            while part:
                part = part[os.write(1, part) :]
        os._exit(0)
    os.close(reader)
    os.dup2(writer, descriptor)
    os.close(writer)
    return child


def _end_pipes(descriptors: "list[int]", children: "list[int]") -> None:
    """Close the pipes, and wait until their output has been passed on."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    until = time.monotonic() + _GRACE_S
    while children and time.monotonic() < until:
        children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
        time.sleep(0.001)


if __name__ == "__main__":
    ended = main(sys.argv[1])
    # The guest ends with this process: nothing needs to be cleaned up.
    os._exit(ended)
