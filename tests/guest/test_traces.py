"""Links that follow traces, in the live engine and the simulator: the same datagrams have the same delays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import FLOW, simulation_of, summary_of

UDP = FLOW + 'protocol = "udp"\nstop = "2 s"\nworkload = { kind = "paced", rate = "4 Mbit/s" }\n'


DELAY_MS = 0.01
"""Tolerance of delays: the engine's lateness, a few microseconds."""


def both(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The live and the simulated summary."""
    return summary_of(text), simulation_of(text)


def test_datagrams_get_the_delays_of_a_trace(tmp_path: Path) -> None:
    """Half of the time 10 ms, the other half 30 ms: a constant delay has another mean or another percentile."""
    trace = tmp_path / "delays.csv"
    trace.write_text("time_s,delay_ms\n0,10\n0.25,30\n", "utf-8")
    link = f'between = ["A", "B"]\nrate = "20 Mbit/s"\ndelay = {{ kind = "trace", file = "{trace}" }}\n'
    live, simulated = both(f'duration = "2.2 s"\n[link.path]\n{link}{UDP}')
    flow, expected = live["flows"]["main"], simulated["flows"]["main"]
    for name in ("mean_one_way_delay_ms", "p95_one_way_delay_ms"):
        assert flow[name] == pytest.approx(expected[name], abs=DELAY_MS)
    assert flow["mean_one_way_delay_ms"] == pytest.approx(20.7, abs=0.01)
    assert live["links"]["path"]["forward"]["reordered_packets"] == 0


def test_a_ready_path_is_the_same() -> None:
    """Its delay jumps: a datagram that is late by microseconds may fall into the next step."""
    live, simulated = both(f'duration = "2.2 s"\n[link.path]\npath = "lte-drive"\nbetween = ["A", "B"]\n{UDP}')
    flow, expected = live["flows"]["main"], simulated["flows"]["main"]
    assert flow["delivered_bytes"] == expected["delivered_bytes"]
    assert flow["mean_one_way_delay_ms"] == pytest.approx(expected["mean_one_way_delay_ms"], abs=5 * DELAY_MS)


def test_requests_and_grants_take_the_same_time() -> None:
    """Uplinks of a cell and of a cable: the same code computes a datagram's departure."""
    for service in ('{ kind = "cellular", sr_period = "10 ms" }', '"cable"'):
        link = f'between = ["A", "B"]\nrate = "20 Mbit/s"\nforward.service = {service}\n'
        live, simulated = both(f'duration = "2.2 s"\n[link.path]\n{link}{UDP}')
        flow, expected = live["flows"]["main"], simulated["flows"]["main"]
        assert flow["mean_one_way_delay_ms"] == pytest.approx(expected["mean_one_way_delay_ms"], abs=DELAY_MS), service
        assert live["links"]["path"]["forward"]["reordered_packets"] == 0


def test_cake_sees_the_dscp() -> None:
    """Voice has priority up to a quarter of the rate (tc-cake(8)); without marks each flow gets half."""
    queue = 'queue = { kind = "cake", rate = "8 Mbit/s", diffserv = "diffserv4" }\n'
    flow = 'from = "A"\nto = "B"\nprotocol = "udp"\nworkload = { kind = "paced", rate = "10 Mbit/s" }\n'
    for dscp, share in (('dscp = "ef"\n', 0.25), ("", 0.5)):
        text = f'duration = "3 s"\nwarmup = "0.5 s"\n[link.path]\nbetween = ["A", "B"]\nrate = "50 Mbit/s"\n{queue}'
        live = summary_of(f"{text}[flow.marked]\n{flow}{dscp}[flow.other]\n{flow}")
        marked, other = (live["flows"][name]["goodput_mbit_s"] for name in ("marked", "other"))
        assert marked / (marked + other) == pytest.approx(share, abs=0.001)
