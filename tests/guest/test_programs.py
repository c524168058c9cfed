"""Programs of the user: every key of their flows is applied or refused, and they determine the duration of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Told, missing, simulation_of, summary_of
from .pairs import CLIENT, FLOW, PAIR, PATH, SERVER, controls, host


@pytest.mark.parametrize("restricted", [False, True])
def test_programs_have_the_control_of_their_flow(told: Told, restricted: bool) -> None:
    """Detects programs with the machine's default, at either end."""
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    names = [name for name in controls()[restricted] if name != default]
    if not names:
        missing(f"the kernel has no other control that is {'' if restricted else 'not '}restricted")
    summary, lines = told(PATH + FLOW + f'cc = "{names[0]}"\n' + PAIR)
    assert sorted(line[:2] for line in lines) == [["client", names[0]], ["server", names[0]]]
    assert summary["live"]["default_controls"] == {"A": names[0], "B": names[0]}


def test_programs_have_the_machines_control_by_default(told: Told) -> None:
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    summary, lines = told(PATH + FLOW + PAIR)
    assert {line[1] for line in lines} == {default}
    assert summary["live"]["default_controls"] == {"A": default, "B": default}


def test_a_run_ends_with_its_programs(told: Told) -> None:
    """Its rates cover the programs' time. Detects a run of 20 s, and a rate of 0.4 Mbit/s."""
    summary, _ = told(PATH + FLOW + PAIR)
    flow = summary["flows"]["main"]
    # A megabyte takes 0.84 s.
    assert 0.8 < summary["duration_s"] < 15
    octets = flow["throughput_mbit_s"] * summary["duration_s"] * 1e6 / 8
    assert octets == pytest.approx(1_000_000 * 1500 / 1448, rel=0.15)
    assert {one["host"]: one["stopped"] for one in summary["live"]["programs"]} == {"A": False, "B": False}


def test_a_running_server_dilutes_no_rate(told: Told) -> None:
    """The flow's time ends with the client, and the run at its `duration`."""
    text = PATH.replace("20 s", "6 s") + FLOW + host("A", CLIENT, "B", "1000000") + host("B", SERVER, "{B}", "9")
    summary, _ = told(text)
    assert summary["duration_s"] == 6
    assert {one["host"]: one["stopped"] for one in summary["live"]["programs"]} == {"A": False, "B": True}
    # Over six seconds the rate would be 1.4.
    assert summary["flows"]["main"]["throughput_mbit_s"] > 2


def test_pending_flows_keep_a_run_open(told: Told) -> None:
    """A flow of ours that begins later, and one with an incomplete file."""
    text = PATH + FLOW + host("A", "pass") + "[link.other]\nbetween = ['C', 'D']\nrate = '10 Mbit/s'\ndelay = '5 ms'\n"
    late = '[flow.late]\nfrom = "C"\nto = "D"\nstart = "1 s"\nworkload = { kind = "file", size = "500 kB" }\n'
    summary, _ = told(text + late)
    assert 1.4 < summary["duration_s"] < 15
    assert summary["flows"]["late"]["delivered_bytes"] == 500_000
    assert summary["flows"]["late"]["throughput_mbit_s"] == pytest.approx(9.3, abs=0.6)
    assert 0 <= summary["links"]["other"]["forward"]["utilization"] < 1


def test_names_and_addresses_follow_the_family(told: Told) -> None:
    """Detects names that do not resolve, and a `{B}` with the address of the other version of IP."""
    for family, address in (("4", "10.113.0.2"), ("6", "fd71:616e:6162::2")):
        summary, lines = told(PATH + FLOW + f"family = {family}\n" + PAIR)
        assert ["client", address] in [line[::2] for line in lines]
        assert all(one["names"] for one in summary["live"]["programs"])


def test_a_workload_beside_a_program_is_ours() -> None:
    """Several flows between hosts with programs: the program's packets take the flow without a workload."""
    ours = (
        FLOW.replace("main", "ours") + 'cc = "reno"\nworkload = { kind = "file", size = "200 kB" }\nstart = "100 ms"\n'
    )
    summary = summary_of(PATH + FLOW + ours + PAIR)
    assert summary["flows"]["ours"]["delivered_bytes"] == 200_000
    assert summary["live"]["controls"]["ours"]["name"] == "reno"
    assert summary["flows"]["main"]["goodput_mbit_s"] is None
    assert summary["flows"]["main"]["throughput_mbit_s"] > 1


TWO_WAYS = """
duration = "20 s"
[link.one]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
[link.two]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
[flow.first]
from = "A"
to = "B"
route = ["one"]
[flow.second]
from = "A"
to = "B"
route = ["two"]
"""

TWO_CLIENTS = """
import threading
threads = [threading.Thread(target=exec, args=(CLIENT, {})) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

TWO_SERVERS = SERVER.replace(
    "    while", "    threading.Thread(target=read, args=(peer,)).start()\nif 0:\n    while"
).replace(
    "listener =",
    "import threading\ndef read(peer):\n    while peer.recv(65536):\n        pass\n    peer.close()\nlistener =",
)


def test_connections_share_the_flows_between_two_hosts() -> None:
    """Detects a second flow between hosts with programs that is refused, or gets no packets."""
    clients = f"CLIENT = {CLIENT!r}{TWO_CLIENTS}"
    summary = summary_of(TWO_WAYS + host("A", clients, "B", "300000") + host("B", TWO_SERVERS, "{B}", "2"))
    for name in ("one", "two"):
        sent = summary["links"][name]["forward"]["sent_packets"]
        assert 300_000 / 1448 < sent < 1.2 * 300_000 / 1448


def test_settings_of_the_namespace_are_applied() -> None:
    """Detects a program's flow that loses its `transport`."""
    summary = summary_of(PATH + FLOW + "transport = { sack = false, timestamps = false }\n" + PAIR)
    applied = summary["live"]["machine"]["applied_settings"]
    assert (applied["net/ipv4/tcp_sack"], applied["net/ipv4/tcp_timestamps"]) == ("0", "0")


def test_throughput_covers_the_flows_own_time() -> None:
    """With a file of a second in a run of four seconds both engines report the link's rate."""
    text = PATH.replace("20 s", "4 s") + FLOW + 'cc = "cubic"\nworkload = { kind = "file", size = "1 MB" }\n'
    simulated = simulation_of(text)
    rates = [run["flows"]["main"]["throughput_mbit_s"] for run in (summary_of(text), simulated)]
    assert rates == pytest.approx([9.5, 9.5], abs=0.2)
