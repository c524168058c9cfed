"""``anabranch bench``: runs the checkout's benchmark program, or measures costs of commands."""

from __future__ import annotations

import json as json_module
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from anabranch.cli.command import Option, command
from anabranch.cli.options import Json


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of the command."""

    json: Json = False
    commands: Annotated[
        bool, Option("--commands", "Measure the costs of commands outside the engine; needs no checkout.")
    ] = False


@command(BenchOptions, "anabranch bench --json", "anabranch bench --commands")
def run_bench(options: BenchOptions) -> None:
    """Measure the engine's speed and memory (from a checkout).

    Packets per second of processor time, instructions per packet, bytes per flow. With --commands: the costs of
    start-up, of --out per recorded packet, and of a sweep per run.
    """
    (_commands if options.commands else _engine)(json=options.json)


def _engine(*, json: bool) -> None:
    """Build the benchmark program if necessary, and run it.

    Raises:
        UserError: There is no checkout here, or no cargo.
        RunFailedError: The program failed.
    """
    from anabranch.cli import command_cost
    from anabranch.errors import RunFailedError, UserError
    from anabranch.files.checkout import find_checkout

    checkout = find_checkout()
    if checkout is None:
        raise UserError("the benchmark is built from source, and there is no checkout here", hint="run it in a clone")
    cargo = shutil.which("cargo")
    if cargo is None:
        raise UserError(
            "the benchmark is built with cargo, which is not installed", hint="see the README: `make bench`"
        )
    command = [cargo, "run", "--profile", "dist", "-q", "-p", "anabranch-bench", "--", *(["--json"] if json else [])]
    # The table is printed line by line; a document is completed here.
    status, printed = _finish(command, checkout, capture=json)
    if status != 0 and json and not printed.strip():
        raise RunFailedError(f"the benchmark failed with status {status}")
    costs = command_cost.processes()
    if json:
        # The program must print exactly one document; more is detected here, not by the reader.
        document = {**json_module.loads(printed), "output": command_cost.document(costs)}
        sys.stdout.write(json_module.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write("\n" + "".join(f"{line}\n" for line in command_cost.lines(costs)))
    if status != 0:
        raise RunFailedError(f"the benchmark failed with status {status}")


def _commands(*, json: bool) -> None:
    """Measure the processor time of commands without the engine, and print it."""
    from anabranch.cli import command_cost
    from anabranch.cli.common import print_json

    rows = command_cost.measured()
    if json:
        print_json({"commands": [vars(row) for row in rows]})
        return
    for row in rows:
        sys.stdout.write(f"{row.case:28} {row.value:10.4g} {row.unit}  {row.note}\n")


def _finish(command: list[str], directory: Path, *, capture: bool) -> tuple[int, bytes]:
    """Exit status and captured output of a program; it and all its child processes end with this process."""
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=directory, stdout=subprocess.PIPE if capture else None, start_new_session=True
    ) as program:
        try:
            printed, _ = program.communicate()
        except BaseException:
            os.killpg(program.pid, signal.SIGKILL)
            raise
    return program.returncode, printed or b""
