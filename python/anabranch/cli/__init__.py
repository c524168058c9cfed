"""The command line: ``anabranch``. Exit status 0 done, 1 the run or a check failed, 2 bad input."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``anabranch`` command."""
    import sys

    from anabranch.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show "±" shows an escape instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()
