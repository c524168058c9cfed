"""The charts of one run as plain columns: drawn by the HTML report and by the static figures alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from anabranch.result import RunResult

MAX_SHOWN = 12
"""Flows, or link directions, in one chart. Everything is in the tables; more lines than this show nothing."""
MAX_POINTS = 300_000
"""Points of one series that the report carries. Of more than this, those are left out that lie on others."""


@dataclass(frozen=True)
class SeriesColumns:
    """One line or cloud of points: ``x`` in s, ascending."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    kind: str = "line"
    faint: bool = False


@dataclass(frozen=True)
class Chart:
    """One chart over time."""

    name: str
    title: str
    y_label: str
    series: tuple[SeriesColumns, ...]
    about: str = ""


class RunColumns:
    """Reads the tables of a run into charts."""

    def __init__(self, result: RunResult) -> None:
        self.result = result
        self._charts: tuple[Chart, ...] | None = None

    def charts(self) -> Iterator[Chart]:
        """Every chart that has data: cwnd, round-trip time, queue, sequence, reordering."""
        if self._charts is None:
            drawn = (*self._flow_charts(), self._queue(), *self._packet_charts())
            self._charts = tuple(c for c in drawn if c is not None and any(len(s.x) for s in c.series))
        yield from self._charts

    def _flow_charts(self) -> Iterator[Chart]:
        samples = self.result.frame("samples")
        if samples.is_empty():
            return
        flows = samples.get_column("flow").unique(maintain_order=True).to_list()[:MAX_SHOWN]
        cwnd = [self._sampled(samples, f, "cwnd_packets", f) for f in flows]
        if len(flows) == 1:
            cwnd.append(self._sampled(samples, flows[0], "ssthresh_packets", "ssthresh", faint=True))
        yield Chart("cwnd", "Congestion window", "cwnd (packets)", tuple(cwnd), _cut(samples, "flow", flows))
        rtt = tuple(self._sampled(samples, f, "srtt_ms", f) for f in flows)
        yield Chart("srtt", "Smoothed round-trip time", "srtt (ms)", rtt)

    def _sampled(
        self, frame: pl.DataFrame, flow: str, column: str, label: str, *, faint: bool = False
    ) -> SeriesColumns:
        import polars as pl

        part = frame.filter(pl.col("flow") == flow).select(
            pl.col("time_s").cast(pl.Float64), pl.col(column).cast(pl.Float64)
        )
        return _series(label, part, "time_s", column, faint=faint)

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

    def _packet_charts(self) -> Iterator[Chart]:
        """Sequence and reordering, from one reading of the packets."""
        packets = PacketClouds()
        for part in self.result.packet_parts(PacketClouds.COLUMNS):
            packets.add(part)
        if packets.first_flow is None:
            return
        others = len(packets.flows) - 1
        about = f"Flow {packets.first_flow}; the other {others} are in packets.parquet." if others else ""
        yield Chart("sequence", "Sequence", "sequence (MB)", *_drawn(packets.sequence.items(), about))
        about = "Every reordered packet at its arrival, and how far back it is (RFC 4737 §4.2)."
        yield Chart("reordering", "Reordering", "extent (packets)", *_drawn(packets.reordered.items(), about))


class PacketClouds:
    """The points of the charts of sequence and reordering, collected part by part of the table ``packets``."""

    COLUMNS = ("flow", "sequence_bytes", "retransmission", "sent_s", "received_s", "fate", "reordered",
               "reordering_extent_packets")  # fmt: skip

    def __init__(self) -> None:
        self.first_flow: str | None = None
        self.flows: set[str] = set()
        self.sequence = {name: Cloud() for name in ("sent", "retransmitted", "lost or dropped")}
        self.reordered: dict[str, Cloud] = {}

    def add(self, part: pl.DataFrame) -> None:
        """Take the next part."""
        import polars as pl

        if part.is_empty():
            return
        # The packets of a connection stand together, so that there are few runs of names.
        names = set(part.get_column("flow").rle().struct.field("value"))
        self.flows |= names
        if self.first_flow is None:
            self.first_flow = str(part.get_column("flow")[0])
        if self.first_flow in names:
            own = part if len(names) == 1 else part.filter(pl.col("flow") == self.first_flow)
            kinds = (~pl.col("retransmission"), pl.col("retransmission"), pl.col("fate").is_in(["dropped", "lost"]))
            for cloud, kind in zip(self.sequence.values(), kinds, strict=True):
                cloud.add(own.filter(kind), "sent_s", pl.col("sequence_bytes") / 1e6)
        late = part.filter(pl.col("reordered") & pl.col("received_s").is_not_null())
        for flow in late.get_column("flow").unique(maintain_order=True):
            if flow in self.reordered or len(self.reordered) < MAX_SHOWN:
                cloud = self.reordered.setdefault(flow, Cloud())
                cloud.add(late.filter(pl.col("flow") == flow), "received_s", pl.col("reordering_extent_packets"))


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


def sequence_flow(result: RunResult) -> str:
    """The flow whose packets the chart of sequences shows: the first."""
    return str(next(result.packet_parts(["flow"], 1)).get_column("flow")[0])


def _series(
    label: str, frame: pl.DataFrame, x: str, y: str, *, kind: str = "line", faint: bool = False
) -> SeriesColumns:
    import polars as pl

    part = frame.select(pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).cast(pl.Float64).alias("y")).sort("x")
    part = part.with_columns(pl.col("y").fill_null(float("nan")))
    return SeriesColumns(label, part.get_column("x").to_numpy(), part.get_column("y").to_numpy(), kind, faint)


def _cut(frame: pl.DataFrame, column: str, shown: list[str]) -> str:
    total = frame.get_column(column).n_unique()
    return "" if total == len(shown) else f"The first {len(shown)} of {total}; all are in samples.parquet."
