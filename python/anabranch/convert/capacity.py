"""Capacity traces, in mahimahi's form: a line for each opportunity to deliver 1,500 bytes, its time in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from anabranch.convert.content import PAPER_PACKET, Text

MAX_OPPORTUNITIES = 20_000_000
MAX_MS = 2**32 - 1
"""The latest time that a trace can give: about 49 days."""

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
    return "".join(f"{time}\n" for time in times).encode()


def constant(rate: int) -> tuple[list[int], bool]:
    """The shortest trace of a constant rate, and whether it is exact: else it is the nearest of a minute's length."""
    opportunity = 8 * PAPER_PACKET * 1000
    # So many opportunities in so many milliseconds.
    exact = Fraction(rate, opportunity)
    count, period = exact.numerator, exact.denominator
    is_exact = period <= 60_000 and count <= MAX_OPPORTUNITIES
    if not is_exact:
        period = 60_000 if exact * 60_000 >= 1 else int(1 / exact)
        count = max(round(exact * period), 1)
        if count > MAX_OPPORTUNITIES:
            period = max(int(MAX_OPPORTUNITIES / exact), 1)
            count = round(exact * period)
    return [-(-number * period // count) for number in range(1, count + 1)], is_exact


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
        while len(times) < count and (len(times) + 1) * share <= after:
            due = start + ((len(times) + 1) * share - before) / rate
            times.append(-int(-due * 1000 // 1))
        start, before = start + length, after
    end = max(-int(-start * 1000 // 1), 1)
    # The time of the last line is where a trace begins again.
    return [*(min(time, end) for time in times[: count - 1]), end]
