"""How far apart the two engines are: one scenario in both, over several seeds.

A difference means something only beside what live runs differ by among themselves: the same file with the same seed
is run live twice, and the spread of the two is the floor below which nothing can be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.live import Limits
    from anabranch.result import RunResult
    from anabranch.scenario import Scenario

METRICS = ("goodput_mbit_s", "mean_srtt_ms", "retransmitted_packets", "mean_cwnd_packets", "flow_completion_time_s")
"""What is compared of every flow."""

BANDS: Mapping[str, float] = {"goodput_mbit_s": 0.03}
"""The largest median error over all scenarios that is agreement; what has no band is only shown."""

REPEATS = 2
"""Live runs per seed."""

MAX_TAINTED = 0.1
"""Of all live runs so many may be tainted."""


@dataclass
class Comparison:
    """One scenario: figures by metric, of all its flows and seeds."""

    file: str
    seeds: int
    tainted_runs: int = 0
    live_runs: int = 0
    metrics: dict[str, dict[str, float | None]] = field(default_factory=dict)
    one_sided: set[str] = field(default_factory=set)
    """Figures that one engine has and the other has not: a transfer that never ended, a flow without a byte."""

    @property
    def tainted(self) -> bool:
        """Whether no seed has both live runs to compare with."""
        return not self.metrics

    def document(self) -> dict[str, Any]:
        """As in the contract."""
        return {
            "file": self.file,
            "seeds": self.seeds,
            "tainted": self.tainted,
            "tainted_runs": self.tainted_runs,
            "live_runs": self.live_runs,
            "metrics": self.metrics,
        }


def relative_error(a: float, b: float, metric: str) -> float:
    """How far ``a`` is from ``b``, as a share of ``b``.

    Retransmissions are counts: their difference is compared with the square root of the count, which is how far two
    counts of rare independent events lie apart (the standard deviation of a Poisson count).
    """
    if metric == "retransmitted_packets":
        return abs(a - b) / math.sqrt(max(a, b, 1.0))
    return abs(a - b) / b if b else (0.0 if a == b else math.inf)


def compare(
    scenario: Scenario,
    file: str,
    *,
    seeds: int,
    limits: Limits | None = None,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Run a scenario in the simulator once and live twice for each of so many seeds.

    Raises:
        ScenarioError: The scenario is wrong, or asks for what no live run can do.
        UserError: This machine cannot run live.
        RunFailedError: A live run failed.
    """
    from anabranch.live import run_audited, taint

    first = int(scenario.resolve()["seed"])
    comparison = Comparison(file, seeds)
    pairs: dict[str, list[tuple[float, float]]] = {metric: [] for metric in METRICS}
    floors: dict[str, list[float]] = {metric: [] for metric in METRICS}
    values: dict[str, list[tuple[float, float]]] = {metric: [] for metric in METRICS}
    for number in range(seeds):
        seed = first + number
        simulated = scenario.run(seed=seed)
        live: list[RunResult] = []
        for repeat in range(REPEATS):
            run = run_audited(scenario, seed=seed, limits=limits)
            comparison.live_runs += 1
            if taint(run):
                comparison.tainted_runs += 1
            else:
                live.append(run)
            if progress is not None:
                progress((number * REPEATS + repeat + 1) / (seeds * REPEATS))
        if len(live) < REPEATS:
            continue
        for metric in METRICS:
            for flow in simulated.flows:
                mine = simulated.flows[flow].get(metric)
                theirs = [run.flows[flow].get(metric) for run in live]
                there = {isinstance(value, int | float) for value in (mine, *theirs)}
                if there != {True}:
                    if there != {False}:
                        comparison.one_sided.add(f"{metric} of flow {flow}")
                    continue
                if not isinstance(mine, int | float):
                    continue
                numbers = [float(value) for value in theirs if isinstance(value, int | float)]
                pairs[metric] += [(float(mine), value) for value in numbers]
                values[metric].append((float(mine), sum(numbers) / len(numbers)))
                floors[metric].append(relative_error(numbers[0], numbers[1], metric))
                if not all(numbers) and mine and metric != "retransmitted_packets":
                    comparison.one_sided.add(f"{metric} of flow {flow}")
    for metric in METRICS:
        if values[metric]:
            comparison.metrics[metric] = {
                "sim": _mean([mine for mine, _ in values[metric]]),
                "live": _mean([theirs for _, theirs in values[metric]]),
                "relative_error": _mean([relative_error(a, b, metric) for a, b in pairs[metric]]),
                "live_against_live": _mean(floors[metric]),
            }
    return comparison


def summary(comparisons: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    """Median and 90th percentile of the errors over all scenarios, by metric."""
    told = {}
    for metric in METRICS:
        errors = sorted(
            error
            for comparison in comparisons
            if (error := comparison.metrics.get(metric, {}).get("relative_error")) is not None
        )
        if errors:
            place = math.ceil(0.9 * len(errors)) - 1
            told[metric] = {"median": median(errors), "p90": errors[place]}
    return told


def problems(comparisons: Sequence[Comparison]) -> list[str]:
    """What is wrong with a validation as a whole; nothing if the engines agree."""
    found = []
    runs = sum(comparison.live_runs for comparison in comparisons)
    tainted = sum(comparison.tainted_runs for comparison in comparisons)
    if tainted > MAX_TAINTED * runs:
        found.append(f"{tainted} of {runs} live runs are tainted, more than {MAX_TAINTED:.0%}")
    found += [
        f"{comparison.file}: no seed has {REPEATS} live runs that may be used"
        for comparison in comparisons
        if comparison.tainted
    ]
    found += [
        f"{comparison.file}: {what} is there in one engine alone"
        for comparison in comparisons
        for what in sorted(comparison.one_sided)
    ]
    for metric, figures in summary(comparisons).items():
        band = BANDS.get(metric)
        if band is not None and figures["median"] > band:
            found.append(f"{metric}: the median error is {figures['median']:.1%}, and {band:.0%} was expected at most")
    return found


def _mean(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None
