"""Compare the retransmissions after outages on a Linux kernel in virtual time with the simulator's.

    python validation/kernel/outages.py            # prints the table of docs/validation/outages.md
    python validation/kernel/outages.py --write    # brings the page up to date, from the kept figures
    python validation/kernel/outages.py --kernel   # runs the kernel, keeps its figures, and writes the page
    python validation/kernel/outages.py --check    # exit status 1 if the page is not up to date

``--kernel`` needs a kernel that ``anabranch kernel build`` has made.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from anabranch import Scenario  # noqa: E402
from anabranch.live import first_send_buffer  # noqa: E402
from anabranch.result.result import RunResult  # noqa: E402

from comparison.pages import fill  # noqa: E402

# The package adds tools/ to the path.
from reference import markdown  # noqa: E402  # isort: skip

PAGE = ROOT / "docs/validation/outages.md"
DATA = ROOT / "validation/data/outages.json"
KERNEL = "6.12"
PROFILE = f"linux-{KERNEL}"
FIRST, COUNT = 2000, 24
"""The numbers of the outages, which are their seeds."""
MOST = 4
"""Retransmissions that are compared."""
LEAST = 0.9
"""The share of the outages that must be alike."""
STEPS = ((0.252, 0.004), (2.016, 0.032), (16.128, 0.256))
"""Timers shorter than the first end at multiples of the second, in seconds (the timer wheel at 250 Hz)."""

Sent = tuple[float, int]
"""Time since the outage, and sequence number, of a retransmission."""


@dataclass(frozen=True)
class Outage:
    """A path on which one flow runs until the path is down for good."""

    number: int
    rate: int
    rtt: int
    queue: int
    at: float
    control: str
    transport: tuple[str, ...]

    @classmethod
    def of(cls, number: int) -> Outage:
        """Draw the outage with this number."""
        draw = random.Random(number)  # noqa: S311
        keys = (("sack = false", 0.2), ("timestamps = false", 0.3))
        return cls(
            number,
            rate=draw.choice((2, 5, 10, 20, 50)),
            rtt=draw.choice((10, 30, 60, 100, 200)),
            queue=draw.choice((20, 60, 150)),
            at=draw.randrange(30, 400) / 100,
            control=draw.choice(("reno", "cubic", "vegas")),
            transport=tuple(key for key, chance in keys if draw.random() < chance),
        )

    def text(self) -> str:
        """The scenario."""
        lines = [
            f'duration = "{self.at + 9} s"',
            "[link.path]",
            'between = ["A", "B"]',
            f'rate = "{self.rate} Mbit/s"',
            f'delay = "{self.rtt / 2} ms"',
            f'queue = {{ kind = "drop-tail", limit = "{self.queue} packets" }}',
            "[[at]]",
            f'time = "{self.at} s"',
            'set = { "link.path.up" = false }',
            "[flow.main]",
            'from = "A"',
            'to = "B"',
            f'stack = "{PROFILE}"',
            f'cc = "{self.control}"',
            *([f"transport = {{ {', '.join(self.transport)} }}"] if self.transport else []),
        ]
        return "\n".join(lines) + "\n"


def drawn() -> list[Outage]:
    """All outages."""
    return [Outage.of(number) for number in range(FIRST, FIRST + COUNT)]


def retransmissions(run: RunResult, outage: Outage) -> list[Sent]:
    """The first retransmissions after the acknowledgments in flight at the outage have arrived."""
    rows = [row for row in run.table("packets").to_dicts() if row["payload_bytes"]]
    since = outage.at + outage.rtt / 1e3
    again = [row for row in rows if row["retransmission"] and row["sent_s"] > since]
    return [(round(row["sent_s"] - outage.at, 6), row["sequence_bytes"]) for row in again[:MOST]]


def simulated(outage: Outage, timers: str = "linux") -> list[Sent]:
    """Retransmissions in the simulator, with the send buffer of the kernel's application."""
    scenario = Scenario.from_text(outage.text())
    buffer = first_send_buffer(scenario)
    scenario = scenario.set("flow.main.transport.timers", timers)
    scenario = scenario.set("flow.main.transport.send_autotuning_start", f"{buffer} bytes")
    return retransmissions(scenario.run(packets=True, digest=False), outage)


def measured(outage: Outage) -> list[Sent]:
    """Retransmissions of the kernel."""
    return retransmissions(Scenario.from_text(outage.text()).run_kernel(kernel=KERNEL, packets=True), outage)


def is_alike(ours: Sequence[Sent], theirs: Sequence[Sent]) -> bool:
    """Whether the same segments are sent again, and each interval differs by a step of its timer at most."""
    return [one[1] for one in ours] == [one[1] for one in theirs] and is_timed_alike(ours, theirs)


def is_timed_alike(ours: Sequence[Sent], theirs: Sequence[Sent]) -> bool:
    """Whether there are as many retransmissions, and each interval differs by a step of its timer at most."""
    if len(ours) != len(theirs):
        return False
    intervals = [[later[0] - before for before, later in zip([0.0, *(one[0] for one in sent)], sent, strict=False)]
                 for sent in (ours, theirs)]  # fmt: skip
    return all(abs(our - their) <= step(their) + 1e-3 for our, their in zip(*intervals, strict=True))


def step(interval: float) -> float:
    """The step at which a timer of this length ends, in seconds."""
    return next(wide for most, wide in STEPS if interval < most + wide)


def told(sent: Sequence[Sent]) -> str:
    """Times as a cell of the table."""
    return ", ".join(f"{time:.3f}" for time, _ in sent) or "–"


def parts(ours: Sequence[Sequence[Sent]], theirs: Sequence[Sequence[Sent]]) -> dict[str, str]:
    """The generated parts of the page."""
    rows = []
    for outage, here, there in zip(drawn(), ours, theirs, strict=True):
        path = f"{outage.rate} Mbit/s, {outage.rtt} ms, {outage.queue} packets"
        keys = ", ".join((outage.control, *outage.transport))
        word = "yes" if is_alike(here, there) else "in time" if is_timed_alike(here, there) else "**no**"
        rows.append([str(outage.number), path, f"{outage.at} s", keys, told(there), told(here), word])
    rows.sort(key=lambda row: ("**no**", "in time", "yes").index(row[-1]))
    alike, timed = (sum(row[-1] in words for row in rows) for words in (("yes",), ("yes", "in time")))
    pairs = [pair for here, there in zip(ours, theirs, strict=True) for pair in zip(here, there, strict=False)]
    error = statistics.median(abs(our[0] / their[0] - 1) for our, their in pairs)
    verdict = "holds" if alike >= LEAST * len(rows) else "**does not hold**"
    condition = f"same segments, each interval within a step of its timer, in at least {LEAST:.0%} of the outages"
    heads = ["outage", "rate, RTT, queue", "at", "endpoint", "sent again after, there (s)", "here (s)", "alike"]
    return {
        "verdict": markdown.table(
            ["condition", "found", "verdict"],
            [
                [condition, f"{alike} of {len(rows)}", verdict],
                ["the intervals alone (for information)", f"{timed} of {len(rows)}", "not judged"],
                ["median error of a time since the outage (for information)", f"{error:.3%}", "not judged"],
            ],
        ),
        "rows": markdown.table(heads, rows),
    }


def kept() -> list[list[Sent]]:
    """The kernel's figures on record.

    Raises:
        SystemExit: They are of other scenarios.
    """
    record = json.loads(DATA.read_text("utf-8"))
    if record["scenarios"] != [outage.text() for outage in drawn()]:
        raise SystemExit(f"{DATA.name} is of other outages: python validation/kernel/outages.py --kernel")
    return [[(time, number) for time, number in sent] for sent in record["sent"]]


def main() -> int:
    """Run, print, write or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernel", action="store_true", help="run the kernel, and write the page")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--check", action="store_true", help="compare with the page, write nothing")
    options = parser.parse_args()
    if options.kernel:
        sent = [measured(outage) for outage in drawn()]
        record = {"kernel": KERNEL, "scenarios": [outage.text() for outage in drawn()], "sent": sent}
        DATA.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    found = parts([simulated(outage) for outage in drawn()], kept())
    old = PAGE.read_text("utf-8")
    new = fill(old, found, PAGE.name)
    if options.check:
        if new != old:
            print(f"{PAGE.name} is out of date: python validation/kernel/outages.py --write", file=sys.stderr)
        return int(new != old)
    if options.kernel or options.write:
        PAGE.write_text(new, "utf-8")
    print(found["verdict"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
