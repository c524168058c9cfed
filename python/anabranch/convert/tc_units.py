"""Numbers of ``tc``: times, sizes, rates and percentages, read and written exactly."""

from __future__ import annotations

import re
from decimal import Decimal

from anabranch.convert.content import Text
from anabranch.convert.shell_words import Word
from anabranch.text.quantity import plain

_NUMBER = re.compile(
    r"(0[xX][0-9a-fA-F]{1,12}|(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?:[eE][+-]?[0-9]{1,2})?)([A-Za-z%/]*)"
)
"""Decimal, with an exponent or without, or hexadecimal. ``tc qdisc show`` writes large times with an exponent."""
_WHOLE = re.compile(r"0[xX][0-9a-fA-F]{1,12}|[0-9]{1,12}")

_TIME = {
    "s": Decimal(1), "sec": Decimal(1), "secs": Decimal(1),
    "ms": Decimal("1e-3"), "msec": Decimal("1e-3"), "msecs": Decimal("1e-3"),
    "us": Decimal("1e-6"), "usec": Decimal("1e-6"), "usecs": Decimal("1e-6"), "": Decimal("1e-6"),
    "ns": Decimal("1e-9"), "nsec": Decimal("1e-9"), "nsecs": Decimal("1e-9"),
}  # fmt: skip
_SIZE = {
    "": Decimal(1), "b": Decimal(1),
    "k": Decimal(1024), "kb": Decimal(1024), "m": Decimal(1024**2), "mb": Decimal(1024**2),
    "g": Decimal(1024**3), "gb": Decimal(1024**3),
    "kbit": Decimal(1024) / 8, "mbit": Decimal(1024**2) / 8, "gbit": Decimal(1024**3) / 8,
}  # fmt: skip


def _rates() -> dict[str, Decimal]:
    found = {"": Decimal(1)}
    for power, letter in enumerate(("", "k", "m", "g", "t")):
        for word, octet in (("bit", 1), ("bps", 8)):
            found[f"{letter}{word}"] = Decimal(1000**power * octet)
            if letter:
                found[f"{letter}i{word}"] = Decimal(1024**power * octet)
    return found


_RATE = _rates()

MAX_SECONDS = Decimal(4294)
"""The longest time that 32 bits of microseconds hold."""
MAX_RATE = Decimal(10**13)
MAX_SIZE = Decimal(2**32 - 1)


def is_number(word: str | None) -> bool:
    """Whether a word begins a number, so that an optional value is present."""
    return word is not None and _NUMBER.fullmatch(word) is not None


def time(text: Text, word: Word) -> Decimal:
    """A time in seconds; a bare number counts microseconds.

    Raises:
        UserError: It is none, or is too long.
    """
    return _read(text, word, _TIME, "a time (10ms, 1.5s, 200us)", MAX_SECONDS)


def size(text: Text, word: Word) -> int:
    """A size in bytes; ``k`` and ``kb`` mean 1024 bytes, as in ``tc``.

    Raises:
        UserError: It is none, or is too large.
    """
    return int(_read(text, word, _SIZE, "a size (1500, 32kbit, 10kb)", MAX_SIZE))


def rate(text: Text, word: Word) -> int:
    """A rate in bits per second; ``bps`` means bytes per second, as in ``tc``.

    Raises:
        UserError: It is none, is 0, or is too high.
    """
    found = int(_read(text, word, _RATE, "a rate (10mbit, 256kbit, 1gbit)", MAX_RATE))
    if found < 1:
        raise text.error(word.at, f"{word.text!r} is no rate; at least 1bit was expected")
    return found


def ratio(text: Text, word: Word) -> float:
    """A percentage as a ratio; the sign may be left out, as in ``tc``.

    Raises:
        UserError: It is none, or is above 100 %.
    """
    return float(_read(text, word, {"%": Decimal("0.01"), "": Decimal("0.01")}, "a percentage (0.1%)", Decimal(1)))


def packets(text: Text, word: Word) -> int:
    """A limit in packets that ``tc`` reads as a size (netem, pfifo): ``10k`` means 10,240 packets.

    ``tc`` shows it with the ``p`` of packets.

    Raises:
        UserError: It is none, or is too large.
    """
    shown = Word(word.text.removesuffix("p"), word.at)
    return int(_read(text, shown, _SIZE, "a number of packets (1000, 10k)", MAX_SIZE))


def integer(text: Text, word: Word, least: int = 0, most: int = 2**32 - 1) -> int:
    """A whole number, optionally followed by ``p``, with which ``tc`` shows limits in packets.

    Raises:
        UserError: It is none, or is out of range.
    """
    digits = word.text.removesuffix("p")
    value = _value(digits) if _WHOLE.fullmatch(digits) else None
    if value is None or not least <= value <= most:
        raise text.error(word.at, f"{word.text!r} is not a whole number from {least} to {most}")
    return int(value)


def _value(number: str) -> Decimal:
    return Decimal(int(number, 16)) if number[:2] in ("0x", "0X") else Decimal(number)


def _read(text: Text, word: Word, units: dict[str, Decimal], expected: str, most: Decimal) -> Decimal:
    found = _NUMBER.fullmatch(word.text)
    scale = units.get(found[2].lower()) if found else None
    if found is None or scale is None:
        raise text.error(word.at, f"{word.text!r} is not {expected}")
    value = _value(found[1]) * scale
    if value > most:
        raise text.error(word.at, f"{word.text!r} is too much: at most {plain(most / scale)}{found[2]} was expected")
    return value


def write_time(value: Decimal) -> str:
    """A time for ``tc``: whole nanoseconds, in the largest unit with a short text."""
    value = value.quantize(Decimal("1e-9"))
    for unit in ("s", "ms", "us"):
        if value >= _TIME[unit]:
            return f"{plain(value / _TIME[unit])}{unit}"
    return f"{plain(value / _TIME['ns'])}ns" if value else "0us"


def write_rate(value: int) -> str:
    """A rate as ``tc`` reads it, in the largest unit that divides it."""
    for unit in ("gbit", "mbit", "kbit"):
        if value % int(_RATE[unit]) == 0:
            return f"{value // int(_RATE[unit])}{unit}"
    return f"{value}bit"


def write_percent(value: float) -> str:
    """A ratio as a percentage, exactly."""
    return f"{plain(Decimal(repr(float(value))) * 100)}%"
