"""Reads traces of two columns, time in seconds and rate in Mbit/s, as published by Pensieve and the FCC.

A line's rate holds from its time to the time of the next line; the last line lasts as long as the
previous one. Traces of scenarios have whole milliseconds and whole packets, and repeat at their
end.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from anabranch.convert import capacity
from anabranch.convert.content import PAPER_PACKET, Description, LinkTable, Notes, Side, Source, Text, path_document
from anabranch.convert.mahimahi_trace import trace_name

_MOST = Fraction(10) ** 9
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?:[eE][+-]?[0-9]{1,2})?")
_LINE = re.compile(r"[^\n]*\n?")
_PIECE = re.compile(r"[^\s,;]+")
_BIT_PER_MBIT = 10**6


def recognise(_name: str, head: bytes) -> bool:
    """Whether the first lines have two numbers each, after at most one line of names."""
    lines = [line.split(b"#")[0].split() for line in head.replace(b",", b" ").replace(b";", b" ").splitlines()[:50]]
    found = [line for line in lines if line]
    if found and not _is_number(found[0][0]):
        found = found[1:]
    # The last line may be cut off.
    found = found[:-1] if len(found) > 2 else found
    return bool(found) and all(len(line) == 2 and all(map(_is_number, line)) for line in found)


def _is_number(word: bytes) -> bool:
    return _NUMBER.fullmatch(word.decode("latin-1")) is not None


def read(source: Source, notes: Notes) -> Description:
    """The scenario and the trace beside it.

    Raises:
        UserError: A line is not two numbers, a time is not above the one before it, or there is no capacity at all.
    """
    text = source.text()
    rows = _rows(text)
    if len(rows) < 2:
        raise text.error(len(text.text), "less than two lines of time and rate")
    lengths = [after - before for (before, _), (after, _) in pairwise(rows)]
    lengths.append(lengths[-1])
    pieces = [(length, rate * _BIT_PER_MBIT / 8) for length, (_, rate) in zip(lengths, rows, strict=True)]
    count = sum((length * rate for length, rate in pieces), Fraction(0)) / PAPER_PACKET
    if count > capacity.MAX_OPPORTUNITIES or sum(lengths) * 1000 > capacity.MAX_MS:
        raise text.error(
            0,
            f"a trace of {float(count):.3g} packets; {capacity.MAX_OPPORTUNITIES:,} were the most expected",
            "the first column is a time in seconds, the second a rate in Mbit/s",
        )
    times = capacity.spread(pieces)
    if not times:
        raise text.error(0, f"less than one packet of {PAPER_PACKET} bytes in the whole trace")
    if any(length < Fraction(1, 1000) for length in lengths):
        notes.lost("lines less than 1 ms apart: a trace has whole milliseconds")
    name = trace_name(source)
    there: Side = {"delay": "20 ms", "service": {"kind": "trace", "file": name}}
    link: LinkTable = {"forward": there, "reverse": {"delay": "20 ms"}}
    return Description(
        path_document(f"A capacity trace: {Path(source.name).name}", link), {name: capacity.write(times)}
    )


def _rows(text: Text) -> list[tuple[Fraction, Fraction]]:
    rows: list[tuple[Fraction, Fraction]] = []
    may_have_names = True
    for line in _LINE.finditer(text.text):
        pieces = list(_PIECE.finditer(line[0].split("#", 1)[0]))
        if not pieces:
            continue
        is_number = [_NUMBER.fullmatch(piece[0]) is not None for piece in pieces]
        if may_have_names and not any(is_number):
            may_have_names = False
            continue
        may_have_names = False
        if len(pieces) != 2 or not all(is_number):
            wrong = is_number.index(False) if False in is_number else min(len(pieces) - 1, 2)
            at = line.start() + pieces[wrong].start()
            raise text.error(at, f"{line[0].strip()[:60]!r} is not a time and a rate: two numbers were expected")
        time, rate = (Fraction(piece[0]) for piece in pieces)
        at = line.start() + pieces[0].start()
        if rows and time <= rows[-1][0]:
            raise text.error(at, f"{pieces[0][0]} s is not after the line before it")
        if not 0 <= rate <= _MOST:
            raise text.error(line.start() + pieces[1].start(), f"{pieces[1][0]} is not a rate from 0 to {_MOST} Mbit/s")
        rows.append((time, rate))
    return rows
