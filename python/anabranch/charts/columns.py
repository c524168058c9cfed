"""The charts of one run as plain columns: drawn by the HTML report and by the static figures alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from anabranch.charts.bands import bands, is_many
from anabranch.charts.cloud import Cloud
from anabranch.charts.model import Chart, SeriesColumns
from anabranch.charts.rates import bottleneck, by_flow, rates
from anabranch.charts.scan import MAX_SHOWN, Scan
from anabranch.charts.sequence import packets_of, sequence_chart
from anabranch.result.table_file import file_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.result.result import RunResult
    from anabranch.result.table import Table


class RunColumns:
    """Reads the tables of a run into charts."""

    def __init__(self, result: RunResult) -> None:
        self.result = result
        self._charts: tuple[Chart, ...] | None = None

    @cached_property
    def scan(self) -> Scan:
        """The packets of the run in short."""
        sampled = self.result.plain("samples").unique("flow")
        return Scan(self.result, losses_of=sampled[0] if len(sampled) == 1 else None)

    @cached_property
    def most_retransmitting(self) -> Table:
        """The packets of the flow that retransmitted most, as in :func:`packets_of`."""
        return packets_of(self.result, self.scan.most_retransmitting() or "")

    def charts(self) -> Iterator[Chart]:
        """Every chart that has data: goodput, sequence, cwnd, round-trip time, queue, reordering."""
        if self._charts is None:
            made = (
                self._goodput(),
                sequence_chart(self.result, self.scan, self.most_retransmitting),
                *self._flow_charts(),
                self._queue(),
                self._reordering(),
            )
            self._charts = tuple(c for c in made if c is not None and any(len(s.x) for s in c.series))
        yield from self._charts

    def _goodput(self) -> Chart | None:
        samples = self.result.plain("samples")
        if not samples.height:
            return None
        lines = [rates(*flow) for flow in by_flow(samples, "delivered_bytes")]
        about = "In-order octets of each flow."
        if is_many(samples):
            series, about = bands([(line.x, line.y) for line in lines]), f"{about} {_over(len(lines))}"
        else:
            series = tuple(lines)
            # Percentiles of many flows are far below the bottleneck's rate.
            if rate := bottleneck(self.result):
                series += (rate,)
        return Chart("goodput", "Goodput", "goodput (Mbit/s)", series, about)

    def _flow_charts(self) -> Iterator[Chart]:
        samples = self.result.plain("samples")
        if not samples.height:
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
                series += self._losses(*flows[0][1:])
            yield Chart(name, title, label, series, about)

    def _losses(self, times: NDArray[np.float64], cwnd: NDArray[np.float64]) -> tuple[SeriesColumns, ...]:
        """The lost packets of the only flow, each at the congestion window when it was sent."""
        import numpy as np

        found = self.scan.lost_s
        if not len(found) or not len(times):
            return ()
        at = np.clip(np.searchsorted(times, found, side="right") - 1, 0, len(times) - 1)
        return (SeriesColumns("lost", found, cwnd[at], "marks"),)

    def _queue(self) -> Chart | None:
        import numpy as np

        samples = self.result.plain("link_samples")
        if not samples.height:
            return None
        # Queues that were always empty are left out; the busiest come first.
        queues = [
            (f"{link} {direction}", part.sort("time_s"))
            for (link, direction), part in samples.parts("link", "direction")
        ]
        series = [SeriesColumns(name, part.numbers("time_s"), part.numbers("queue_packets")) for name, part in queues]
        peaks = {one.label: float(np.nanmax(one.y, initial=0.0)) for one in series}
        series = [one for one in series if peaks[one.label] > 0]
        series.sort(key=lambda one: -peaks[one.label])
        return Chart("queue", "Queue", "queue (packets)", tuple(series[:MAX_SHOWN]))

    def _reordering(self) -> Chart | None:
        clouds = self.scan.late
        if not clouds:
            return None
        about = "Every reordered packet at its arrival, and how far back it is (RFC 4737 §4.2)."
        return Chart("reordering", "Reordering", "extent (packets)", *_drawn(clouds.items(), about))


def _drawn(clouds: Iterable[tuple[str, Cloud]], about: str) -> tuple[tuple[SeriesColumns, ...], str]:
    """The series of a chart, and its description."""
    named = [(cloud, cloud.series(name)) for name, cloud in clouds if cloud.taken]
    left_out = sum(cloud.taken - len(series.x) for cloud, series in named)
    if left_out:
        told = f"{left_out:,} packets that lie on others are not drawn; they are in {file_name('packets')}."
        about = f"{about} {told}".lstrip()
    return tuple(series for _, series in named), about


def _over(count: int) -> str:
    return f"Median and percentiles over {count} flows at each time; {file_name('samples')} has every flow."
