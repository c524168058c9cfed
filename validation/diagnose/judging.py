"""Criteria for diagnoses of planted causes, and the bars, which were set before the first run."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from diagnose.causes import Cause
from diagnose.simulated import Score

BLAME = (
    "syn-loss", "unanswered", "refused", "reset", "reset-by-middlebox", "application", "slow-client",
    "round-trips",
    "receive-window", "zero-window",
    "slow-reader", "send-buffer", "delayed-ack-nagle", "bufferbloat", "policer", "random-loss", "burst-loss",
    "tail-loss",
    "queue-overflow", "reordering", "large-segments-lost", "route-change", "capture-gap",
    "silent-peer", "sequence-randomiser", "ecn-cleared", "window-scaling-ignored",
)  # fmt: skip
"""Findings that name a cause. The others describe: limits of every transfer, the location of
losses, spurious retransmissions."""

LEAST_F1 = {"simulated": 0.995, "live sender": 0.98, "live middle": 0.95, "live receiver": 0.95}
LEAST_TIME = 0.97
LEAST_STALLS = 0.95
LEAST_NAMED_EXACT = 0.97
"""Of runs in virtual time, which are the same each time."""
MOST_BLAME = 0.01
NOTABLE_SHARE, NOTABLE_S, NOTABLE_MUCH = 0.05, 0.25, 0.2
"""A limit is a finding with this share of the time and this number of seconds, or with this larger share alone."""


KINDS = ((True, "needed"), (False, "spurious"))
TIME = "time whose limit is right"
PAUSES_RIGHT = "pauses whose cause is right"
PAUSES_WRONG = "pauses whose cause is wrong"
NAMED = "planted causes that are named"
WRONGLY = "runs that blame a cause which was not there"
CHANGED = "planted changes of headers that the captures show together"
CHANGED_WRONGLY = "runs for which the captures show a change that was not there"


def f1_name(kind: str, point: str) -> str:
    """The figure of a kind of retransmission at a point."""
    return f"F1 of {kind} retransmissions at the {point}"


def is_notable(limited_s: float, duration_s: float) -> bool:
    """Whether a limit had enough of a run to be a finding, independent of the planted cause."""
    share = limited_s / duration_s
    return share >= NOTABLE_SHARE and (limited_s >= NOTABLE_S or share >= NOTABLE_MUCH)


@dataclass(frozen=True)
class Pause:
    """A pause that the diagnosis lists."""

    truth: frozenset[str]
    """Its possible causes; empty if they are unknown."""
    ours: str
    side: str | None
    duration_s: float
    packets: list[int]

    @property
    def is_right(self) -> bool:
        """Whether the diagnosed cause is a possible one."""
        return self.ours in self.truth

    @property
    def is_undecided(self) -> bool:
        """Whether the diagnosis gives no cause."""
        return self.ours == "undecidable"


def truth_of_pause(row: dict[str, Any] | None, cause: Cause) -> frozenset[str]:
    """Possible causes of a pause that ends with this packet of the sender."""
    if row is None:
        return frozenset()
    if row["retransmission"]:
        if row["cause"] in ("rto", "tlp"):
            return frozenset({"retransmission-timeout"})
        return frozenset({"fast-recovery", "reordering"})
    return cause.stalls


@dataclass(frozen=True)
class Judgement:
    """One diagnosis."""

    cause: Cause
    seed: int
    point: str
    score: Score
    pauses: tuple[Pause, ...]
    findings: tuple[str, ...]
    is_visible: bool = True
    """Whether the capture has packets of the fault."""
    present: frozenset[str] = frozenset()
    """Findings that are true by the kernel's counters and the record of the path, independent of the planted cause."""

    changes: frozenset[str] | None = None
    """Changes of headers that the captures of all points show; ``None`` if one capture was judged."""

    @property
    def blamed(self) -> frozenset[str]:
        """The findings that name a cause."""
        return frozenset(self.findings) & frozenset(BLAME)

    @property
    def is_named(self) -> bool:
        """Whether the planted cause is among them."""
        return not self.is_visible or not self.cause.named_by or bool(self.cause.named_by & self.blamed)

    @property
    def wrongly(self) -> frozenset[str]:
        """Findings that are neither planted nor entailed nor present by the kernel's counters."""
        return self.blamed - self.cause.named_by - self.cause.besides - self.present

    def complaints(self) -> Iterator[str]:
        """The errors of the diagnosis, a line each."""
        name = self.score.name
        if not self.is_named:
            yield f"{name}: not named: {', '.join(self.findings)}"
        if self.wrongly:
            yield f"{name}: blamed {', '.join(sorted(self.wrongly))}"
        if self.changes is not None and self.changes != self.cause.changes:
            yield f"{name}: changed {sorted(self.changes)}, truth {sorted(self.cause.changes)}"
        if self.score.shares and self.score.time_right < LEAST_TIME:
            shares = {key: (round(a, 3), round(b, 3)) for key, (a, b) in self.score.shares.items() if abs(a - b) > 0.01}
            yield f"{name}: time right {self.score.time_right:.1%}: {shares}"
        for line in (
            *self.score.wrong,
            *(f"missed {one}" for one in self.score.missed),
            *(f"extra {one}" for one in self.score.extra),
        ):
            yield f"{name}: {line}"
        for pause in self.pauses:
            if pause.truth and not pause.is_right:
                what = f"pause of {pause.duration_s * 1e3:.1f} ms {pause.packets}: {pause.ours} {pause.side or ''}"
                yield f"{name}: {what}, truth {sorted(pause.truth)}"


@dataclass(frozen=True)
class Part:
    """Contribution of one run to a figure."""

    bad: float = 0.0
    whole: float = 0.0

    def plus(self, bad: float, whole: float) -> Part:
        """Add another contribution of the same run."""
        return Part(self.bad + bad, self.whole + whole)


@dataclass
class Tally:
    """Sums over judgements."""

    runs: Counter[str] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrongly: Counter[str] = field(default_factory=Counter)
    stalls: Counter[tuple[str, str]] = field(default_factory=Counter)
    time: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    need: dict[str, Score] = field(default_factory=dict)
    """Scores pooled by point."""
    causes: dict[str, Cause] = field(default_factory=dict)
    parts: dict[str, dict[tuple[str, int], Part]] = field(default_factory=lambda: defaultdict(dict))
    """For each figure the contribution of each run, whose points are not independent."""

    def add(self, one: Judgement) -> None:
        """Count a judgement."""
        name = one.cause.name
        self.causes[name] = one.cause
        self.runs[name] += 1
        self.named[name] += one.is_named
        self.wrongly[name] += bool(one.wrongly)
        for finding in one.blamed:
            self.cells[name, finding] += 1
        for pause in one.pauses:
            if pause.truth:
                verdict = "right" if pause.is_right else "undecided" if pause.is_undecided else "wrong"
                self.stalls[name, verdict] += 1
        if one.score.shares:
            self.time[name].append(one.score.time_right)
        self._add_parts(one)
        pooled = self.need.setdefault(one.point, Score(one.point))
        pooled.pairs += one.score.pairs
        pooled.overlooked += one.score.overlooked
        pooled.undecided += one.score.undecided

    def _add_parts(self, one: Judgement) -> None:
        """Add a diagnosis to the contributions to each figure."""

        def add(figure: str, bad: float, whole: float) -> None:
            if whole:
                run = (one.cause.name, one.seed)
                self.parts[figure][run] = self.parts[figure].get(run, Part()).plus(bad, whole)

        for kind, word in KINDS:
            f1 = one.score.f1(kind=kind)
            add(f1_name(word, one.point), 0.0 if f1 is None else 1 - f1, float(f1 is not None))
        if one.score.shares:
            add(TIME, 1 - one.score.time_right, 1.0)
        known = [pause for pause in one.pauses if pause.truth]
        add(PAUSES_RIGHT, sum(not pause.is_right for pause in known), len(known))
        add(PAUSES_WRONG, sum(not pause.is_right and not pause.is_undecided for pause in known), len(known))
        if one.cause.named_by:
            add(NAMED, float(not one.is_named), 1.0)
        add(WRONGLY, float(bool(one.wrongly)), 1.0)
        if one.changes is not None:
            add(CHANGED, float(not one.changes >= one.cause.changes), float(bool(one.cause.changes)))
            add(CHANGED_WRONGLY, float(bool(one.changes - one.cause.changes)), 1.0)

    def stall_share(self, verdict: str) -> float | None:
        """The share of pauses with this verdict."""
        whole = sum(self.stalls.values())
        return sum(count for key, count in self.stalls.items() if key[1] == verdict) / whole if whole else None


@dataclass(frozen=True)
class Bar:
    """A figure and its bar."""

    name: str
    figure: float
    bar: float
    is_least: bool = True

    @property
    def is_met(self) -> bool:
        """Whether the figure meets the bar."""
        return self.figure >= self.bar if self.is_least else self.figure <= self.bar

    def __str__(self) -> str:
        word = "met" if self.is_met else "MISSED"
        return f"{self.name}: {self.figure:.4f} ({'at least' if self.is_least else 'at most'} {self.bar}): {word}"


def judge_bars(tally: Tally, engine: str = "simulated", least_named: float = LEAST_STALLS) -> list[Bar]:
    """The figures and their bars."""
    bars = []
    for point, score in tally.need.items():
        least = LEAST_F1.get(f"{engine} {point}", LEAST_F1["simulated"])
        for kind, word in KINDS:
            f1 = score.f1(kind=kind)
            if f1 is not None:
                bars.append(Bar(f1_name(word, point), f1, least))
    times = [time for times in tally.time.values() for time in times]
    if times:
        bars.append(Bar(TIME, sum(times) / len(times), LEAST_TIME))
    right, wrong = tally.stall_share("right"), tally.stall_share("wrong")
    if right is not None and wrong is not None:
        bars.append(Bar(PAUSES_RIGHT, right, LEAST_STALLS))
        bars.append(Bar(PAUSES_WRONG, wrong, MOST_BLAME, is_least=False))
    runs = sum(tally.runs.values())
    planted = {name: count for name, count in tally.runs.items() if tally.causes[name].named_by}
    if planted:
        named = sum(tally.named[name] for name in planted)
        bars.append(Bar(NAMED, named / sum(planted.values()), least_named))
    bars.append(Bar(WRONGLY, sum(tally.wrongly.values()) / runs, MOST_BLAME, is_least=False))
    for name, bar, is_least in ((CHANGED, least_named, True), (CHANGED_WRONGLY, MOST_BLAME, False)):
        if parts := tally.parts[name].values():
            bad = sum(part.bad for part in parts) / sum(part.whole for part in parts)
            bars.append(Bar(name, 1 - bad if is_least else bad, bar, is_least))
    return bars


def chance(bad: Sequence[float], most: float) -> float:
    """An upper bound of the chance of runs with this mean or a worse one, if runs are bad to the share `most`.

    Each run is a share from 0 to 1, and runs are independent, but need not be identically
    distributed (Hoeffding, JASA 58, 1963, theorem 1).
    """
    mean = sum(bad) / len(bad)
    if mean <= most:
        return 1.0
    rest = (1 - mean) * math.log((1 - mean) / (1 - most)) if mean < 1 else 0.0
    return math.exp(-len(bad) * (mean * math.log(mean / most) + rest))


def broken(tally: Tally, bars: Sequence[Bar], most: float) -> list[str]:
    """The bars that these runs break beyond chance: below `most` over all bars, if each were just met."""
    found = []
    for bar in bars:
        runs = [part.bad / part.whole for part in tally.parts[bar.name].values()]
        allowed = 1 - bar.bar if bar.is_least else bar.bar
        if runs and chance(runs, allowed) < most / len(bars):
            found.append(f"{bar}; {sum(runs) / len(runs):.4f} of a run on average, of {len(runs)}")
    return found


def matrix(tally: Tally) -> str:
    """Planted causes by findings, in per cent of the diagnoses."""
    columns = [name for name in BLAME if any(tally.cells[row, name] for row in tally.runs)]
    lines = []
    for row in tally.runs:
        cells = {name: tally.cells[row, name] / tally.runs[row] for name in columns if tally.cells[row, name]}
        shown = ", ".join(f"{name} {share:.0%}" for name, share in cells.items())
        times = tally.time.get(row)
        time = f"{sum(times) / len(times):.1%} ({min(times):.1%})" if times else "-"
        stalls = " ".join(f"{verdict} {tally.stalls[row, verdict]}" for verdict in ("right", "undecided", "wrong"))
        lines.append(
            f"{row}: {tally.runs[row]} diagnoses, named {tally.named[row]}, wrongly {tally.wrongly[row]}; "
            f"time {time}; pauses {stalls}; {shown}"
        )
    return "\n".join(lines)
