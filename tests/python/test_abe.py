"""Alternative Backoff with ECN (RFC 8511) through a queue that marks."""

from __future__ import annotations

import pytest

from anabranch import Scenario

TEXT = """
duration = "30 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "40 ms"
forward.queue = { kind = "codel", ecn = true }

[flow.main]
from = "A"
to = "B"
stack = "rfc"
transport = { ecn = "rfc3168" }
"""


@pytest.mark.parametrize(("control", "beta_ecn"), [("reno", 0.8), ("cubic", 0.85)])
def test_abe_uses_more_of_a_marking_path(control: str, beta_ecn: float) -> None:
    """RFC 8511 §3.1 recommends 0.8 for Reno and 0.85 for CUBIC: the queue drains less after a mark."""
    scenario = Scenario.from_text(TEXT)
    without = scenario.set("flow.main.cc", control).run().flows["main"]
    with_abe = scenario.set("flow.main.cc", {"kind": control, "beta_ecn": beta_ecn}).run().flows["main"]
    before, after = without["goodput_mbit_s"], with_abe["goodput_mbit_s"]
    assert before is not None
    assert after is not None
    assert after > 1.04 * before
    assert with_abe["retransmitted_packets"] == without["retransmitted_packets"] == 0
