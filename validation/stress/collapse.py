"""How deep BBRv1's bandwidth estimate falls after an interruption, and how CUBIC shares by ACK ratio.

    python validation/stress/collapse.py               # all parts; prints tables; minutes on two cores
    python validation/stress/collapse.py gaps ratio    # some parts
    python validation/stress/collapse.py --write       # brings docs/validation/stress.md up to date

Parts: ``gaps`` (BBRv1 with the rounds of Linux and of draft 00, in the simulator), ``linux`` (Linux 6.12's own BBR over
some of these paths; needs ``anabranch kernel build``), ``ratio`` (CUBIC to the letter of RFC 9438 §4.4).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))
sys.path.insert(0, str(ROOT / "tools"))

from anabranch import Scenario  # noqa: E402
from anabranch.stress.bounds import Place  # noqa: E402
from anabranch.stress.campaign import read_control  # noqa: E402
from anabranch.stress.genome import Event, Genome  # noqa: E402
from anabranch.stress.scene import Control, text  # noqa: E402
from reference import markdown  # noqa: E402

from comparison.pages import fill  # noqa: E402
from stress.faults import DRAFT_ROUNDS, literal  # noqa: E402

PAGE = ROOT / "docs/validation/stress.md"
KERNEL = "6.12"
START_S, AFTER_S = 3.0, 27.0
AVERAGE_S, FULL = 10.0, 0.9
RATES, RTTS, BUFFERS = (2.0, 5.0, 10.0, 20.0), (12.0, 42.0, 82.0, 202.0), (0.5, 1.0, 2.0)
STARTS_MS = (3_000, 3_013, 3_029, 3_051)
INTERRUPTIONS: tuple[tuple[str, int, Place], ...] = (
    ("ack-gap", 1_000, "own"), ("ack-hold", 1_000, "own"), ("outage", 1_000, "shared"), ("hold", 500, "shared"),
    ("hold", 1_000, "shared"), ("hold", 2_000, "shared"), ("hold", 3_000, "shared"),
)  # fmt: skip
VARIANTS = (("bbr", "linux"), ("bbr", "rfc"), (DRAFT_ROUNDS, "linux"), (DRAFT_ROUNDS, "rfc"))
LINUX_PATHS = ((10.0, 42.0), (20.0, 202.0))
GRID = ((5.0, 202.0), (10.0, 202.0), (20.0, 202.0), (20.0, 102.0), (20.0, 52.0))
TIMERS_MS = (25, 50, 100, 200)
RATIO = 44
RATIO_S, RATIO_FROM_S = 80, 20
_PACKET_BITS = 12_000


@dataclass(frozen=True)
class Collapse:
    """The flow after an interruption.

    Attributes:
        lowest: The smallest bandwidth estimate, as a share of the rate; ``None`` if there is none.
        share: Goodput over the first ten seconds, as a share of the rate.
        recovery: Seconds until a second has 90 % of the rate; ``None`` if none has.
        timeouts: Expiries of the retransmission timer from the start of the connection.
    """

    lowest: float | None
    share: float
    recovery: float | None
    timeouts: int


def scenario(genome: Genome, control: Control, end_s: float, from_s: float = 0.0) -> Scenario:
    """The scenario of a candidate with other times."""
    made = Scenario.from_text(text(genome, control, control, whole=True))
    return made.with_sets(f'duration="{end_s:g} s"', f'warmup="{from_s:g} s"')


def collapse(result: Any, event: Event, rate: float) -> Collapse:
    """The figures of a run with samples."""
    samples, end = result.plain("samples"), event.end / 1000
    rows = [
        (time, delivered, estimate)
        for time, flow, delivered, estimate in zip(
            samples["time_s"], samples["flow"], samples["delivered_bytes"], samples["bandwidth_estimate_mbit_s"],
            strict=True,
        )
        if flow == "main" and time >= end - 1e-9
    ]  # fmt: skip
    times, octets = [row[0] for row in rows], [row[1] for row in rows]

    def share(first: float, length: float) -> float:
        low, high = (octets[max(0, bisect_right(times, time) - 1)] for time in (first, first + length))
        return float(high - low) * 8 / 1e6 / length / rate

    estimates = [row[2] for row in rows if row[2] is not None]
    # Headers are four per cent of a packet.
    full = FULL * 1448 / 1500
    steps = [k / 10 for k in range(int((times[-1] - end - 1) * 10))]
    recovery = next((step for step in steps if share(end + step, 1) >= full), None)
    return Collapse(
        min(estimates) / rate if estimates else None, share(end, AVERAGE_S), recovery,
        result.summary["flows"]["main"]["timeouts"],
    )  # fmt: skip


def gaps() -> str:
    """BBRv1 in the simulator: all paths and starts, per interruption, control and stack."""
    rows = []
    for (kind, length, place), (control, stack) in product(INTERRUPTIONS, VARIANTS):
        tested = read_control(control, "control", stack)
        work = [
            (Genome(rate, rtt / 2 - 1, buffer, "alone", (Event(at, kind, length, 1, 0, place),)))
            for rate, rtt, buffer, at in product(RATES, RTTS, BUFFERS, STARTS_MS)
        ]

        def one(genome: Genome, tested: Control = tested) -> Collapse:
            made = scenario(genome, tested, START_S + AFTER_S + genome.events[0].length / 1000)
            return collapse(made.run(samples_ms=20, digest=False), genome.events[0], genome.rate)

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(one, work))
        lowest = [one.lowest or 0.0 for one in found]
        late = max(AFTER_S if one.recovery is None else one.recovery for one in found)
        rows.append([
            f"`{kind}`, {length} ms", "Linux" if control == "bbr" else "draft 00", f"`{stack}`", str(len(found)),
            str(sum(low < 0.1 for low in lowest)), _percent(min(lowest)), _percent(min(one.share for one in found)),
            f"{late:.1f}",
        ])  # fmt: skip
        _say(rows[-1])
    head = (
        "event", "rounds", "stack", "runs", "estimate below 10 %", "lowest estimate", "lowest goodput, 10 s",
        "longest recovery (s)",
    )  # fmt: skip
    return markdown.table(head, rows)


def linux() -> str:
    """BBR of Linux and of the simulator, one run each."""
    rows = []
    tested = read_control("bbr", "control", "linux")
    for (rate, rtt), (kind, length, place) in product(LINUX_PATHS, INTERRUPTIONS):
        event = Event(3_000, kind, length, 1, 0, place)
        made = scenario(Genome(rate, rtt / 2 - 1, 1, "alone", (event,)), tested, START_S + 17 + length / 1000)
        runs = (made.run(samples_ms=20, digest=False), made.run_kernel(kernel=KERNEL, samples_ms=20))
        both = [collapse(run, event, rate) for run in runs]
        rows.append([
            f"{rate:g} Mbit/s, {rtt:g} ms", f"`{kind}`, {length} ms", *(_percent(one.share) for one in both),
            *("–" if one.recovery is None else f"{one.recovery:.1f}" for one in both),
            *(str(one.timeouts) for one in both),
        ])  # fmt: skip
        _say(rows[-1])
    head = ("path", "event", "goodput, 10 s: simulator", "Linux", "recovery (s): simulator", "Linux",
            "timeouts: simulator", "Linux")  # fmt: skip
    return markdown.table(head, rows)


def ratio() -> str:
    """Two flows of a control, one of which has a receiver that acknowledges every 44 segments."""
    one = literal(Path(tempfile.mkdtemp(prefix="collapse-")))
    rows = []
    for (rate, rtt), timer in product(GRID, TIMERS_MS):
        event = Event(3_000, "ack-ratio", 0, RATIO, timer, "own")
        genome = Genome(rate, rtt / 2 - 1, 1, "twin", (event,))
        cells = []
        for control in (one.control, one.against, "reno", "bbr"):
            made = scenario(genome, read_control(control, "control", "linux"), RATIO_S, RATIO_FROM_S)
            flows = made.run(digest=False).summary["flows"]
            cells.append(f"{flows['main']['goodput_mbit_s'] / flows['twin']['goodput_mbit_s']:.2f}")
        segments = f"{per_acknowledgment(rate, timer):.0f}"
        rows.append([f"{rate:g} Mbit/s, {rtt:g} ms", f"{timer} ms", segments, *cells])
        _say(rows[-1])
    return markdown.table(
        (
            "path",
            "longest delay",
            "segments per acknowledgment",
            "CUBIC to the letter",
            "CUBIC by segments",
            "Reno",
            "BBR",
        ),
        rows,
    )


def per_acknowledgment(rate: float, timer: float) -> float:
    """Segments per acknowledgment of a flow with its fair share: 44, or those that arrive within the longest delay."""
    return min(RATIO, 1 + rate * 1e6 / 2 / _PACKET_BITS * timer / 1000)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _say(row: Sequence[str]) -> None:
    print(" | ".join(row), file=sys.stderr, flush=True)


PARTS: dict[str, Callable[[], str]] = {"gaps": gaps, "linux": linux, "ratio": ratio}


def main() -> int:
    """Make the parts."""
    parser = argparse.ArgumentParser(description="BBRv1 after interruptions, and CUBIC by ACK ratio.")
    parser.add_argument(
        "parts", metavar="PART", nargs="*", choices=[*PARTS, []], help=f"{', '.join(PARTS)}; all if none"
    )
    parser.add_argument("--write", action="store_true", help="bring the page up to date")
    given = parser.parse_args()
    texts = {name: PARTS[name]() for name in given.parts or PARTS}
    for name, made in texts.items():
        print(f"{name}\n\n{made}\n", flush=True)
    if given.write:
        PAGE.write_text(fill(PAGE.read_text("utf-8"), texts, PAGE.stem), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
