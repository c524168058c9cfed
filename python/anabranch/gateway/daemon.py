"""Finds the daemon ``anabranch-gateway`` and executes it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from anabranch.errors import UserError

NAME = "anabranch-gateway"


def hand_over(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the daemon's command, which then receives signals and sets the exit status.

    Raises:
        UserError: It is not installed, or cannot be started.
    """
    program = find()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, [NAME, *arguments])  # noqa: S606 - arguments are the user's, and no shell reads them
    except OSError as error:
        raise UserError(f"{program} cannot be started: {error.strerror}") from None


def find() -> str:
    """The daemon on PATH, beside this package, or in the checkout's build.

    Raises:
        UserError: It is in none of these places.
    """
    on_path = shutil.which(NAME)
    if on_path is not None:
        return on_path
    for candidate in _beside():
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    raise UserError(
        f"{NAME} is not installed: it is neither on PATH nor beside this package",
        hint="build it in a clone: cargo build --release -p anabranch-gatewayd; docs/guides/bonding.md has the rest",
    )


def _beside() -> Iterator[Path]:
    from anabranch.files.checkout import find_checkout

    yield Path(__file__).resolve().parent.parent / NAME
    yield Path(sysconfig.get_path("scripts")) / NAME
    checkout = find_checkout()
    if checkout is not None:
        yield checkout / "target" / "release" / NAME
