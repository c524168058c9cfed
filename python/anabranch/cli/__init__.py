"""The command line: ``anabranch``. Exit status 0 done, 1 the run or a check failed, 2 bad input."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``anabranch`` command."""
    from anabranch.cli.app import app

    app()
