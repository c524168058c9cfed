"""On the host: requests to a guest, and its answers."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch import _engine
from anabranch.errors import RunFailedError
from anabranch.files.capture import DIRECTIONS
from anabranch.kernel import inside
from anabranch.kernel.machine import Ended, Job
from anabranch.result.result import RETRANSMISSIONS, KeptRun
from anabranch.result.summary import TABLES
from anabranch.result.table import PlainColumn, Table

_COMMAND = (sys.executable, "-I", "-S", inside.__file__, str(Job.INSIDE))
"""Without ``site``, the interpreter starts sooner."""
_ERRORS = {
    error.__name__: error
    for error in (
        _engine.ScenarioError,
        _engine.LiveUnavailableError,
        _engine.UntraceableError,
        RuntimeError,
        ValueError,
    )
}


def ask(
    job: Job,
    *,
    call: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
    script: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
    program: Sequence[str] = (),
    for_programs: bool,
    piped: Sequence[int] = (),
    standard_input: str | None = None,
    terminal: bool = False,
) -> Sequence[str]:
    """Leave a request in a job's folder, with this process's environment and working directory.

    Args:
        job: The job.
        call: The arguments and keywords of a live run of the engine.
        script: The arguments and keywords of a behaviour script, in place of ``call``.
        program: A program and its arguments, in place of ``call``.
        for_programs: Whether the user's programs run in the guest. They write into folders; the engine does not.
        piped: Descriptors that are pipes in the guest.
        standard_input: The file that it reads, as the guest names it.
        terminal: Whether the console is the terminal of the program.

    Returns:
        The command that answers in the guest.
    """
    try:
        folder = os.getcwd()
    except OSError:
        # It was removed.
        folder = None
    keywords = call[1] if call else {}
    request = {
        "package": str(Path(inside.__file__).parents[2]),
        "engine": _engine.__file__,
        "environment": dict(os.environ),
        "folder": folder,
        "for_programs": for_programs,
        "call": _plain(call),
        "script": _plain(script),
        "tables": [*TABLES, RETRANSMISSIONS],
        "captures": [
            (link, direction)
            for link in dict.fromkeys(link for link, _ in (keywords.get("captures") or ([],))[0])
            for direction in (None, *DIRECTIONS)
        ],
        "program": list(program),
        "piped": list(piped),
        "input": standard_input,
        "terminal": terminal,
    }
    (job.folder / inside.REQUEST).write_bytes(marshal.dumps(request))
    return _COMMAND


def answer(job: Job, ended: Ended, told: str) -> KeptRun:
    """The result of the engine's run in a guest that has ended.

    Args:
        job: The job.
        ended: How the command ended.
        told: Name of the guest's task, for the message if there is no answer.

    Raises:
        ScenarioError: Raised by the engine in the guest, as are the next three.
        LiveUnavailableError: See above.
        RuntimeError: See above.
        ValueError: See above.
        RunFailedError: The guest left no answer.
    """
    kind, *content = _read(job, ended, told)
    if kind == "error":
        name, arguments, parts = content
        error = _ERRORS.get(name, RuntimeError)(*arguments)
        vars(error).update(parts)
        raise error
    summary_json, tables, captures, left_out = content
    return KeptRun(summary_json, _Tables(tables), captures, left_out)


def script_answer(job: Job, ended: Ended, told: str) -> str:
    """The outcome of a behaviour script in a guest that has ended, as JSON.

    Raises:
        RunFailedError: The guest left no answer.
    """
    _, text = _read(job, ended, told)
    return str(text)


def _read(job: Job, ended: Ended, told: str) -> Any:
    try:
        return marshal.loads((job.folder / inside.ANSWER).read_bytes())  # noqa: S302 - our own process wrote it
    except (OSError, EOFError, ValueError, TypeError):
        last = ended.err.strip().splitlines()[-1:] or ["it printed nothing"]
        raise RunFailedError(f"{told} ended with status {ended.status}: {last[0]}") from None


def _plain(value: Any) -> Any:
    """Converts a value to Python's built-in types: marshal would write a NumPy number as bytes."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    kinds = (kind for kind in (bool, int, float, str) if isinstance(value, kind))
    return next(kinds, lambda same: same)(value)


class _Tables(Mapping[str, Table]):
    """Tables of the engine, built on first access: the import of NumPy takes half as long as the start of a guest."""

    def __init__(self, columns: Mapping[str, list[PlainColumn]]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Table:
        return Table.of_engine(_engine.ArrowTable(self._columns[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
