"""A shell, or a command, inside a host of a scenario in a separate kernel.

A command runs in virtual time. It has no terminal; its input is read to the end before it starts. A shell has the
terminal and runs in real time, because a user types slowly and virtual time would run ahead.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anabranch.kernel import calls
from anabranch.kernel.images import Image
from anabranch.kernel.machine import Job
from anabranch.kernel.output import passed_on

if TYPE_CHECKING:
    from anabranch.result.result import KeptRun
    from anabranch.scenario import Scenario

INPUT = "in"
"""File of the job: the command's standard input."""


def shell(
    image: Image,
    scenario: Scenario,
    host: str,
    command: list[str],
    remark: Callable[[str], None],
    *,
    interactive: bool,
) -> int:
    """Run a program inside a host; see :func:`anabranch.live.shell`.

    Args:
        image: The kernel.
        scenario: The network.
        host: The host of the program.
        command: The program and its arguments.
        remark: Called with remarks on the run.
        interactive: Whether the program has the terminal, and real time.

    Returns:
        Its exit status.

    Raises:
        UserError: The scenario cannot run in it.
        RunFailedError: The kernel failed, or something in mid-run.
    """
    from anabranch.kernel.terminal import relayed
    from anabranch.live import status_of

    seed = scenario.resolve(live=True)["seed"]
    told = f"the shell in the kernel {image.release}"
    with Job() as job:

        def with_terminal(*arguments: Any, **keywords: Any) -> KeptRun:
            words = calls.ask(job, call=(arguments, keywords), for_programs=True, terminal=True)
            with relayed() as terminal:
                ended = job.run(image, words, seed=seed, silence_s=float("inf"), terminal=terminal)
            return calls.answer(job, ended, told)

        def with_input(*arguments: Any, **keywords: Any) -> KeptRun:
            (job.folder / INPUT).write_bytes(_input())
            call = arguments, {**keywords, "virtual_time": True}
            words = calls.ask(job, call=call, for_programs=True, piped=[1, 2], standard_input=str(Job.INSIDE / INPUT))
            with passed_on(job.folder, out=1, err=2):
                ended = job.run(image, words, seed=seed)
            return calls.answer(job, ended, told)

        return status_of(scenario, host, command, remark, with_terminal if interactive else with_input)


def _input() -> bytes:
    """The command's complete input; empty if the input is a terminal or a device."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return b""
    return sys.stdin.buffer.read() if stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else b""
