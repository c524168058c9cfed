"""The table of repeats: its load ends with who started it, and its lines say what was seen."""

from __future__ import annotations

import subprocess
import sys

from measure.repeats import BUSY, HEADER, Repeat, row


def test_the_load_goes_with_who_started_it() -> None:
    """It looks for its parent, which another process is not."""
    done = subprocess.run([sys.executable, "-c", BUSY.replace("PARENT", "-1")], check=False, timeout=10)
    assert done.returncode == 0


def test_a_line_of_the_table() -> None:
    runs = [Repeat(9.0, 0.1, 3.0, False), Repeat(9.9, 2.5, 30.0, True)]
    line = row(2, "10 Mbit/s, 70 ms, 100 packets", "cubic", runs)
    assert line == "| 2 | 10 Mbit/s, 70 ms, 100 packets | cubic | 2 | 1 | 9–9.9 | 10.00% | 2.5 | 30 |"
    assert line.count("|") == HEADER.splitlines()[0].count("|")
