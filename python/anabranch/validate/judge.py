"""Whether two engines agree. The bands were set before the shipped scenarios were run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from anabranch.live import MAX_TAINTED
from anabranch.validate import WINDOW, Comparison, Result
from anabranch.validate.measure import GOODPUT, METRICS, RETRANSMITTED, SHARES, SRTT

BANDS: Mapping[str, float] = {GOODPUT.name: 0.03}
"""The largest median error over all scenarios that counts as agreement."""

TOLD_APART = (SRTT.name, RETRANSMITTED.name, SHARES.name)
"""Metrics that must distinguish congestion controls; all others except goodput are only shown."""

OF_OTHERS = 0.5
"""Largest error, as a share of another control's distance."""

TELLING = 0.9
"""The share of scenarios in which this, or the floor, must hold."""

BLIND = 0.1
"""If the error of a formula blind to the control exceeds this, the scenario depends on the control."""

RATES = tuple(metric.name for metric in METRICS if metric.is_rate)

SHOWN = (*(metric.name for metric in METRICS), WINDOW)
"""The order of metrics in tables and figures."""


def is_of_kernels(comparisons: Sequence[Comparison]) -> bool:
    """Whether runs in kernels in virtual time replace the live runs."""
    return any(comparison.engine == "kernel" for comparison in comparisons)


def reference_runs(comparisons: Sequence[Comparison]) -> str:
    """The runs whose differences are the floor of the errors."""
    return "runs at other phases of a tick" if is_of_kernels(comparisons) else "live runs"


def holds(result: Result) -> bool:
    """Whether an error is at most half of another control's, or at most the distance between live runs."""
    return result.error <= result.floor or (result.other is not None and result.error <= OF_OTHERS * result.other)


def is_telling(result: Result) -> bool:
    """Whether a result distinguishes another control: live runs differ by less than the two controls."""
    return result.other is not None and result.floor < result.other


def needs_the_control(comparison: Comparison) -> bool:
    """Whether a formula blind to the congestion control fails here."""
    return any(
        blind > BLIND
        for name in RATES
        if (result := comparison.results.get(name)) is not None and (blind := result.blind) is not None
    )


def summary(comparisons: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    """Median and 90th percentile of the errors over all scenarios, and the number of scenarios within the bands."""
    told = {}
    for metric in SHOWN:
        results = _results(comparisons, metric)
        if results:
            errors = sorted(result.error for _, result in results)
            told[metric] = {"median": median(errors), "p90": errors[math.ceil(0.9 * len(errors)) - 1]}
            for name in ("other", "blind"):
                those = [value for _, result in results if (value := getattr(result, name)) is not None]
                if those:
                    told[metric][f"median_{name}"] = median(those)
            if metric in TOLD_APART:
                told[metric] |= {
                    "scenarios": float(len(results)),
                    "within": float(sum(holds(result) for _, result in results)),
                    "telling": float(sum(is_telling(result) for _, result in results)),
                    "within_telling": float(sum(holds(r) and is_telling(r) for _, r in results)),
                }
    return told


def document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The document, as in the contract."""
    scenarios = []
    for comparison in comparisons:
        told = comparison.document()
        told["blind_formula_fails"] = needs_the_control(comparison)
        for metric in TOLD_APART:
            if metric in comparison.results:
                told["metrics"][metric]["within"] = holds(comparison.results[metric])
        scenarios.append(told)
    return {
        "engine": comparisons[0].engine,
        "scenarios": scenarios,
        "summary": summary(comparisons),
        "problems": problems(comparisons),
        "seeds": max(comparison.seeds for comparison in comparisons),
        "machine": comparisons[0].machine,
        "host_times": comparisons[0].times.document() if comparisons[0].times else None,
    }


def problems(comparisons: Sequence[Comparison]) -> list[str]:
    """The faults of a validation as a whole; empty if the engines agree."""
    return [*_unusable(comparisons), *_apart(comparisons)]


def _unusable(comparisons: Sequence[Comparison]) -> Iterator[str]:
    runs = sum(comparison.live_runs for comparison in comparisons)
    tainted = sum(comparison.tainted_runs for comparison in comparisons)
    if tainted > MAX_TAINTED * runs:
        yield f"{tainted} of {runs} live runs are tainted, more than {MAX_TAINTED:.0%}"
    for comparison in comparisons:
        if comparison.used_tainted:
            used = comparison.used_tainted
            yield f"{comparison.file}: {used} of the live runs compared are tainted, and prove nothing"
        elif comparison.tainted:
            yield f"{comparison.file}: no seed has all of its live runs untainted"
        for what in sorted(comparison.one_sided):
            yield f"{comparison.file}: only some runs have {what}"


def _apart(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for metric, band in BANDS.items():
        results = _results(comparisons, metric)
        if results and (middle := median(result.error for _, result in results)) > band:
            yield f"{metric}: the median error is {middle:.1%}, and {band:.0%} was expected at most"
    for metric in TOLD_APART:
        results = _results(comparisons, metric)
        outside = [comparison.file for comparison, result in results if not holds(result)]
        if len(results) - len(outside) < TELLING * len(results):
            yield (
                f"{metric}: in {len(outside)} of {len(results)} scenarios the error is more than {OF_OTHERS:g} of "
                f"another congestion control's, and more than the difference between {reference_runs(comparisons)}; at "
                f"most {1 - TELLING:.0%} was expected: {', '.join(outside)}"
            )


def _results(comparisons: Sequence[Comparison], metric: str) -> list[tuple[Comparison, Result]]:
    return [(c, c.results[metric]) for c in comparisons if metric in c.results]
