"""A diagnosis in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anabranch.diagnosis import Diagnosis, directions


def overview(document: Diagnosis) -> Iterator[str]:
    """The capture in one screen."""
    yield f"{document['file']}: {document['packets']:,} frames, {len(document['connections']):,} TCP connections"
    for connection in document["connections"][:10]:
        yield f"{connection['id']:>4}  {connection['a']} > {connection['b']}  {connection['duration_s']:.3f} s"


def detail(connection: dict[str, Any]) -> Iterator[str]:
    """One connection in full."""
    yield f"connection {connection['id']}: {connection['a']} > {connection['b']}"
    for name, direction in directions(connection):
        yield f"{name}: {direction['bytes']:,} bytes"
