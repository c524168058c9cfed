"""Compare random paths that fail or change on a Linux kernel in virtual time with the simulator.

    python validation/kernel/changing_paths.py            # prints the table of docs/validation/changing-paths.md
    python validation/kernel/changing_paths.py --write    # brings the page up to date, from the kept figures
    python validation/kernel/changing_paths.py --kernel   # runs the kernel, keeps its figures, and writes the page
    python validation/kernel/changing_paths.py --check    # exit status 1 if the page is not up to date
    python validation/kernel/changing_paths.py --look 7000 20    # runs 20 other paths in both, and prints them

``--kernel`` and ``--look`` need a kernel that ``anabranch kernel build`` has made.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from kernel.drawn_paths import PROFILE, Comparison, Drawn, has_sack  # noqa: E402

AFTER_S = 10
"""Seconds after the change that are measured."""


@dataclass(frozen=True)
class Changing:
    """A random path with one flow, and an outage or a change of the path.

    Attributes:
        number: Its number and seed.
        rate: Mbit/s.
        rtt: Milliseconds without queueing.
        queue: Packets of the drop-tail queue.
        transport: Keys of the endpoint.
        control: The congestion control.
        at: Seconds until the event.
        event: The event in words.
        end: Seconds until its end.
        sets: What changes: time, key and value.
    """

    number: int
    rate: int
    rtt: int
    queue: int
    transport: tuple[str, ...]
    control: str
    event: str
    end: float
    sets: tuple[tuple[float, str, str], ...]

    @classmethod
    def of(cls, number: int) -> Changing:
        """Draw the path with this number."""
        draw = random.Random(number)  # noqa: S311
        rate, rtt = draw.choice((2, 5, 10, 20, 50)), draw.choice((10, 30, 60, 120, 200))
        product = rate * 1e6 * rtt / 1e3 / 8 / 1500
        at = draw.randrange(300, 800) / 100
        event, end, sets = _event(draw, rate, rtt, at)
        return cls(
            number,
            rate=rate,
            rtt=rtt,
            queue=max(10, round(product * draw.choice((0.5, 1, 2)))),
            transport=tuple(
                key for key, chance in (("sack = false", 0.2), ("timestamps = false", 0.3)) if draw.random() < chance
            ),
            control=draw.choice(("cubic", "cubic", "reno", "bbr", "vegas", "westwood-plus", "htcp", "bic")),
            event=event,
            end=end,
            sets=sets,
        )

    def text(self, step: float = 0.0, stack: str = PROFILE) -> str:
        """The scenario, with delays that differ by this share."""
        lines = [
            f'duration = "{self.end + AFTER_S:g} s"',
            f'warmup = "{self.end:g} s"',
            "[link.path]",
            'between = ["A", "B"]',
            f'rate = "{self.rate} Mbit/s"',
            f'delay = "{_delay(self.rtt, step)}"',
            f'queue = {{ kind = "drop-tail", limit = "{self.queue} packets" }}',
            "[flow.main]",
            'from = "A"',
            'to = "B"',
            f'stack = "{stack}"',
            f'cc = "{self.control}"',
            *([f"transport = {{ {', '.join(self.transport)} }}"] if self.transport else []),
        ]
        for time, key, value in self.sets:
            shown = f'"{_delay(float(value), step)}"' if key == "delay" else value
            lines += ["[[at]]", f'time = "{time:g} s"', f'set = {{ "link.path.{key}" = {shown} }}']
        return "\n".join(lines) + "\n"

    def row(self) -> list[str]:
        """Its cells of the table."""
        keys = ", ".join(self.transport) or "–"
        return [
            str(self.number),
            self.control,
            f"{self.rate} Mbit/s, {self.rtt} ms, {self.queue} packets",
            self.event,
            keys,
        ]


def _delay(rtt: float, step: float) -> str:
    return f"{round(rtt * 500 * (1 + step))} us"


def _event(
    draw: random.Random, rate: int, rtt: int, at: float
) -> tuple[str, float, tuple[tuple[float, str, str], ...]]:
    """An event: its words, its end, and what it sets."""
    kind = draw.choice(("outage", "outage", "rate", "delay", "dip"))
    if kind == "outage":
        length = draw.choice((0.1, 0.3, 1, 3, 10)) * draw.uniform(0.8, 1.25)
        end = round(at + length, 3)
        return f"outage of {end - at:.2f} s", end, ((at, "up", "false"), (end, "up", "true"))
    if kind == "delay":
        other = rtt * draw.choice((0.25, 0.5, 2, 4))
        return f"RTT of {other:g} ms", at, ((at, "delay", f"{other:g}"),)
    factor = draw.choice((0.2, 0.5, 2, 5))
    other_rate = f'"{rate * factor:g} Mbit/s"'
    if kind == "rate":
        return f"rate of {rate * factor:g} Mbit/s", at, ((at, "rate", other_rate),)
    end = round(at + draw.choice((0.3, 1, 3)), 3)
    sets = ((at, "rate", other_rate), (end, "rate", f'"{rate} Mbit/s"'))
    return f"rate of {rate * factor:g} Mbit/s for {end - at:.2g} s", end, sets


def _fails(path: Drawn) -> bool:
    return isinstance(path, Changing) and path.event.startswith("outage")


COMPARISON = Comparison(
    script="changing_paths.py",
    page=ROOT / "docs/validation/changing-paths.md",
    data=ROOT / "validation/data/changing-paths.json",
    heads=("path", "control", "rate, RTT, queue", "event", "endpoints"),
    of=Changing.of,
    first=3000,
    count=60,
    groups={
        "outages": _fails,
        "changes of rate or delay": lambda path: not _fails(path),
        "with SACK": has_sack,
        "without SACK": lambda path: not has_sack(path),
    },
)


if __name__ == "__main__":
    sys.exit(COMPARISON.main((__doc__ or "").splitlines()[0]))
