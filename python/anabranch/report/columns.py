"""The charts of one run as plain columns: drawn by the HTML report and by the static figures alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns

if TYPE_CHECKING:
    import polars as pl

    from anabranch.result import RunResult

MAX_SHOWN = 12
"""Flows, or link directions, in one chart. Everything is in the tables; more lines than this show nothing."""


class RunColumns:
    """Reads the tables of a run into charts."""

    def __init__(self, result: RunResult) -> None:
        self.result = result

    def charts(self) -> Iterator[Chart]:
        """Every chart that has data: cwnd, round-trip time, queue, sequence, reordering."""
        for chart in (*self._flow_charts(), self._queue(), self._sequence(), self._reordering()):
            if chart is not None and any(len(s.x) for s in chart.series):
                yield chart

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

    def _sequence(self) -> Chart | None:
        import polars as pl

        packets = self.result.frame("packets")
        if packets.is_empty():
            return None
        flows = packets.get_column("flow").unique(maintain_order=True).to_list()
        flow = sequence_flow(self.result)
        own = packets.filter(pl.col("flow") == flow).with_columns(
            (pl.col("sequence_bytes").cast(pl.Float64) / 1e6).alias("megabytes")
        )
        gone = own.filter(pl.col("fate").is_in(["dropped", "lost"]))
        again = own.filter(pl.col("retransmission"))
        first = own.filter(~pl.col("retransmission"))
        about = "" if len(flows) == 1 else f"Flow {flow}; the other {len(flows) - 1} are in packets.parquet."
        series = (
            _series("sent", first, "sent_s", "megabytes", kind="points"),
            _series("retransmitted", again, "sent_s", "megabytes", kind="points"),
            _series("lost or dropped", gone, "sent_s", "megabytes", kind="points"),
        )
        return Chart("sequence", "Sequence", "sequence (MB)", tuple(s for s in series if len(s.x)), about)

    def _reordering(self) -> Chart | None:
        import polars as pl

        packets = self.result.frame("packets")
        if packets.is_empty():
            return None
        late = packets.filter(pl.col("reordered") & pl.col("received_s").is_not_null())
        if late.is_empty():
            return None
        flows = late.get_column("flow").unique(maintain_order=True).to_list()[:MAX_SHOWN]
        series = tuple(
            _series(f, late.filter(pl.col("flow") == f), "received_s", "reordering_extent_packets", kind="points")
            for f in flows
        )
        about = "Every reordered packet at its arrival, and how far back it is (RFC 4737 §4.2)."
        return Chart("reordering", "Reordering", "extent (packets)", series, about)


def sequence_flow(result: RunResult) -> str:
    """The flow whose packets the chart of sequences shows: the first."""
    return str(result.frame("packets").get_column("flow")[0])


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
