"""The table of repeats: its load ends with the parent process, and its lines show the measured figures."""

from __future__ import annotations

import subprocess
import sys

from measure.repeats import BUSY, HEADER, Repeat, row


def test_the_load_ends_with_its_parent() -> None:
    """The process compares its parent with the given one."""
    done = subprocess.run([sys.executable, "-c", BUSY.replace("PARENT", "-1")], check=False, timeout=10)
    assert done.returncode == 0


def test_a_line_of_the_table() -> None:
    runs = [Repeat(9.0, 0.1, 3.0, False), Repeat(9.9, 2.5, 30.0, True)]
    line = row(2, "10 Mbit/s, 70 ms, 100 packets", "cubic", runs)
    assert line == "| 2 | 10 Mbit/s, 70 ms, 100 packets | cubic | 2 | 1 | 9–9.9 | 10.00% | 2.5 | 30 |"
    assert line.count("|") == HEADER.splitlines()[0].count("|")
