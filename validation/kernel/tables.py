"""Tables of the page that compares a kernel in virtual time with the simulator: the same scenarios in both.

A row is a scenario file with settings. Both engines run it with the same seeds; figures are means
over them.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.kernel.guests import Guests, Work
from anabranch.scenario import Scenario
from anabranch.validate import as_in_guest

DATA = Path(__file__).parents[1] / "data"
SHARE = 0.15
"""Tolerance of a share against the kernel's: the same as on the pages of two flows and of mixes, which had it first."""
GOODPUT = 0.04
"""Relative tolerance of goodput against the kernel's, as on the page of reordering."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """A run: cells that name it, a scenario of ``validation/data``, and its settings."""

    cells: tuple[str, ...]
    file: str
    sets: tuple[str, ...]
    seeds: int

    def scenario(self) -> Scenario:
        """The scenario."""
        return Scenario.from_file(DATA / self.file).with_sets(*self.sets)


@dataclass(frozen=True)
class Table:
    """Rows, their reported figures, and the judged figure.

    Attributes:
        name: The part of the page.
        head: Names of the cells.
        rows: The runs.
        columns: Figures by the name on the page, with their format.
        judged: The figure that has a bound.
        bound: Its maximum distance from the kernel's.
        is_relative: Whether the bound is relative to the kernel's figure.
        has_older: Whether an older kernel also runs it.
    """

    name: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: Mapping[str, str]
    judged: str
    bound: float
    is_relative: bool
    has_older: bool

    def is_inside(self, theirs: Figures, ours: Figures) -> bool:
        """Whether our figure is near enough."""
        off = abs(ours[self.judged] - theirs[self.judged])
        return off <= self.bound * (theirs[self.judged] if self.is_relative else 1.0)


def _pair(first: str, second: str) -> tuple[str, ...]:
    return f'flow.a.cc="{first}"', f'flow.b.cc="{second}"'


def _two_flows() -> Table:
    pairs = [("cubic", "cubic"), ("cubic", "reno"), ("cubic", "bbr"), ("reno", "bbr")]
    rows = tuple(Row((f"{a} / {b}",), "linux-two-flows.toml", _pair(a, b), 3) for a, b in pairs)
    columns = {"share": ".3f", "jain": ".3f", "goodput": ".2f", "srtt": ".1f", "retransmitted": ".0f"}
    return Table("two-flows", ("first / second",), rows, columns, "share", SHARE, is_relative=False, has_older=True)


def _reordering() -> Table:
    wanted = itertools.product(("cubic", "reno", "bbr"), (1000, 80, 40, 20, 10, 4))
    rows = tuple(
        Row(
            (cc, "none" if interval == 1000 else str(interval)),
            "linux-reordering.toml",
            (f'flow.main.cc="{cc}"', *_reorder(interval)),
            1,
        )
        for cc, interval in wanted
    )
    columns = {"goodput": ".3f", "srtt": ".1f", "cwnd": ".1f", "retransmitted": ".0f"}
    return Table(
        "reordering", ("control", "interval"), rows, columns, "goodput", GOODPUT, is_relative=True, has_older=True
    )


def _reorder(interval: int) -> tuple[str, ...]:
    where = "link.bottleneck.forward.queue"
    if interval == 1000:
        return (f'{where}={{ kind = "drop-tail", limit = "99 packets" }}',)
    return (f"{where}.reorder.interval={interval}",)


MIXED = ("reno", "cubic", "bic", "westwood-plus", "vegas", "bbr")
QUARTER = ('duration="30 s"', 'link.bottleneck.rate="50 Mbit/s"')
"""A quarter of the packets of the page of mixes."""


def _mixes() -> Table:
    wanted = itertools.product((1, 4), itertools.combinations(MIXED, 2))
    rows = tuple(
        Row(
            (f"{a} / {b}", str(bdp)),
            "mixes.toml",
            (*_pair(a, b), *QUARTER, f'link.bottleneck.queue.limit="{bdp} bdp"'),
            1,
        )
        for bdp, (a, b) in wanted
    )
    columns = {"share": ".3f", "goodput": ".2f", "srtt": ".1f", "retransmitted": ".0f"}
    return Table(
        "mixes", ("first / second", "queue, BDP"), rows, columns, "share", SHARE, is_relative=False, has_older=False
    )


TABLES = (_two_flows(), _reordering(), _mixes())


def figures(summary: Mapping[str, Any]) -> dict[str, float]:
    """The tables' figures of a run: sums and means over its flows, and the first flow's share."""
    flows = list(summary["flows"].values())
    goodputs = [flow["goodput_mbit_s"] or 0.0 for flow in flows]
    total = math.fsum(goodputs)
    squares = math.fsum(goodput**2 for goodput in goodputs)
    return {
        "goodput": total,
        "share": goodputs[0] / total if total else 0.0,
        "jain": total**2 / (len(flows) * squares) if squares else 0.0,
        "srtt": statistics.fmean(flow["mean_srtt_ms"] for flow in flows),
        "cwnd": statistics.fmean(flow["mean_cwnd_packets"] or 0.0 for flow in flows),
        "retransmitted": math.fsum(flow["retransmitted_packets"] for flow in flows),
    }


def _means(of_seeds: Sequence[Figures]) -> dict[str, float]:
    return {name: statistics.fmean(one[name] for one in of_seeds) for name in of_seeds[0]}


def kernels(table: Table, kernel: str, most: int, told: Callable[[int], None]) -> list[dict[str, float]]:
    """The kernel's figures of each row; ``told`` is called with the number of finished runs."""
    where = [(row, seed) for row in range(len(table.rows)) for seed in range(1, table.rows[row].seeds + 1)]
    found: dict[tuple[int, int], Figures] = {}
    scenarios = [row.scenario() for row in table.rows]
    work = (Work(scenarios[row], seed, 10.0) for row, seed in where)
    for at, future in Guests(kernel).side_by_side(work, most):
        found[where[at]] = figures(future.result().summary)
        told(len(found))
    return [_means([found[at, seed] for seed in range(1, row.seeds + 1)]) for at, row in enumerate(table.rows)]


def simulated(table: Table, release: str) -> Iterator[dict[str, float]]:
    """Our figures of each row, with the receiver of a kernel's release."""
    for row in table.rows:
        ours = as_in_guest(row.scenario(), release)
        runs = (ours.run(seed=seed, samples_ms=10.0, digest=False) for seed in range(1, row.seeds + 1))
        yield _means([figures(run.summary) for run in runs])
