"""Runs a program of the host in a separate kernel, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.kernel import calls
from anabranch.kernel.images import chosen
from anabranch.kernel.machine import Job
from anabranch.kernel.output import passed_on


def run(command: Sequence[str], *, seed: int = 1, kernel: str | None = None) -> int:
    """Run a program as root of a guest, with this process's working directory, environment and output.

    Args:
        command: The program and its arguments.
        seed: Seed of every random draw in the guest.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.

    Returns:
        Its exit status, as a shell reports it.

    Raises:
        UserError: There is no such kernel.
        RunFailedError: The kernel failed.
    """
    image = chosen(kernel)
    with Job() as job:
        inside = calls.ask(job, program=command, for_programs=True, piped=[1, 2], standard_input="/dev/null")
        with passed_on(job.folder, out=1, err=2):
            return job.run(image, inside, seed=seed).status
