"""Swept quantities as numbers: a column of numbers beside the column of the scenario's values.

An axis whose values are quantities of one dimension gets a column of numbers, with the unit at the end of its name:
``link.a.rate_mbit_s`` for ``link.a.rate``. The unit depends on the dimension only, so that sweeps can be put together:
rates in Mbit/s, sizes in bytes, power in W, limits in packets or bandwidth-delay products. Times are in ms; in s if
all of them are written in s, min or h. A value that is a word (``"unlimited"``) is null. Values of several dimensions
(packets and bytes), tables and names have no such column. Bare numbers are numbers already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from anabranch.text import quantity
from anabranch.text.quantity import Quantity

_ENDS = {
    "time": ("_ms", "ms", Fraction(1, 1000)),
    "seconds": ("_s", "s", Fraction(1)),
    "rate": ("_mbit_s", "Mbit/s", Fraction(10**6)),
    "size": ("_bytes", "bytes", Fraction(1)),
    "packets": ("_packets", "packets", Fraction(1)),
    "bdp": ("_bdp", "bdp", Fraction(1)),
    "power": ("_watts", "W", Fraction(1)),
}
"""End of the column's name, unit, and the unit's size, by dimension."""
_SECONDS = ("s", "min", "h")


class Numbers(NamedTuple):
    """The values of an axis as numbers.

    Attributes:
        column: The column's name.
        unit: The unit.
        values: A number for each value; ``None`` for a word.
    """

    column: str
    unit: str
    values: list[float | None]


def numbers_of(axis: str, values: Sequence[Any]) -> Numbers | None:
    """The values of an axis as numbers; ``None`` if they are no quantities of one dimension."""
    read: dict[str, Quantity | None] = {}
    for value in values:
        if not isinstance(value, str):
            return None
        if value not in read:
            read[value] = quantity.read(value)
    known = [one for one in read.values() if one is not None]
    dimensions = {one.dimension for one in known}
    if len(dimensions) != 1:
        return None
    (dimension,) = dimensions
    if dimension == "time" and all(one.unit in _SECONDS for one in known):
        dimension = "seconds"
    end, unit, size = _ENDS[dimension]
    shown = {text: None if one is None else float(one.size / size) for text, one in read.items()}
    return Numbers(f"{axis}{end}", unit, [shown[value] for value in values])


def columns_of_numbers(axes: Iterable[str]) -> set[str]:
    """The names that columns of numbers of these axes may have."""
    return {f"{axis}{end}" for axis in axes for end, _, _ in _ENDS.values()}
