"""``anabranch shell``."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.options import Kernel, Sets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anabranch.scenario import Scenario

ENGINES = ("live", "kernel")
_LONGEST = 72
"""Characters of a program in the list of hosts."""


@dataclass(frozen=True, kw_only=True)
class ShellOptions:
    """The options of the command."""

    file: Annotated[Path, Argument("FILE", "Scenario file (TOML).")]
    host: Annotated[str, Argument("HOST", "A node where a flow begins or ends.")]
    command: Annotated[
        tuple[str, ...], Argument("[-- PROGRAM ARGS...]", "The program to run; the user's shell when left out.")
    ] = ()
    sets: Sets = ()
    engine: Annotated[
        str,
        Option(
            "--engine",
            "live: with this machine's kernel; kernel: with a separate Linux kernel, in virtual time.",
            "live|kernel",
        ),
    ] = "live"
    kernel: Kernel = None


@command(
    ShellOptions,
    "anabranch shell scenarios/live/thin.toml A",
    "anabranch shell scenarios/live/thin.toml A -- ping -c 3 B",
    "anabranch shell scenarios/live/thin.toml A --engine kernel -- ping -c 3 B",
)
def run_shell(options: ShellOptions) -> None:
    """Open a shell inside a host of a scenario.

    The live network is around it, and the other hosts' programs run. No flow sends. Ctrl-C is the program's; SIGTERM
    ends it, and then this command.
    """
    from anabranch.cli.common import check_engine, load_scenario, note
    from anabranch.errors import UserError
    from anabranch.live import check_host, check_program, prepare
    from anabranch.live import shell as open_shell

    check_engine(options.engine, options.kernel, ENGINES)
    if options.file == Path("-"):
        raise UserError("standard input is the shell's; a scenario file was expected")
    scenario = load_scenario(options.file, options.sets)
    check_host(scenario, options.host)
    program = list(options.command) or [os.environ.get("SHELL", "/bin/sh")]
    check_program(program)
    if options.engine == "kernel":
        status = _in_a_kernel(scenario, options, program)
    else:
        prepare()
        for line in greeting(scenario, options.host):
            note(line)
        status = open_shell(scenario, options.host, program, remark=note)
    if status != 0:
        raise SystemExit(1)


def _in_a_kernel(scenario: Scenario, options: ShellOptions, program: list[str]) -> int:
    from anabranch.cli.common import note
    from anabranch.kernel.engine import image_of
    from anabranch.kernel.shell import shell

    interactive = not options.command and os.isatty(0)
    image = image_of(scenario, options.kernel)
    for line in greeting(scenario, options.host):
        note(line)
    if interactive:
        note("time is real in a shell; with `-- PROGRAM` it is virtual")
    return shell(image, scenario, options.host, program, note, interactive=interactive)


def greeting(scenario: Scenario, host: str) -> Iterator[str]:
    """Every host with its addresses and its program, one per line.

    Args:
        scenario: The network.
        host: The host of the shell.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: This build cannot run live.
    """
    from anabranch.live import hosts_of

    rows = []
    for name, v4, v6, program in hosts_of(scenario):
        # A host with several devices has a row for each.
        if name == host or name.startswith(f"{host}."):
            told = "this shell" + (", in place of its program" if program else "")
        else:
            told = f"runs {shlex.join(program)}" if program else ""
        rows.append((_shown(name), v4, v6, _shortened(_shown(told))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _shortened(text: str) -> str:
    """The beginning of a program that is a script."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _shown(text: str) -> str:
    """Text for a terminal, with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
