"""Resources of the process during a run: the limit of open files."""

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
"""Some six hundred transfers begin, and almost none ends."""


def with_open_files(soft: int, hard: int, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run :data:`MANY` in a process with these soft and hard limits of open files."""
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


def test_transfers_may_use_the_hard_limit_of_files(live_machine: None, tmp_path: Path) -> None:
    """Detects a run that keeps the soft limit, which is usually 1024."""
    done = with_open_files(256, 8192, tmp_path)
    # The test requires only that the run ends; the next test shows that it needs more than 256.
    assert done.returncode == 0 or TAINTED in done.stderr, done.stderr


def test_more_transfers_than_the_limit_of_open_files(live_machine: None, tmp_path: Path) -> None:
    """Detects a run that prints only "too many open files"."""
    done = with_open_files(256, 256, tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert re.match(r"error: the live run failed: the application of `main`: \d+ transfers are open, each of", line), (
        line
    )
    assert "this process may have 256 (`ulimit -Hn`)" in line


def test_programs_have_the_users_limit(live_machine: None, tmp_path: Path) -> None:
    """Detects a program that inherits the engine's raised limit."""
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
