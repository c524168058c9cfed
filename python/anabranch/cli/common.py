"""What every command shares: exit statuses, output, options given more than once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.scenario import Scenario

FAILED = 1
BAD_INPUT = 2


ENGINES = ("sim", "live")
"""The values of --engine."""


@contextmanager
def exit_status() -> Iterator[None]:
    """Turn what went wrong into a message on standard error and the contract's exit status."""
    from anabranch._engine import ScenarioError
    from anabranch.errors import RunFailedError, UserError

    try:
        yield
        sys.stdout.flush()
    except (ScenarioError, UserError) as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except RunFailedError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from None
    except OverflowError as error:
        # A number wider than the engine's: every option has its own check, so this is one in a library call.
        complain(f"a number is out of range: {error}")
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        complain("interrupted")
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nobody is left to tell.
        _silence()
        raise typer.Exit(0) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        raise typer.Exit(FAILED) from None


def _silence() -> None:
    """Let what is still buffered go nowhere, so that the interpreter's own last flush does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(message: str) -> None:
    """A message on standard error."""
    sys.stderr.write(f"error: {message}\n")


def note(message: str) -> None:
    """A remark on standard error, so that standard output stays the result."""
    sys.stderr.write(f"{message}\n")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    from anabranch.output import to_json

    sys.stdout.write(to_json(value).decode())
    sys.stdout.flush()


def console(*, error: bool = False) -> Console:
    """Standard output for people, or standard error; on a pipe as wide as its content."""
    from rich.console import Console

    class Piped(Console):
        """A console that leaves a reader who went away to :func:`exit_status`; rich's own ends with status 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    width = None if (sys.stderr if error else sys.stdout).isatty() else 160
    return Piped(highlight=False, width=width, stderr=error)


def later(what: str, hint: str | None = None) -> NoReturn:
    """Refuse what the contract names and this version does not have.

    Raises:
        UserError: Always.
    """
    from anabranch.errors import UserError

    raise UserError(f"{what} comes in a later version", hint=hint)


def is_live(engine: str) -> bool:
    """Whether the live engine is asked for.

    Raises:
        UserError: ``engine`` is neither.
    """
    from anabranch.errors import UserError, nearest

    if engine not in ENGINES:
        raise UserError(f'there is no engine "{engine}"', hint=nearest(engine, ENGINES))
    return engine == "live"


def load_scenario(file: Path, sets: list[str], *, seed: int | None = None) -> Scenario:
    """A scenario file with the changes of ``--set``.

    Raises:
        UserError: The file cannot be read, a change is not PATH=VALUE, or it would be undone by another or by ``seed``.
    """
    from anabranch.errors import UserError
    from anabranch.scenario import Scenario

    scenario = Scenario.from_file(file)
    seen: dict[str, str] = {}
    for change in sets:
        path, equals, _ = change.partition("=")
        if not equals or not path.strip():
            raise UserError(f"--set {change!r}: PATH=VALUE was expected", hint="--set flow.main.cc=cubic")
        name = _one_spelling(path)
        if name in seen:
            raise UserError(
                f"--set gives {name} twice, {seen[name]!r} and {change!r}: the first would be ignored",
                hint="give one of them; `anabranch sweep --grid` runs several values",
            )
        if name == "seed" and seed is not None:
            raise UserError(f"--set {change!r} beside --seed {seed}: it would be ignored", hint="give one of them")
        seen[name] = change
        scenario._sets.append(change)
    return scenario


def _one_spelling(path: str) -> str:
    """A dotted path as it is written without need for quotation marks; what is no path as it is."""
    from anabranch.errors import UserError
    from anabranch.grid import one_spelling

    try:
        return one_spelling(path)
    except UserError:
        return path.strip()
