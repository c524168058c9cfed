"""Rates over time: goodput from samples, and the rate of the bottleneck from the scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anabranch.charts.model import SeriesColumns
from anabranch.result.remarks import megabits, seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.result.result import RunResult
    from anabranch.result.table import Table

BINS = 200
"""Bins of a run for its goodput over time."""
SHORTEST_BIN_S = 0.1
"""Shorter bins would show single bursts instead of a rate."""
BUSY = 0.5
"""Utilization below which a link is no bottleneck."""


def rates(label: str, times: NDArray[np.float64], delivered: NDArray[np.float64], bins: int = BINS) -> SeriesColumns:
    """The rate of arrivals in bins of equal length, in Mbit/s, at the middle of each.

    Args:
        label: The name of the line.
        times: The times of the samples, ascending (s).
        delivered: Octets delivered until then; NaN if unknown.
        bins: The greatest number of bins.
    """
    import numpy as np

    known = ~np.isnan(delivered)
    times, delivered = times[known], delivered[known]
    if len(times) < 2 or times[-1] <= times[0]:
        return SeriesColumns(label, times[:0], delivered[:0])
    span = float(times[-1] - times[0])
    count = max(1, min(bins, int(span / SHORTEST_BIN_S)))
    edges = np.linspace(times[0], times[-1], count + 1)
    values = np.diff(np.interp(edges, times, delivered)) * 8e-6 / (span / count)
    return SeriesColumns(label, (edges[1:] + edges[:-1]) / 2, values)


def by_flow(samples: Table, column: str) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Each flow of a table of samples: its name, times and values, NaN if missing."""
    for (flow,), part in samples.parts("flow"):
        yield str(flow), part.numbers("time_s"), part.numbers(column)


def bottleneck(result: RunResult) -> SeriesColumns | None:
    """The rate of the busiest link direction over time; ``None`` if no link is busy or the scenario has no rate."""
    import numpy as np

    busy = [
        (way.get("utilization") or 0.0, name, direction)
        for name, ways in result.links.items()
        for direction, way in ways.items()
    ]
    used, name, direction = max(busy, default=(0.0, "", ""))
    resolved: dict[str, Any] = result.summary.get("resolved_scenario", {})
    way = resolved.get("link", {}).get(name, {}).get(direction, {})
    if used < BUSY or way.get("service", {}).get("kind") != "fixed":
        return None
    steps: list[tuple[float | None, float | None]] = [(0.0, megabits(str(way.get("rate"))))]
    for change in resolved.get("at", []):
        rate = change.get("set", {}).get(f"link.{name}.{direction}.rate")
        if rate is None:
            continue
        if "every" in change:
            return None
        steps.append((seconds(str(change.get("time"))), megabits(str(rate))))
    known = [(time, rate) for time, rate in steps if time is not None and rate is not None]
    if len(known) < len(steps):
        return None
    known.sort(key=lambda step: step[0])
    end = float(result.summary.get("duration_s") or 0.0)
    times, values = zip(*known, (end, known[-1][1]), strict=True)
    return SeriesColumns(f"rate of {name}", np.array(times), np.array(values), "step", faint=True)
