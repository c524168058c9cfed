"""Our reader's list of conversations, compared with tshark's dissection of each frame's innermost IP packet."""

from __future__ import annotations

import re
import shlex
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest

from anabranch import Scenario, ScenarioError

from .test_capture import needs_tshark, tshark

TCP, UDP = 6, 17


@dataclass(frozen=True)
class Way:
    """A conversation: fields of the sent packets, and of a selection."""

    source: str
    target: str
    ports: tuple[int, int]
    protocol: int


V4 = ("10.0.0.1", "10.0.0.2")
V6 = ("2001:db8::1", "2001:db8::2")
TRAFFIC = [
    Way(*V4, (1234, 80), TCP), Way(*V4, (1234, 80), UDP), Way(*V4[::-1], (80, 1234), TCP), Way(*V4, (1235, 443), TCP),
    Way(*V4[::-1], (53, 5353), UDP),
]  # fmt: skip
TRAFFIC_V6 = [Way(*V6, way.ports, way.protocol) for way in TRAFFIC[:2]] + [Way(*V6[::-1], (80, 1234), TCP)]


def transport(way: Way) -> bytes:
    ports = struct.pack("!HH", *way.ports)
    if way.protocol == TCP:
        return ports + struct.pack("!IIBBHHH", 1, 1, 0x50, 0x10, 1000, 0, 0)
    return ports + struct.pack("!HH", 12, 0) + b"data"


def ip_packet(source: str, target: str, protocol: int, payload: bytes) -> bytes:
    ends = ip_address(source).packed + ip_address(target).packed
    if len(ends) == 8:
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + ends + payload
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def packet(way: Way) -> bytes:
    return ip_packet(way.source, way.target, way.protocol, transport(way))


def ethernet(kind: int, payload: bytes) -> bytes:
    return bytes.fromhex("020000000001020000000002") + struct.pack("!H", kind) + payload


def kind_of(inner: bytes) -> int:
    return 0x0800 if inner[0] >> 4 == 4 else 0x86DD


def ethernet_ip(inner: bytes) -> bytes:
    return ethernet(kind_of(inner), inner)


def vlan(inner: bytes) -> bytes:
    return ethernet(0x8100, struct.pack("!HH", 5, kind_of(inner)) + inner)


def qinq(inner: bytes) -> bytes:
    return ethernet(0x88A8, struct.pack("!HHHH", 5, 0x8100, 6, kind_of(inner)) + inner)


def mpls(inner: bytes) -> bytes:
    return ethernet(0x8847, struct.pack("!II", 100 << 12 | 64, 200 << 12 | 0x100 | 64) + inner)


def pppoe(inner: bytes) -> bytes:
    ppp = 0x0021 if kind_of(inner) == 0x0800 else 0x0057
    return ethernet(0x8864, struct.pack("!BBHHH", 0x11, 0, 1, 2 + len(inner), ppp) + inner)


def gre(inner: bytes) -> bytes:
    return ethernet_ip(ip_packet("192.0.2.1", "192.0.2.2", 47, struct.pack("!HH", 0, kind_of(inner)) + inner))


def ip_in_ip(inner: bytes) -> bytes:
    protocol = 4 if kind_of(inner) == 0x0800 else 41
    return ethernet_ip(ip_packet("192.0.2.1", "192.0.2.2", protocol, inner))


def sll(inner: bytes) -> bytes:
    return struct.pack("!HHH8sH", 0, 1, 6, b"\2\0\0\0\0\1\0\0", kind_of(inner)) + inner


def sll2(inner: bytes) -> bytes:
    return struct.pack("!HHIHBB8s", kind_of(inner), 0, 1, 1, 0, 6, b"\2\0\0\0\0\1\0\0") + inner


def null(inner: bytes) -> bytes:
    return struct.pack("<I", 2 if kind_of(inner) == 0x0800 else 30) + inner


def raw(inner: bytes) -> bytes:
    return inner


def pcap(link_type: int, frames: list[bytes]) -> bytes:
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)
    return file + b"".join(struct.pack("<IIII", k, 0, len(f), len(f)) + f for k, f in enumerate(frames))


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def pcapng(interfaces: list[int], frames: list[tuple[int, bytes]]) -> bytes:
    file = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    file += b"".join(block(1, struct.pack("<HHI", link_type, 0, 65535)) for link_type in interfaces)
    return file + b"".join(
        block(6, struct.pack("<IIIII", interface, 0, k, len(f), len(f)) + f) for k, (interface, f) in enumerate(frames)
    )


ETHERNET, NULL, RAW, LINUX_SLL, LINUX_SLL2 = 1, 0, 101, 113, 276

FORMS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ethernet": (ETHERNET, ethernet_ip),
    "vlan": (ETHERNET, vlan),
    "qinq": (ETHERNET, qinq),
    "mpls": (ETHERNET, mpls),
    "pppoe": (ETHERNET, pppoe),
    "gre": (ETHERNET, gre),
    "ipip, 6in4": (ETHERNET, ip_in_ip),
    "sll": (LINUX_SLL, sll),
    "sll2": (LINUX_SLL2, sll2),
    "raw": (RAW, raw),
    "null": (NULL, null),
}


def listed(file: Path) -> Counter[Way]:
    """The conversations that the refusal of a capture with two directions lists."""
    text = (
        'duration = "1 s"\n[link.a]\nbetween = ["A", "B"]\ndelay = "1 ms"\nrate = "1 Mbit/s"\n'
        f'[flow.f]\nfrom = "A"\nto = "B"\nprotocol = "udp"\nworkload = {{ kind = "replay", file = "{file.name}" }}\n'
    )
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_text(text, file=str(file.with_name("s.toml"))).resolve()
    found: Counter[Way] = Counter()
    protocols = {"tcp": TCP, "udp": UDP}
    line = re.compile(
        r'from = "(.+)", to = "(.+?)"(?:, protocol = "(\w+)")?  \((\d+) packets?, \d+ bytes(?:, (\w+))?\)'
    )
    for sender, receiver, key, count, said in line.findall(str(refused.value)):
        (source, port), (target, to) = (end.rsplit(":", 1) for end in (sender, receiver))
        name = (key or said).lower()
        way = Way(source.strip("[]"), target.strip("[]"), (int(port), int(to)), protocols[name])
        found[way] += int(count)
    assert "more" not in str(refused.value).rpartition("packets")[2]
    return found


def dissected(file: Path) -> Counter[Way]:
    """The conversations of the innermost IP packets by tshark."""
    fields = ["frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport"]
    fields += ["udp.srcport", "udp.dstport"]
    options = shlex.split("-T fields -E separator=| -E occurrence=l") + [part for f in fields for part in ("-e", f)]
    found: Counter[Way] = Counter()
    for line in tshark(file, *options).splitlines():
        protocols, *values = line.split("|")
        source, target, source6, target6, *ports = values
        layers = protocols.split(":")
        version = [layer for layer in layers if layer in ("ip", "ipv6")][-1]
        ends = (source, target) if version == "ip" else (source6, target6)
        protocol = TCP if "tcp" in layers else UDP
        pair = ports[:2] if protocol == TCP else ports[2:]
        found[Way(*ends, (int(pair[0]), int(pair[1])), protocol)] += 1
    return found


def times(ways: list[Way]) -> list[Way]:
    """Repeat each one a different number of times."""
    return [way for k, way in enumerate(ways, 1) for _ in range(k)]


@needs_tshark
@pytest.mark.parametrize("ways", [TRAFFIC, TRAFFIC_V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("form", FORMS)
def test_tshark_finds_the_same_conversations(tmp_path: Path, form: str, ways: list[Way]) -> None:
    link_type, wrap = FORMS[form]
    file = tmp_path / "x.pcap"
    file.write_bytes(pcap(link_type, [wrap(packet(way)) for way in times(ways)]))
    ours = listed(file)
    assert ours == dissected(file)
    assert ours == Counter(times(ways))


@needs_tshark
def test_tshark_finds_the_same_on_two_interfaces(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    ways = times(TRAFFIC + TRAFFIC_V6)
    frames = [(k % 2, (ethernet_ip, raw)[k % 2](packet(way))) for k, way in enumerate(ways)]
    file.write_bytes(pcapng([ETHERNET, RAW], frames))
    ours = listed(file)
    assert ours == dissected(file)
    assert ours == Counter(ways)
