"""Messages of netlink(7): requests, dumps, and attributes."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping

REQUEST, ACK, REPLACE, DUMP, CREATE, APPEND = 0x1, 0x4, 0x100, 0x300, 0x400, 0x800
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_KIND = 0x3FFF
"""Mask of an attribute's type, without the flags for nesting and byte order."""


def ask(protocol: int, kind: int, flags: int, payload: bytes) -> list[bytes]:
    """Send one request, and return the payloads of the answer.

    Args:
        protocol: The netlink family, such as ``NETLINK_ROUTE`` (0).
        kind: The type of the message.
        flags: Flags beside ``REQUEST``; with ``DUMP`` the answer ends with a separate message.
        payload: The body of the message.

    Raises:
        OSError: The kernel refuses the request.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol) as link:
        link.bind((0, 0))
        link.send(_HEADER.pack(_HEADER.size + len(payload), kind, REQUEST | flags, 1, 0) + payload)
        found: list[bytes] = []
        while True:
            for answered, body in _messages(link.recv(1 << 20)):
                if answered == _DONE:
                    return found
                if answered == _ERROR:
                    error = -int(struct.unpack_from("=i", body)[0])
                    if error:
                        raise OSError(error, os.strerror(error))
                    return found
                found.append(body)


def _messages(received: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(received):
        length, kind, *_ = _HEADER.unpack_from(received, at)
        if length < _HEADER.size:
            return
        yield kind, received[at + _HEADER.size : at + length]
        at += _aligned(length)


def attributes(payload: bytes) -> dict[int, bytes]:
    """The attributes of a payload, by type."""
    found: dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(payload):
        length, kind = _ATTRIBUTE.unpack_from(payload, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _KIND] = payload[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)
    return found


def packed(values: Mapping[int, bytes]) -> bytes:
    """Attributes as a payload."""
    parts = []
    for kind, value in values.items():
        length = _ATTRIBUTE.size + len(value)
        parts.append(_ATTRIBUTE.pack(length, kind) + value + bytes(_aligned(length) - length))
    return b"".join(parts)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
