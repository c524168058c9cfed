"""Text for people in lines of at most 80 columns, for terminals and files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 80
"""Columns of a line."""

_HELD = "\uffff"
"""Replaces a space at which no line may break; :func:`anabranch.text.shown.plain` removes it from texts."""
_UNIT = re.compile(r"(?<=\d) (?=(?:%|ms|s|B|kB|MB|GB|bytes|Mbit/s)(?![\w/]))|(?<=[a-z\d]) (?=\d+ %)")
"""Space before a unit, or before a share that belongs to a name: "bottleneck 12 %"."""


def wrapped(text: str, indent: str = "", *, whole: Iterable[str] = ()) -> list[str]:
    """Lines of at most 80 columns, broken at spaces; only a longer word exceeds them.

    Args:
        text: The text; spaces before its first word are kept.
        indent: Begins every line but the first.
        whole: Parts that are not broken: a path that has spaces, a command to copy.
    """
    for part in whole:
        text = text.replace(part, part.replace(" ", _HELD))
    found = textwrap.wrap(
        _UNIT.sub(_HELD, text), WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False,
    )  # fmt: skip
    return [line.replace(_HELD, " ") for line in found] or [""]


def percent(share: float, *, signed: bool = False) -> str:
    """A share as whole per cent: "44 %", "+44 %"; a share that rounds to 0 has no sign."""
    rounded = round(100 * share)
    return f"{rounded:+,} %" if signed and rounded else f"{rounded:,} %"


def span(low: str, high: str, unit: str = "") -> str:
    """A range of two displayed figures: "20 to 22 ms"; empty if both are equal."""
    return "" if low == high else f"{low} to {high} {unit}".rstrip()


def number(value: float | None) -> str:
    """A number of three digits."""
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def pause_length(seconds: float) -> str:
    """The length of a pause, in milliseconds below a second."""
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.3f} s"


def amount(octets: int) -> str:
    """An amount of data with its unit."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if octets >= size:
            return f"{octets / size:.3g} {unit}"
    return f"{octets} B"
