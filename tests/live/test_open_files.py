"""What a run needs of the process: files that may be open, and time that the path takes and not the machine."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

from .conftest import FLOW, TAINTED, command
from .conftest import PATH as THREE_SECONDS

PATH = THREE_SECONDS.replace("3 s", "2 s")


MANY = (
    PATH.replace('"20 Mbit/s"', '"1 Mbit/s"').replace('"1 bdp"', '"5000 packets"')
    + FLOW
    + 'workload = { kind = "poisson", rate = "50 Mbit/s", sizes = { kind = "fixed", size = "20 kB" } }\n'
)
"""Some six hundred transfers begin, and next to none ends."""


def with_open_files(soft: int, hard: int, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """A run of :data:`MANY` by a process that may have so many files open, and make them so many."""
    file = tmp_path / "many.toml"
    file.write_text(MANY)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    return subprocess.run(
        command("run", file, "--engine", "live", "--json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=limit,
    )


def test_as_many_transfers_as_the_hard_limit_of_files_allows(live_machine: None, tmp_path: Path) -> None:
    """Detects a run that keeps to the soft limit, which is 1024 by custom."""
    done = with_open_files(256, 8192, tmp_path)
    # That the run came to its end is what is asked here; the next test shows that it needs more than 256.
    assert done.returncode == 0 or TAINTED in done.stderr, done.stderr


def test_more_transfers_than_files_may_be_open(live_machine: None, tmp_path: Path) -> None:
    """Detects a run that says "too many open files" and no more."""
    done = with_open_files(256, 256, tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert re.match(r"error: the live run failed: the application of `main`: \d+ transfers are open, each of", line), (
        line
    )
    assert "this process may have 256 (`ulimit -Hn`)" in line


def test_programs_have_the_limit_that_the_user_gave(live_machine: None, tmp_path: Path) -> None:
    """Fails where a program inherits what we have raised for ourselves."""
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + FLOW + f'[host.A]\nexec = ["sh", "-c", "ulimit -Sn > {tmp_path}/limit"]\n')

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 8192))

    done = subprocess.run(
        command("run", file, "--engine", "live"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=limit,
    )
    assert done.returncode == 0 or TAINTED in done.stderr, done.stderr
    assert (tmp_path / "limit").read_text() == "256\n"
