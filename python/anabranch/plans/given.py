"""Quantities that an option of a plan gives, as in scenario files or as in ``tc``: ``100 Mbit/s`` or ``100mbit``."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from anabranch.convert import tc_units
from anabranch.convert.content import Text
from anabranch.convert.shell_words import Word
from anabranch.errors import UserError
from anabranch.text import quantity

_LEAST_RATE, _MOST_RATE = 10_000, 10**11
_LEAST_TIME, _MOST_TIME = Decimal("0.0001"), Decimal(10)


def rate(option: str, text: str) -> int:
    """A rate in bits per second.

    Raises:
        UserError: It is none, or out of range.
    """
    found: Fraction | int | None = quantity.size_of(text, "rate")
    if found is None:
        try:
            found = tc_units.rate(Text(option, text), Word(text, 0))
        except UserError:
            found = 0
    if not _LEAST_RATE <= found <= _MOST_RATE:
        raise UserError(f"{option} {text}: a rate from 10 kbit/s to 100 Gbit/s was expected", hint=f"{option} 100mbit")
    return int(found)


def time(option: str, text: str) -> float:
    """A time in seconds.

    Raises:
        UserError: It is none, or out of range.
    """
    found: Fraction | Decimal | None = quantity.size_of(text, "time")
    if found is None:
        try:
            found = tc_units.time(Text(option, text), Word(text, 0))
        except UserError:
            found = Decimal(0)
    if not _LEAST_TIME <= found <= _MOST_TIME:
        raise UserError(f"{option} {text}: a time from 0.1 ms to 10 s was expected", hint=f"{option} 40ms")
    return float(found)
