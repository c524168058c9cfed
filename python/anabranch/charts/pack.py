"""Columns as text inside a page: compressed binary, thinned if the page would become too large."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from anabranch.charts.model import TIME, Chart, SeriesColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LINE_POINTS = 40_000
"""Points of all lines of one chart of a report together."""
MOST_MARKS = 40_000
"""Points of one cloud of a report."""
_ROWS = 600
"""Rows of the raster in which a cloud is thinned: more than a screen shows of one chart."""


def pack_times(times: NDArray[np.float64]) -> tuple[str, float]:
    """Ascending times (s) as deflated base64 of their 32-bit differences, and the unit of those in s.

    The unit is 1 µs unless a gap is too long for it (over an hour). Regular times compress to
    almost nothing.
    """
    import numpy as np

    longest = float(np.max(np.diff(times, prepend=0.0), initial=0.0))
    unit = max(1e-6, longest / 2**31)
    ticks = np.rint(times / unit).astype(np.int64)
    return _deflate(np.diff(ticks, prepend=0).astype("<u4").tobytes()), unit


def pack_values(values: NDArray[np.float64]) -> str:
    """Values as deflated base64 of 32-bit floats; missing ones are NaN."""
    return _deflate(values.astype("<f4").tobytes())


def packed(chart: Chart) -> dict[str, object]:
    """A chart as the component reads it."""
    return {
        "name": chart.name,
        "title": chart.title,
        "y_label": chart.y_label,
        "x_label": chart.x_label,
        "is_time": chart.x_label == TIME,
        "x_names": list(chart.x_names),
        "x_log": chart.x_log,
        "from_zero": chart.from_zero,
        "y_top": chart.y_top,
        "is_strip": chart.is_strip,
        "is_tall": chart.is_tall,
        "shares_time": chart.shares_time and chart.x_label == TIME,
        "series": [_series(s, is_time=chart.x_label == TIME) for s in chart.series],
    }


def thinned(chart: Chart) -> Chart:
    """The chart with at most the points that a report carries; a sentence states how many were left out."""
    lines = max(1, sum(s.kind not in ("points", "marks") for s in chart.series))
    most = max(200, MOST_LINE_POINTS // lines)
    made = tuple(
        _thin_cloud(s, MOST_MARKS)
        if s.kind in ("points", "marks")
        else _thin_line(s, most)
        if s.kind in ("line", "step")
        else s
        for s in chart.series
    )
    before, after = sum(len(s.x) for s in chart.series), sum(len(s.x) for s in made)
    if after == before:
        return chart
    remark = f"Thinned to {after:,} of {before:,} points; the tables beside this page have all of them."
    return replace(chart, series=made, about=f"{chart.about} {remark}".strip())


def _thin_line(series: SeriesColumns, most: int) -> SeriesColumns:
    """Lowest and highest value of each of ``most / 2`` slices, which look like the full line."""
    import numpy as np

    if len(series.x) <= most:
        return series
    size = -(-len(series.x) // (most // 2))
    count = -(-len(series.x) // size)
    padded = np.full(size * count, np.nan)
    padded[: len(series.y)] = series.y
    slices = padded.reshape(count, size)
    known = ~np.isnan(slices).all(axis=1)
    offsets = np.arange(count)[known] * size
    low = offsets + np.nanargmin(slices[known], axis=1)
    high = offsets + np.nanargmax(slices[known], axis=1)
    keep = np.unique(np.concatenate([low, high, [0, len(series.x) - 1]]))
    return replace(series, x=series.x[keep], y=series.y[keep])


def _thin_cloud(series: SeriesColumns, most: int) -> SeriesColumns:
    """One point for each cell of a raster with at most ``most`` columns."""
    import numpy as np

    if len(series.x) <= most:
        return series
    x, y = series.x, series.y
    down = np.floor((y - np.nanmin(y)) / ((np.nanmax(y) - np.nanmin(y)) or 1.0) * _ROWS)
    columns = most
    while True:
        across = np.floor((x - x[0]) / ((x[-1] - x[0]) or 1.0) * columns)
        _, first = np.unique(across * (_ROWS + 1) + down, return_index=True)
        if len(first) <= most:
            break
        columns //= 2
    keep = np.sort(first)
    return replace(series, x=x[keep], y=y[keep])


def _series(series: SeriesColumns, *, is_time: bool) -> dict[str, object]:
    made: dict[str, object] = {
        "label": series.label,
        "kind": series.kind,
        "faint": series.faint,
        "low_label": series.low_label,
        "y": pack_values(series.y),
    }
    if is_time:
        made["x"], made["unit_s"] = pack_times(series.x)
    else:
        made["x"] = _deflate(series.x.astype("<f8").tobytes())
    for name, values in (("low", series.low), ("high", series.high)):
        if values is not None:
            made[name] = pack_values(values)
    return made


def _deflate(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 6)).decode()
