"""Live against live: differences between repeats of one run, and the lateness of the engine.

    tools/env python validation/measure/repeats.py [REPEATS] [--load N...]

With ``--load 0 1 2 4`` the runs are repeated beside each of these numbers of busy processes, which
are started and ended here. This shows the effect of lateness on results. The simulator is not
involved (`docs/concepts/live.md`).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anabranch.live import run_audited, taint
from anabranch.scenario import Scenario

PATHS = ((10, 70, "100 packets"), (100, 20, "1 bdp"), (100, 100, "1 bdp"))
"""Rate in Mbit/s, round-trip time in ms, queue."""

CONTROLS = ("cubic", "reno")

HEADER = (
    "| busy processes | path | control | runs | tainted | goodput in Mbit/s | spread | p99 lateness in ms, worst "
    "| latest packet in ms |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)

BUSY = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != PARENT:
    raise SystemExit
while True:
    pass
"""
"""PR_SET_PDEATHSIG: the process ends with its parent, for any reason."""


@contextmanager
def busy(processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run processes that occupy a processor each, each detached by setsid, like those of another user."""
    program = BUSY.replace("PARENT", str(os.getpid()))
    words = [sys.executable, "-c", program]
    started: list[subprocess.Popen[bytes]] = []
    try:
        # The generator appends each process before it starts the next, so that a failed start
        # leaves none running.
        started.extend(subprocess.Popen(words, start_new_session=True) for _ in range(processes))
        yield started
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Repeat:
    """Figures of one run."""

    goodput_mbit_s: float
    p99_ms: float
    latest_ms: float
    tainted: bool


def scenario(rate_mbit_s: int, rtt_ms: int, queue: str, cc: str) -> Scenario:
    """Five seconds of one flow."""
    return Scenario.from_text(
        f"""
        duration = "5 s"
        [link.path]
        between = ["A", "B"]
        rate = "{rate_mbit_s} Mbit/s"
        delay = "{rtt_ms / 2} ms"
        forward.queue = {{ kind = "drop-tail", limit = "{queue}" }}
        [flow.main]
        from = "A"
        to = "B"
        cc = "{cc}"
        """
    )


def repeat(of: Scenario) -> Repeat:
    """Repeat the run, even if its audit would reject it."""
    run = run_audited(of)
    assert run.live is not None
    audit = run.live["audit"]
    return Repeat(
        run.flows["main"]["goodput_mbit_s"] or 0.0,
        audit["p99_lateness_ms"] or 0.0,
        audit["max_lateness_ms"] or 0.0,
        bool(taint(run)),
    )


def row(load: int, path: str, cc: str, runs: list[Repeat]) -> str:
    """A line of the table."""
    low, high = (end(run.goodput_mbit_s for run in runs) for end in (min, max))
    spread = f"{high / low - 1:.2%}" if low > 0 else "–"
    tainted = sum(run.tainted for run in runs)
    p99, latest = max(run.p99_ms for run in runs), max(run.latest_ms for run in runs)
    what = f"{load} | {path} | {cc} | {len(runs)} | {tainted}"
    return f"| {what} | {low:.4g}–{high:.4g} | {spread} | {p99:.2g} | {latest:.2g} |"


def main() -> None:
    """Print a table in Markdown: a row per load, path and control."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repeats", nargs="?", type=int, default=4, help="runs of each scenario (4)")
    parser.add_argument("--load", nargs="+", type=int, default=[0], metavar="N", help="busy processes beside them (0)")
    given = parser.parse_args()
    print(HEADER)
    for load in given.load:
        with busy(load):
            for rate, rtt, queue in PATHS:
                for cc in CONTROLS:
                    runs = [repeat(scenario(rate, rtt, queue, cc)) for _ in range(given.repeats)]
                    print(row(load, f"{rate} Mbit/s, {rtt} ms, {queue}", cc, runs), flush=True)


if __name__ == "__main__":
    main()
