"""Capacity traces, in mahimahi's form: a line for each opportunity to deliver 1,500 bytes, its time in milliseconds."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction

from anabranch.convert.content import PAPER_PACKET, Text

MAX_OPPORTUNITIES = 20_000_000
MAX_MS = 2**32 - 1
"""The latest time that a trace can give: about 49 days."""

_LENGTHS = (100, 1000, 10_000, 60_000)
"""Greatest lengths of a trace of constant rate (ms); the shortest sufficient one is used."""
_CLOSE = Fraction(1, 10_000)

_LINE = re.compile(r"[^\n]*\n?")


def parse(text: Text) -> list[int]:
    """The times of a trace.

    Raises:
        UserError: A line is no time, a time is below the one before it, or the trace has no length.
    """
    times: list[int] = []
    for found in _LINE.finditer(text.text):
        word = found[0].split("#", 1)[0].strip()
        if not word:
            continue
        at = found.start() + found[0].index(word)
        if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) > MAX_MS:
            raise text.error(at, f"{word[:40]!r} is no time; whole milliseconds from the trace's start were expected")
        if times and int(word) < times[-1]:
            raise text.error(at, f"the trace goes back in time: {word} ms after {times[-1]} ms")
        times.append(int(word))
    if not times or not times[-1]:
        raise text.error(len(text.text), "the trace has no length; a last line above 0 was expected")
    return times


def write(times: Iterable[int]) -> bytes:
    """A trace's text."""
    lines = [*map(str, times), ""]
    return "\n".join(lines).encode()


def constant(rate: int) -> tuple[list[int], bool]:
    """A short trace of a constant rate, and whether it is exact; otherwise it differs by at most a ten-thousandth."""
    # The fraction is the number of opportunities per millisecond.
    exact = Fraction(rate, 8 * PAPER_PACKET * 1000)
    near = next(
        (near for longest in _LENGTHS if abs(1 - (near := exact.limit_denominator(longest)) / exact) <= _CLOSE),
        Fraction(1, round(1 / exact)) if exact < 1 else exact.limit_denominator(_LENGTHS[-1]),
    )
    count, period = near.numerator, near.denominator
    return [-(-number * period // count) for number in range(1, count + 1)], near == exact


def spread(pieces: list[tuple[Fraction, Fraction]]) -> list[int]:
    """The trace of pieces of constant rate: seconds and bytes per second of each.

    It has the pieces' bytes to within half a packet, and ends with the last of them.
    """
    total = sum((length * rate for length, rate in pieces), Fraction(0))
    count = round(total / PAPER_PACKET)
    if count == 0:
        return []
    times: list[int] = []
    share = total / count
    start, before = Fraction(0), Fraction(0)
    for length, rate in pieces:
        after = before + length * rate
        last = min(int(after / share), count)
        if last > len(times):
            # Opportunity k is due at `start + (k · share − before) / rate`; whole numbers are faster than fractions.
            first, step = (start - before / rate) * 1000, share / rate * 1000
            unit = math.lcm(first.denominator, step.denominator)
            offset, stride = int(first * unit), int(step * unit)
            # Rounded up: negative numbers are rounded down.
            due = range(-offset - (len(times) + 1) * stride, -offset - (last + 1) * stride, -stride)
            times += [-(time // unit) for time in due]
        start, before = start + length, after
    end = max(-int(-start * 1000 // 1), 1)
    # The trace repeats from the time of its last line.
    inside = bisect_right(times, end, hi=count - 1)
    return [*times[:inside], *[end] * (count - inside)]
