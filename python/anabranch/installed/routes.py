"""The congestion control of a route: the metric ``congctl`` of ip-route(8), by rtnetlink(7)."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.errors import UserError
from anabranch.installed import netlink

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ROUTE = 0
_NEW, _GET = 24, 26
_MESSAGE = struct.Struct("=8BI")
_MAIN, _UNICAST = 254, 1
_CLONED = 0x200
_ONLINK = 4
"""The only flag of a route that a request may repeat; the others describe its state."""
_DST, _OIF, _GATEWAY, _METRICS, _MULTIPATH, _CACHE, _TABLE, _VIA, _NEXTHOP = 1, 4, 5, 8, 9, 12, 15, 18, 30
_FEATURES, _CONTROL = 12, 16
_GIVEN_FEATURES = 0x1F
"""Features that a request may have (``RTAX_FEATURE_MASK``)."""


@dataclass(frozen=True)
class Route:
    """A unicast route of the main table.

    Attributes:
        prefix: Its destination.
        head: The fixed part of its message.
        attributes: Its attributes, by type.
    """

    prefix: Network
    head: tuple[int, ...]
    attributes: dict[int, bytes]

    @property
    def control(self) -> str | None:
        """The route's congestion control."""
        found = self._metrics.get(_CONTROL)
        return None if found is None else found.rstrip(b"\0").decode(errors="replace")

    @property
    def _metrics(self) -> dict[int, bytes]:
        return netlink.attributes(self.attributes.get(_METRICS, b""))

    def set(self, control: str | None) -> None:
        """Replace the route by itself with another congestion control, or with none.

        Raises:
            OSError: The kernel refuses it.
        """
        metrics = {kind: value for kind, value in self._metrics.items() if kind != _CONTROL}
        if _FEATURES in metrics:
            features = struct.unpack("=I", metrics.pop(_FEATURES))[0] & _GIVEN_FEATURES
            metrics |= {_FEATURES: struct.pack("=I", features)} if features else {}
        if control is not None:
            metrics[_CONTROL] = control.encode() + b"\0"
        left_out = {_CACHE, _METRICS}
        if _NEXTHOP in self.attributes:
            # The kernel shows the contents of a nexthop object, and does not take both.
            left_out |= {_OIF, _GATEWAY, _VIA, _MULTIPATH}
        kept = {kind: value for kind, value in self.attributes.items() if kind not in left_out}
        if metrics:
            kept[_METRICS] = netlink.packed(metrics)
        head = _MESSAGE.pack(*self.head[:8], self.head[8] & _ONLINK)
        netlink.ask(_ROUTE, _NEW, netlink.ACK | netlink.REPLACE, head + netlink.packed(kept))


def prefix(text: str) -> Network:
    """The destination that a text names; ``default`` is that of IPv4.

    Raises:
        UserError: It is no prefix.
    """
    try:
        return ipaddress.ip_network("0.0.0.0/0" if text == "default" else text)
    except ValueError:
        pass
    hint = "--route 192.0.2.0/24, --route 2001:db8::/32, or --route default"
    with contextlib.suppress(ValueError):
        hint = f"did you mean {ipaddress.ip_network(text, strict=False)}?"
    raise UserError(f"--route {text}: it is no prefix of IPv4 or IPv6", hint=hint)


def find(of: Network) -> list[Route]:
    """The routes to exactly this destination."""
    return [route for route in _all(of.version) if route.prefix == of]


def required(of: Network) -> list[Route]:
    """The routes to exactly this destination, at least one.

    Raises:
        UserError: There is none; the hint names the route that packets to it take.
    """
    found = find(of)
    if not found:
        wider = [route.prefix for route in _all(of.version) if of.subnet_of(route.prefix)]  # type: ignore[arg-type]
        nearest = max(wider, key=lambda one: one.prefixlen, default=None)
        hint = "add it: ip route add PREFIX via GATEWAY"
        if nearest is not None:
            hint = f"its packets take the route of {nearest}: --route {nearest}, or {hint}"
        raise UserError(f"--route {of}: the main table has no route with exactly this prefix", hint=hint)
    return found


def _all(version: int) -> Iterator[Route]:
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    for body in netlink.ask(_ROUTE, _GET, netlink.DUMP, _MESSAGE.pack(family, *[0] * 8)):
        if len(body) < _MESSAGE.size:
            continue
        head = _MESSAGE.unpack_from(body)
        found = netlink.attributes(body[_MESSAGE.size :])
        table = struct.unpack("=I", found[_TABLE])[0] if _TABLE in found else head[4]
        if head[0] != family or head[7] != _UNICAST or table != _MAIN or head[8] & _CLONED:
            continue
        address = found.get(_DST, bytes(4 if version == 4 else 16))
        yield Route(ipaddress.ip_network((address, head[1])), head, found)
