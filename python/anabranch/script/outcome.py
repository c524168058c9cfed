"""Runs of a behaviour script, and their outcomes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import UserError

PASSES, FAILS, INVALID = "agrees", "differs", "invalid"
LIVE_RUNS, MOST_LIVE_RUNS = 3, 12
"""Runs of a script in real time, and the most of them if some are late."""
_LARGEST = 4 << 20
"""Octets of a script's file."""
_LIMIT_S = 3600.0
"""Virtual time that a script may take."""


@dataclass(frozen=True)
class Field:
    """A field of a packet, or a returned value: as expected, and as it was.

    Attributes:
        name: Its name.
        expected: The expected value; empty if the script names none.
        actual: The actual value.
        differs: Whether the two contradict each other.
    """

    name: str
    expected: str
    actual: str
    differs: bool


@dataclass(frozen=True)
class Outcome:
    """The outcome of a script.

    Attributes:
        file: The script.
        engine: ``sim``, ``live`` or ``kernel``.
        stack: The profile that it ran on, or the release of the kernel in virtual time.
        outcome: ``agrees``, ``differs``, and on a kernel in real time ``varies`` (from run to run) and ``late`` (the
            machine was too busy). ``not-applicable``: the kernel does not have a setting of the script; ``failed``:
            there is no result; ``invalid``: the script is wrong, or has what the subset lacks (of several scripts).
        agreed: Runs that agreed.
        runs: Runs.
        line: Line of the first difference, from 1.
        column: Its column, from 1, in characters.
        message: The first difference.
        fields: The two sides of the difference.
    """

    file: str
    engine: str
    stack: str
    outcome: str
    agreed: int
    runs: int
    line: int | None
    column: int | None
    message: str | None
    fields: tuple[Field, ...]

    @property
    def is_failure(self) -> bool:
        """Whether the target violates the script, or there is no result."""
        return self.outcome not in (PASSES, "not-applicable", INVALID)

    def document(self) -> dict[str, Any]:
        """The outcome for ``--json``."""
        return asdict(self)


def read(file: Path) -> str:
    """The text of a script.

    Raises:
        UserError: The file cannot be read, is too large, or is no text.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}", hint="a script, as packetdrill has them") from None
    if len(content) > _LARGEST:
        raise UserError(f"{file}: a script of more than {_LARGEST >> 20} MiB", hint="is this a script?")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError("this is no UTF-8 text", file=str(file), line=line) from None


def unreadable(file: str, engine: str, error: UserError) -> Outcome:
    """The outcome of a script that cannot be run."""
    return Outcome(file, engine, "", INVALID, 0, 0, error.line, error.column, error.message, ())


def init_scripts(text: str, file: str) -> dict[str, str]:
    """The texts of the init scripts that a script names, by their paths from its folder. Missing ones are left out.

    Raises:
        UserError: One is too large, or is no text.
    """
    from anabranch import _engine

    found = {}
    for name in _engine.script_files(text):
        path = Path(file).parent / name
        if path.is_file():
            found[name] = read(path)
    return found


def on_profile(text: str, file: str, stack: str | None = None) -> Outcome:
    """Run a script on our TCP, in virtual time.

    Args:
        text: The script.
        file: Its name, for messages.
        stack: The profile, in place of the script's own.

    Raises:
        UserError: The script is wrong, or has a part of packetdrill's language that is not supported.
    """
    from anabranch import _engine

    return _outcome(_engine.run_script(text, file, stack=stack, files=init_scripts(text, file)), text, file, "sim")


def on_this_kernel(text: str, file: str) -> Outcome:
    """Run a script on this machine's kernel, in real time: at least three times.

    Raises:
        UserError: The script is wrong, or this machine does not permit live runs.
    """
    from anabranch import _engine
    from anabranch.live import unavailable

    try:
        files = init_scripts(text, file)
        told = _engine.run_script(text, file, on_kernel=True, runs=LIVE_RUNS, most=MOST_LIVE_RUNS, files=files)
    except _engine.LiveUnavailableError as error:
        raise unavailable(error) from None
    return _outcome(told, text, file, "live")


def on_guest(text: str, file: str, kernel: str | None = None) -> Outcome:
    """Run a script on a Linux kernel in virtual time, in a separate guest.

    Args:
        text: The script.
        file: Its name, for messages.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.

    Raises:
        UserError: The script is wrong, or there is no such kernel.
        RunFailedError: The kernel failed.
    """
    from anabranch.kernel import calls
    from anabranch.kernel.images import chosen
    from anabranch.kernel.machine import Job

    image = chosen(kernel)
    with Job() as job:
        keywords = {"on_kernel": True, "files": init_scripts(text, file)}
        command = calls.ask(job, script=((text, file), keywords), for_programs=False)
        ended = job.run(image, command, limit_s=_LIMIT_S)
        told = calls.script_answer(job, ended, f"the script in the kernel {image.release}")
    return _outcome(told, text, file, "kernel", image.release)


def _outcome(told: str, text: str, file: str, engine: str, release: str | None = None) -> Outcome:
    """The engine's outcome.

    Raises:
        UserError: The script is wrong.
    """
    found = json.loads(told)
    line, column, message = found["line"], found["column"], found["message"]
    if found["outcome"] in ("invalid", "unsupported"):
        if line is None:
            raise UserError(message)
        lines = text.split("\n")
        source = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
        raise UserError(message, file=file, line=line, column=column, source=source.replace("\t", " ") or None)
    return Outcome(
        file=file,
        engine=engine,
        stack=release or found["stack"],
        outcome=found["outcome"],
        agreed=found["agreed"],
        runs=found["runs"],
        line=line,
        column=column,
        message=message,
        fields=tuple(Field(**one) for one in found["fields"]),
    )
