"""Both engines report the same limits of a sender: the share of a flow's time that each limit takes."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import simulation_of, summary_of

SHARES = ("cwnd_limited_share", "rwnd_limited_share", "sndbuf_limited_share", "application_limited_share")

TOLERANCE = 0.005
"""Tolerance of a share. The kernel counts in ticks of 10 ms."""


def scenario(delay: str, rate: str, flow: str) -> str:
    return f"""
title = "what limits"
duration = "3500 ms"
warmup = "1 s"
[link.path]
between = ["A", "B"]
rate = "{rate}"
delay = "{delay}"
forward.queue = {{ kind = "drop-tail", limit = "1 bdp" }}
[flow.main]
from = "A"
to = "B"
{flow}
"""


PATHS = {
    "cwnd": (scenario("10 ms", "10 Mbit/s", ""), "cwnd_limited_share"),
    "receive window": (
        scenario("30 ms", "50 Mbit/s", 'transport = { receive_window = "64 KiB", receive_autotuning = false }'),
        "rwnd_limited_share",
    ),
    "send buffer": (scenario("30 ms", "100 Mbit/s", 'transport = { send_buffer = "96 KiB" }'), None),
    "application": (scenario("10 ms", "20 Mbit/s", 'workload = { kind = "paced", rate = "2 Mbit/s" }'),
                    "application_limited_share"),
    "pacing": (scenario("10 ms", "20 Mbit/s", 'cc = "bbr"'), None),
}  # fmt: skip
"""A path for each limit, and the share that takes nearly all of the time there, if one does."""


def shares(flow: dict[str, Any]) -> dict[str, float]:
    return {key: flow[key] for key in SHARES}


@pytest.mark.parametrize("limit", PATHS)
def test_both_engines_report_the_same_limit(limit: str) -> None:
    text, largest = PATHS[limit]
    live = shares(summary_of(text)["flows"]["main"])
    simulated = shares(simulation_of(text)["flows"]["main"])
    for key in SHARES:
        assert live[key] == pytest.approx(simulated[key], abs=TOLERANCE), (live, simulated)
    if largest:
        assert simulated[largest] > 0.8, simulated
        assert live[largest] > 0.8, live
    if limit == "pacing":
        assert sum(simulated.values()) < 0.3, simulated
    if limit == "send buffer":
        assert simulated["sndbuf_limited_share"] > 0.2, simulated
