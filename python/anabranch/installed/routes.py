"""The congestion control of a route: the metric ``congctl`` of ip-route(8), by rtnetlink(7)."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.errors import RunFailedError, UserError
from anabranch.installed import netlink

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ROUTE = 0
_NEW, _GET = 24, 26
_MESSAGE = struct.Struct("=8BI")
_MAIN, _UNICAST = 254, 1
_CLONED = 0x200
_ONLINK = 4
"""The only flag of a route that a request may repeat; the others describe its state."""
_DST, _SRC, _OIF, _GATEWAY, _PRIORITY, _METRICS, _MULTIPATH = 1, 2, 4, 5, 6, 8, 9
_CACHE, _TABLE, _VIA, _EXPIRES, _NEXTHOP = 12, 15, 18, 23, 30
_EXPIRES_AT, _TICKS = 8, 100
"""Place of ``rta_expires`` in ``struct rta_cacheinfo``, and its unit's number in a second (``USER_HZ``)."""
_FEATURES, _CONTROL = 12, 16
_GIVEN_FEATURES = 0x1F
"""Features that a request may have (``RTAX_FEATURE_MASK``)."""


@dataclass(frozen=True)
class Route:
    """A route of the main table.

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
    def key(self) -> str:
        """The values by which the kernel distinguishes routes to one destination, as ip-route(8) writes them."""
        metric = int.from_bytes(self.attributes.get(_PRIORITY, b""), sys.byteorder)
        source = self.attributes.get(_SRC)
        words = [f"metric {metric}"]
        words += [f"tos {self.head[3]:#04x}"] if self.head[3] else []
        words += [f"from {ipaddress.ip_address(source)}/{self.head[2]}"] if source else []
        return " ".join(words)

    @property
    def is_unicast(self) -> bool:
        """Whether it delivers packets, unlike a route such as ``blackhole``."""
        return self.head[7] == _UNICAST

    @property
    def expires_s(self) -> int | None:
        """Seconds until the route ends, if it does."""
        cache = self.attributes.get(_CACHE, b"")
        ticks = int(struct.unpack_from("=i", cache, _EXPIRES_AT)[0]) if len(cache) >= _EXPIRES_AT + 4 else 0
        return max(1, ticks // _TICKS) if ticks else None

    @property
    def shape(self) -> tuple[object, ...]:
        """Everything but the control and the state: equal before and after a change of the control."""
        kept = self._kept()
        metrics = sorted(self._given_metrics().items())
        return (*self.head[:8], self.head[8] & _ONLINK, *sorted(kept.items()), *metrics)

    @property
    def _metrics(self) -> dict[int, bytes]:
        return netlink.attributes(self.attributes.get(_METRICS, b""))

    def _given_metrics(self) -> dict[int, bytes]:
        """The metrics that a request may have, without the control."""
        metrics = {kind: value for kind, value in self._metrics.items() if kind != _CONTROL}
        if _FEATURES in metrics:
            features = struct.unpack("=I", metrics.pop(_FEATURES))[0] & _GIVEN_FEATURES
            metrics |= {_FEATURES: struct.pack("=I", features)} if features else {}
        return metrics

    def _kept(self) -> dict[int, bytes]:
        """The attributes that a request repeats."""
        left_out = {_CACHE, _METRICS}
        if _NEXTHOP in self.attributes:
            # The kernel shows the contents of a nexthop object, and does not take both.
            left_out |= {_OIF, _GATEWAY, _VIA, _MULTIPATH}
        return {kind: value for kind, value in self.attributes.items() if kind not in left_out}

    def write(self, control: str | None, flags: int) -> None:
        """Request this route with a congestion control, or with none.

        Raises:
            OSError: The kernel refuses it.
        """
        kept, metrics = self._kept(), self._given_metrics()
        if control is not None:
            metrics[_CONTROL] = control.encode() + b"\0"
        if metrics:
            kept[_METRICS] = netlink.packed(metrics)
        if self.expires_s is not None:
            kept[_EXPIRES] = struct.pack("=I", self.expires_s)
        head = _MESSAGE.pack(*self.head[:8], self.head[8] & _ONLINK)
        netlink.ask(_ROUTE, _NEW, netlink.ACK | flags, head + netlink.packed(kept))


def change(route: Route, control: str | None) -> None:
    """Replace a route by itself with another congestion control, or with none.

    Raises:
        OSError: The kernel refuses it.
        RunFailedError: The kernel replaced another route, which is there again.
    """
    before = _to(route.prefix)
    route.write(control, netlink.REPLACE)
    lost = Counter(one.shape for one in before) - Counter(one.shape for one in _to(route.prefix))
    if not lost:
        return
    for one in before:
        if one.shape in lost:
            with contextlib.suppress(OSError):
                one.write(one.control, netlink.CREATE | netlink.APPEND)
    raise RunFailedError(
        f"route {route.prefix}: the kernel replaced another route, which was added again: ip route show {route.prefix}"
    )


def ambiguous(of: Network) -> str | None:
    """Metric and TOS that several routes to this destination have: the kernel replaces only the first of them."""
    counts = Counter(one.key for one in _to(of))
    return next((key for key, count in counts.items() if count > 1), None)


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
    """The unicast routes to exactly this destination."""
    return [route for route in _to(of) if route.is_unicast]


def _to(of: Network) -> list[Route]:
    """The routes of all types to exactly this destination."""
    return [route for route in _all(of.version) if route.prefix == of]


def required(of: Network) -> list[Route]:
    """The routes to exactly this destination, at least one.

    Raises:
        UserError: There is none, and the hint names the route that packets to it take; or they cannot be replaced
            one by one; or they end by themselves.
    """
    found = find(of)
    if not found:
        wider = [route.prefix for route in _all(of.version) if route.is_unicast and of.subnet_of(route.prefix)]  # type: ignore[arg-type]
        nearest = max(wider, key=lambda one: one.prefixlen, default=None)
        hint = "add it: ip route add PREFIX via GATEWAY"
        if nearest is not None:
            hint = f"its packets take the route of {nearest}: --route {nearest}, or {hint}"
        raise UserError(f"--route {of}: the main table has no route with exactly this prefix", hint=hint)
    key = ambiguous(of)
    if key is not None:
        raise UserError(
            f"--route {of}: several routes have {key}, and the kernel would replace the first by each of them",
            hint=f"give each another metric: ip route show {of}",
        )
    for route in found:
        if route.expires_s is not None:
            raise UserError(
                f"--route {of}: the route expires in {route.expires_s} s, unless a router advertisement renews it",
                hint="a changed route is not renewed: give --default or --cgroup",
            )
    return found


def _all(version: int) -> Iterator[Route]:
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    for body in netlink.ask(_ROUTE, _GET, netlink.DUMP, _MESSAGE.pack(family, *[0] * 8)):
        if len(body) < _MESSAGE.size:
            continue
        head = _MESSAGE.unpack_from(body)
        found = netlink.attributes(body[_MESSAGE.size :])
        table = struct.unpack("=I", found[_TABLE])[0] if _TABLE in found else head[4]
        if head[0] != family or table != _MAIN or head[8] & _CLONED:
            continue
        address = found.get(_DST, bytes(4 if version == 4 else 16))
        yield Route(ipaddress.ip_network((address, head[1])), head, found)
