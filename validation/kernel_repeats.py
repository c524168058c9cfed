"""Repeat the rows with SACK of ``linux-reordering.csv`` several times each, with the running kernel.

    python validation/kernel_repeats.py --repeats 10 --out validation/data/linux-reordering-repeats.csv

Needs Linux, root, ``/dev/net/tun``, ``ip`` and ``cc``. A run takes 10 s per row and repeat. A run
is *tainted* if the 99th percentile of the packets' lateness exceeds 1 ms; it is counted and
repeated. Everything runs in network namespaces that end with their processes. Results before an
interruption are in the file.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).parents[1]
ORACLE = ROOT / "validation/data/linux-reordering.csv"
RUN = ROOT / "validation/kernel/run.py"
PROGRAM = ROOT / "validation/kernel/path.c"

TAINTED_US = 1000
"""Lateness (99th percentile) above which a run is not reported; fixed before the first measurement."""
TRIES = 5
"""Attempts at one repeat."""
LONGEST = 60.0
"""Seconds after which a run counts as hung."""

COLUMNS = (
    "reorder_interval", "cc", "repeat", "goodput_mbit_s", "retransmitted_packets", "dropped_packets", "moved_packets",
    "min_rtt_ms", "mean_rtt_ms", "mean_rtt_by_second_ms", "max_rtt_ms", "max_cwnd_segments", "reordering_segments",
    "lateness_p50_us", "lateness_p99_us", "lateness_max_us", "tainted_before", "kernel",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One repeat of one row."""

    cc: str
    interval: int
    repeat: int


def jobs(repeats: int) -> Iterator[Job]:
    """Every row once, then every row again, so that a disturbance of the machine does not hit one row alone."""
    with ORACLE.open(encoding="ascii", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["stack"] == "sack"]
    for repeat, row in itertools.product(range(1, repeats + 1), rows):
        yield Job(row["cc"], int(row["reorder_interval"]), repeat)


def figures(job: Job, run: dict[str, Any], tainted: int) -> dict[str, object]:
    """A line of the file."""
    samples = [dict(zip(run["fields"], sample, strict=True)) for sample in run["samples"]]
    rtt = [sample["srtt_ms"] for sample in samples]
    path = run["path"]
    return {
        "reorder_interval": job.interval,
        "cc": job.cc,
        "repeat": job.repeat,
        "goodput_mbit_s": f"{run['goodput_mbit_s']:.3f}",
        "retransmitted_packets": samples[-1]["retransmitted"],
        "dropped_packets": path["dropped"],
        "moved_packets": path["moved"],
        "min_rtt_ms": f"{min(rtt):.1f}",
        "mean_rtt_ms": f"{sum(rtt) / len(rtt):.1f}",
        "mean_rtt_by_second_ms": f"{_by_second(samples):.1f}",
        "max_rtt_ms": f"{max(rtt):.1f}",
        "max_cwnd_segments": max(sample["cwnd"] for sample in samples),
        "reordering_segments": samples[-1]["reordering"],
        "lateness_p50_us": path["lateness_p50_us"],
        "lateness_p99_us": path["lateness_p99_us"],
        "lateness_max_us": path["lateness_max_us"],
        "tainted_before": tainted,
        "kernel": os.uname().release.split("-")[0],
    }


def _by_second(samples: Sequence[dict[str, Any]]) -> float:
    """The mean of the smoothed RTT read once a second, as iperf3 reports it."""
    read = [next(sample for sample in samples if sample["at"] >= second - 0.015) for second in range(1, 11)]
    return float(sum(sample["srtt_ms"] for sample in read) / len(read))


class Measurement:
    """The running processes, their output file, and their results."""

    def __init__(self, program: Path, out: TextIO, traces: Path | None) -> None:
        """Write to `out`, and every run's samples below `traces`."""
        self._program = program
        self._out = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        self._file = out
        self._traces = traces
        self._running: dict[subprocess.Popen[bytes], tuple[Job, float, Path]] = {}
        self.tainted: Counter[Job] = Counter()
        self.done = 0
        self._out.writeheader()

    def measure(self, todo: Sequence[Job], at_once: int) -> None:
        """Run all jobs, and repeat tainted ones; end running processes on an interrupt."""
        waiting = list(todo)
        try:
            with tempfile.TemporaryDirectory() as folder:
                while waiting or self._running:
                    while waiting and len(self._running) < at_once:
                        self._start(waiting.pop(0), Path(folder))
                        # Staggered: simultaneous starts would disturb each other in slow start.
                        time.sleep(0.7)
                    waiting += self._finished()
                    time.sleep(0.05)
        finally:
            for process in self._running:
                process.kill()
                process.wait()

    def _start(self, job: Job, folder: Path) -> None:
        path = folder / f"{job.cc}-{job.interval}-{job.repeat}.json"
        command = [sys.executable, str(RUN), str(self._program), job.cc, str(job.interval)]
        with path.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, start_new_session=True)
        self._running[process] = (job, time.monotonic(), path)

    def _finished(self) -> list[Job]:
        """Collect finished runs; return the jobs to be repeated."""
        again = []
        for process, (job, started, path) in list(self._running.items()):
            if process.poll() is None:
                if time.monotonic() - started < LONGEST:
                    continue
                process.kill()
                process.wait()
            del self._running[process]
            if process.returncode != 0:
                raise SystemExit(f"{job}: the run failed (exit status {process.returncode})")
            if not self._take(job, path):
                again.append(job)
        return again

    def _take(self, job: Job, path: Path) -> bool:
        """Record a run; ``False`` if it must be repeated."""
        run = json.loads(path.read_text(encoding="ascii"))
        late = run["path"]["lateness_p99_us"]
        if late > TAINTED_US:
            self.tainted[job] += 1
            print(f"{job.cc} {job.interval} repeat {job.repeat}: tainted, {late} µs late", flush=True)
            if self.tainted[job] < TRIES:
                return False
            print(f"{job.cc} {job.interval} repeat {job.repeat}: given up after {TRIES} tainted runs", flush=True)
            return True
        line = figures(job, run, self.tainted[job])
        self._out.writerow(line)
        self._file.flush()
        self.done += 1
        if self._traces:
            self._traces.mkdir(parents=True, exist_ok=True)
            path.replace(self._traces / path.name)
        print(" ".join(str(line[name]) for name in COLUMNS[:11]), line["lateness_p99_us"], flush=True)
        return True


def sort(path: Path) -> None:
    """Sort the lines of a finished measurement in the order of the reference rows."""
    order = [(job.interval, job.cc) for job in jobs(1)]
    with path.open(encoding="ascii", newline="") as file:
        lines = list(csv.DictReader(file))
    lines.sort(key=lambda line: (order.index((int(line["reorder_interval"]), line["cc"])), int(line["repeat"])))
    with path.open("w", encoding="ascii", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def main() -> int:
    """Compile the path's program and measure."""
    parser = argparse.ArgumentParser(description="Measure the rows with SACK of linux-reordering.csv again.")
    parser.add_argument("--repeats", type=int, default=10, help="of each row (10)")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--at-once", type=int, default=1, help="runs at the same time (1)")
    parser.add_argument("--traces", type=Path, help="directory for every run's TCP_INFO, one JSON file each")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("network namespaces and TUN devices need root (CAP_NET_ADMIN and CAP_SYS_ADMIN)")
    # A shell that starts this in the background ignores the interrupt; enable it again.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "path"
        subprocess.run(["cc", "-std=c11", "-O2", "-o", program, PROGRAM], check=True)
        with arguments.out.open("w", encoding="ascii", newline="") as out:
            measurement = Measurement(program, out, arguments.traces)
            try:
                measurement.measure(list(jobs(arguments.repeats)), arguments.at_once)
            except KeyboardInterrupt:
                return 130
    sort(arguments.out)
    print(f"{measurement.done} runs; {measurement.tainted.total()} were tainted and made again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
