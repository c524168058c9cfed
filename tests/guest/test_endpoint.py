"""Our own TCP at one end of a live run, the kernel's at the other.

``crates/live/tests/all/own_end.rs`` tests their exchange over every path and with every option,
with the wrong systems that fail. These tests cover the results that a user sees.
"""

from __future__ import annotations

import pytest

from .conftest import summary_of

SIZE = 400_000

PATH = """
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "100 packets", reorder = { kind = "interval", interval = 5 } }
impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
"""

FLOW = f"""
[flow.main]
from = "A"
to = "B"
workload = {{ kind = "file", size = "{SIZE} bytes" }}
"""


def at(host: str) -> str:
    return f'[host.{host}]\ntcp = "own"\n'


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(("own", "here", "there"), [("A", "from", "to"), ("B", "to", "from")])
def test_a_file_arrives_complete(own: str, here: str, there: str, family: int) -> None:
    """Detects a wrong checksum, an option that only one end uses, a reset, a misplaced segment."""
    summary = summary_of(PATH + at(own) + FLOW + f"family = {family}\n")
    ends, flow = summary["live"]["ends"]["main"], summary["flows"]["main"]
    assert (ends[here]["tcp"], ends[there]["tcp"]) == ("own", "kernel")
    assert (ends["from"]["written_bytes"], ends["to"]["read_bytes"]) == (SIZE, SIZE)
    assert all(ends[end][option] for end in ends for option in ("timestamps", "sack", "window_scaling"))
    endpoint = ends[here]["endpoint"]
    assert (endpoint["resets_sent"], endpoint["resets_received"], endpoint["discarded_packets"]) == (0, 0, {})
    [counters] = summary["live"]["tcp_counters"].values()
    assert (counters["InCsumErrors"], counters["InErrs"], counters["EstabResets"]) == (0, 0, 0)
    # The endpoint reports these figures, as TCP_INFO does for the kernel.
    assert flow["delivered_bytes"] == SIZE
    assert flow["retransmitted_packets"] >= 1
    assert flow["min_rtt_ms"] >= 20
    assert 0 < flow["flow_completion_time_s"] < 4


def test_a_stack_without_a_kernel_runs_at_our_end() -> None:
    """Detects an engine that always takes the kernel's TCP."""
    summary = summary_of(PATH + at("A") + FLOW + 'stack = "windows-7"\ncc = "compound"\n')
    ends = summary["live"]["ends"]["main"]
    assert ends["to"]["read_bytes"] == SIZE
    # Windows 7 offers no timestamps.
    assert not ends["from"]["timestamps"]
