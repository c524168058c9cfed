"""The job scripts of examples/sweeps, with replacements for the schedulers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import Scenario

ROOT = Path(__file__).parents[2]
SWEEPS = ROOT / "examples" / "sweeps"
TEXT = """\
duration = "0.2 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "R"
[sweep]
repeat = 7
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a scenario, and with `anabranch` and `hq` in its PATH."""
    (tmp_path / "path.toml").write_text(TEXT)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "anabranch").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m anabranch "$@"\n')
    # Like HyperQueue with the options of the example: runs the command once for each number of the
    # array.
    (programs / "hq").write_text(
        '#!/bin/sh\nset -e\n[ "$1 $2 $4 $5 $6" = "submit --array --cpus 4 --wait" ]\nlast=${3#1-}\nshift 6\n'
        'HQ_TASK_ID=1\nwhile [ "$HQ_TASK_ID" -le "$last" ]; do\n'
        'export HQ_TASK_ID\n"$@"\nHQ_TASK_ID=$((HQ_TASK_ID + 1))\ndone\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    return tmp_path


def call(place: Path, command: list[str], **variables: str) -> None:
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "python"), **variables}
    done = subprocess.run(  # noqa: S603 - our own scripts
        command, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def check_whole(place: Path) -> None:
    Scenario.from_file(place / "path.toml").sweep(out=place / "alone")
    assert (place / "whole" / "runs.csv").read_bytes() == (place / "alone" / "runs.csv").read_bytes()


def test_a_slurm_array_completes_the_sweep(place: Path) -> None:
    for task in ("1", "2", "3"):
        variables = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_CPUS_PER_TASK": "1"}
        call(place, ["sh", str(SWEEPS / "slurm.sh"), "path.toml"], **variables)
    call(place, ["sh", "-c", "anabranch sweep merge shards/* --out whole"])
    check_whole(place)


def test_hyperqueue_completes_the_sweep(place: Path) -> None:
    call(place, ["sh", str(SWEEPS / "hyperqueue.sh"), "path.toml", "3"])
    check_whole(place)


def test_the_ci_matrix_has_the_named_parts() -> None:
    text = (SWEEPS / "ci-matrix.yml").read_text()
    parts = re.search(r"part: \[(.*)\]", text)
    assert parts is not None
    assert [int(part) for part in parts[1].split(",")] == [1, 2, 3, 4]
    assert "--shard ${{ matrix.part }}/4 " in text
