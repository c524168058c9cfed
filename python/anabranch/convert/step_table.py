"""Tables of time, rate and delay that the engine has accepted, converted for formats without such tables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from anabranch.convert import capacity

_NAMES = {"rate_mbit_s": "rate", "delay_ms": "delay"}
_BYTES_PER_MBIT = 125_000


@dataclass(frozen=True)
class StepTable:
    """Steps: the duration of each in seconds, and if given its rate in Mbit/s and its delay in ms."""

    lengths: list[Fraction]
    rates: list[Fraction]
    delays: list[Fraction]

    def mean_rate(self) -> int:
        """Mean bits per second over a round of the table."""
        return max(int(_mean(self.lengths, self.rates) * _BYTES_PER_MBIT * 8), 1)

    def mean_delay_ms(self) -> Fraction:
        """The mean delay over a round of the table."""
        return _mean(self.lengths, self.delays)

    def opportunities(self) -> bytes:
        """The rates as a trace of opportunities."""
        rates = [rate * _BYTES_PER_MBIT for rate in self.rates]
        return capacity.write(capacity.spread(list(zip(self.lengths, rates, strict=True))))


def _mean(lengths: list[Fraction], values: list[Fraction]) -> Fraction:
    return sum((length * value for length, value in zip(lengths, values, strict=True)), Fraction(0)) / sum(lengths)


def read(content: bytes, needed: str) -> StepTable | None:
    """The table in a file. ``needed`` is the quantity of a single column without a name.

    ``None`` for a trace of opportunities.
    """
    lines = [line.split("#")[0].strip() for line in content.decode("utf-8-sig").splitlines()]
    rows = [[word.strip() for word in (line.split(",") if "," in line else line.split())] for line in lines if line]
    if len(rows[0]) == 1 and rows[0][0][0] in "0123456789":
        return None
    if rows[0][0] == "time_s":
        columns = [_NAMES[name] for name in rows[0][1:]]
        rows = rows[1:]
    else:
        columns = [needed] if len(rows[0]) == 2 else ["rate", "delay"]
    times = [Fraction(row[0]) for row in rows]
    lengths = [after - before for before, after in pairwise(times)]
    lengths.append(lengths[-1] if lengths else Fraction(1))
    values = {name: [Fraction(row[at + 1]) for row in rows] for at, name in enumerate(columns)}
    return StepTable(lengths, values.get("rate", []), values.get("delay", []))
