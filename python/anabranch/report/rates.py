"""Goodput over time, from what samples say was delivered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.charts.model import SeriesColumns

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

BINS = 200
"""Of a run, for its goodput over time."""
SHORTEST_BIN_S = 0.1
"""In shorter ones single bursts are seen rather than a rate."""


def rates(label: str, times: NDArray[np.float64], delivered: NDArray[np.float64], bins: int = BINS) -> SeriesColumns:
    """What arrives in each of equal times, in Mbit/s, at the middle of each.

    Args:
        label: The name of the line.
        times: When it was sampled, ascending (s).
        delivered: Octets delivered until then; NaN where unknown.
        bins: How many times at most.
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


def by_flow(samples: pl.DataFrame, column: str) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Each flow of a table of samples: its name, times and values, NaN where there is none."""
    import polars as pl

    for (flow,), part in samples.partition_by("flow", as_dict=True, maintain_order=True).items():
        values = part.get_column(column).cast(pl.Float64).fill_null(float("nan")).to_numpy()
        yield str(flow), part.get_column("time_s").cast(pl.Float64).to_numpy(), values
