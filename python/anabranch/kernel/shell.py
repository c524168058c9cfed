"""A shell, or a command, inside a host of a scenario in a kernel of its own.

A command runs in virtual time. It has no terminal; its input is read to the end before it starts. A shell has the
terminal and runs in real time: who types takes time, and virtual time would run ahead of them.
"""

from __future__ import annotations

import os
import pickle
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.errors import RunFailedError, UserError
from anabranch.kernel.folders import Surroundings, settle
from anabranch.kernel.images import Image
from anabranch.kernel.machine import Job
from anabranch.kernel.output import passed_on, piped

if TYPE_CHECKING:
    from anabranch.scenario import Scenario

REQUEST, ANSWER, INPUT = "request", "answer", "in"
"""Files of the job."""
_TERMINAL = "/dev/tty1"


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
        host: Where.
        command: The program and its arguments.
        remark: Is told what should be known of how it ran.
        interactive: Whether it has the terminal, and real time.

    Returns:
        Its exit status.

    Raises:
        UserError: The scenario cannot run in it.
        RunFailedError: The kernel failed, or something in mid-run.
    """
    from anabranch.kernel.terminal import relayed

    seed = scenario.resolve(live=True)["seed"]
    with Job() as job:
        (job.folder / REQUEST).write_bytes(pickle.dumps((scenario, host, command, interactive)))
        Surroundings.here(for_programs=True).leave(job.folder)
        words = [sys.executable, "-m", "anabranch.kernel.shell", str(Job.INSIDE)]
        if interactive:
            with relayed() as terminal:
                ended = job.run(image, words, seed=seed, silence_s=float("inf"), terminal=terminal)
        else:
            (job.folder / INPUT).write_bytes(_input())
            with passed_on(job.folder, out=1, err=2):
                ended = job.run(image, words, seed=seed)
        try:
            kind, answer, remarks = pickle.loads((job.folder / ANSWER).read_bytes())  # noqa: S301 - our own process wrote it
        except (OSError, EOFError, pickle.UnpicklingError):
            raise RunFailedError(f"the shell in the kernel {image.release} ended with {ended.status}") from None
    if kind == "error":
        raise answer
    for told in remarks:
        remark(told)
    return int(answer)


def _input() -> bytes:
    """All that a command can read: nothing of a terminal or a device."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return b""
    return sys.stdin.buffer.read() if stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else b""


def _inside(folder: Path) -> None:
    """In the guest: run the program, and leave its status or the error."""
    from anabranch.live import shell as open_shell

    settle(folder)
    scenario, host, command, interactive = pickle.loads((folder / REQUEST).read_bytes())  # noqa: S301 - our own process wrote it
    remarks: list[str] = []
    try:
        if interactive:
            _take_terminal()
            status = open_shell(scenario, host, command, remarks.append)
        else:
            os.dup2(os.open(folder / INPUT, os.O_RDONLY), 0)
            with piped(1, 2):
                status = open_shell(scenario, host, command, remarks.append, virtual_time=True)
        answer: tuple[str, object, list[str]] = ("status", status, remarks)
    except (UserError, RunFailedError, ValueError) as error:
        answer = ("error", error, [])
    new = folder / f"{ANSWER}.new"
    new.write_bytes(pickle.dumps(answer))
    new.rename(folder / ANSWER)


def _take_terminal() -> None:
    """Make the console the terminal of this session, whose leader this process is."""
    terminal = os.open(_TERMINAL, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(terminal, descriptor)
    os.tcsetpgrp(0, os.getpgrp())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _inside(Path(sys.argv[1]))
