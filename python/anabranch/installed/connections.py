"""The TCP connections of this network namespace by congestion control, by sock_diag(7)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from anabranch.installed import netlink

_SOCK_DIAG = 4
_BY_FAMILY = 20
_MESSAGE = 72
_INFO, _CONGESTION = 2, 4
_OPEN = {
    "ESTABLISHED": 1,
    "SYN-SENT": 2,
    "SYN-RECEIVED": 3,
    "FIN-WAIT-1": 4,
    "FIN-WAIT-2": 5,
    "CLOSE-WAIT": 8,
    "LAST-ACK": 9,
    "CLOSING": 11,
}
"""Linux's numbers of the states of an open connection: all but TIME-WAIT, CLOSED and LISTEN."""
_STATES = sum(1 << state for state in _OPEN.values())
_SENT_AT, _RETRANSMITTED_AT = 200, 208
"""Places of ``tcpi_bytes_sent`` and ``tcpi_bytes_retrans`` in ``struct tcp_info``."""


@dataclass(frozen=True)
class Use:
    """The open connections of a control.

    Attributes:
        connections: Their number.
        sent_bytes: Octets of data that they have sent, with retransmissions.
        retransmitted_bytes: Octets that they have retransmitted.
    """

    connections: int = 0
    sent_bytes: int = 0
    retransmitted_bytes: int = 0


def by_control() -> dict[str, Use]:
    """The open connections of each control; empty if the kernel does not list sockets."""
    found: dict[str, Use] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        extensions = 1 << _INFO - 1 | 1 << _CONGESTION - 1
        request = struct.pack("=4BI48x", family, socket.IPPROTO_TCP, extensions, 0, _STATES)
        try:
            answers = netlink.ask(_SOCK_DIAG, _BY_FAMILY, netlink.DUMP, request)
        except OSError:
            continue
        for body in answers:
            held = netlink.attributes(body[_MESSAGE:])
            name = held.get(_CONGESTION, b"").rstrip(b"\0").decode(errors="replace")
            info = held.get(_INFO, b"")
            sent, again = (_number(info, at) for at in (_SENT_AT, _RETRANSMITTED_AT))
            use = found.get(name, Use())
            found[name] = Use(use.connections + 1, use.sent_bytes + sent, use.retransmitted_bytes + again)
    return found


def _number(info: bytes, at: int) -> int:
    return int(struct.unpack_from("=Q", info, at)[0]) if len(info) >= at + 8 else 0
