"""Remedies for reordering side by side: what each keeps of its in-order throughput, and what it costs in order.

    python studies/reordering/remedies.py [--quick]

Prints a Markdown table, from the experiments ``remedies``, ``in_order``, ``two_paths``, ``one_path`` and ``price`` of
``study.toml``.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

from anabranch.study.parse import load
from anabranch.study.results import Condition, Pool, Results

HERE = Path(__file__).resolve().parent

BAR = 0.95
"""A remedy passes if it keeps more than this of its own in-order throughput at every interval."""
PRICE = 0.99
"""And if it leaves at least this of the unaided stack's throughput at every loss rate, on the mean over seeds."""
EXPERIMENTS = ("remedies", "in_order", "two_paths", "one_path", "price")
UNAIDED = "unaided"
OWN_CONTROL = "bbr"
"""Another congestion control: its price against the unaided stack's says nothing of reordering."""


@dataclass(frozen=True)
class Row:
    """One remedy.

    Attributes:
        lowest: Lowest share of its in-order throughput over the intervals.
        at: The interval where that is.
        mean: Mean share over the intervals.
        needless: Needless retransmissions, as a share of all packets sent at all intervals.
        two_paths: Lowest share of its throughput over one path that is left where packets take turns between two.
        far: The longer path's delay in milliseconds where that is.
        needless_two_paths: Needless retransmissions over two paths, as a share of all packets sent at all delays.
        price: By loss rate: throughput as a share of the unaided stack's, both means over seeds.
        needless_in_order: Needless retransmissions where nothing is reordered, as a share of packets sent.
    """

    variant: str
    label: str
    lowest: float
    at: int
    mean: float
    needless: float
    two_paths: float
    far: int
    needless_two_paths: float
    price: dict[float, float]
    needless_in_order: float

    @property
    def passes(self) -> bool:
        """Whether it reaches the bar, at no price."""
        return self.lowest > BAR and self.costs_nothing

    @property
    def costs_nothing(self) -> bool:
        """Whether it leaves the unaided stack's throughput where nothing is reordered."""
        return all(share >= PRICE for share in self.price.values())


def rows(*, full: bool) -> list[Row]:
    """Every remedy, in the order of the study."""
    results = made(EXPERIMENTS, full=full)
    return [row(results, variant) for variant in results.definition.experiments["remedies"].variants]


def two_paths(*, full: bool) -> dict[str, dict[float, float]]:
    """By remedy, and by the longer path's delay: what two paths leave of the throughput over one."""
    results = made(("two_paths", "one_path"), full=full)
    variants = results.definition.experiments["two_paths"].variants
    return {variant: shares_on_two_paths(results, variant) for variant in variants}


def made(experiments: tuple[str, ...], *, full: bool) -> Results:
    """The results of some experiments."""
    pool = Pool(load(HERE), None)
    plan = [job for job in pool.plan(Condition(full=full)) if job.experiment in experiments]
    pool.make(plan)
    return pool.results(plan)


def figures(results: Results, experiment: str, variant: str, name: str) -> dict[float, list[float]]:
    """A flow's figure by the axis' point (0 without an axis), one value for each seed."""
    values: dict[float, list[float]] = {}
    for job, outcome in results.runs:
        if (job.experiment, job.variant) == (experiment, variant):
            value = outcome.figures[f"flow.main.{name}"]
            values.setdefault(float(job.point[0]) if job.point else 0.0, []).append(value or 0.0)
    return values


def share_of_sent(results: Results, experiment: str, variant: str) -> float:
    """Needless retransmissions as a share of all packets sent in an experiment."""
    needless, sent = (
        sum(sum(values) for values in figures(results, experiment, variant, name).values())
        for name in ("spurious_retransmissions", "sent_packets")
    )
    return needless / sent


def shares_on_two_paths(results: Results, variant: str) -> dict[float, float]:
    """By the longer path's delay in milliseconds: what two paths leave of the throughput over one."""
    one, two = (figures(results, name, variant, "throughput_mbit_s") for name in ("one_path", "two_paths"))
    return {far: values[0] / one[far][0] for far, values in two.items()}


def row(results: Results, variant: str) -> Row:
    """One remedy's row."""
    rate = "throughput_mbit_s"
    in_order = figures(results, "in_order", variant, rate)[0.0][0]
    kept = {at: values[0] / in_order for at, values in figures(results, "remedies", variant, rate).items()}
    lowest = min(kept, key=lambda at: kept[at])
    both = shares_on_two_paths(results, variant)
    far = min(both, key=lambda at: both[at])
    unaided = figures(results, "price", UNAIDED, rate)
    price = figures(results, "price", variant, rate)
    return Row(
        variant,
        results.definition.variants[variant].label,
        kept[lowest],
        int(lowest),
        statistics.fmean(kept.values()),
        share_of_sent(results, "remedies", variant),
        both[far],
        int(far),
        share_of_sent(results, "two_paths", variant),
        {loss: statistics.fmean(price[loss]) / statistics.fmean(unaided[loss]) for loss in price},
        share_of_sent(results, "price", variant),
    )


def verdict(of: Row) -> str:
    """What a row says against the bar and the price."""
    if of.variant == OWN_CONTROL:
        return "bar reached" if of.lowest > BAR else "below the bar"
    if of.passes:
        return "bar reached at no price"
    if of.lowest > BAR:
        return "bar reached at a price"
    return "below the bar"


def cells(of: Row) -> list[str]:
    """A row of the table."""
    price = ["–" if of.variant == OWN_CONTROL else f"{share:.3f}" for share in of.price.values()]
    return [
        of.label,
        f"{of.lowest:.3f} (RI {of.at})",
        f"{of.mean:.3f}",
        f"{of.needless:.3%}",
        f"{of.two_paths:.3f} ({of.far} ms)",
        f"{of.needless_two_paths:.3%}",
        *price,
        f"{of.needless_in_order:.3%}",
        verdict(of),
    ]


def table(*, full: bool) -> tuple[list[str], list[list[str]]]:
    """Head and rows."""
    every = rows(full=full)
    losses = [f"{loss:.1%} loss" if loss else "overflow" for loss in every[0].price]
    shares = ["lowest share", "mean", "needless", "two paths", "needless there"]
    head = ["remedy", *shares, *losses, "needless in order", "verdict"]
    return head, [cells(of) for of in every]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Remedies for reordering, and what they cost.")
    parser.add_argument("--quick", action="store_true", help="the quick grid instead of the full one")
    head, body = table(full=not parser.parse_args().quick)
    for line in (head, ["---"] * len(head), *body):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
