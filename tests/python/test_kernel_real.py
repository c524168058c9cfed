"""``--engine kernel`` with a built kernel: equal runs, and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario

from .real_kernel import needs_kernel
from .test_kernel_engine import guests_of, has_ended, wait_for

pytestmark = needs_kernel

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
[flow.other]
from = "A"
to = "B"
cc = "bbr"
"""


def without_host(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without the host's part: processor time and memory."""
    live = dict(summary["live"])
    live["audit"] = {key: value for key, value in live["audit"].items() if key != "cpu_share"}
    return {**summary, "engine_stats": None, "live": live}


def test_the_seed_determines_a_run_byte_by_byte() -> None:
    """Detects a guest that reads the host's clock or random numbers, and a seed that is not passed on.

    BBR draws the phase of its probing from it.
    """
    scenario = Scenario.from_text(TEXT)
    runs = [scenario.run_kernel(seed=seed, samples_ms=10, packets=True, captures=["path"]) for seed in (1, 1, 2)]
    one, again = (json.dumps(without_host(json.loads(run.summary_json))) for run in runs[:2])
    assert one == again
    assert runs[0].summary["engine"] == "kernel"
    for table in ("samples", "packets", "link_samples", "flows", "links"):
        first, second = (run.plain(table).to_dict() for run in runs[:2])
        assert first == second, table
    assert runs[0].flows["main"] != runs[2].flows["main"]
    assert runs[0].flows["other"] != runs[2].flows["other"]


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
