"""Duplicates made by the network, beside Linux."""

from __future__ import annotations

import pytest

from anabranch import Scenario

TEXT = """
duration = "20 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "60 packets" }
impair = [{ kind = "bernoulli-loss", rate = 0.003 }, { kind = "duplicate", rate = 0.02 }]
[flow.main]
from = "A"
to = "B"
stack = "linux-6.12"
"""


def test_duplicates_by_the_network_undo_no_reduction() -> None:
    """Linux 6.12 (`--engine kernel`) has a mean window of 25.4 packets; with reductions undone it is 37."""
    flow = Scenario.from_text(TEXT).run(digest=False).flows["main"]
    assert flow["spurious_retransmissions"] == 0
    assert flow["mean_cwnd_packets"] == pytest.approx(25.4, rel=0.1)
