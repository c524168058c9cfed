"""Rows of the comparison of netem: ``tc`` lines in the guest, and the scenario to which they are converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.arrivals import Arrival, arrivals
from kernel.converted import Simulated, simulate
from kernel.queue_rows import BELOW, DEVICE, LINK


@dataclass(frozen=True)
class Line:
    """One description of a path.

    Attributes:
        words: The discipline.
        shape: The arrivals.
        above: Commands of the disciplines above it.
        draws: Whether its outcomes are random.
    """

    words: str
    shape: str
    above: tuple[str, ...] = ()
    draws: bool = False

    @property
    def name(self) -> str:
        """The line's name."""
        return f"{'htb / ' if self.above else ''}{self.words} | {self.shape}"

    @property
    def tc(self) -> list[str]:
        """Commands that configure it."""
        return [*self.above, f"{BELOW}{self.words}" if self.above else f"qdisc add dev {DEVICE} root {self.words}"]


_DECIDED = (
    ("delay 20ms", "light"),
    ("delay 20.005ms limit 20", "tens"),
    ("delay 20ms limit 20", "bursts"),
    ("delay 100ms rate 12mbit limit 60", "overload"),
    ("delay 20ms rate 12mbit", "overload"),
    ("delay 50ms rate 100mbit", "bursts"),
    ("rate 12mbit", "overload"),
    ("rate 12mbit limit 50", "overload"),
    ("rate 12mbit limit 30", "small"),
    ("delay 20ms loss 100%", "light"),
    ("delay 20.005ms duplicate 100% limit 30", "tens"),
    ("rate 12mbit 14", "overload"),
    ("rate 12mbit 0 48 5", "light"),
    ("delay 20ms reorder 100% gap 5", "light"),
    ("slot 50ms", "light"),
    ("delay 20ms slot 40ms packets 3", "light"),
)
EXACT = (
    *(Line(f"netem {words}", shape) for words, shape in _DECIDED),
    Line("netem delay 20ms limit 50", "overload", LINK),
)

DRAWN = tuple(
    Line(f"netem {words}", "even", draws=True)
    for words in (
        "loss 10%",
        "loss gemodel 5% 25%",
        "loss state 5% 90%",
        "duplicate 10%",
        "corrupt 10%",
        "delay 20ms 5ms",
        "delay 20ms 5ms distribution normal",
        "delay 20ms 5ms distribution pareto",
        "delay 20ms 5ms rate 12mbit",
        "delay 20ms reorder 25%",
        "delay 20ms reorder 50% gap 5",
        "delay 20ms 10ms 50%",
    )
)
LINES = EXACT + DRAWN

HEAD = (
    "line", "arrivals", "packets", "arrived: Linux, here", "packets that differ", "arrives later in Linux",
    "delay at 10, 50, 90 %: Linux",
    "here", "out of order: Linux, here", "copies in Linux", "not converted",
)  # fmt: skip


def ours(line: Line) -> Simulated:
    """The simulator's outcome."""
    return simulate(line.tc, arrivals(line.shape))


def cells(line: Line, outcome: Mapping[str, Any], simulated: Simulated) -> list[str]:
    """The cells of a row."""
    packets = arrivals(line.shape)
    there: dict[int, int] = {}
    # netem may have corrupted the number itself.
    known = [(number, at) for number, at, _ in outcome["left"] if number < len(packets)]
    for number, at in known:
        there.setdefault(number, at)
    here = {number: at for number, at in enumerate(simulated.arrived) if at is not None}
    both = there.keys() & here.keys()
    later = [there[number] - here[number] for number in both]
    least, most = (min(later) / 1e6, max(later) / 1e6) if later else (0.0, 0.0)
    near = -0.002 <= least <= most <= 0.002
    copies = len(known) - len(there)
    return [
        f"`{' / '.join(('htb 12mbit', line.words)) if line.above else line.words}`",
        line.shape,
        str(len(packets)),
        f"{len(there)}, {len(here)}",
        "–" if line.draws else str(len(there.keys() ^ here.keys())),
        "–" if line.draws or not both else "less than 2 µs" if near else f"{least:+.2f} to {most:+.2f} ms",
        _delays(packets, there),
        _delays(packets, here),
        f"{_overtaken(there)}, {_overtaken(here)}",
        str(copies) if copies else "–",
        "; ".join(note.partition(": ")[2] or note for note in _shown(simulated.notes)) or "–",
    ]


def _shown(notes: Sequence[str]) -> list[str]:
    """Notes without those on the buckets of HTB, which only the comparison needs."""
    return [note for note in notes if "burst of htb" not in note]


def _delays(packets: Sequence[Arrival], at: Mapping[int, int]) -> str:
    delays = sorted(time - packets[number].at_ns for number, time in at.items())
    if not delays:
        return "–"
    return ", ".join(f"{delays[int(share * (len(delays) - 1))] / 1e6:.2f}" for share in (0.1, 0.5, 0.9)) + " ms"


def _overtaken(at: Mapping[int, int]) -> int:
    """Packets that arrived after a later one."""
    highest, found = -1, 0
    for number in sorted(at, key=lambda number: (at[number], number)):
        found += number < highest
        highest = max(highest, number)
    return found
