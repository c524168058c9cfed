"""The model of a chart: series as plain columns, and their common axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIME = "Time (s)"
"""The label of the axis whose charts zoom together."""


@dataclass(frozen=True)
class SeriesColumns:
    """One line, cloud of points, band or row of intervals: ``x`` is ascending, and in s if it is time.

    Attributes:
        label: Its name in the legend.
        x: The positions of its values.
        y: Its values; the upper edge of a band.
        kind: ``"line"``, ``"step"``, ``"points"``, ``"marks"`` (large points), ``"band"`` (from ``low`` to ``y``),
            ``"interval"`` (``y`` between ``low`` and ``high``), ``"ranges"`` (lines from ``low`` to ``high``) or
            ``"spans"`` (areas from ``x`` to ``high`` over the whole height; ``y`` is their length in ms).
        faint: Dashed.
        low: The lower edge of a band; the lower ends of intervals.
        high: The upper ends of intervals; the ends of spans.
        low_label: The name of a band's lower edge.
    """

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    kind: str = "line"
    faint: bool = False
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    low_label: str = ""

    def before(self, end: float) -> SeriesColumns:
        """The part up to ``end``."""
        count = int(self.x.searchsorted(end, side="right"))
        low, high = (None if ends is None else ends[:count] for ends in (self.low, self.high))
        return replace(self, x=self.x[:count], y=self.y[:count], low=low, high=high)


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        name: Its identifier in a page, and the name of its file as a static figure.
        title: Its heading.
        y_label: Title of the axis of ``y``, with the unit.
        series: Its lines, points and areas.
        about: A sentence below the heading.
        x_label: Title of the axis of ``x``, with the unit.
        x_names: Names of the positions 0, 1, …; empty if ``x`` is a quantity.
        x_log: The axis of ``x`` is logarithmic.
        from_zero: The axis of ``y`` includes 0.
        shares_time: Over time: it shows the same part as the other charts of the page.
        y_top: Least upper end of the axis of ``y``; small multiples share one.
        is_strip: It is low and has no axis of ``y``: its series are spans.
        is_tall: It is higher than the other charts of a stack.
    """

    name: str
    title: str
    y_label: str
    series: tuple[SeriesColumns, ...]
    about: str = ""
    x_label: str = TIME
    x_names: tuple[str, ...] = ()
    x_log: bool = False
    from_zero: bool = True
    y_top: float | None = None
    shares_time: bool = True
    is_strip: bool = False
    is_tall: bool = False
