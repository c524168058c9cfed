"""One scenario file with the kernel's packets: figures compared with the simulator's, and with arithmetic."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from anabranch.scenario import Scenario

from .conftest import FLOW, PATH, kernel_run, simulation_of, summary_of


def test_a_bulk_flow_fills_the_path() -> None:
    """As in the simulator: at most the link's share of payload, and little less after slow start."""
    text = PATH + FLOW + 'cc = "cubic"\n'
    summary = summary_of(text)
    flow, expected = summary["flows"]["main"], simulation_of(text)["flows"]["main"]
    assert 0.9 * 20 * 1448 / 1500 < flow["goodput_mbit_s"] < 20 * 1448 / 1500
    for name in ("goodput_mbit_s", "delivered_bytes", "sent_packets", "retransmitted_packets"):
        assert flow[name] == expected[name], name
    # 60 bytes there and 52 back, at 20 Mbit/s.
    assert flow["min_rtt_ms"] == pytest.approx(20 + (60 + 60) * 8 / 20e3, abs=0.02)
    assert flow["mean_srtt_ms"] == pytest.approx(expected["mean_srtt_ms"], rel=0.005)
    assert summary["engine"] == "kernel"
    assert summary["live"]["machine"]["kernel_settings"]["net/ipv4/tcp_no_metrics_save"] == "1"


def test_the_same_packets_are_lost_in_both_engines() -> None:
    """Detects an engine that draws outcomes by anything other than the packet's number at the element."""
    text = (PATH + FLOW).replace(
        "forward.queue", 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]\nreverse.queue'
    )

    def lost(packets: Any) -> tuple[set[int], int]:
        forward = packets.filter(packets["direction"] == "forward")
        return set(forward.filter(forward["fate"] == "lost")["packet_index"]), int(forward["packet_index"].max())

    scenario = Scenario.from_text(text)
    simulated, last_simulated = lost(scenario.run(packets=True).table("packets"))
    live, last_live = lost(kernel_run(scenario, packets=True).table("packets"))
    # Up to the last packet of both: recovery changes the simulator's number of packets a little.
    common = set(range(min(last_simulated, last_live)))
    assert len(common) > 1000
    assert live & common == simulated & common
    assert len(live & common) > 5


def test_a_file_arrives_complete() -> None:
    text = PATH.replace("forward.queue", 'impair = [{ kind = "bernoulli-loss", rate = 0.01 }]\nforward.queue')
    text += FLOW + 'workload = { kind = "file", size = "1 MB" }\n'
    flow, expected = (run["flows"]["main"] for run in (summary_of(text), simulation_of(text)))
    assert flow["retransmitted_packets"] == expected["retransmitted_packets"]
    # The recoveries differ by a part of a round trip.
    assert flow["flow_completion_time_s"] == pytest.approx(expected["flow_completion_time_s"], rel=0.02)
    assert flow["delivered_bytes"] == 1_000_000
    # Handshake, then a megabyte and its headers at the line's rate.
    assert flow["flow_completion_time_s"] > 0.03 + 1e6 * 1500 / 1448 * 8 / 20e6
    assert flow["retransmitted_packets"] > 0


def test_a_response_takes_a_round_trip_and_its_bytes() -> None:
    text = PATH + FLOW + 'workload = { kind = "request-response", request = "100 bytes", response = "1 kB" }\n'
    exchanges, expected_exchanges = (
        run["flows"]["main"]["exchanges"] for run in (summary_of(text), simulation_of(text))
    )
    # 20 ms, and 100 bytes and 1,000 bytes with their headers at 20 Mbit/s.
    expected = 20 + (152 + 1052) * 8 / 20e3
    assert exchanges["p50_response_time_ms"] == pytest.approx(expected, abs=0.01)
    assert exchanges["completed"] == expected_exchanges["completed"]


def test_ipv6() -> None:
    summary = summary_of(PATH + FLOW + "family = 6\n")
    # Headers have 20 bytes more: 1,428 are payload.
    assert 0.9 * 20 * 1428 / 1500 < summary["flows"]["main"]["goodput_mbit_s"] < 20 * 1428 / 1500


def test_marks_reach_the_kernel() -> None:
    """RED marks instead of dropping. Detects marked packets that keep their old ECN field, or have a wrong checksum."""
    thresholds = 'min_threshold = "10 packets", max_threshold = "40 packets"'
    red = f'{{ kind = "red", limit = "200 packets", {thresholds}, ecn = true }}'
    text = PATH.replace('{ kind = "drop-tail", limit = "1 bdp" }', red)
    summary = summary_of(text + FLOW + 'cc = "reno"\ntransport = { ecn = "rfc3168" }\n')
    link, flow = summary["links"]["path"]["forward"], summary["flows"]["main"]
    assert link["marked_packets"] > 0
    # The sender reacts: the queue stays below the point where it would drop.
    assert link["max_queue_packets"] < 200
    # If the kernel rejected marked packets, each would be a loss.
    assert flow["goodput_mbit_s"] > 10


TWO_ROUTES = """
title = "two routes"
duration = "3 s"

[link.fast]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "5 ms"

[link.slow]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "25 ms"

[gateway.pair]
between = ["A", "B"]
routes = ["fast", "slow"]
split = "weighted-round-robin"
restore = "{restore}"

[flow.main]
from = "A"
to = "B"
cc = "cubic"
"""


def test_order_is_restored_on_real_packets() -> None:
    """`in-order` reads sequence numbers in the kernel's packets."""
    ordered = summary_of(TWO_ROUTES.replace("{restore}", "in-order"))
    loose = summary_of(TWO_ROUTES.replace("{restore}", "none"))
    assert loose["flows"]["main"]["reordered_ratio"] > 0.1
    # Segments without data pass at once, which counts as reordering of the held packets.
    assert ordered["flows"]["main"]["reordered_ratio"] < 0.1 * loose["flows"]["main"]["reordered_ratio"]
    assert ordered["gateways"]["pair"]["forward"]["held_packets"] > 100


CALL = """
duration = "4 s"

[link.fibre]
between = ["office", "exit"]
rate = "50 Mbit/s"
delay = "10 ms"

[link.lte]
between = ["office", "exit"]
rate = "20 Mbit/s"
delay = "30 ms"

[gateway.bond]
between = ["office", "exit"]
routes = ["fibre", "lte"]
split = "earliest-arrival"
restore = "adaptive"

[flow.call_up]
from = "office"
to = "exit"
protocol = "udp"
workload = { kind = "paced", rate = "68.8 kbit/s", payload = "172 bytes" }

[flow.call_down]
from = "exit"
to = "office"
protocol = "udp"
workload = { kind = "paced", rate = "68.8 kbit/s", payload = "172 bytes" }

[[at]]
time = "1.5 s"
set = { "link.fibre.up" = false }
"""


def test_a_call_survives_the_failure_of_a_route() -> None:
    """Both directions of the better route fail: the gateway detects it by any kind of packet."""
    bond = summary_of(CALL)["gateways"]["bond"]
    for direction in ("forward", "reverse"):
        # 50 packets a second for 4 s, of which 0.8 s may be lost.
        assert bond[direction]["silent_ms"] <= 800
        assert bond[direction]["released_packets"] >= 155
        assert bond[direction]["routes"]["lte"]["sent_packets"] >= 80


SERVER = 'import socket; s = socket.create_server((\\"\\", 7)); c = s.accept()[0]; c.sendall(c.recv(99)); c.recv(1)'
CLIENT = (
    "import socket, time, sys; time.sleep(0.5); c = socket.create_connection((sys.argv[1], 7)); "
    'c.sendall(b\\"hello\\"); assert c.recv(99) == b\\"hello\\"'
)


def program(host: str, *words: str) -> str:
    """A host that runs a program."""
    return f"\n[host.{host}]\nexec = [{', '.join(f'{chr(34)}{word}{chr(34)}' for word in words)}]\n"


def test_a_users_program_runs() -> None:
    text = PATH + FLOW + program("B", sys.executable, "-c", SERVER) + program("A", sys.executable, "-c", CLIENT, "{B}")
    summary = summary_of(text)
    ended = {end["host"]: end["status"] for end in summary["live"]["programs"]}
    assert ended == {"A": 0, "B": 0}
    assert summary["flows"]["main"]["goodput_mbit_s"] is None
    assert summary["flows"]["main"]["throughput_mbit_s"] > 0
