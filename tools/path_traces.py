"""Write the traces of the library of ready paths: synthetic, from published statistics.

    python tools/path_traces.py            writes them
    python tools/path_traces.py --check    compares instead; exit status 1 when a file is out of date

Each trace is drawn from a process whose median or mean is the figure in the path's source. The
path's file in `crates/scenario/paths/` names source and figure. Quantities without a source (how
fast a rate changes, how long a gap is) are assumptions, which that file also names. The seeds are
fixed.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "crates" / "scenario" / "paths"


@dataclass(frozen=True)
class Step:
    """A line of a trace."""

    time_s: float
    rate_mbit_s: float
    delay_ms: float


def seeded(seed: int) -> random.Random:
    """A seeded random generator."""
    return random.Random(seed)  # noqa: S311 - traces, not secrets


def correlated(draw: random.Random, count: int, memory: float) -> list[float]:
    """Normal values of mean 0 and deviation 1; `memory` is the correlation of each value with the previous one."""
    values = [draw.gauss(0.0, 1.0)]
    fresh = math.sqrt(1.0 - memory * memory)
    while len(values) < count:
        values.append(memory * values[-1] + fresh * draw.gauss(0.0, 1.0))
    return values


def with_median(values: list[float], median: float) -> list[float]:
    """The values, scaled to this median."""
    factor = median / statistics.median(values)
    return [value * factor for value in values]


def with_mean(values: list[float], mean: float) -> list[float]:
    """The values, scaled to this mean."""
    factor = mean / statistics.fmean(values)
    return [value * factor for value in values]


def memory(step_s: float, lasts_s: float) -> float:
    """The coefficient from one step to the next if the correlation falls to 1/e within `lasts_s`."""
    return math.exp(-step_s / lasts_s)


def drive(seed: int, scale: Callable[[list[float]], list[float]], spread: float, delay_ms: float) -> list[Step]:
    """Two minutes in a car: a fading rate, and a gap at each change of cell."""
    draw = seeded(seed)
    step_s, count = 0.1, 1200
    fading = correlated(draw, count, memory(step_s, 5.0))
    waiting = correlated(draw, count, memory(step_s, 1.0))
    rates = scale([math.exp(spread * value) for value in fading])
    delays = [delay_ms * (1.0 + 0.1 * abs(value)) for value in waiting]
    at = draw.expovariate(1.0 / 40.0)
    while at < step_s * (count - 2):
        # The phone leaves the cell; packets wait until the gap ends.
        rates[int(at / step_s)] = 0.0
        at += 5.0 + draw.expovariate(1.0 / 35.0)
    return [Step(step_s * i, rates[i], delays[i]) for i in range(count)]


def fragmented(seed: int, mean: float, delay_ms: float) -> list[Step]:
    """A drive through cells of 5G and, between them, of LTE with a fifth of the rate."""
    draw = seeded(seed)
    steps = drive(seed, lambda rates: rates, 0.7, delay_ms)
    is_5g, left_s = True, draw.expovariate(1.0 / 20.0)
    rates = []
    for step in steps:
        rates.append(step.rate_mbit_s * (1.0 if is_5g else 0.2))
        left_s -= 0.1
        if left_s <= 0.0:
            is_5g = not is_5g
            left_s = draw.expovariate(1.0 / (20.0 if is_5g else 10.0))
    return [Step(step.time_s, rate, step.delay_ms) for step, rate in zip(steps, with_mean(rates, mean), strict=True)]


RECONFIGURED_EVERY = 75
"""Steps of 0.2 s in 15 s."""
SPIKE_S = 0.04
"""The delay added at a reconfiguration, within 30 to 50 ms (Huston 2024)."""


def flutter(draw: random.Random, count: int, step_s: float) -> list[float]:
    """Deviations of the delay each way, in ms: round trips a second apart differ by 6.7 ms on average (Huston 2024)."""
    last = memory(step_s, 1.0)
    # For normal values with this correlation the mean difference is 2 / sqrt(pi) deviations times
    # sqrt(1 - correlation).
    differs = 2.0 / math.sqrt(math.pi) * math.sqrt(1.0 - memory(1.0, 1.0))
    deviation = 6.7 / differs / 2.0
    return [deviation * value for value in correlated(draw, count, last)]


def satellite(seed: int, median: float, shared: int) -> list[Step]:
    """Five minutes of a constellation that is reconfigured every 15 s: another satellite, another delay, another rate.

    The delays are drawn with the seed `shared`, so that both directions have the same.
    """
    draw, course = seeded(seed), seeded(shared)
    step_s, count = 0.2, 1500
    within = correlated(draw, count, memory(step_s, 1.0))
    around = flutter(course, count, step_s)
    rates: list[float] = []
    delays: list[float] = []
    level, base = 1.0, 25.0
    for i in range(count):
        if i % RECONFIGURED_EVERY == 0:
            level = math.exp(0.3 * draw.gauss(0.0, 1.0))
            # Quartiles of 20 and 30 ms each way, with a minimum of 10 ms.
            base = max(10.0, course.gauss(25.0, 5.0 / 0.6745))
        rates.append(level * math.exp(0.2 * within[i]))
        delays.append(max(10.0, base + around[i]))
    rates = with_median(rates, median)
    steps: list[Step] = []
    for i in range(count):
        start_s = step_s * i
        if i > 0 and i % RECONFIGURED_EVERY == 0:
            steps.append(Step(start_s, 0.0, delays[i]))
            start_s += SPIKE_S
        steps.append(Step(start_s, rates[i], delays[i]))
    return steps


ABOVE_LEAST = 1.0 + 0.1 * 0.6745
"""The ratio of median to minimum of a drive's delay: see `drive`."""
LTE_DELAY_MS = (70.0 - 7.5 - 17.0 - 2 * 8.0 / 9.0) / 2.0 / ABOVE_LEAST
"""Minimum delay each way: 70 ms round trip minus downlink, uplink and retransmissions (TR 36.881 §5.2)."""
NR_DELAY_MS = (40.0 - 2.75 - 10.5 - 2 * 4.0 / 9.0) / 2.0 / ABOVE_LEAST
"""The same for 5G, with assumed figures."""

TRACES: dict[str, Callable[[], list[Step]]] = {
    "lte-drive-down.csv": lambda: drive(2, lambda rates: with_median(rates, 13.0), 0.8, LTE_DELAY_MS),
    "lte-drive-up.csv": lambda: drive(3, lambda rates: with_median(rates, 6.0), 0.8, LTE_DELAY_MS),
    "5g-drive-down.csv": lambda: fragmented(4, 80.6, NR_DELAY_MS),
    "5g-drive-up.csv": lambda: fragmented(5, 10.0, NR_DELAY_MS),
    "starlink-down.csv": lambda: satellite(6, 105.0, 8),
    "starlink-up.csv": lambda: satellite(7, 12.0, 8),
}
"""Each trace, by file name."""


def text(name: str) -> str:
    """The content of the file."""
    lines = [f"{step.time_s:.2f},{step.rate_mbit_s:.2f},{step.delay_ms:.2f}" for step in TRACES[name]()]
    head = ["# Written by tools/path_traces.py.", "time_s,rate_mbit_s,delay_ms"]
    return "\n".join([*head, *lines]) + "\n"


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description="Write the traces of the library of ready paths.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    stale = 0
    for name in TRACES:
        path, wanted = FOLDER / name, text(name)
        if path.is_file() and path.read_text(encoding="utf-8") == wanted:
            continue
        stale += 1
        if check:
            print(f"{path.name}: out of date: run python tools/path_traces.py", file=sys.stderr)
        else:
            path.write_text(wanted, encoding="utf-8")
            print(path.name)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
