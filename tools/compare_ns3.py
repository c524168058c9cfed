"""Compare single flows with the same flows in ns-3, row by row.

    python tools/compare_ns3.py            prints ours beside theirs
    python tools/compare_ns3.py --write    also writes the tables of docs/validation/ns3-single-flow.md
    python tools/compare_ns3.py --check    compares the page instead; exit status 1 when it is out of date

Exit status 1 also when a row is outside its tolerance and the page does not explain it, or is inside
and the page still lists it as an outlier. ``tests/oracle`` runs the same comparison.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch import _engine as engine
from anabranch.statistics import mean_interval

from reference import files, markdown

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "oracle" / "data"
PAGE = "docs/validation/ns3-single-flow.md"

SEEDS = 20
"""Runs of a row with random loss."""

NEW_RENO_LOSS_FREE = 0.03
NEW_RENO_LOSSY = 0.05
CUBIC = 0.08

OUR_NEW_RENO = '{ kind = "reno", avoidance = "acks" }'
"""As ns-3's documentation has it: cwnd grows by the number of ACKs, so that delayed ACKs slow it down."""

OUR_CUBIC = (
    '{{ kind = "cubic", tcp_friendly = {friendly}, reduce_from = "cwnd", first_epoch_growth = 0.05, '
    'hystart = "linux", hystart_delay_max = "1 s" }}'
)
"""ns-3's attributes (CntClamp 20, HyStartDelayMax 1 s) and RFC 8312, which it names as its source (ssthresh from cwnd)."""

CONTROLS = {
    ("3.37", "NewReno"): OUR_NEW_RENO,
    ("3.44", "NewReno"): OUR_NEW_RENO,
    ("3.37", "Cubic"): OUR_CUBIC.format(friendly="false"),
    ("3.44", "Cubic"): OUR_CUBIC.format(friendly="true"),
}

Settings = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Path_:
    """What differs between the rows of one control."""

    base_rtt_ms: int
    queue_packets: int
    loss_rate: float


@dataclass(frozen=True)
class Theirs:
    """A row of ns-3's figures."""

    version: str
    cc: str
    path: Path_
    seeds: int
    goodput: float
    lowest: float
    highest: float
    cwnd: float
    retransmitted: float
    fast_recoveries: float
    timeouts: float
    recovery: str = "prr"


@dataclass(frozen=True)
class Ours:
    """The same flow here: means over the seeds."""

    goodput: float
    half_width: float | None
    cwnd: float
    retransmitted: float
    fast_recoveries: float
    timeouts: float


@dataclass(frozen=True)
class Row:
    """A row of ns-3's figures, ours, and the range that ours should be in."""

    theirs: Theirs
    ours: Ours
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether our goodput is within the tolerance."""
        return self.low <= self.ours.goodput <= self.high

    @property
    def key(self) -> tuple[str, str, int, int, float]:
        """What names the row: version, control, RTT, queue, loss rate."""
        path = self.theirs.path
        return (self.theirs.version, self.theirs.cc, path.base_rtt_ms, path.queue_packets, path.loss_rate)


OUTLIERS: frozenset[tuple[str, str, int, int, float]] = frozenset()
"""Rows known to be outside; the page says why."""


def read(name: str) -> list[Theirs]:
    """Read a table of ns-3's figures; the controls that are compared here."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Theirs(
            version=row["ns3_version"],
            cc=row["cc"],
            path=Path_(int(row["base_rtt_ms"]), int(row["queue_packets"]), float(row["loss_rate"])),
            seeds=int(row["seeds"]),
            goodput=float(row["goodput_mbit_s"]),
            lowest=float(row["goodput_min"]),
            highest=float(row["goodput_max"]),
            cwnd=float(row["mean_cwnd_segments"]),
            retransmitted=float(row["retransmitted_packets"]),
            fast_recoveries=float(row["fast_recoveries"]),
            timeouts=float(row["timeouts"]),
            recovery=row.get("recovery", "prr"),
        )
        for row in rows
        if row["cc"] in {cc for _, cc in CONTROLS}
    ]


def sets(path: Path_, control: str) -> list[str]:
    """Return what turns the scenario file into one path with one congestion control."""
    rtt = path.base_rtt_ms
    return [
        f'link.access.delay="{rtt / 8:g} ms"',
        f'link.bottleneck.delay="{rtt / 4:g} ms"',
        f'link.egress.delay="{rtt / 8:g} ms"',
        f'link.bottleneck.queue.limit="{path.queue_packets} packets"',
        f"link.bottleneck.forward.impair.0.rate={path.loss_rate}",
        f"flow.main.cc={control}",
    ]


def simulate(cases: Iterable[tuple[Path_, str]], seeds: int = SEEDS) -> dict[tuple[Path_, str], Ours]:
    """Run each path with each control once, on all cores; loss-free ones with one seed."""
    file = DATA / "ns3-single-flow.toml"
    text = file.read_text("utf-8")
    wanted = list(dict.fromkeys(cases))
    counts = [seeds if path.loss_rate > 0 else 1 for path, _ in wanted]
    jobs = [
        (text, file.name, sets(path, control), seed)
        for (path, control), count in zip(wanted, counts, strict=True)
        for seed in range(1, count + 1)
    ]
    flows = iter([json.loads(run.summary_json)["flows"]["main"] for run in engine.run_many(jobs, digest=False)])
    return {case: _means([next(flows) for _ in range(count)]) for case, count in zip(wanted, counts, strict=True)}


def _means(flows: Sequence[Mapping[str, float]]) -> Ours:
    def mean(name: str) -> float:
        return math.fsum(flow[name] for flow in flows) / len(flows)

    interval = mean_interval([flow["goodput_mbit_s"] for flow in flows])
    return Ours(
        goodput=interval.mean,
        half_width=None if interval.upper is None else interval.upper - interval.mean,
        cwnd=mean("mean_cwnd_packets"),
        retransmitted=mean("retransmitted_packets"),
        fast_recoveries=mean("fast_recoveries"),
        timeouts=mean("timeouts"),
    )


def accepted(row: Theirs, table: Sequence[Theirs]) -> tuple[float, float]:
    """Return the range in which our goodput should be."""
    if row.cc == "Cubic":
        return row.goodput * (1 - CUBIC), row.goodput * (1 + CUBIC)
    both = [other for other in table if (other.cc, other.path) == (row.cc, row.path)]
    share = NEW_RENO_LOSSY if row.path.loss_rate > 0 else NEW_RENO_LOSS_FREE
    return min(other.lowest for other in both) * (1 - share), max(other.highest for other in both) * (1 + share)


def compare(table: Sequence[Theirs], settings: Settings = CONTROLS, seeds: int = SEEDS) -> list[Row]:
    """Set ours beside each of their rows."""
    ours = simulate(((row.path, settings[row.version, row.cc]) for row in table), seeds)
    return [Row(row, ours[row.path, settings[row.version, row.cc]], *accepted(row, table)) for row in table]
