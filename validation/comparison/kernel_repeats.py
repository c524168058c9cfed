"""Repeats of the kernel's rows (``validation/kernel_repeats.py``): the distance between samples of the kernel.

Two questions: the score of a new repeat of the kernel against the reference rows, which bounds the
score that our figures can be expected to reach; and the position of ours among the repeats.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reference import markdown

from comparison.judging import Verdict
from comparison.oracle import read

Key = tuple[int, str]
"""Reorder interval and congestion control."""


@dataclass(frozen=True)
class Repeat:
    """One run of the kernel."""

    goodput: float
    retransmitted: float
    mean_rtt: float
    dropped: float
    lateness_us: float


Repeats = Mapping[Key, Sequence[Repeat]]


@dataclass(frozen=True)
class Figure:
    """A figure that both repeats and our answers have."""

    name: str
    of: Callable[[Repeat], float]
    digits: int


FIGURES = (
    Figure("goodput", lambda repeat: repeat.goodput, 3),
    Figure("retransmitted", lambda repeat: repeat.retransmitted, 0),
    Figure("mean RTT", lambda repeat: repeat.mean_rtt, 1),
)


def table(name: str) -> dict[Key, list[Repeat]]:
    """Read a file of repeats, none of which is tainted."""
    found: dict[Key, list[Repeat]] = {}
    for row in read(name):
        repeat = Repeat(
            float(row["goodput_mbit_s"]),
            float(row["retransmitted_packets"]),
            float(row["mean_rtt_ms"]),
            float(row["dropped_packets"]),
            float(row["lateness_p99_us"]),
        )
        found.setdefault((int(row["reorder_interval"]), row["cc"]), []).append(repeat)
    return found


def common(repeats: Repeats) -> int:
    """Number of repeats that every row has."""
    return min(len(runs) for runs in repeats.values())


def inside(figure: Figure, answer: Repeat, runs: Sequence[Repeat]) -> bool:
    """Whether an answer's figure lies within the runs' range."""
    values = [figure.of(run) for run in runs]
    return min(values) <= figure.of(answer) <= max(values)


def share_inside(figure: Figure, repeats: Repeats) -> float:
    """The share of the kernel's own runs that lie within the range of the other runs of their row."""
    found = [
        inside(figure, runs[i], [*runs[:i], *runs[i + 1 :]]) for runs in repeats.values() for i in range(len(runs))
    ]
    return sum(found) / len(found)


def near_median(answer: Repeat, runs: Sequence[Repeat], tolerance: float) -> bool:
    """Whether an answer's goodput is within a tolerance of the runs' median."""
    median = statistics.median(run.goodput for run in runs)
    return abs(answer.goodput / median - 1) <= tolerance


def verdicts(answers: Mapping[Key, Repeat], repeats: Repeats, tolerance: float) -> list[Verdict]:
    """Judge the position of the answers among the repeats."""
    judged = [(answer, repeats[key]) for key, answer in answers.items() if key in repeats]
    near = [near_median(answer, runs, tolerance) for answer, runs in judged]
    found = [
        Verdict(
            f"SACK: goodput within ± {tolerance:.0%} of the median of the kernel's repeats in every row",
            f"{sum(near)} of {len(near)}",
            all(near) if near else None,
        )
    ]
    for figure in FIGURES:
        count = sum(inside(figure, answer, runs) for answer, runs in judged)
        own = share_inside(figure, repeats)
        found.append(
            Verdict(
                f"SACK: {figure.name} within the range of the kernel's repeats (for information)",
                f"{count} of {len(judged)}; a repeat within the range of the others: {own:.0%}",
                None,
            )
        )
    return found


def scores(ours: Sequence[Verdict], theirs: Sequence[Sequence[Verdict]]) -> str:
    """A table of the scores of ours and of each of the kernel's repeats by the same conditions."""
    rows = []
    for i, verdict in enumerate(ours):
        same = [verdicts[i] for verdicts in theirs]
        values = sorted(float(one.found.split()[0]) for one in same)
        held = "" if verdict.held is None else f"{sum(one.held is True for one in same)} of {len(same)}"
        spread = f"{statistics.median(values):.3g} ({values[0]:.3g}–{values[-1]:.3g})"
        rows.append([verdict.condition, verdict.found, verdict.word, spread, held])
    return markdown.table(
        ["condition", "ours", "", "the kernel's repeats: median (range)", "repeats for which it holds"], rows
    )


HEAD = ["control", "RI", "repeats", *(f"{figure.name} {where}" for figure in FIGURES for where in ("there", "here"))]


def lines(answers: Mapping[Key, Repeat], repeats: Repeats) -> list[list[str]]:
    """A row for each of the kernel's rows: median and range of the repeats, and ours, bold if it is outside."""
    found = []
    for (interval, cc), runs in repeats.items():
        cells = [cc, str(interval), str(len(runs))]
        answer = answers.get((interval, cc))
        for figure in FIGURES:
            values = [figure.of(run) for run in runs]
            low, high = (f"{value:.{figure.digits}f}" for value in (min(values), max(values)))
            cells.append(f"{statistics.median(values):.{figure.digits}f} ({low}–{high})")
            text = "" if answer is None else f"{figure.of(answer):.{figure.digits}f}"
            cells.append(text if answer is None or inside(figure, answer, runs) else f"**{text}**")
        found.append(cells)
    return found


def ranges(repeats: Repeats, figure: Figure, cc: str) -> list[tuple[float, float, float]]:
    """The repeats' minimum and maximum over the interval, for a figure."""
    found = []
    for (interval, control), runs in repeats.items():
        if control == cc:
            values = [figure.of(run) for run in runs]
            found.append((float(interval), min(values), max(values)))
    return found


def lateness(name: str) -> str:
    """The lateness of packets in a file of repeats."""
    repeats = table(name)
    tainted = sum(int(row["tainted_before"]) for row in read(name))
    values = [run.lateness_us for runs in repeats.values() for run in runs]
    counts = [len(runs) for runs in repeats.values()]
    return (
        f"{sum(counts)} runs, {min(counts)} to {max(counts)} of each row; lateness in the 99th percentile "
        f"{statistics.median(values):.0f} µs in the median run and {math.ceil(max(values))} µs in the worst. "
        f"{tainted} runs before them were tainted (above 1 ms) and made again."
    )
