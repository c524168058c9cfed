"""Settings of TCP reach the kernel."""

from __future__ import annotations

from .conftest import summary_of

PATH = """
title = "a path"
duration = "2 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
forward.queue = { kind = "drop-tail", limit = "1 bdp" }

[flow.main]
from = "A"
to = "B"
"""


def test_windows_and_switches_reach_the_kernel() -> None:
    """Detects settings that do not reach the kernel: it fills queue and path, and answers with SACK."""
    transport = '{ receive_window = "10 packets", receive_autotuning = false, sack = false, tlp = false, frto = false }'
    summary = summary_of(PATH + f"transport = {transport}\n")
    # Ten segments a round trip of 20 ms.
    most = 10 * 1448 * 8 / 20e3
    assert 0.8 * most < summary["flows"]["main"]["goodput_mbit_s"] <= 1.02 * most
    applied = summary["live"]["machine"]["kernel_settings"]
    assert applied["net/ipv4/tcp_sack"] == "0"
    assert applied["net/ipv4/tcp_frto"] == "0"
