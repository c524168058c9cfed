"""Charts of many flows: percentiles in place of lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch.charts.model import SeriesColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.result.table import Table

MOST_LINES = 12
"""Most flows that are drawn as lines; more are drawn as percentiles."""


def is_many(samples: Table) -> bool:
    """Whether there are more flows than lines that a reader can distinguish."""
    return len(samples.unique("flow")) > MOST_LINES


def bands(series: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[SeriesColumns, ...]:
    """Median, and 10th to 90th percentile, over the flows at each time.

    Args:
        series: Times and values of each flow.
    """
    import numpy as np

    known = [(x, y) for x, y in series if len(x) > 1]
    if not known:
        return ()
    begin, end = min(x[0] for x, _ in known), max(x[-1] for x, _ in known)
    at = np.linspace(begin, end, 400)
    rows = np.array([np.interp(at, x[~np.isnan(y)], y[~np.isnan(y)], left=np.nan, right=np.nan)
                     for x, y in known if (~np.isnan(y)).any()])  # fmt: skip
    if not len(rows):
        return ()
    some = ~np.isnan(rows).all(axis=0)
    low, middle, high = np.nanpercentile(rows[:, some], [10, 50, 90], axis=0)
    return (
        SeriesColumns("median", at[some], middle),
        SeriesColumns("90th percentile", at[some], high, "band", low=low, low_label="10th percentile"),
    )
