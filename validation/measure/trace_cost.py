"""Cost of tracing: ``python validation/measure/trace_cost.py`` prints the table of docs/concepts/live.md.

The kernel counts the runs and the run time of each part of a program
(``kernel.bpf_stats_enabled``). The table also has the goodput and lateness of runs with and without
a trace.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from anabranch.live import Limits, prepare
from anabranch.scenario import Scenario

SCENARIO = """
title = "100 Mbit/s"
duration = "8 s"
[link.path]
between = ["A", "B"]
rate = "{rate}"
delay = "10 ms"
queue = {{ kind = "drop-tail", limit = "1 bdp" }}
[flow.main]
from = "A"
to = "B"
cc = "cubic"
"""
RATES = ("100 Mbit/s", "800 Mbit/s")
REPEATS = 3
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


def programs() -> dict[int, tuple[int, int]]:
    """Total nanoseconds and runs of each BPF program that this process holds."""
    found = {}
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = dict(line.split(":", 1) for line in entry.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if "run_cnt" in lines and "prog_id" in lines:
            found[int(lines["prog_id"])] = (int(lines["run_time_ns"]), int(lines["run_cnt"]))
    return found


def cost_of(scenario: Scenario, trace: str) -> tuple[Any, int, int]:
    """The summary of a run, and the cost of its programs: nanoseconds and runs."""
    seen: dict[int, tuple[int, int]] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            seen.update(programs())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        summary = scenario.run_live(trace=trace, limits=Limits(1000.0, 10_000.0, 1000)).summary
    finally:
        over.set()
        watcher.join()
    return summary, sum(ns for ns, _ in seen.values()), sum(runs for _, runs in seen.values())


def main() -> None:
    prepare()
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    print(
        "| path | trace | goodput in Mbit/s | p99 lateness in ms "
        "| runs of the program in a second | ns each | records lost |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    try:
        for rate in RATES:
            scenario = Scenario.from_text(SCENARIO.format(rate=rate))
            for trace in ("off", "events", "acks"):
                made = [cost_of(scenario, trace) for _ in range(REPEATS)]
                goodput = [m[0]["flows"]["main"]["goodput_mbit_s"] for m in made]
                late = [m[0]["live"]["audit"]["p99_lateness_ms"] for m in made]
                ns, runs = sum(m[1] for m in made), sum(m[2] for m in made)
                lost = sum(m[0]["live"]["trace"]["lost_records"] for m in made)
                each = f"{ns / runs:.0f}" if runs else "–"
                per_s = f"{runs / (8 * REPEATS):,.0f}"
                print(
                    f"| {rate} | {trace} | {min(goodput):.1f}–{max(goodput):.1f} | {min(late):.2g}–{max(late):.2g} | "
                    f"{per_s} | {each} | {lost} |",
                    flush=True,
                )
    finally:
        STATISTICS.write_text(before)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("root may count what BPF programs take, nobody else")
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
