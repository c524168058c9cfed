"""Finished points of a directory."""

from __future__ import annotations

from pathlib import Path

from anabranch.sweep.segments import Block, read, scan, segments


def kept_points(directory: Path) -> dict[bytes, bytes]:
    """The content of every finished point in complete blocks, by key."""
    blocks = [b for path in segments(directory / "points") for b in scan(path) if isinstance(b, Block)]
    return {key: line for block in blocks for key, line in zip(block.keys, read(block), strict=True)}
