"""The MTU of a link, path MTU discovery and Nagle's algorithm with the kernel's TCP, beside the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.scenario import Scenario

from .conftest import FLOW, PATH, Run

SMALL = PATH.replace('duration = "3 s"', 'duration = "2 s"') + 'mtu = "1000 bytes"\n'
FILE = FLOW + 'workload = { kind = "file", size = "500 kB" }\n'
EXCHANGES = (
    FLOW + 'workload = { kind = "request-response", request = "200 bytes", response = "1 kB", writes = 2, '
    'think = "5 ms" }\n'
)


def flow(summary: dict[str, Any]) -> dict[str, Any]:
    """The one flow of a run."""
    found: dict[str, Any] = summary["flows"]["main"]
    return found


def simulated(text: str) -> dict[str, Any]:
    """The summary of the same scenario in the simulator."""
    return dict(Scenario.from_text(text).run().summary)


@pytest.mark.parametrize(("family", "mtu"), [pytest.param(4, 1000, marks=pytest.mark.brief), (4, 1400), (6, 1400)])
def test_the_kernel_hears_that_its_packets_are_too_big(live_run: Run, family: int, mtu: int) -> None:
    """Fails for a message that the kernel does not believe: wrong checksum, quotation, or MTU."""
    text = SMALL.replace("1000 bytes", f"{mtu} bytes") + FILE
    live = live_run(text + f"family = {family}\n")
    assert flow(live)["ended"] == "completed"
    assert flow(live)["timeouts"] == 0
    # The first window, and as in the simulator nothing after it.
    expected = simulated(text)["links"]["path"]["forward"]["too_big_packets"]
    assert live["links"]["path"]["forward"]["too_big_packets"] == expected == 10


def test_a_black_hole_holds_the_kernel(live_run: Run) -> None:
    """Fails for a link that answers all the same."""
    live = live_run(SMALL + "mtu_reports = false\n" + FILE)
    assert flow(live)["delivered_bytes"] == 0
    assert flow(live)["timeouts"] >= 1
    assert live["links"]["path"]["forward"]["too_big_packets"] > 10


def test_the_kernel_finds_its_way_past_a_black_hole(live_run: Run) -> None:
    """``tcp_mtu_probing`` = 1: after some timeouts the kernel's segments are smaller."""
    text = SMALL.replace('"2 s"', '"6 s"').replace("1000 bytes", "1200 bytes") + "mtu_reports = false\n" + FILE
    live = live_run(text + 'transport.mtu_discovery = "black-hole"\n')
    assert flow(live)["ended"] == "completed"


def test_datagrams_are_not_fragmented(live_run: Run) -> None:
    """Fails for a kernel that heard the first message and fragments what follows."""
    live = live_run(SMALL + FLOW + 'protocol = "udp"\nworkload = { kind = "paced", rate = "1 Mbit/s" }\n')
    assert flow(live)["delivered_bytes"] == 0
    assert live["links"]["path"]["forward"]["too_big_packets"] > 100


@pytest.mark.parametrize(("nagle", "least", "most"), [("true", 60, 150), ("false", 20, 55)])
def test_the_second_write_waits_for_the_delayed_acknowledgment(
    live_run: Run, nagle: str, least: int, most: int
) -> None:
    """40 ms more with Nagle's algorithm (RFC 1122 §4.2.3.4), in both engines; a busy machine adds to it."""
    text = PATH.replace('"3 s"', '"2 s"') + EXCHANGES + f"transport.nagle = {nagle}\n"
    for summary in (live_run(text), simulated(text)):
        assert least <= flow(summary)["exchanges"]["p50_response_time_ms"] <= most
