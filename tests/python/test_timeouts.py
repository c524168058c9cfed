"""Retransmission timeouts of the Linux profiles: Linux 6.12 in virtual time after an outage, and duplicates."""

from __future__ import annotations

import pytest

from anabranch import Scenario

TEXT = """
duration = "7 s"
[link.path]
between = ["A", "B"]
rate = "{rate} Mbit/s"
delay = "{delay} ms"
queue = {{ kind = "drop-tail", limit = "100 packets" }}
[[at]]
time = "{at} s"
set = {{ "link.path.up" = false }}
[flow.main]
from = "A"
to = "B"
stack = "{stack}"
cc = "reno"
transport = {{ send_autotuning_start = "4194304 bytes" }}
"""

OUTAGES = [
    (10, 50, 0.4, [0.8919, 1.5639, 2.8759]),
    (10, 50, 2, [2.5239, 3.2279, 4.6359]),
    (10, 50, 4, [4.5079, 5.1799, 6.5239]),
    (2, 100, 1, [1.7835, 2.9355]),
    (50, 100, 0.5, [1.24, 2.456]),
]
"""Rate in Mbit/s, delay in ms, time of the outage in s, and the times of the retransmissions after it, as
``validation/kernel/first_difference.py`` counts time. Timers of two seconds and more end with an unknown phase."""


def retransmissions(stack: str, rate: int, delay: int, at: float) -> list[float]:
    """Times of the retransmissions after the outage, since the first data."""
    run = Scenario.from_text(TEXT.format(rate=rate, delay=delay, at=at, stack=stack)).run(packets=True)
    rows = run.table("packets").to_dicts()
    start = next(row["sent_s"] for row in rows if row["payload_bytes"])
    return [row["sent_s"] - start for row in rows if row["retransmission"] and row["sent_s"] - start > at]


@pytest.mark.parametrize(("rate", "delay", "at", "expected"), OUTAGES)
def test_timeouts_after_an_outage_are_those_of_linux(rate: int, delay: int, at: float, expected: list[float]) -> None:
    """The wrong system is the variance of RFC 6298 with exact timers."""
    found = retransmissions("linux-6.12", rate, delay, at)[: len(expected)]
    assert found == pytest.approx(expected, abs=0.001)
    assert retransmissions("rfc", rate, delay, at)[: len(expected)] != pytest.approx(expected, abs=0.02)


def test_duplicates_by_the_network_undo_no_reduction() -> None:
    """Linux 6.12 has 45 retransmissions and a window of 25.4 packets; with reductions undone the window is larger."""
    text = """
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
    flow = Scenario.from_text(text).run(digest=False).flows["main"]
    assert flow["retransmitted_packets"] == 45
    assert flow["mean_cwnd_packets"] == pytest.approx(25.4, rel=0.03)
