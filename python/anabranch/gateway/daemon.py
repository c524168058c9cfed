"""Finds the daemons ``anabranch-gateway`` and ``anabranch-group``, and executes them."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from anabranch.errors import UserError


class Daemon(NamedTuple):
    """A daemon.

    Attributes:
        name: The program's name.
        package: The package of cargo that it is in.
        guide: The page of its installation.
    """

    name: str
    package: str
    guide: str


GATEWAY = Daemon("anabranch-gateway", "anabranch-gatewayd", "docs/guides/bonding.md")
GROUP = Daemon("anabranch-group", "anabranch-groupd", "docs/guides/link-group.md")


def hand_over(arguments: Sequence[str], daemon: Daemon = GATEWAY) -> NoReturn:
    """Replace this process by the daemon's command, which then receives signals and sets the exit status.

    Raises:
        UserError: It is not installed, or cannot be started.
    """
    program = find(daemon)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(program, [daemon.name, *arguments])  # noqa: S606 - arguments are the user's, and no shell reads them
    except OSError as error:
        raise UserError(f"{program} cannot be started: {error.strerror}") from None


def find(daemon: Daemon = GATEWAY) -> str:
    """The daemon's path: on PATH, beside this package, or in the checkout's build.

    Raises:
        UserError: It is in none of these places.
    """
    on_path = shutil.which(daemon.name)
    if on_path is not None:
        return on_path
    for candidate in _beside(daemon.name):
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    raise UserError(
        f"{daemon.name} is not installed: it is neither on PATH nor beside this package",
        hint=f"build it in a clone: cargo build --release -p {daemon.package}; {daemon.guide} has the rest",
    )


def _beside(name: str) -> Iterator[Path]:
    from anabranch.files.checkout import find_checkout

    yield Path(__file__).resolve().parent.parent / name
    yield Path(sysconfig.get_path("scripts")) / name
    checkout = find_checkout()
    if checkout is not None:
        yield checkout / "target" / "release" / name
