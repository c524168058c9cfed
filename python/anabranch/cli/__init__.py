"""The command line: ``anabranch``.

Exit status 0 done, 1 the run or a check failed, 2 bad input, 130 or 143 ended by a signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def main() -> None:
    """Entry point of the ``anabranch`` command."""
    import contextlib
    import gc
    import sys

    from anabranch import interrupt

    # Nothing loaded at the start is garbage, and collection takes a seventh of `--help`. A command
    # enables it.
    gc.disable()
    _open_streams()
    interrupt.listen()
    status: int | str | None = 0
    try:
        if sys.argv[1:] in (["--version"], ["-V"]):
            from anabranch.cli.version import print_version

            # Without click, whose import takes longer than everything else. A failure is reported
            # below.
            with contextlib.suppress(OSError):
                print_version()
                sys.exit(0)
        from anabranch.cli.common import guarded

        with guarded():
            from anabranch.cli.app import app

            status = _run(app)
    except SystemExit as ended:
        status = ended.code
    except KeyboardInterrupt as signal:
        # This is before the command has begun; commands print the message themselves.
        sys.stderr.write(f"error: {interrupt.word(signal)}\n")
        status = 1
    if status != 0:
        interrupt.leave()
    sys.exit(status)


def _run(app: click.Command) -> int:
    """The command's exit status; errors of arguments are shown as text."""
    from click import Abort, ClickException

    try:
        status = app.main(prog_name="anabranch", standalone_mode=False)
    except Abort:
        return 1
    except ClickException as error:
        return _refused(error)
    return status if isinstance(status, int) else 0


def _refused(error: click.ClickException) -> int:
    """Print an error of the arguments and the command for help; returns the exit status."""
    import sys

    from click.exceptions import NoArgsIsHelpError

    from anabranch.cli.common import complain, note
    from anabranch.cli.slips import meant_option

    message, context = error.format_message().strip(), getattr(error, "ctx", None)
    if isinstance(error, NoArgsIsHelpError):
        note(message)
    else:
        meant = meant_option(error, sys.argv)
        if meant is not None:
            message, hint = meant.message, f"\n  {meant.hint}"
        else:
            hint = f"\n  {context.command_path} --help lists its arguments and options" if context is not None else ""
        complain(message[:1].lower() + message[1:].removesuffix(".") + hint)
    return error.exit_code


def _open_streams() -> None:
    """Replace closed standard streams by the null device, and escape characters that a terminal cannot show.

    A stream that the caller closed (``>&-``) would leave its file descriptor to the next opened
    file.
    """
    import os
    import sys

    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_WRONLY), (2, "stderr", os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, flags)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False, encoding="utf-8"))  # noqa: SIM115 - it is the stream
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show "±" shows an escape instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
