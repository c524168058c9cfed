"""Quantities of scenario files as exact numbers, and numbers as such quantities."""

from __future__ import annotations

import re
from decimal import Decimal

_QUANTITY = re.compile(r"\s*([0-9.eE+-]+)\s*([A-Za-zµ/]*)\s*")

_TIME = {
    "ps": Decimal("1e-12"), "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"),
    "ms": Decimal("1e-3"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600),
}  # fmt: skip
_PREFIX = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def seconds(text: str) -> Decimal:
    """A duration of a resolved scenario in seconds."""
    number, unit = _split(text)
    return number * _TIME[unit]


def bits_per_second(text: str) -> int | None:
    """A rate of a resolved scenario; ``None`` if it is unlimited."""
    if text == "unlimited":
        return None
    number, unit = _split(text)
    return int(number * _scale(unit.removesuffix("bit/s")))


def size(text: str) -> int:
    """A size of a resolved scenario in bytes."""
    number, unit = _split(text)
    return int(number) if unit.startswith("byte") else int(number * _scale(unit.removesuffix("B")))


def limit(text: str) -> tuple[int, str] | None:
    """A queue's limit of a resolved scenario and its unit, ``"packets"`` or ``"bytes"``; ``None`` if there is none."""
    if text == "unlimited":
        return None
    number, unit = _split(text)
    return (int(number), "packets") if unit.startswith("packet") else (size(text), "bytes")


def duration(value: Decimal) -> str:
    """Seconds in the form of scenario files, rounded to whole picoseconds."""
    value = value.quantize(Decimal("1e-12")) if value.as_tuple().exponent < -12 else value  # type: ignore[operator]
    unit = next((u for u in ("s", "ms", "us", "ns") if value >= _TIME[u]), "ps" if value else "s")
    return f"{plain(value / _TIME[unit])} {unit}"


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


def _split(text: str) -> tuple[Decimal, str]:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    return Decimal(found[1]), found[2]


def _scale(prefix: str) -> int:
    binary = prefix.endswith("i")
    return int((1024 if binary else 1000) ** _PREFIX[prefix.removesuffix("i")])
