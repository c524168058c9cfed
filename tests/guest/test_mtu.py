"""The MTU of a link, path MTU discovery and Nagle's algorithm with the kernel's TCP, compared with the simulator."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import pytest

from .conftest import FLOW, PATH, Told, missing, simulation_of, summary_of

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


@pytest.mark.parametrize(("family", "mtu"), [(4, 1000), (4, 1400), (6, 1400)])
def test_the_kernel_reacts_to_packet_too_big(family: int, mtu: int) -> None:
    """Detects a message that the kernel rejects: wrong checksum, quotation, or MTU."""
    text = SMALL.replace("1000 bytes", f"{mtu} bytes") + FILE
    live = summary_of(text + f"family = {family}\n")
    assert flow(live)["ended"] == "completed"
    assert flow(live)["timeouts"] == 0
    # Only the first window is too big, as in the simulator.
    expected = simulation_of(text)["links"]["path"]["forward"]["too_big_packets"]
    assert live["links"]["path"]["forward"]["too_big_packets"] == expected == 10


def test_a_black_hole_stops_the_kernel() -> None:
    """Detects a link that reports its MTU in spite of `mtu_reports = false`."""
    live = summary_of(SMALL + "mtu_reports = false\n" + FILE)
    assert flow(live)["delivered_bytes"] == 0
    assert flow(live)["timeouts"] >= 1
    assert live["links"]["path"]["forward"]["too_big_packets"] > 10


def test_the_kernel_recovers_from_a_black_hole() -> None:
    """With ``tcp_mtu_probing`` = 1 the kernel's segments become smaller after some timeouts."""
    text = SMALL.replace('"2 s"', '"6 s"').replace("1000 bytes", "1200 bytes") + "mtu_reports = false\n" + FILE
    live = summary_of(text + 'transport.mtu_discovery = "black-hole"\n')
    assert flow(live)["ended"] == "completed"


def test_datagrams_are_not_fragmented() -> None:
    """Detects a kernel that obeys the first message and fragments later datagrams."""
    live = summary_of(SMALL + FLOW + 'protocol = "udp"\nworkload = { kind = "paced", rate = "1 Mbit/s" }\n')
    assert flow(live)["delivered_bytes"] == 0
    assert live["links"]["path"]["forward"]["too_big_packets"] > 100


@pytest.mark.parametrize(("nagle", "least", "most"), [("true", 60, 150), ("false", 20, 55)])
def test_the_second_write_waits_for_the_delayed_acknowledgment(nagle: str, least: int, most: int) -> None:
    """Nagle's algorithm adds 40 ms (RFC 1122 §4.2.3.4), in both engines; a busy machine adds to it."""
    text = PATH.replace('"3 s"', '"2 s"') + EXCHANGES + f"transport.nagle = {nagle}\n"
    for summary in (summary_of(text), simulation_of(text)):
        assert least <= flow(summary)["exchanges"]["p50_response_time_ms"] <= most


THREE_LINKS = """
duration = "10 s"
[link.one]
between = ["A", "R"]
delay = "2 ms"
[link.two]
between = ["R", "S"]
delay = "2 ms"
[link.three]
between = ["S", "B"]
delay = "2 ms"
[flow.main]
from = "A"
to = "B"
"""

REPORTED = """
import select, socket, struct, sys
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
to = next(found[4] for found in socket.getaddrinfo("B", 9, family, socket.SOCK_DGRAM))
s = socket.socket(family, socket.SOCK_DGRAM)
s.settimeout(5)
level, discover, errors = (41, 23, 25) if sys.argv[1] == "6" else (0, 10, 11)
s.setsockopt(level, discover, 3)
s.setsockopt(level, errors, 1)
s.sendto(bytes(1440), to)
poll = select.poll()
poll.register(s, 0)
poll.poll(5000)
_, (report,), _, _ = s.recvmsg(2000, 512, socket.MSG_ERRQUEUE)
mtu = struct.unpack("I", report[2][8:12])[0]
at = 24 if sys.argv[1] == "6" else 20
offender = socket.inet_ntop(family, report[2][at:at + (16 if sys.argv[1] == "6" else 4)])
print("reported", mtu, *socket.gethostbyaddr(offender)[:1], file=sys.stderr)
"""
"""Sends a datagram that is too big, and prints the error that the kernel has queued: the MTU, and who reported it."""


def limited(link: str) -> str:
    """The chain with an MTU of 1400 bytes on one of its links."""
    return THREE_LINKS.replace(f"[link.{link}]", f'[link.{link}]\nmtu = "1400 bytes"')


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(("link", "router"), [("one", "R"), ("two", "R"), ("three", "S")])
def test_the_router_before_a_link_reports_its_mtu(told: Told, family: int, link: str, router: str) -> None:
    """For the host's own link the next router reports it. Detects reports from the packet's destination."""
    program = json.dumps([sys.executable, "-c", REPORTED, str(family)])
    text = limited(link) + f"family = {family}\n[host.A]\nexec = {program}\n"
    assert ["reported", "1400", router] in told(text)[1]


@pytest.mark.parametrize("family", [4, 6])
def test_tracepath_finds_the_small_link(told: Told, family: int) -> None:
    """The router with the smaller link answers with its MTU."""
    if shutil.which("tracepath") is None:
        missing("not installed: tracepath(8) (Debian: iputils-tracepath)")
    text = limited("three") + f'family = {family}\n[host.A]\nexec = ["sh", "-c", "tracepath -{family} B >&2"]\n'
    found = told(text)[1]
    assert [line[1] for line in found if line[-2:] == ["pmtu", "1400"] and line[0] != "Resume:"] == ["S"]
    assert ["Resume:", "pmtu", "1400", "hops", "3", "back", "3"] in found
