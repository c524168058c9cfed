"""``--engine kernel`` with a kernel that is built: equal runs, signals, and guests that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario
from anabranch.errors import RunFailedError
from anabranch.kernel.images import chosen, images
from anabranch.kernel.machine import Job

from .test_kernel_engine import guests_of, has_ended, wait_for

pytestmark = pytest.mark.skipif(not images(), reason="no kernel is built: anabranch kernel build")

LIMIT_S = 2.0
"""The rule is 0.2 s; a busy machine may take longer."""
TEXT = """
title = "A thin path"
duration = "2 s"
[link.path]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "30 packets" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "A"
to = "B"
"""


def without_host(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without the host's share: processor time and memory."""
    live = dict(summary["live"])
    live["audit"] = {key: value for key, value in live["audit"].items() if key != "cpu_share"}
    return {**summary, "engine_stats": None, "live": live}


def test_two_runs_are_equal_byte_by_byte() -> None:
    """Detects a guest that reads the host's clock, or draws from the host."""
    scenario = Scenario.from_text(TEXT)
    runs = [scenario.run_kernel(samples_ms=10, packets=True, captures=["path"]) for _ in range(2)]
    one, other = (json.dumps(without_host(json.loads(run.summary_json))) for run in runs)
    assert one == other
    assert runs[0].summary["engine"] == "kernel"
    for table in ("samples", "packets", "link_samples", "flows", "links"):
        first, second = (run.plain(table).to_dict() for run in runs)
        assert first == second, table


def test_another_seed_gives_another_run() -> None:
    scenario = Scenario.from_text(TEXT)
    one, other = (scenario.run_kernel(seed=seed).flows["main"] for seed in (1, 2))
    assert one != other


@pytest.mark.parametrize("words", [["run"], ["sweep", "--repeat", "4", "--jobs", "2"]])
def test_ctrl_c_ends_the_kernels(tmp_path: Path, words: list[str]) -> None:
    file, folder = tmp_path / "long.toml", tmp_path / "temporary"
    file.write_text(TEXT.replace('"2 s"', '"600 s"'))
    folder.mkdir()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "anabranch", words[0], str(file), *words[1:], "--engine", "kernel"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The progress of a run shows that its program has begun.
    wait_for(lambda: any(folder.glob("*/progress")))
    guests = guests_of(folder)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert time.monotonic() - began < LIMIT_S
    assert (process.returncode, told) == (130, "error: interrupted\n")
    assert all(has_ended(guest, LIMIT_S) for guest in guests)
    assert list(folder.iterdir()) == []
    assert str(folder) not in Path("/proc/mounts").read_text()


def test_a_guest_with_too_little_memory_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "run", partialmethod(Job.run, memory_mib=8))
    with pytest.raises(RunFailedError) as failed:
        Scenario.from_text(TEXT).run_kernel()
    assert "too little memory" in str(failed.value)


def test_a_program_that_polls_the_clock_is_ended() -> None:
    polling = "import time; end = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
    with Job() as job, pytest.raises(RunFailedError, match="polls without sleeping"):
        job.run(chosen(), [sys.executable, "-c", polling], silence_s=6)
