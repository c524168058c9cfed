"""CUBIC against Compound TCP through a RED queue, in ns-2 and here: ``docs/validation/ns2-fairness.md``."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing
from comparison.judging import Verdict
from comparison.oracle import read, spec
from comparison.pages import Comparison, verdict_table
from comparison.runs import SEEDS, Case, simulate

NAME = "ns2-fairness"
RATE_MBIT_S = 100.0
SPEC = spec(NAME)
TOLERANCE: float = SPEC["tolerance"]
"""Tolerance of our mean below the minimum and above the maximum of the ratios of ns-2's seeds."""
THEIR_WIRE = 1510 / 1500
"""ns-2 counts 1,500 bytes for a packet that takes the time of 1,510."""
OUR_WIRE = 1500 / 1460

CONTROLS: dict[str, str] = SPEC["controls"]


@dataclass(frozen=True)
class Mix:
    """Two controls with ``flows`` flows each through one queue."""

    first: str
    second: str
    flows: int
    base_rtt_ms: float


@dataclass(frozen=True)
class Runs:
    """Results of a mix: the second's throughput over the first's, one ratio per seed, and the used share of the rate.

    The share of packets dropped and the mean queue are means over the seeds; ``None`` if they are
    not given.
    """

    ratios: tuple[float, ...]
    used: float
    drop_rate: float | None = None
    queue: float | None = None

    @property
    def ratio(self) -> float:
        """The mean ratio."""
        return statistics.fmean(self.ratios)


@dataclass(frozen=True)
class Row:
    """A mix in ns-2 and here."""

    mix: Mix
    theirs: Runs
    ours: Runs

    @property
    def accepted(self) -> tuple[float, float]:
        """The spread of ns-2's seeds, widened by the tolerance."""
        return min(self.theirs.ratios) * (1 - TOLERANCE), max(self.theirs.ratios) * (1 + TOLERANCE)

    @property
    def inside(self) -> bool:
        """Whether our mean ratio is in the accepted range."""
        low, high = self.accepted
        return low <= self.ours.ratio <= high


Table = Mapping[Mix, Runs]


def table() -> Table:
    """Read the reference: the judged rows."""
    return {
        Mix("cubic", "compound", int(row["case"].removeprefix("fair")), float(row["base_rtt_ms"])): Runs(
            tuple(map(float, row["ratio_per_seed"].split())),
            (float(row["cubic_mbit_s"]) + float(row["compound_mbit_s"])) * THEIR_WIRE / RATE_MBIT_S,
        )
        for row in read(f"{NAME}.csv")
    }


def more() -> Table:
    """Read the additional runs, one row a seed."""
    found: dict[Mix, list[dict[str, str]]] = {}
    for row in read(f"{NAME}-more.csv"):
        mix = Mix(row["first"], row["second"], int(row["flows"]), float(row["base_rtt_ms"]))
        found.setdefault(mix, []).append(row)
    return {mix: _more(rows) for mix, rows in found.items()}


def _more(rows: Sequence[Mapping[str, str]]) -> Runs:
    both = [(float(row["first_mbit_s"]), float(row["second_mbit_s"])) for row in rows]
    return Runs(
        tuple(second / first for first, second in both),
        statistics.fmean(map(sum, both)) * THEIR_WIRE / RATE_MBIT_S,
        statistics.fmean(float(row["drop_rate"]) for row in rows),
        statistics.fmean(float(row["mean_queue_packets"]) for row in rows),
    )


def case(mix: Mix, sets: Sequence[str] = ()) -> Case:
    """Return the run for a mix, with the settings ``sets`` in addition."""
    own = (
        f'link.bottleneck.delay="{mix.base_rtt_ms / 2:g} ms"',
        *(
            setting
            for flow, control in (("first", mix.first), ("second", mix.second))
            for setting in (f"flow.{flow}.count={mix.flows}", f"flow.{flow}.cc={CONTROLS[control]}")
        ),
    )
    return Case(f"{NAME}.toml", (*own, *sets), SEEDS)


def compare(there: Table, sets: Sequence[str] = ()) -> list[Row]:
    """Compare ours with each of ns-2's mixes."""
    cases = {mix: case(mix, sets) for mix in there}
    runs = simulate(cases.values(), NAME)
    return [Row(mix, theirs, _ours(runs[cases[mix]])) for mix, theirs in there.items()]


def _ours(runs: Sequence[Mapping[str, Any]]) -> Runs:
    both = [(_goodput(run, "first"), _goodput(run, "second")) for run in runs]
    links = [run["links"]["bottleneck"]["forward"] for run in runs]
    dropped = [link["dropped_packets"] / (link["dropped_packets"] + link["sent_packets"]) for link in links]
    return Runs(
        tuple(second / first for first, second in both),
        statistics.fmean(map(sum, both)) * OUR_WIRE / RATE_MBIT_S,
        statistics.fmean(dropped),
        statistics.fmean(link["mean_queue_packets"] for link in links),
    )


def _goodput(run: Mapping[str, Any], group: str) -> float:
    """Return the goodput of a group in Mbit/s; as in ns-2's figures, the time before its start counts."""
    flows = (flow for name, flow in run["flows"].items() if name.partition("/")[0] == group)
    return math.fsum(flow["delivered_bytes"] for flow in flows) * 8 / 1e6 / float(run["duration_s"])


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge by the number of flows."""
    found = []
    for flows in dict.fromkeys(row.mix.flows for row in rows):
        some = [row.inside for row in rows if row.mix.flows == flows]
        condition = f"{flows} + {flows} flows: mean ratio inside the spread of ns-2's seeds ± {TOLERANCE:.0%}"
        found.append(Verdict(condition, f"{sum(some)} of {len(some)} rows", all(some)))
    return found


def surprises(rows: Sequence[Row]) -> list[str]:
    """Return deviations from the page: rows outside."""
    return [f"{NAME} {row.mix}: a ratio of {row.ours.ratio:.3f} is outside" for row in rows if not row.inside]


HEAD = ["flows", "RTT", "Compound ÷ CUBIC there", "each seed", "accepted", "here", "each of our seeds", "",
        "used share of the rate there", "here"]  # fmt: skip


def row_cells(row: Row) -> list[str]:
    """A row of the page's table."""
    mix, theirs, ours = row.mix, row.theirs, row.ours
    low, high = row.accepted
    return [
        f"{mix.flows} + {mix.flows}",
        f"{mix.base_rtt_ms:g} ms",
        f"{theirs.ratio:.3f}",
        " ".join(f"{ratio:.3g}" for ratio in theirs.ratios),
        f"{low:.3f}–{high:.3f}",
        f"{ours.ratio:.3f}",
        f"{min(ours.ratios):.2f}–{max(ours.ratios):.2f}",
        "inside" if row.inside else "**outside**",
        f"{theirs.used:.3f}",
        f"{ours.used:.3f}",
    ]


MORE_HEAD = ["first", "second", "flows", "RTT", "second ÷ first there", "here", "dropped there", "here",
             "mean queue there", "here", "used share there", "here"]  # fmt: skip


def more_cells(row: Row) -> list[str]:
    """A row of the table of additional runs."""
    mix = row.mix
    return [
        mix.first,
        mix.second,
        f"{mix.flows} + {mix.flows}",
        f"{mix.base_rtt_ms:g} ms",
        *(_with_deviation(runs.ratios) for runs in (row.theirs, row.ours)),
        *(f"{runs.drop_rate:.3%}" for runs in (row.theirs, row.ours)),
        *(f"{runs.queue:.1f}" for runs in (row.theirs, row.ours)),
        *(f"{runs.used:.3f}" for runs in (row.theirs, row.ours)),
    ]


def _with_deviation(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3f} ({statistics.stdev(values):.3f})"


def comparison() -> Comparison:
    """Compare everything."""
    rows = compare(table())
    found = verdicts(rows)
    parts = {
        "verdict": verdict_table(found),
        "rows": markdown.table(HEAD, map(row_cells, rows)),
        "more": markdown.table(MORE_HEAD, map(more_cells, compare(more()))),
    }
    return Comparison(NAME, parts, found, lambda: _figures(rows), surprises(rows))


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    panels = []
    for flows in dict.fromkeys(row.mix.flows for row in rows):
        points = [
            drawing.Point(
                "compound",
                row.theirs.ratio,
                row.ours.ratio,
                (min(row.ours.ratios), max(row.ours.ratios)),
                accepted=row.accepted,
            )
            for row in rows
            if row.mix.flows == flows
        ]
        panels.append(drawing.Panel(f"Compound ÷ CUBIC, {flows} + {flows} flows", points, "linear"))
    yield NAME, drawing.ours_over_theirs(panels, "ns-2")
