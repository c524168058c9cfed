"""What a capture shows of its TCP connections: what limits each, and why each retransmission was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _engine, shown
from anabranch.errors import UserError, nearest

if TYPE_CHECKING:
    import polars as pl

DIRECTIONS = ("a_to_b", "b_to_a")
"""The names of both directions of a connection."""


class Diagnosis(dict[str, Any]):
    """The document of ``anabranch diagnose --json``, and its lists as tables."""

    def table(self, name: str) -> pl.DataFrame:
        """One of :data:`TABLES` as a frame of polars; each row has its connection and direction.

        Raises:
            UserError: There is no such table.
        """
        import polars as pl

        if name not in TABLES:
            raise UserError(f'a diagnosis has no table "{name}"', hint=nearest(name, TABLES))
        return pl.DataFrame(list(TABLES[name](self)), infer_schema_length=None)


def diagnose(path: str | Path) -> Diagnosis:
    """Diagnose the TCP connections of a capture, pcap or pcapng, compressed or not.

    Raises:
        UserError: It is no capture, or cannot be read.
    """
    try:
        document = _engine.diagnose(str(path), str(path))
    except _engine.CaptureError as error:
        raise UserError(str(error), file=shown.plain(str(path))) from None
    return Diagnosis(json.loads(document))


def directions(connection: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Both directions of a connection, by name."""
    for name in DIRECTIONS:
        yield name, connection["directions"][name]


def _connections(document: Diagnosis) -> Iterator[dict[str, Any]]:
    for connection in document["connections"]:
        yield {name: value for name, value in connection.items() if not isinstance(value, dict | list)}


def _rows(key: str) -> Callable[[Diagnosis], Iterator[dict[str, Any]]]:
    """The rows of a list that each direction has."""

    def rows(document: Diagnosis) -> Iterator[dict[str, Any]]:
        for connection in document["connections"]:
            for name, direction in directions(connection):
                for row in direction[key]:
                    yield {"connection": connection["id"], "direction": name, **row}

    return rows


def _limits(document: Diagnosis) -> Iterator[dict[str, Any]]:
    for connection in document["connections"]:
        for name, direction in directions(connection):
            for limit, time in direction["limits_s"].items():
                yield {"connection": connection["id"], "direction": name, "limit": limit, "time_s": time}


TABLES: dict[str, Callable[[Diagnosis], Iterator[dict[str, Any]]]] = {
    "connections": _connections,
    "retransmissions": _rows("retransmissions"),
    "stalls": _rows("stalls"),
    "limits": _limits,
}
"""The tables of a diagnosis, and what makes their rows."""
