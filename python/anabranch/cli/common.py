"""Functions shared by all commands: exit statuses, output, options given more than once."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from anabranch.scenario import Scenario

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
TERMINATED = 143


LIVE = "live"
KERNEL = "kernel"
"""A Linux kernel in virtual time."""
ENGINES = ("sim", LIVE, KERNEL)
"""The values of --engine."""


@contextmanager
def exit_status() -> Iterator[None]:
    """Convert an error to a message on standard error and the contract's exit status."""
    import gc
    import tempfile

    from anabranch._engine import ScenarioError
    from anabranch.errors import RunFailedError, UserError
    from anabranch.files import owner
    from anabranch.interrupt import Terminated, word
    from anabranch.text.spoken import by_option

    gc.enable()
    try:
        owner.remove_dead(Path(tempfile.gettempdir()))
        with by_option():
            yield
        sys.stdout.flush()
    except (ScenarioError, UserError) as error:
        complain(str(error))
        raise SystemExit(BAD_INPUT) from None
    except RunFailedError as error:
        complain(str(error))
        raise SystemExit(FAILED) from None
    except OverflowError as error:
        # Every option checks its bounds, so this number came from a library call.
        complain(f"a number is out of range: {error}")
        raise SystemExit(BAD_INPUT) from None
    except RecursionError:
        complain("the input is nested too deeply")
        raise SystemExit(BAD_INPUT) from None
    except MemoryError:
        complain("there is not enough memory")
        raise SystemExit(FAILED) from None
    except KeyboardInterrupt as signal:
        complain(word(signal))
        raise SystemExit(TERMINATED if isinstance(signal, Terminated) else INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the output has closed the pipe (`| head`): this is no failure.
        silence()
        raise SystemExit(0) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        silence()
        raise SystemExit(FAILED) from None


@contextmanager
def guarded() -> Iterator[None]:
    """Frame of every command: checks that arguments are text, and prints an unexpected error in one line.

    An error that arrives here is a fault of this program. A traceback would not help the user.
    """
    for position, argument in enumerate(sys.argv[1:], 1):
        if any(0xD800 <= ord(c) <= 0xDFFF for c in argument):
            complain(f"argument {position}, {argument!r}, is not UTF-8 text; rename the file or retype it")
            raise SystemExit(BAD_INPUT)
    warnings.showwarning = _show_warning
    try:
        yield
    except BrokenPipeError:
        silence()
        raise SystemExit(0) from None
    except OSError as error:
        complain(str(error.strerror or error))
        silence()
        raise SystemExit(FAILED) from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # The engine's panics are no `Exception`.
        complain(f"a fault of anabranch, please report it: {type(error).__name__}: {error} ({_where(error)})")
        raise SystemExit(FAILED) from None
    finally:
        _flush()


_python_shows = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning of this package as a remark; other warnings keep Python's text, which may quote a name."""
    if category.__module__.startswith("anabranch."):
        note(str(message))
    elif file is not None:
        _python_shows(message, category, filename, lineno, file, line)
    else:
        note(warnings.formatwarning(message, category, filename, lineno, line).rstrip())


def _where(error: BaseException) -> str:
    """File and line of the innermost frame in this package."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if f"anabranch{os.sep}" in name:
            place = f"{Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _flush() -> None:
    """Flush standard output and error; a failed flush at the interpreter's exit would end with status 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            silence()


def silence() -> None:
    """Redirect standard output to the null device, so that the interpreter's last flush cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        # A replacement of the stream may have no file descriptor.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)


def complain(message: str) -> None:
    """A message on standard error."""
    _say(f"error: {message}")


def note(message: str) -> None:
    """A remark on standard error, so that standard output stays the result."""
    _say(message)


def _say(message: str) -> None:
    from anabranch.text import shown

    # Standard error was closed on purpose.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{shown.terminal(message)}\n")
        sys.stderr.flush()


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    from anabranch.files.output import to_json

    write_json(to_json(value).decode())


def write_json(document: str) -> None:
    """Print a finished JSON document; a terminal receives no control characters from it."""
    from anabranch.text import shown

    sys.stdout.write(shown.printable_json(document))
    sys.stdout.flush()


def console(*, error: bool = False) -> Console:
    """Standard output for people, or standard error; on a pipe as wide as its content.

    Text is printed unchanged, and :func:`styled` makes it bold. Rich's mark-up and emoji codes are
    off.
    """
    from rich.console import Console

    from anabranch.text import shown

    class Plain(Console):
        """A console that passes no control characters of its text, and raises an error for a closed pipe."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(shown.terminal(text), **options)

        def on_broken_pipe(self) -> None:
            # Rich's own ends with status 1.
            raise BrokenPipeError

    width = None if (sys.stderr if error else sys.stdout).isatty() else 160
    return Plain(highlight=False, markup=False, emoji=False, width=width, stderr=error)


def styled(text: str, style: str = "bold") -> Text:
    """Text in a style, for :func:`console`."""
    from rich.text import Text

    from anabranch.text import shown

    return Text(shown.terminal(text), style=style, end="")


def check_engine(engine: str, kernel: str | None = None, valid: Sequence[str] = ENGINES) -> None:
    """Refuse an unknown engine, and a kernel for an engine without one.

    Args:
        engine: The value of --engine.
        kernel: The value of --kernel.
        valid: The engines of the command.

    Raises:
        UserError: There is no such engine, or the command does not have it; or --kernel has no effect.
    """
    from anabranch.errors import UserError, nearest

    if engine not in valid:
        told = f"this command has no --engine {engine}" if engine in ENGINES else f'there is no engine "{engine}"'
        raise UserError(told, hint=nearest(engine, valid))
    if kernel is not None and engine != KERNEL:
        raise UserError(
            f"--kernel {kernel} is of --engine kernel, and --engine {engine} runs none", hint="give --engine kernel"
        )


def load_scenario(file: Path, sets: Sequence[str], *, seed: int | None = None, untrusted: bool = False) -> Scenario:
    """A scenario file, "-" for standard input, with the changes of ``--set``; ``untrusted`` as of the option.

    Raises:
        UserError: The file cannot be read, a change is not PATH=VALUE, or it would be undone by another or by ``seed``.
    """
    from anabranch.errors import UserError
    from anabranch.scenario import STANDARD_INPUT, Scenario, read_standard_input

    if file == Path("-"):
        scenario = Scenario.from_text(read_standard_input(), file=STANDARD_INPUT, untrusted=untrusted)
    else:
        scenario = Scenario.from_file(file, untrusted=untrusted)
    seen: dict[str, str] = {}
    for change in sets:
        path, equals, _ = change.partition("=")
        if not equals or not path.strip():
            raise UserError(f"--set {change!r}: PATH=VALUE was expected", hint="--set flow.main.cc=cubic")
        name = one_spelling(path)
        if name in seen:
            raise UserError(
                f"--set gives {name} twice, {seen[name]!r} and {change!r}: the first would be ignored",
                hint="give one of them; `anabranch sweep --grid` runs several values",
            )
        if name == "seed" and seed is not None:
            raise UserError(f"--set {change!r} beside --seed {seed}: it would be ignored", hint="give one of them")
        seen[name] = change
    return scenario.with_sets(*sets)


def one_spelling(path: str) -> str:
    """A dotted path without unnecessary quotation marks; a text that is no path is stripped."""
    from anabranch.errors import UserError
    from anabranch.keys import grid

    try:
        return grid.one_spelling(path)
    except UserError:
        return path.strip()
