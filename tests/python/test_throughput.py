"""Throughput covers a flow's own time: what arrives when a file is complete counts no more."""

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
    """The figures of the one flow, and the packets that its link has carried."""
    summary: Any = Scenario.from_text(text).run().summary
    return summary["flows"]["main"], summary["links"]["path"]["forward"]["sent_packets"]


def test_a_spurious_retransmission_after_completion_adds_nothing() -> None:
    """Fails where the receiver counts to the run's end: the acknowledgment is lost, and all of it is sent once more."""
    (plain, sent), (retransmitting, more) = run(FILE), run(FILE.replace('delay = "10 ms"', LOST_ACK))
    assert more > sent
    assert retransmitting["flow_completion_time_s"] == plain["flow_completion_time_s"]
    assert retransmitting["throughput_mbit_s"] == plain["throughput_mbit_s"]


@pytest.mark.parametrize("duration", ["500 ms", "50 s"])
def test_the_length_of_the_run_changes_no_rate(duration: str) -> None:
    assert run(FILE.replace("5 s", duration))[0]["throughput_mbit_s"] == run(FILE)[0]["throughput_mbit_s"]
