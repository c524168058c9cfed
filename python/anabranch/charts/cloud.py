"""Points of a chart, of which coinciding ones are dropped above a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.charts.model import SeriesColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_POINTS = 300_000
"""Points of one series that are kept; above this, points that coincide with others are dropped."""


class Cloud:
    """Points, of which coinciding ones are dropped above a limit."""

    def __init__(self) -> None:
        self.taken = 0
        self._parts: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []

    def add(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Take points."""
        if not len(x):
            return
        self._parts.append((x, y))
        self.taken += len(x)
        if sum(len(part[0]) for part in self._parts) > MAX_POINTS:
            self._parts = [_thinned(*self._joined())]

    def series(self, label: str) -> SeriesColumns:
        """Its points by time."""
        import numpy as np

        x, y = self._joined()
        order = np.argsort(x, kind="stable")
        return SeriesColumns(label, x[order], y[order], "points")

    def _joined(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        import numpy as np

        if not self._parts:
            return np.empty(0), np.empty(0)
        return np.concatenate([x for x, _ in self._parts]), np.concatenate([y for _, y in self._parts])


def _thinned(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first point in each cell of the finest raster that leaves at most the permitted number."""
    import numpy as np

    def cells(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        low, high = float(values.min()), float(values.max())
        return ((values - low) / ((high - low) or 1.0) * count).astype(np.int64)

    raster = 4096
    while True:
        raster //= 2
        cell = cells(x, 2 * raster) * (raster + 1) + cells(y, raster)
        # Packets of a cell are mostly consecutive; only the others need sorting.
        first = np.flatnonzero(np.diff(cell, prepend=cell[0] - 1))
        if len(first) > MAX_POINTS // 2:
            _, first = np.unique(cell, return_index=True)
            first.sort()
        if len(first) <= MAX_POINTS // 2:
            return x[first], y[first]
