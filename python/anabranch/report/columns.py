"""The charts of one run as plain columns: drawn by the HTML report and by the static figures alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns
from anabranch.report.many import bands, is_many
from anabranch.report.rates import by_flow, rates
from anabranch.report.sequence import sequence_chart

if TYPE_CHECKING:
    import polars as pl

    from anabranch.result import RunResult

MAX_SHOWN = 12
"""Link directions, or flows with reordered packets, in one chart; more lines than this show nothing."""


class RunColumns:
    """Reads the tables of a run into charts."""

    def __init__(self, result: RunResult) -> None:
        self.result = result

    def charts(self) -> Iterator[Chart]:
        """Every chart that has data: goodput, sequence, cwnd, round-trip time, queue, reordering."""
        made = (self._goodput(), sequence_chart(self.result), *self._flow_charts(), self._queue(), self._reordering())
        for chart in made:
            if chart is not None and any(len(s.x) for s in chart.series):
                yield chart

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
            yield Chart(name, title, label, series, about)

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


def _over(count: int) -> str:
    return f"Median and percentiles over {count} flows at each time; samples.parquet has every flow."


def _series(
    label: str, frame: pl.DataFrame, x: str, y: str, *, kind: str = "line", faint: bool = False
) -> SeriesColumns:
    import polars as pl

    part = frame.select(pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).cast(pl.Float64).alias("y")).sort("x")
    part = part.with_columns(pl.col("y").fill_null(float("nan")))
    return SeriesColumns(label, part.get_column("x").to_numpy(), part.get_column("y").to_numpy(), kind, faint)
