"""The chart of sequences: what was sent, what the receiver held out of order, and the edges of the windows."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.charts.model import Chart, SeriesColumns
from anabranch.report.remarks import size

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from anabranch.result import RunResult

MOST_ARRIVALS = 500_000
"""Arrivals that are followed to know what the receiver holds; longer logs show what was sent only."""
MOST_DRAWN = 5_000_000
"""Packets of the flow that are read; a longer log would not fit into memory."""
_COLUMNS = ("flow", "direction", "sequence_bytes", "payload_bytes", "retransmission", "sent_s", "received_s", "fate",
            "where")  # fmt: skip
_COMPARABLE = 2.0
"""A receive window of more than so many of the largest congestion window limits nothing, and is left out."""


@dataclass(frozen=True)
class Receiver:
    """What the receiver holds after each arrival.

    Attributes:
        time_s: When each packet arrived, ascending.
        rcv_nxt: The next octet expected after it.
        held: Whether the packet was held because an earlier octet was missing.
        rows: Which row of the log it is.
    """

    time_s: NDArray[np.float64]
    rcv_nxt: NDArray[np.float64]
    held: NDArray[np.bool_]
    rows: NDArray[np.int64]


def sequence_flow(result: RunResult) -> str:
    """The flow whose packets are drawn: the one that retransmitted most, and of equal ones the first."""
    return max((counted := _retransmissions(result)), key=counted.__getitem__)


def _retransmissions(result: RunResult) -> dict[str, int]:
    """How many packets each flow retransmitted, the flows in the order of the table; part by part."""
    import polars as pl

    counts: dict[str, int] = {}
    for part in result.packet_parts(("flow", "retransmission")):
        for flow, count in part.group_by("flow", maintain_order=True).agg(pl.col("retransmission").sum()).iter_rows():
            counts[str(flow)] = counts.get(str(flow), 0) + int(count)
    return counts


def packets_of(result: RunResult, flow: str) -> pl.DataFrame:
    """What carries payload of ``flow`` in the direction that has most of it, in order of sending: the first of it."""
    import polars as pl

    parts: list[pl.DataFrame] = []
    for part in result.packet_parts(_COLUMNS):
        parts.append(part.filter((pl.col("flow") == flow) & (pl.col("payload_bytes") > 0)))
        if sum(one.height for one in parts) >= MOST_DRAWN:
            break
    own = pl.concat(parts)
    ways = own.group_by("direction", maintain_order=True).agg(pl.col("payload_bytes").sum())
    if ways.height > 1:
        most = ways.sort("payload_bytes", descending=True, maintain_order=True).get_column("direction")[0]
        own = own.filter(pl.col("direction") == most)
    return own.sort("sent_s", maintain_order=True)


def receiver(own: pl.DataFrame) -> Receiver | None:
    """Follow the arrivals; ``None`` where the log is of several streams, or too long."""
    import numpy as np
    import polars as pl

    first = own.filter(~pl.col("retransmission")).get_column("sequence_bytes").cast(pl.Float64).to_numpy()
    if own.height > MOST_ARRIVALS or not len(first) or (np.diff(first) < 0).any():
        return None
    arrived = (
        own.with_row_index("row").filter(pl.col("received_s").is_not_null()).sort("received_s", maintain_order=True)
    )
    starts = arrived.get_column("sequence_bytes").to_list()
    ends = (arrived.get_column("sequence_bytes") + arrived.get_column("payload_bytes")).to_list()
    expected = int(first[0])
    waiting: list[tuple[int, int]] = []
    edges, held = [], []
    for start, end in zip(starts, ends, strict=True):
        held.append(start > expected)
        if start > expected:
            heapq.heappush(waiting, (start, end))
        else:
            expected = max(expected, end)
            while waiting and waiting[0][0] <= expected:
                expected = max(expected, heapq.heappop(waiting)[1])
        edges.append(float(expected))
    times = arrived.get_column("received_s").cast(pl.Float64).to_numpy()
    return Receiver(
        times, np.array(edges), np.array(held, dtype=bool), arrived.get_column("row").cast(pl.Int64).to_numpy()
    )


def sequence_chart(result: RunResult) -> Chart | None:
    """The chart, of one flow."""
    import polars as pl

    counts = _retransmissions(result)
    if not counts:
        return None
    flow = max(counts, key=counts.__getitem__)
    own = packets_of(result, flow)
    again, first = own.filter(pl.col("retransmission")), own.filter(~pl.col("retransmission"))
    gone = own.filter(pl.col("fate").is_in(["dropped", "too-big", "lost"]))
    series = [_cloud("sent", first), _cloud("retransmitted", again, "marks"), _cloud("lost or dropped", gone, "marks")]
    settings = _settings(result, flow)
    held = None if settings.get("fec", {}).get("kind", "off") != "off" else receiver(own)
    if held is not None:
        series += _edges(result, flow, own, held, settings.get("transport", {}))
    count = len(counts)
    about = [] if count == 1 else [f"Flow {flow}, which retransmitted most; packets.parquet has all {count}."]
    if held is not None:
        about.append(
            "Points are when a packet was sent; the lines of the receiver, and what it held, are when it arrived."
        )
    elif settings.get("fec", {}).get("kind", "off") == "off":
        about.append("What the receiver holds is not drawn: the log is of several streams, or too long.")
    series = [one for one in series if len(one.x)]
    return Chart("sequence", "Sequence", "sequence (MB)", tuple(series), " ".join(about), is_tall=True)


def _edges(
    result: RunResult, flow: str, own: pl.DataFrame, held: Receiver, transport: dict[str, Any]
) -> list[SeriesColumns]:
    import numpy as np
    import polars as pl

    starts = own.get_column("sequence_bytes").cast(pl.Float64).to_numpy()
    label = "held out of order (SACK)" if transport.get("sack") else "held out of order"
    late = np.flatnonzero(held.held)
    made = [
        SeriesColumns(label, held.time_s[late], starts[held.rows[late]] / 1e6, "points", faint=True),
        SeriesColumns("next expected (rcv_nxt)", held.time_s, held.rcv_nxt / 1e6, "step"),
    ]
    samples = result.frame("samples")
    samples = samples.filter(pl.col("flow") == flow) if not samples.is_empty() else samples
    mss = size(str(transport.get("mss", ""))) or float(own.get_column("payload_bytes").max() or 0)  # type: ignore[arg-type]
    largest = 0.0
    if not samples.is_empty():
        columns = (
            samples.get_column(name).cast(pl.Float64) for name in ("time_s", "cwnd_packets", "in_flight_packets")
        )
        times, cwnd, flight = (column.fill_null(float("nan")).to_numpy() for column in columns)
        # What the window still permits lies above the highest octet that was sent.
        sent = own.get_column("sent_s").cast(pl.Float64).to_numpy()
        ends = np.maximum.accumulate(starts + own.get_column("payload_bytes").cast(pl.Float64).to_numpy())
        at = np.searchsorted(sent, times, side="right")
        some = (at > 0) & ~np.isnan(cwnd) & ~np.isnan(flight) & (times <= held.time_s[-1] if len(held.time_s) else True)
        edge = ends[at[some] - 1] + np.maximum(cwnd[some] - flight[some], 0.0) * mss
        made.append(SeriesColumns("congestion window's edge", times[some], edge / 1e6, faint=True))
        largest = float(np.nanmax(cwnd, initial=0.0)) * mss
    window = size(str(transport.get("receive_window", "")))
    if window and not transport.get("receive_autotuning") and window <= _COMPARABLE * largest:
        made.append(
            SeriesColumns("receive window's edge", held.time_s, (held.rcv_nxt + window) / 1e6, "step", faint=True)
        )
    return made


def _cloud(label: str, part: pl.DataFrame, kind: str = "points") -> SeriesColumns:
    import polars as pl

    values = part.get_column("sequence_bytes").cast(pl.Float64).to_numpy() / 1e6
    return SeriesColumns(label, part.get_column("sent_s").cast(pl.Float64).to_numpy(), values, kind)


def _settings(result: RunResult, flow: str) -> dict[str, Any]:
    flows = result.summary.get("resolved_scenario", {}).get("flow", {})
    found = flows.get(flow, flows.get(flow.partition("/")[0], {}))
    return found if isinstance(found, dict) else {}
