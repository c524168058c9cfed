"""``anabranch bench``: hands over to the benchmark program of the checkout."""

from __future__ import annotations

import json as json_module
import shutil
import subprocess
import sys


def run_bench(json: bool) -> None:
    """Build (if need be) and run the benchmark program.

    Raises:
        UserError: There is no checkout here, or no cargo.
        RunFailedError: The program failed.
    """
    from anabranch.checkout import find_checkout
    from anabranch.errors import RunFailedError, UserError

    checkout = find_checkout()
    if checkout is None:
        raise UserError("the benchmark is built from source, and there is no checkout here", hint="run it in a clone")
    cargo = shutil.which("cargo")
    if cargo is None:
        raise UserError(
            "the benchmark is built with cargo, which is not installed", hint="see the README: `make bench`"
        )
    command = [cargo, "run", "--release", "-q", "-p", "anabranch-bench", "--", *(["--json"] if json else [])]
    done = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, check=False)  # noqa: S603 - our own program
    if done.returncode != 0:
        raise RunFailedError(f"the benchmark failed with status {done.returncode}")
    if json:
        # One document and nothing else: a program that printed more is caught here, not by the reader.
        json_module.loads(done.stdout)
    sys.stdout.write(done.stdout.decode())
