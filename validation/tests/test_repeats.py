"""The table of repeats: its load comes and goes, and its lines say what was seen."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from measure.repeats import BUSY, HEADER, Repeat, busy, row


def cpu_ticks(process: subprocess.Popen[bytes]) -> int:
    """What proc(5) says that it has had of a processor."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def takes_a_processor(process: subprocess.Popen[bytes]) -> bool:
    """Whether it goes on taking one, beside whatever else runs: a process that sleeps has no more after its start."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if cpu_ticks(process) > 100:
            return True
        time.sleep(0.05)
    return False


def test_the_load_takes_a_processor_and_goes() -> None:
    """Fails for processes that sleep, and for those that stay when the table is done or fails."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        with busy(1) as started:
            assert len(started) == 1
            assert takes_a_processor(started[0])
            raise RuntimeError
    except RuntimeError:
        pass
    assert [process.poll() for process in started] == [-9]


def test_the_load_goes_with_who_started_it() -> None:
    """It looks for its parent, which another process is not."""
    done = subprocess.run([sys.executable, "-c", BUSY.replace("PARENT", "-1")], check=False, timeout=10)
    assert done.returncode == 0


def test_a_line_of_the_table() -> None:
    runs = [Repeat(9.0, 0.1, 3.0, False), Repeat(9.9, 2.5, 30.0, True)]
    line = row(2, "10 Mbit/s, 70 ms, 100 packets", "cubic", runs)
    assert line == "| 2 | 10 Mbit/s, 70 ms, 100 packets | cubic | 2 | 1 | 9–9.9 | 10.00% | 2.5 | 30 |"
    assert line.count("|") == HEADER.splitlines()[0].count("|")
