"""Throughput covers a flow's own time: data that arrives after a file is complete does not count."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.scenario import Scenario

FILE = """
duration = "5 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
[flow.main]
from = "A"
to = "B"
workload = { kind = "file", size = "1448 bytes" }
"""

LOST_ACK = 'delay = "10 ms"\nreverse.impair = [{ kind = "loss-list", packets = [1] }]'


def run(text: str) -> tuple[dict[str, Any], int]:
    """The figures of the only flow, and the number of packets on its link."""
    summary: Any = Scenario.from_text(text).run().summary
    return summary["flows"]["main"], summary["links"]["path"]["forward"]["sent_packets"]


def test_a_spurious_retransmission_after_completion_adds_nothing() -> None:
    """Detects a receiver that counts until the run's end: the ACK is lost, and all data is retransmitted."""
    (plain, sent), (retransmitting, more) = run(FILE), run(FILE.replace('delay = "10 ms"', LOST_ACK))
    assert more > sent
    assert retransmitting["flow_completion_time_s"] == plain["flow_completion_time_s"]
    assert retransmitting["throughput_mbit_s"] == plain["throughput_mbit_s"]


@pytest.mark.parametrize("duration", ["500 ms", "50 s"])
def test_the_length_of_the_run_changes_no_rate(duration: str) -> None:
    assert run(FILE.replace("5 s", duration))[0]["throughput_mbit_s"] == run(FILE)[0]["throughput_mbit_s"]
