"""The charts of a captured connection as plain columns: limits, sequences, round trips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.diagnosis.document import Connection, DirectionName
    from anabranch.diagnosis.points import Thinned, Trace

CHARTS = ("limits", "sequence", "rtt")
"""The names of a connection's charts."""
MOST_LIMITS = 6
"""Limits with a separate colour; the palette has one more for the rest."""
REST = "other limits"
_COMPARABLE = 1.5
"""Largest receive window in a chart, as a multiple of the data sent; a larger one would flatten the other lines."""
VERDICTS = {True: "needed", False: "spurious", None: "undecided"}


class CaptureColumns:
    """Makes the charts of one direction of a connection.

    Args:
        connection: The connection, from the diagnosis.
        traced: Its packets, from the second pass.
        direction: ``"a_to_b"`` or ``"b_to_a"``.
        origin: The time at 0 of the charts.
        suffix: Appended to the names of the charts, so that a page can hold several connections.
    """

    def __init__(
        self, connection: Connection, traced: Trace, direction: DirectionName, origin: float, suffix: str = ""
    ) -> None:
        self._way = connection["directions"][direction]
        self._traced = traced[direction]
        self._origin = origin
        self._suffix = suffix

    def charts(self) -> Iterator[Chart]:
        """Every chart that has data."""
        for chart in (self.limits(), self.sequence(), self.round_trips()):
            if any(len(series.x) for series in chart.series):
                yield chart

    def limits(self) -> Chart:
        """The sender's limits, as a strip of colours over time."""
        totals: dict[str, float] = {}
        for start, end, limit in self._traced["limits"]:
            totals[limit] = totals.get(limit, 0.0) + end - start
        ranked = sorted(totals, key=lambda limit: -totals[limit])
        own = ranked[:MOST_LIMITS] if len(ranked) > MOST_LIMITS + 1 else ranked
        rest = [limit for limit in ranked if limit not in own]
        made = [self._spans(limit.replace("-", " "), (limit,)) for limit in own]
        if rest:
            made.append(self._spans(REST, rest))
        about = "What limited the sender, moment by moment."
        if rest:
            about += f" {REST.capitalize()}: {', '.join(limit.replace('-', ' ') for limit in rest)}."
        return Chart(f"limits{self._suffix}", "Limits", "limit", tuple(made), about, is_strip=True)

    def sequence(self) -> Chart:
        """Segments, retransmissions by verdict, SACK blocks, acknowledgments, and the edge of the window."""
        way, traced = self._way, self._traced
        again = {one["packet"]: one for one in way["retransmissions"]}
        first = [(time, start) for packet, time, start, _ in traced["sent"]["points"] if packet not in again]
        series = [self._series("sent", first, "points")]
        for needed, verdict in VERDICTS.items():
            chosen = [(one["time_s"], one["seq"]) for one in again.values() if one["needed"] is needed]
            series.append(self._series(f"retransmitted, {verdict}", sorted(chosen), "points"))
        blocks = traced["sacked"]["points"]
        if blocks:
            made = self._series("SACK blocks", [(time, end) for time, _, end in blocks], "ranges")
            low = _column([start / 1e6 for _, start, _ in blocks])
            series.append(SeriesColumns(made.label, made.x, made.y, "ranges", low=low, high=made.y))
        passed = traced["acknowledged"]["points"]
        series.append(self._series("acknowledged", [(time, ack) for time, ack, _ in passed], "step"))
        edges = [(time, edge) for time, _, edge in passed if edge is not None]
        about = [_drawn(traced["sent"], "segments"), _drawn(traced["acknowledged"], "acknowledgments"),
                 _drawn(traced["sacked"], "SACK blocks")]  # fmt: skip
        highest = max((end for _, _, _, end in traced["sent"]["points"]), default=0)
        if edges and min(edge - ack for _, ack, edge in passed if edge is not None) <= _COMPARABLE * highest:
            series.append(self._series("edge of the receive window", edges, "step", faint=True))
        elif edges:
            about.append("The receive window is left out: its edge lies far above.")
        else:
            about.append("The receive window is not drawn: the capture does not show its scale.")
        told = " ".join(one for one in about if one)
        drawn = tuple(one for one in series if len(one.x))
        return Chart(f"sequence{self._suffix}", "Time and sequence", "sequence (MB)", drawn, told)

    def round_trips(self) -> Chart:
        """Round trips as the sender measures them."""
        found = self._traced["round_trips"]
        x = _column([time - self._origin for time, _ in found["points"]])
        y = _column([rtt for _, rtt in found["points"]])
        series = (SeriesColumns("round trip", x, y, "points"),)
        return Chart(f"rtt{self._suffix}", "Round trips", "round trip (ms)", series, _drawn(found, "round trips"))

    def _series(
        self, label: str, found: Sequence[tuple[float, float]], kind: str, *, faint: bool = False
    ) -> SeriesColumns:
        x, y = _column([time - self._origin for time, _ in found]), _column([octet / 1e6 for _, octet in found])
        return SeriesColumns(label, x, y, kind, faint=faint)

    def _spans(self, label: str, names: Sequence[str]) -> SeriesColumns:
        own = [(start, end) for start, end, limit in self._traced["limits"] if limit in names]
        x = _column([start - self._origin for start, _ in own])
        high = _column([end - self._origin for _, end in own])
        return SeriesColumns(label, x, (high - x) * 1e3, "spans", high=high)


def _column(values: Sequence[float]) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(values, dtype=np.float64)


def _drawn(found: Thinned, noun: str) -> str:
    """A remark on the number of points, if not all are drawn."""
    drawn, of = len(found["points"]), found["of"]
    return "" if drawn == of else f"{drawn:,} of {of:,} {noun} are drawn, evenly chosen; retransmissions all."
