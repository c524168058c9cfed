"""A program of the host in a kernel of its own, in virtual time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from anabranch.kernel.folders import Surroundings, settle
from anabranch.kernel.images import chosen
from anabranch.kernel.machine import Job
from anabranch.kernel.output import passed_on, piped

REQUEST = "request"
"""File of the job."""


def run(command: Sequence[str], *, seed: int = 1, kernel: str | None = None) -> int:
    """Run a program as root of a guest, with this process's working directory, environment and output.

    Args:
        command: The program and its arguments.
        seed: Of every random draw in the guest.
        kernel: The kernel, as of :func:`anabranch.kernel.images.chosen`.

    Returns:
        Its exit status, as a shell has it.

    Raises:
        UserError: There is no such kernel.
        RunFailedError: The kernel failed.
    """
    image = chosen(kernel)
    with Job() as job:
        (job.folder / REQUEST).write_bytes(pickle.dumps(list(command)))
        Surroundings.here(for_programs=True).leave(job.folder)
        inside = [sys.executable, "-m", "anabranch.kernel.program", str(Job.INSIDE)]
        with passed_on(job.folder, out=1, err=2):
            return job.run(image, inside, seed=seed).status


def _inside(folder: Path) -> int:
    settle(folder)
    command = pickle.loads((folder / REQUEST).read_bytes())  # noqa: S301 - our own process wrote it
    with piped(1, 2):
        status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603 - the caller's
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(_inside(Path(sys.argv[1])))
