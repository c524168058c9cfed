"""Hosts with several devices and addresses: the device and path of a program's packets."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Told, missing

ROOT = Path(__file__).resolve().parents[2]
BYTES = "20_000_000"
"""Bytes that the shipped scenarios transfer."""

TWO_LINKS = """
duration = "20 s"
[link.wifi]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "5 ms"
[link.lte]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
[flow.first]
from = "A"
to = "B"
route = ["wifi"]
[flow.second]
from = "A"
to = "B"
route = ["lte"]
"""

SERVE = """
import socket, sys, threading
def serve(port):
    listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    peer, (address, *_) = listener.accept()
    total = 0
    while octets := peer.recv(1 << 16):
        total += len(octets)
    ends = [end.removeprefix("::ffff:") for end in (peer.getsockname()[0], address)]
    print("told", port, *ends, total, file=sys.stderr)
    peer.close()
threads = [threading.Thread(target=serve, args=[int(port)]) for port in sys.argv[1:]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
"""Prints for one connection at each port the called address, the caller, and the bytes received."""

CALL = """
import socket, sys, time
def call(to, port, source):
    address, _, device = source.partition("%")
    for attempt in range(200):
        peer = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET)
        if address:
            peer.bind((address, 0))
        if device:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        try:
            peer.connect((to, int(port)))
            return peer
        except ConnectionRefusedError:
            time.sleep(0.05)
for to, port, source, octets in (word.split(",") for word in sys.argv[1:]):
    peer = call(to, port, source)
    peer.sendall(bytes(int(octets)))
    peer.shutdown(1)
    peer.recv(1)
"""
"""Opens a connection for each argument: destination, port, local address, %device to bind to, and bytes."""


def host(name: str, *words: str, more: str = "") -> str:
    """A host that runs a Python program."""
    return f"\n[host.{name}]\n{more}\nexec = {json.dumps([sys.executable, '-c', *words])}\n"


def words(lines: list[list[str]]) -> list[list[str]]:
    """The words of lines that programs have printed with the prefix ``told``, sorted, because their order may vary."""
    return sorted(line[1:] for line in lines if line[:1] == ["told"])


def carried(summary: dict[str, Any], flow: str) -> float:
    """Megabytes of IP that a flow has delivered to its receiver."""
    rate: float = summary["flows"][flow]["throughput_mbit_s"]
    seconds: float = summary["duration_s"]
    return rate * seconds / 8


def sent(summary: dict[str, Any], link: str) -> float:
    """Packets that A has sent over a link, in megabytes of full segments; other packets are few."""
    packets: int = summary["links"][link]["forward"]["sent_packets"]
    return packets * 1448 / 1e6


def test_a_connection_takes_the_device_of_its_address(told: Told) -> None:
    """Detects a single device with all addresses."""
    devices = 'devices = ["wifi", "lte"]'
    calls = ("{B.wifi},71,{A.wifi},300000", "{B.lte},72,{A.lte},600000", "{B},73,,100000")
    text = TWO_LINKS + host("A", CALL, *calls, more=devices) + host("B", SERVE, "71", "72", "73", more=devices)
    summary, lines = told(text)
    lines = words(lines)
    (_, wifi_there, wifi, _), (_, lte_there, lte, _), (_, plain_there, plain, _) = lines
    assert [line[3] for line in lines] == ["300000", "600000", "100000"]
    assert len({wifi_there, wifi, lte_there, lte}) == 4
    # A socket without a binding has the addresses of the first flow.
    assert (plain_there, plain) == (wifi_there, wifi)
    assert 0.4 < sent(summary, "wifi") < 0.5
    assert 0.6 < sent(summary, "lte") < 0.7
    assert set(summary["live"]["machine"]["offloads"]) == {"A.wifi", "A.lte", "B.wifi", "B.lte"}


@pytest.mark.parametrize("family", [4, 6])
def test_the_kernel_sends_by_the_device_of_address_or_socket(told: Told, family: int) -> None:
    """Both connections go to one address of B. Detects a kernel that routes by destination alone."""
    calls = ("{B},71,{A.lte},300000", "{B},72,%lte,300000", "{B},73,,100000", "{B},74,{A.wifi}%wifi,100000")
    text = TWO_LINKS.replace("route =", f"family = {family}\nroute =")
    text += host("A", CALL, *calls, more='devices = ["wifi", "lte"]') + host("B", SERVE, "71", "72", "73", "74")
    summary, lines = told(text)
    lines = words(lines)
    lte, bound, plain, wifi = (line[2] for line in lines)
    assert lte == bound != plain == wifi
    assert 0.2 < sent(summary, "wifi") < 0.25
    assert 0.6 < sent(summary, "lte") < 0.7


def test_a_packet_with_the_address_of_another_device_is_dropped(told: Told) -> None:
    """A provider does so (RFC 2827). Detects an engine that checks the address alone."""
    send = (
        "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind((sys.argv[1], 0))\n"
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'lte')\n"
        "for _ in range(50): s.sendto(bytes(100), (sys.argv[2], 9))\n"
    )
    text = TWO_LINKS + host("A", send, "{A.wifi}", "{B}", more='devices = ["wifi", "lte"]')
    summary, _ = told(text)
    assert summary["live"]["audit"]["foreign_packets"] >= 50
    assert all(flow["throughput_mbit_s"] == 0 for flow in summary["flows"].values())


@pytest.mark.parametrize("devices", ["", 'devices = ["wifi", "lte"]'])
def test_two_ports_of_one_pair_take_different_paths(told: Told, devices: str) -> None:
    """Also if the two paths begin at different devices. Detects a ``match`` that is ignored."""
    text = TWO_LINKS + 'match = { port = [72, "80-90"] }\n'
    calls = ("{B},71,,100000", "{B},72,,400000", "{B},85,,300000")
    text += host("A", CALL, *calls, more=devices) + host("B", SERVE, "71", "72", "85")
    summary, lines = told(text)
    lines = words(lines)
    assert [line[3] for line in lines] == ["100000", "400000", "300000"]
    assert 0.1 < sent(summary, "wifi") < 0.15
    assert 0.7 < sent(summary, "lte") < 0.8
    assert (lines[0][2] == lines[1][2]) == (devices == "")


@pytest.mark.parametrize("devices", ["", 'devices = ["wifi", "lte"]'])
def test_addresses_of_a_prefix_take_their_path(told: Told, devices: str) -> None:
    text = TWO_LINKS + 'match = { prefix = ["192.0.2.0/24", "2001:db8::/32"] }\n'
    calls = ("{B},71,,100000", "192.0.2.9,72,,400000", "2001:db8::9,73,,200000")
    more = 'addresses = ["192.0.2.9", "2001:db8::9"]'
    text += host("A", CALL, *calls, more=devices) + host("B", SERVE, "71", "72", "73", more=more)
    summary, lines = told(text)
    lines = words(lines)
    assert [line[1] for line in lines[1:]] == ["192.0.2.9", "2001:db8::9"]
    assert 0.1 < sent(summary, "wifi") < 0.15
    assert 0.6 < sent(summary, "lte") < 0.7


def test_our_applications_use_the_devices_of_their_flow(told: Told) -> None:
    """TCP and UDP, either end, both versions of IP. Detects sockets without a binding."""
    text = TWO_LINKS.replace("20 s", "1 s").replace('"B"\nroute', '"B"\nworkload = "bulk"\nroute')
    text += """
    [flow.datagrams]
    from = "B"
    to = "A"
    protocol = "udp"
    family = 6
    workload = { kind = "paced", rate = "1 Mbit/s" }
    route = ["lte"]
    [flow.questions]
    from = "A"
    to = "B"
    workload = "request-response"
    route = ["lte"]
    [flow.transfers]
    from = "A"
    to = "B"
    workload = { kind = "poisson", rate = "1 Mbit/s", sizes = { kind = "fixed", size = "10 kB" } }
    route = ["lte"]
    [host.A]
    devices = ["wifi", "lte"]
    """
    summary, _ = told(text)
    assert all(flow["delivered_bytes"] > 0 for flow in summary["flows"].values())
    assert summary["live"]["audit"]["foreign_packets"] == 0
    assert summary["flows"]["first"]["goodput_mbit_s"] > 10


def test_the_kernels_mptcp_uses_both_links(told: Told) -> None:
    """5 MB need 2 s at 20 Mbit/s. Detects a second subflow that is never established."""
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        missing("this kernel has no MPTCP")
    if shutil.which("ip") is None:
        missing("ip(8)")
    text = (ROOT / "scenarios" / "hosts" / "mptcp.toml").read_text().replace(BYTES, "5_000_000")
    summary, _ = told(text)
    assert carried(summary, "wifi") > 0.75
    assert carried(summary, "lte") > 0.75
    assert summary["duration_s"] < 2
    alone, _ = told(text.replace("ip mptcp endpoint", "true"))
    assert carried(alone, "lte") < 0.1
    assert alone["duration_s"] > 2


CHAIN = """
duration = "20 s"
[link.access]
between = ["A", "R"]
rate = "10 Mbit/s"
delay = "5 ms"
[link.core]
between = ["R", "S"]
rate = "100 Mbit/s"
delay = "10 ms"
[link.far]
between = ["S", "B"]
rate = "100 Mbit/s"
delay = "5 ms"
[flow.main]
from = "A"
to = "B"
"""

PROBE = """
import socket, struct, sys, time
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
icmp = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if sys.argv[1] == "6" else socket.IPPROTO_ICMP)
icmp.settimeout(1.0)
probe = socket.socket(family, socket.SOCK_DGRAM)
level, option = (41, 16) if sys.argv[1] == "6" else (0, 2)
def ask(to, hops, port):
    probe.setsockopt(level, option, hops)
    began = time.monotonic()
    probe.sendto(bytes(32), (to, port))
    while True:
        try:
            octets, (address, *_) = icmp.recvfrom(2000)
        except TimeoutError:
            return None
        message = octets if family == socket.AF_INET6 else octets[20:]
        if family == socket.AF_INET6 and message[0] >= 128:
            continue
        inner = message[8:]
        offset = 40 if family == socket.AF_INET6 else 20
        quoted = struct.unpack("!H", inner[offset + 2:offset + 4])[0]
        hop_limit = inner[7] if family == socket.AF_INET6 else inner[8]
        if quoted == port:
            return address, message[0], message[1], hop_limit, round(1000 * (time.monotonic() - began), 1)
for line, word in enumerate(sys.argv[2:]):
    to, hops = word.split(",")
    for count in range(int(hops.partition("x")[2] or 1)):
        answer = ask(to, int(hops.partition("x")[0]), 33434 + 10 * line + count)
        print("told", f"{line:02}.{count:02}", *(answer or ["silence"]), file=sys.stderr)
        sys.stderr.flush()
"""
"""Sends datagrams with these hop limits, and prints each answer's source, type and code, the hop
limit that it quotes, and its delay in milliseconds."""


@pytest.mark.parametrize("family", [4, 6])
def test_each_router_answers_when_the_hop_limit_expires(told: Told, family: int) -> None:
    """RFC 792 and RFC 4443: time exceeded from R and S, and port unreachable from B itself.

    Detects answers without the delay of their path, and a wrong checksum over IPv6.
    """
    exceeded, unreachable = (("11", "0"), ("3", "3")) if family == 4 else (("3", "0"), ("1", "4"))
    text = (
        CHAIN + f"family = {family}\n" + host("A", PROBE, str(family), *(f"{{B}},{hops}" for hops in ("1x2", 2, 3, 64)))
    )
    summary, lines = told(text)
    lines = words(lines)
    # The first line waits for the start of the run.
    one, two, three, last = lines = lines[1:]
    assert [line[2:4] for line in lines] == [list(exceeded)] * 2 + [list(unreachable)] * 2
    assert len({one[1], two[1], three[1]}) == 3
    assert three[1] == last[1]
    # A router quotes the packet as it arrived, with one hop left.
    assert [line[4] for line in (one, two)] == ["1", "1"]
    # At B, after two routers.
    assert [line[4] for line in (three, last)] == ["1", "62"]
    assert [float(line[5]) for line in lines] == pytest.approx([10, 30, 40, 40], abs=0.3)
    assert list(summary["flows"]) == ["main"]
    assert summary["live"]["audit"]["foreign_packets"] <= 1


BURST = """
import socket, sys
icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
icmp.settimeout(1.0)
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for hops in (1, 2):
    probe.setsockopt(0, 2, hops)
    for _ in range(20):
        probe.sendto(b"", (sys.argv[1], 33434))
    answers = 0
    try:
        while icmp.recv(2000)[20] == 11:
            answers += 1
    except TimeoutError:
        pass
    print("told", hops, answers, file=sys.stderr)
"""
"""Sends 20 datagrams at once to each of two routers, and prints the number of answers."""


def test_routers_limit_their_errors(told: Told) -> None:
    """Each router answers six at once, as Linux documents ``icmp_ratelimit``.

    Detects routers that answer every probe, and a limit that the routers share.
    """
    lines = words(told(CHAIN + host("A", BURST, "{B}"))[1])
    assert [line[0] for line in lines] == ["1", "2"]
    assert [line[1] for line in lines] == ["6", "6"]


@pytest.mark.parametrize("family", [4, 6])
def test_a_router_answers_a_ping(told: Told, family: int) -> None:
    """RFC 1812 §4.3.3.6, RFC 4443 §4.2. The host is called by name. Detects a router that limits echo replies."""
    if shutil.which("ping") is None:
        missing("ping(8)")
    program = '\n[host.A]\nexec = ["sh", "-c", "ping -c 8 -i 0.01 -q S >&2"]\n'
    text = f"{CHAIN}family = {family}\n{program}"
    assert ["8", "packets", "transmitted,", "8", "received,"] in [line[:5] for line in told(text)[1]]


def test_a_probe_waits_in_the_queues_of_its_path(told: Told) -> None:
    """The 400 packets of 1000 bytes before it take 320 ms at 10 Mbit/s, minus the time that has passed.

    Detects an answer after the propagation delay, 10 ms.
    """
    burst = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('B', 9))\n"
    burst += "for _ in range(400): s.send(bytes(972))\n"
    lines = words(told(CHAIN + host("A", burst + PROBE, "4", "{B},1"))[1])
    assert float(lines[0][5]) > 150


def gateway_folder() -> Path:
    """The daemon's folder: from PATH, or from a build of the checkout."""
    name = "anabranch-gateway"
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path).parent
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile for profile in ("release", "dist", "debug") if (target / profile / name).is_file()]
    if not built:
        missing(f"{name}: cargo build --release -p anabranch-gatewayd")
    return built[0]


def test_our_tunnel_uses_both_links(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """5 MB need 4 s over the faster link alone. Detects paths that share a device."""
    monkeypatch.setenv("PATH", f"{gateway_folder()}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    summary, lines = told((ROOT / "scenarios" / "hosts" / "tunnel.toml").read_text().replace(BYTES, "5_000_000"))
    assert any("tunnel: 5000000 bytes" in " ".join(line) for line in lines)
    assert carried(summary, "fibre") > 1
    assert carried(summary, "lte") > 1
    assert summary["duration_s"] < 4
