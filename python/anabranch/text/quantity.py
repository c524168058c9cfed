"""Quantities of scenario files as exact numbers, and numbers as such quantities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

_DIMENSIONS: Mapping[str, Mapping[str, str]] = {
    "time": {"ps": "1e-12", "ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600"},
    "power": {"uW": "1e-6", "µW": "1e-6", "mW": "1e-3", "W": "1", "kW": "1e3", "MW": "1e6"},
    "packets": {"packet": "1", "packets": "1"},
    "bdp": {"bdp": "1"},
    "size": {
        "byte": "1", "bytes": "1", "B": "1", "kB": "1e3", "MB": "1e6", "GB": "1e9", "TB": "1e12",
        "KiB": str(2**10), "MiB": str(2**20), "GiB": str(2**30), "TiB": str(2**40),
    },
    "rate": {
        "bit/s": "1", "kbit/s": "1e3", "Mbit/s": "1e6", "Gbit/s": "1e9", "Tbit/s": "1e12",
        "Kibit/s": str(2**10), "Mibit/s": str(2**20), "Gibit/s": str(2**30), "Tibit/s": str(2**40),
    },
}  # fmt: skip
_UNITS = {unit: (name, Fraction(size)) for name, units in _DIMENSIONS.items() for unit, size in units.items()}
_SECONDS = {unit: Decimal(size) for unit, size in _DIMENSIONS["time"].items()}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([eE][+-]?[0-9]{1,3})? ?(\S+)")


class Quantity(NamedTuple):
    """A quantity: its dimension, its size in the base unit of that, and its unit."""

    dimension: str
    size: Fraction
    unit: str


def read(text: str) -> Quantity | None:
    """A quantity of a scenario file; ``None`` for other text."""
    found = _QUANTITY.fullmatch(text)
    if found is None or found[3] not in _UNITS:
        return None
    dimension, size = _UNITS[found[3]]
    return Quantity(dimension, Fraction(found[1] + (found[2] or "")) * size, found[3])


def size_of(text: str, dimension: str) -> Fraction | None:
    """The size of a quantity in the base unit of a dimension; ``None`` for other text."""
    found = read(text)
    return found.size if found is not None and found.dimension == dimension else None


def _known(text: str, dimension: str) -> Fraction:
    found = size_of(text, dimension)
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    return found


def seconds(text: str) -> Decimal:
    """A duration of a resolved scenario in seconds."""
    found = _known(text, "time")
    return Decimal(found.numerator) / found.denominator


def bits_per_second(text: str) -> int | None:
    """A rate of a resolved scenario; ``None`` if it is unlimited."""
    return None if text == "unlimited" else int(_known(text, "rate"))


def size(text: str) -> int:
    """A size of a resolved scenario in bytes."""
    return int(_known(text, "size"))


def limit(text: str) -> tuple[int, str] | None:
    """A queue's limit of a resolved scenario and its unit, ``"packets"`` or ``"bytes"``; ``None`` if there is none."""
    if text == "unlimited":
        return None
    packets = size_of(text, "packets")
    return (size(text), "bytes") if packets is None else (int(packets), "packets")


def duration(value: Decimal) -> str:
    """Seconds in the form of scenario files, rounded to whole picoseconds."""
    value = value.quantize(Decimal("1e-12")) if value.as_tuple().exponent < -12 else value  # type: ignore[operator]
    unit = next((u for u in ("s", "ms", "us", "ns") if value >= _SECONDS[u]), "ps" if value else "s")
    return f"{plain(value / _SECONDS[unit])} {unit}"


def rate(value: int) -> str:
    """Bits per second in the form of scenario files."""
    for unit, scale in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if value >= scale:
            return f"{plain(Decimal(value) / scale)} {unit}"
    return f"{value} bit/s"


def plain(value: Decimal) -> str:
    """A number without exponent and without trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def number(text: str) -> float | None:
    """A decimal number in ASCII digits; ``None`` if it is none.

    ``float`` also reads digits of other scripts, underscores and names of infinity.
    """
    return float(text) if _NUMBER.fullmatch(text) else None
