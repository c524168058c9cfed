"""Entry point of the ``anabranch`` command. Its import first sets the signal handlers.

They apply until :mod:`anabranch.interrupt` sets its handlers; before that, there is nothing to
undo.
"""

import _signal  # type: ignore[import-not-found] # without enum, which `signal` imports
import os

_STATUS = ((2, b"error: interrupted\n"), (15, b"error: terminated\n"))
"""SIGINT and SIGTERM, and the message for each."""


def _end(number: int, _frame: object) -> None:
    try:
        os.write(2, dict(_STATUS)[number])
    finally:
        os._exit(128 + number)


for _number, _ in _STATUS:
    # A signal that the caller ignores stays ignored.
    if _signal.getsignal(_number) != _signal.SIG_IGN:
        _signal.signal(_number, _end)


def main() -> None:
    """Run the command line."""
    from anabranch.cli import main as run

    run()
