"""Links that follow traces, in the live engine beside the simulator: the same datagrams get the same delays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.scenario import Scenario

from .conftest import FLOW, Run

UDP = FLOW + 'protocol = "udp"\nstop = "2 s"\nworkload = { kind = "paced", rate = "4 Mbit/s" }\n'


def both(live_run: Run, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summaries live and simulated, in that order."""
    simulated: Any = Scenario.from_text(text).run().summary
    return live_run(text), simulated


def test_datagrams_get_the_delays_of_a_trace(live_run: Run, tmp_path: Path) -> None:
    """Half of the time 10 ms, the other half 30 ms: a constant delay has another mean or another percentile."""
    trace = tmp_path / "delays.csv"
    trace.write_text("time_s,delay_ms\n0,10\n0.25,30\n", "utf-8")
    link = f'between = ["A", "B"]\nrate = "20 Mbit/s"\ndelay = {{ kind = "trace", file = "{trace}" }}\n'
    live, simulated = both(live_run, f'duration = "2.2 s"\n[link.path]\n{link}{UDP}')
    flow, expected = live["flows"]["main"], simulated["flows"]["main"]
    for name in ("mean_one_way_delay_ms", "p95_one_way_delay_ms"):
        assert flow[name] == pytest.approx(expected[name], abs=1.0)
    assert flow["mean_one_way_delay_ms"] == pytest.approx(20.8, abs=1.5)
    assert live["links"]["path"]["forward"]["reordered_packets"] == 0


def test_a_ready_path_runs_live(live_run: Run) -> None:
    live, simulated = both(
        live_run, f'duration = "2.2 s"\n[link.path]\npath = "lte-drive"\nbetween = ["A", "B"]\n{UDP}'
    )
    flow, expected = live["flows"]["main"], simulated["flows"]["main"]
    assert flow["delivered_bytes"] == pytest.approx(expected["delivered_bytes"], rel=0.02)
    assert flow["mean_one_way_delay_ms"] == pytest.approx(expected["mean_one_way_delay_ms"], abs=2.0)


def test_requests_and_grants_take_as_long_live(live_run: Run) -> None:
    """Uplink over a cell and a cable's upstream: the same code decides when a datagram leaves."""
    for service in ('{ kind = "cellular", sr_period = "10 ms" }', '"cable"'):
        link = f'between = ["A", "B"]\nrate = "20 Mbit/s"\nforward.service = {service}\n'
        live, simulated = both(live_run, f'duration = "2.2 s"\n[link.path]\n{link}{UDP}')
        flow, expected = live["flows"]["main"], simulated["flows"]["main"]
        assert flow["mean_one_way_delay_ms"] == pytest.approx(expected["mean_one_way_delay_ms"], abs=1.5), service
        assert live["links"]["path"]["forward"]["reordered_packets"] == 0


def test_cake_sees_the_dscp_of_live_flows(late_run: Run) -> None:
    """Voice has priority up to a quarter of the rate (tc-cake(8)); without marks both flows get a half."""
    queue = 'queue = { kind = "cake", rate = "8 Mbit/s", diffserv = "diffserv4" }\n'
    flow = 'from = "A"\nto = "B"\nprotocol = "udp"\nworkload = { kind = "paced", rate = "10 Mbit/s" }\n'
    for dscp, share in (('dscp = "ef"\n', 0.25), ("", 0.5)):
        text = f'duration = "3 s"\nwarmup = "0.5 s"\n[link.path]\nbetween = ["A", "B"]\nrate = "50 Mbit/s"\n{queue}'
        live = late_run(f"{text}[flow.marked]\n{flow}{dscp}[flow.other]\n{flow}")
        marked, other = (live["flows"][name]["goodput_mbit_s"] for name in ("marked", "other"))
        assert marked / (marked + other) == pytest.approx(share, abs=0.06)
