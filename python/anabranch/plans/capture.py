"""The connections of a capture for a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anabranch.diagnosis.diagnosis import diagnose, directions
from anabranch.diagnosis.document import Connection
from anabranch.errors import UserError, nearest

LEAST_SHARE = 0.01
"""A connection with a smaller share of the data of the largest one is left out."""


def connections(capture: Path) -> list[Connection]:
    """The TCP connections with data, the largest first.

    Raises:
        UserError: It is no capture, or has none.
    """
    found = [one for one in diagnose(capture).content["connections"] if size(one) > 0]
    if not found:
        raise UserError(f"{capture}: no TCP connection with data was found", hint="give a capture of the slow traffic")
    return sorted(found, key=size, reverse=True)


def size(connection: Connection) -> int:
    """Octets of both directions."""
    return sum(way["bytes"] for _, way in directions(connection))


def registered(kind: str) -> dict[str, str]:
    """The titles of components of a kind, by name."""
    import json

    from anabranch import _engine

    registry: list[dict[str, Any]] = json.loads(_engine.registry())
    return {one["name"]: one["title"] for one in registry if one["kind"] == kind and one["name"] != "bpf"}


def control(name: str) -> tuple[str | dict[str, str], str]:
    """The value of ``cc`` for a control, and its title; a control that ships as an eBPF program is that program.

    Raises:
        UserError: There is none of this name.
    """
    import json

    from anabranch import _engine

    titles = registered("cc")
    if name not in titles:
        raise UserError(f'there is no congestion control "{name}"', hint=nearest(name, titles))
    shipped = {one["name"] for one in json.loads(_engine.cc_list())["shipped"]}
    return ({"kind": "bpf", "name": name} if name in shipped - {"reno"} else name), titles[name]
