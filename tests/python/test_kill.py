"""A sweep that is killed at any moment loses only the runs in progress."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from anabranch import Scenario

from .kept import kept_points

TEXT = """\
duration = "2 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "10 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "R"
[sweep]
repeat = @
"flow.main.cc" = ["reno", "cubic"]
"""
PER_KILL = 150
"""Seeds for both controls: enough that most kills precede the last run."""
LIMIT_S = 120.0


def size(out: Path) -> int:
    """Bytes of finished points on disk."""
    return sum(segment.stat().st_size for segment in (out / "points").glob("*.points"))


@pytest.mark.parametrize(
    "kills", [3, pytest.param(10, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.slow)]
)
def test_a_killed_sweep_loses_only_runs_in_progress(tmp_path: Path, kills: int) -> None:
    """Every call resumes from the stored points; killed calls only add to them."""
    file, out = tmp_path / "path.toml", tmp_path / "out"
    file.write_text(TEXT.replace("@", str(PER_KILL * kills)))
    rng = random.Random(kills)  # noqa: S311 - moments, not secrets
    command = [sys.executable, "-m", "anabranch", "sweep", str(file), "--jobs", "1", "--out", str(out)]
    before: set[bytes] = set()
    killed = 0
    for _ in range(kills):
        sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        # From the start of the interpreter to some time after new points are on disk.
        wanted = size(out) + rng.choice([-1, 0, 1 << 14])
        deadline = time.monotonic() + LIMIT_S
        while sweep.poll() is None and size(out) <= wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))
        sweep.send_signal(signal.SIGKILL)
        killed += sweep.wait() == -signal.SIGKILL
        after = set(kept_points(out))
        assert before <= after
        before = after
    assert killed > kills / 2
    result = Scenario.from_file(file).sweep(out=out)
    assert_frame_equal(result.frame, Scenario.from_file(file).sweep().frame)
    assert set(kept_points(out)) >= before
    assert len(kept_points(out)) == result.frame.height == 2 * PER_KILL * kills
