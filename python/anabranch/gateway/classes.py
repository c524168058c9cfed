"""The classes of a configuration, and example packets of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_network
from itertools import product
from typing import TypedDict

_DEFAULT_PORT = 5001
"""The far port of simulated flows by default."""
_OWN_PORTS = range(1024, 1040)
"""The near ports of the first flows of a scenario."""
_FOREIGN = IPv4Address("198.51.100.1")
"""An address for documentation (RFC 5737)."""
_MOST_TRIED = 4096


@dataclass(frozen=True)
class Packets:
    """Fields of a flow's packets that classes match.

    Attributes:
        dscp: The code point.
        port: The port at the far end; ``None`` for the simulator's own.
        address: The far end's address; ``None`` for one that is in no network of a class.
    """

    dscp: int = 0
    port: int | None = None
    address: IPv4Address | None = None


class Match(TypedDict, total=False):
    """The conditions of a class on packets, in the form of a scenario."""

    dscp: list[int]
    port: list[int | str]
    prefix: list[str]


@dataclass(frozen=True)
class PlannedClass:
    """A class.

    Attributes:
        name: Its name.
        mode: ``"bulk"``, ``"interactive"`` or ``"pinned"``.
        path: The path that it pins to.
        match: Its conditions on packets, in the form of a scenario.
        packets: Packets of this class that no earlier class matches; ``None`` if none were found.
    """

    name: str
    mode: str
    path: str | None
    match: Match
    packets: Packets | None

    def shown(self) -> str:
        """The mode, with the path."""
        return f"pinned to {self.path}" if self.path is not None else self.mode

    def fits(self, packets: Packets) -> bool:
        """Whether packets match all its conditions."""
        return _fits(self.match, packets)


def read(text: str, file: str) -> tuple[PlannedClass, ...]:
    """The classes of a configuration's text, in its order.

    Raises:
        ScenarioError: One is wrong.
    """
    from anabranch import _engine

    found: list[PlannedClass] = []
    for one in json.loads(_engine.gateway_classes(text, file)):
        match = one["match"]
        before = [other.match for other in found]
        tried = (packets for packets, _ in zip(_candidates(match), range(_MOST_TRIED), strict=False))
        packets = next((each for each in tried if not any(_fits(other, each) for other in before)), None)
        found.append(PlannedClass(one["name"], one["mode"], one.get("path"), match, packets))
    return tuple(found)


def _fits(match: Match, packets: Packets) -> bool:
    ports = {packets.port or _DEFAULT_PORT, *_OWN_PORTS}
    return (
        ("dscp" not in match or packets.dscp in match["dscp"])
        and ("port" not in match or any(port in span for span in _spans(match) for port in ports))
        and ("prefix" not in match or (packets.address is not None and _holds(match["prefix"], packets.address)))
    )


def _spans(match: Match) -> list[range]:
    ends = [str(ports).partition("-") for ports in match["port"]]
    return [range(int(first), int(last or first) + 1) for first, _, last in ends]


def _holds(prefixes: Sequence[str], address: IPv4Address) -> bool:
    return any(address in ip_network(prefix, strict=False) for prefix in prefixes)


def _candidates(match: Match) -> Iterator[Packets]:
    """Packets that match all conditions."""
    code_points = match.get("dscp") or range(64)
    ports: list[int | None] = [None, 6001]
    if "port" in match:
        ports = [port for span in _spans(match) for port in (span[0], span[-1], span[len(span) // 2])]
    addresses: list[IPv4Address | None] = [None]
    if "prefix" in match:
        addresses = [address for prefix in match["prefix"] for address in _addresses(prefix)]
    for dscp, port, address in product(code_points, ports, addresses):
        yield Packets(dscp, port, address)


def _addresses(prefix: str) -> list[IPv4Address]:
    """Addresses of a host in a network; the simulator has IPv4 only."""
    network = ip_network(prefix, strict=False)
    if not isinstance(network, IPv4Network):
        return []
    last = network.num_addresses - 1
    of_hosts = (network[min(1, last)], network[0], network[last // 2])
    inside = [address for address in (_FOREIGN, *of_hosts) if address in network]
    return [each for each in inside if not _is_special(each)]


def _is_special(address: IPv4Address) -> bool:
    return (
        address.is_unspecified
        or address.is_multicast
        or address.is_loopback
        or address == IPv4Address("255.255.255.255")
    )
