"""The charts of one run as plain columns: drawn by the HTML report and by the static figures alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns
from anabranch.report.many import bands, is_many
from anabranch.report.rates import bottleneck, by_flow, rates
from anabranch.report.sequence import sequence_chart

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from anabranch.result import RunResult

MAX_SHOWN = 12
"""Link directions, or flows with reordered packets, in one chart; more lines than this show nothing."""

MAX_POINTS = 300_000
"""Points of one series that are kept. Of more than this, those are left out that lie on others."""


class RunColumns:
    """Reads the tables of a run into charts."""

    def __init__(self, result: RunResult) -> None:
        self.result = result
        self._charts: tuple[Chart, ...] | None = None

    def charts(self) -> Iterator[Chart]:
        """Every chart that has data: goodput, sequence, cwnd, round-trip time, queue, reordering."""
        if self._charts is None:
            made = (
                self._goodput(),
                sequence_chart(self.result),
                *self._flow_charts(),
                self._queue(),
                self._reordering(),
            )
            self._charts = tuple(c for c in made if c is not None and any(len(s.x) for s in c.series))
        yield from self._charts

    def _goodput(self) -> Chart | None:
        samples = self.result.frame("samples")
        if samples.is_empty():
            return None
        lines = [rates(*flow) for flow in by_flow(samples, "delivered_bytes")]
        about = "In-order octets of each flow."
        if is_many(samples):
            series, about = bands([(line.x, line.y) for line in lines]), f"{about} {_over(len(lines))}"
        else:
            series = tuple(lines)
            # Percentiles of many flows lie far below it.
            if rate := bottleneck(self.result):
                series += (rate,)
        return Chart("goodput", "Goodput", "goodput (Mbit/s)", series, about)

    def _flow_charts(self) -> Iterator[Chart]:
        samples = self.result.frame("samples")
        if samples.is_empty():
            return
        for name, title, label, column in (
            ("cwnd", "Congestion window", "cwnd (packets)", "cwnd_packets"),
            ("srtt", "Smoothed round-trip time", "srtt (ms)", "srtt_ms"),
        ):
            flows = list(by_flow(samples, column))
            about = ""
            if is_many(samples):
                series, about = bands([(x, y) for _, x, y in flows]), _over(len(flows))
            else:
                series = tuple(SeriesColumns(flow, x, y) for flow, x, y in flows)
            if name == "cwnd" and len(flows) == 1:
                series += tuple(
                    SeriesColumns("ssthresh", x, y, faint=True) for _, x, y in by_flow(samples, "ssthresh_packets")
                )
                series += self._losses(*flows[0])
            yield Chart(name, title, label, series, about)

    def _losses(self, flow: str, times: NDArray[np.float64], cwnd: NDArray[np.float64]) -> tuple[SeriesColumns, ...]:
        """The lost packets of a flow, each at the congestion window when it was sent."""
        import numpy as np
        import polars as pl

        lost = pl.col("fate").is_in(["dropped", "too-big", "lost"]) & (pl.col("payload_bytes") > 0)
        parts = self.result.packet_parts(("flow", "sent_s", "fate", "payload_bytes"))
        sent = [part.filter(lost & (pl.col("flow") == flow)).get_column("sent_s").to_numpy() for part in parts]
        found = np.sort(np.concatenate(sent)) if sent else np.empty(0)
        if not len(found) or not len(times):
            return ()
        at = np.clip(np.searchsorted(times, found, side="right") - 1, 0, len(times) - 1)
        return (SeriesColumns("lost", found, cwnd[at], "marks"),)

    def _queue(self) -> Chart | None:
        import polars as pl

        samples = self.result.frame("link_samples")
        if samples.is_empty():
            return None
        # Queues that never held a packet say nothing; the busiest come first.
        peaks = (
            samples.group_by("link", "direction", maintain_order=True)
            .agg(pl.col("queue_packets").max())
            .filter(pl.col("queue_packets") > 0)
            .sort("queue_packets", descending=True, maintain_order=True)
            .head(MAX_SHOWN)
        )
        series = []
        for link, direction, _ in peaks.iter_rows():
            part = samples.filter((pl.col("link") == link) & (pl.col("direction") == direction)).select(
                pl.col("time_s").cast(pl.Float64), pl.col("queue_packets").cast(pl.Float64)
            )
            series.append(_series(f"{link} {direction}", part, "time_s", "queue_packets"))
        return Chart("queue", "Queue", "queue (packets)", tuple(series))

    def _reordering(self) -> Chart | None:
        """Reordered packets, part by part: the whole table may not fit into memory."""
        import polars as pl

        clouds: dict[str, Cloud] = {}
        for part in self.result.packet_parts(("flow", "received_s", "reordered", "reordering_extent_packets")):
            late = part.filter(pl.col("reordered") & pl.col("received_s").is_not_null())
            for flow in late.get_column("flow").unique(maintain_order=True):
                if flow in clouds or len(clouds) < MAX_SHOWN:
                    cloud = clouds.setdefault(flow, Cloud())
                    cloud.add(late.filter(pl.col("flow") == flow), "received_s", pl.col("reordering_extent_packets"))
        if not clouds:
            return None
        about = "Every reordered packet at its arrival, and how far back it is (RFC 4737 §4.2)."
        return Chart("reordering", "Reordering", "extent (packets)", *_drawn(clouds.items(), about))


class Cloud:
    """Points of which those are left out that lie on others, once there are many."""

    def __init__(self) -> None:
        self.taken = 0
        self._parts: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []

    def add(self, frame: pl.DataFrame, x: str, y: pl.Expr) -> None:
        """Take the points of a table."""
        import polars as pl

        if frame.is_empty():
            return
        points = frame.select(pl.col(x).cast(pl.Float64).alias("x"), y.cast(pl.Float64).alias("y"))
        self._parts.append((points.get_column("x").to_numpy(), points.get_column("y").to_numpy()))
        self.taken += frame.height
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
    """The first point in each cell of the finest raster that leaves few enough of them."""
    import numpy as np

    def cells(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        low, high = float(values.min()), float(values.max())
        return ((values - low) / ((high - low) or 1.0) * count).astype(np.int64)

    raster = 4096
    while True:
        raster //= 2
        cell = cells(x, 2 * raster) * (raster + 1) + cells(y, raster)
        # Packets of a cell mostly follow one another; sorting is for the others.
        first = np.flatnonzero(np.diff(cell, prepend=cell[0] - 1))
        if len(first) > MAX_POINTS // 2:
            _, first = np.unique(cell, return_index=True)
            first.sort()
        if len(first) <= MAX_POINTS // 2:
            return x[first], y[first]


def _drawn(clouds: Iterable[tuple[str, Cloud]], about: str) -> tuple[tuple[SeriesColumns, ...], str]:
    """The series of a chart, and what is said of it."""
    named = [(cloud, cloud.series(name)) for name, cloud in clouds if cloud.taken]
    left_out = sum(cloud.taken - len(series.x) for cloud, series in named)
    if left_out:
        told = f"{left_out:,} packets that lie on others are not drawn; they are in packets.parquet."
        about = f"{about} {told}".lstrip()
    return tuple(series for _, series in named), about


def _over(count: int) -> str:
    return f"Median and percentiles over {count} flows at each time; samples.parquet has every flow."


def _series(
    label: str, frame: pl.DataFrame, x: str, y: str, *, kind: str = "line", faint: bool = False
) -> SeriesColumns:
    import polars as pl

    part = frame.select(pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).cast(pl.Float64).alias("y")).sort("x")
    part = part.with_columns(pl.col("y").fill_null(float("nan")))
    return SeriesColumns(label, part.get_column("x").to_numpy(), part.get_column("y").to_numpy(), kind, faint)
