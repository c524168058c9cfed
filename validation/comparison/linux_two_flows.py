"""Two flows of the Linux kernel that share a bottleneck: ``docs/validation/linux-two-flows.md``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing
from comparison.judging import Verdict
from comparison.oracle import read, spec
from comparison.pages import Comparison, verdict_table
from comparison.runs import SEEDS, Case, Spread, of_flow, simulate

NAME = "linux-two-flows"
SPEC = spec(NAME)
POINTS: float = SPEC["points"]
"""Tolerance of a mean share, in percentage points."""


@dataclass(frozen=True)
class Theirs:
    """One repeat with the kernel: goodput (Mbit/s), packets retransmitted, mean RTT (ms) of both flows."""

    goodput: tuple[float, float]
    retransmitted: tuple[float, float]
    mean_rtt: tuple[float, float]

    @property
    def share(self) -> float:
        """The first flow's share of both flows' goodput, in per cent."""
        return 100 * self.goodput[0] / sum(self.goodput)


@dataclass(frozen=True)
class Ours:
    """The same two flows in the simulator, over the seeds."""

    shares: tuple[float, ...]
    goodput: tuple[Spread, Spread]
    retransmitted: tuple[Spread, Spread]
    mean_rtt: tuple[Spread, Spread]

    @property
    def share(self) -> float:
        """The first flow's mean share of both flows' goodput, in per cent."""
        return math.fsum(self.shares) / len(self.shares)


@dataclass(frozen=True)
class Pair:
    """A pair of congestion controls: the kernel's repeats, and ours."""

    controls: tuple[str, str]
    theirs: tuple[Theirs, ...]
    ours: Ours

    @property
    def share(self) -> float:
        """The mean share of the kernel's first flow, in per cent."""
        return math.fsum(repeat.share for repeat in self.theirs) / len(self.theirs)

    @property
    def sign(self) -> int | None:
        """The flow that gets more, if all repeats agree on it (1: the first, -1: the second); else ``None``.

        Two flows with the same congestion control are interchangeable, so their repeats agree only
        by chance.
        """
        signs = {1 if repeat.share > 50 else -1 for repeat in self.theirs}
        return signs.pop() if len(signs) == 1 and self.controls[0] != self.controls[1] else None

    @property
    def near(self) -> bool:
        """Whether our mean share is within the tolerance of the kernel's."""
        return abs(self.ours.share - self.share) <= POINTS

    @property
    def same_sign(self) -> bool | None:
        """Whether the same flow gets more, if the repeats agree."""
        return None if self.sign is None else (self.ours.share - 50) * self.sign > 0


def pairs() -> dict[tuple[str, str], tuple[Theirs, ...]]:
    """Read the kernel's figures by pair of congestion controls."""
    found: dict[tuple[str, str], tuple[Theirs, ...]] = {}
    for row in read(f"{NAME}.csv"):
        both = [(float(row[f"goodput_{x}_mbit_s"]), float(row[f"retransmitted_{x}"]), float(row[f"mean_rtt_{x}_ms"]))
                for x in "ab"]  # fmt: skip
        (goodput_a, again_a, rtt_a), (goodput_b, again_b, rtt_b) = both
        repeat = Theirs((goodput_a, goodput_b), (again_a, again_b), (rtt_a, rtt_b))
        key = row["cc_a"], row["cc_b"]
        found[key] = (*found.get(key, ()), repeat)
    return found


def case(controls: tuple[str, str]) -> Case:
    """Return the run for a pair."""
    sets = tuple(f'flow.{flow}.cc="{cc}"' for flow, cc in zip("ab", controls, strict=True))
    return Case(f"{NAME}.toml", sets, SEEDS)


def compare(theirs: Mapping[tuple[str, str], tuple[Theirs, ...]]) -> list[Pair]:
    """Compare ours with the kernel's pairs."""
    cases = {key: case(key) for key in theirs}
    runs = simulate(cases.values(), NAME)
    return [Pair(key, rows, _ours(runs[cases[key]])) for key, rows in theirs.items()]


def _ours(runs: Sequence[dict[str, Any]]) -> Ours:
    def both(name: str) -> tuple[Spread, Spread]:
        return Spread.of(runs, of_flow("a", name)), Spread.of(runs, of_flow("b", name))

    def share(run: Mapping[str, Any]) -> float:
        a, b = of_flow("a", "goodput_mbit_s")(run), of_flow("b", "goodput_mbit_s")(run)
        return 100 * a / (a + b)

    return Ours(
        tuple(share(run) for run in runs),
        both("goodput_mbit_s"),
        both("retransmitted_packets"),
        both("mean_srtt_ms"),
    )


def verdicts(found: Sequence[Pair]) -> list[Verdict]:
    """Judge every pair."""
    return [
        _all(f"mean share within ± {POINTS:g} percentage points", [pair.near for pair in found]),
        _all("the same flow gets more, where the repeats agree", [pair.same_sign for pair in found]),
    ]


def _all(condition: str, held: Sequence[bool | None]) -> Verdict:
    judged = [one for one in held if one is not None]
    return Verdict(condition, f"{sum(judged)} of {len(judged)} pairs", all(judged) if judged else None)


HEAD = ["first / second", "first's share there", "repeats", "here", "seeds", "", "goodput there", "here",
        "mean RTT there", "here", "retransmitted there", "here"]  # fmt: skip


def pair_cells(pair: Pair) -> list[str]:
    """A row of the page's table."""
    repeats = ", ".join(f"{repeat.share:.0f}" for repeat in pair.theirs)
    goodput = _both([_mean([r.goodput[i] for r in pair.theirs]) for i in range(2)], 2)
    rtt = _both([_mean([r.mean_rtt[i] for r in pair.theirs]) for i in range(2)], 1)
    again = _both([_mean([r.retransmitted[i] for r in pair.theirs]) for i in range(2)], 0)
    head = [" / ".join(pair.controls), f"{pair.share:.1f} %", repeats]
    ours = pair.ours
    word = "inside" if pair.near else "**outside**"
    if pair.same_sign is not None:
        word += ", same sign" if pair.same_sign else ", **other sign**"
    return [
        *head,
        f"{ours.share:.1f} %",
        f"{min(ours.shares):.0f}–{max(ours.shares):.0f}",
        word,
        goodput,
        _both([spread.mean for spread in ours.goodput], 2),
        rtt,
        _both([spread.mean for spread in ours.mean_rtt], 1),
        again,
        _both([spread.mean for spread in ours.retransmitted], 0),
    ]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _both(values: Sequence[float], digits: int) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in values)


def comparison() -> Comparison:
    """Compare everything."""
    found = compare(pairs())
    judged = verdicts(found)
    parts = {"verdict": verdict_table(judged), "rows": markdown.table(HEAD, map(pair_cells, found))}
    return Comparison(NAME, parts, judged, lambda: _figures(found))


def _figures(found: Sequence[Pair]) -> Iterator[tuple[str, Figure]]:
    rows = [
        drawing.Shares(
            " / ".join(pair.controls),
            [repeat.share for repeat in pair.theirs],
            pair.ours.shares,
        )
        for pair in found
    ]
    yield NAME, drawing.shares(rows, POINTS, "Linux 6.18")
