"""Captures of a run: their links and their files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UserError, nearest
from anabranch.text.spoken import argument

DIRECTIONS = ("forward", "reverse")

SNAP_LENGTH = 96
"""Octets of each packet in a capture by default: enough for all headers with the longest options."""

MAX_SNAP_LENGTH = 65_535


@dataclass(frozen=True)
class Place:
    """A link and one of its directions, or both if ``direction`` is ``None``."""

    link: str
    direction: str | None


def place(name: str, links: Iterable[str]) -> Place:
    """The meaning of ``LINK``, ``LINK.forward`` or ``LINK.reverse``.

    Raises:
        UserError: There is no such link.
    """
    known = list(links)
    if name in known:
        return Place(name, None)
    link, dot, direction = name.rpartition(".")
    if dot and link in known:
        if direction in DIRECTIONS:
            return Place(link, direction)
        raise UserError(f'a link has no direction "{direction}"', hint=nearest(direction, DIRECTIONS))
    wanted = link if direction in DIRECTIONS else name
    raise UserError(f'there is no link "{wanted}" to capture', hint=nearest(wanted, known))


def check_snap_length(length: int) -> None:
    """Refuse an invalid snap length.

    Raises:
        UserError: It is outside 1 to :data:`MAX_SNAP_LENGTH`.
    """
    if not 1 <= length <= MAX_SNAP_LENGTH:
        raise UserError(f"{argument('snap_length', length)}: 1 to {MAX_SNAP_LENGTH} bytes were expected")


def parse_option(option: str) -> tuple[str, Path]:
    """Split ``LINK[.forward|.reverse]=FILE``.

    Raises:
        UserError: It is not of that form.
    """
    name, equals, file = option.rpartition("=")
    if not equals or not name or not file:
        raise UserError(
            f"--pcap {option!r}: LINK=FILE was expected", hint="--pcap bottleneck.forward=bottleneck.pcapng"
        )
    return name, Path(file)
