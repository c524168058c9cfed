"""The chart of sequences: sent data, data that the receiver held out of order, and the edges of the windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns
from anabranch.charts.scan import LOST
from anabranch.result.remarks import settings_of, size
from anabranch.result.table_file import file_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.charts.scan import Scan
    from anabranch.result.result import RunResult
    from anabranch.result.table import Table

MOST_ARRIVALS = 500_000
"""Arrivals that are followed for the receiver's state; charts of longer logs show only sent data."""
MOST_DRAWN = 5_000_000
"""Packets of the flow that are read; a longer log would not fit into memory."""
_COLUMNS = ("sequence_bytes", "payload_bytes", "retransmission", "sent_s", "received_s", "fate", "where")
_COMPARABLE = 2.0
"""Ratio to the largest congestion window above which a receive window limits nothing and is left out."""


@dataclass(frozen=True)
class Receiver:
    """State of the receiver after each arrival.

    Attributes:
        time_s: Arrival times of the packets, ascending.
        rcv_nxt: The next octet expected after the arrival.
        held: Whether the packet was held because an earlier octet was missing.
        rows: The packet's row of the log.
    """

    time_s: NDArray[np.float64]
    rcv_nxt: NDArray[np.float64]
    held: NDArray[np.bool_]
    rows: NDArray[np.int64]


def packets_of(result: RunResult, flow: str) -> Table:
    """Packets with payload of ``flow`` in its main direction, by time of sending; the first ``MOST_DRAWN``."""
    import numpy as np

    from anabranch.result.table import joined

    parts: list[Table] = []
    for part in result.plain_parts(("flow", "direction", *_COLUMNS)):
        chosen = part.is_in("flow", flow) & (part.numbers("payload_bytes") > 0)
        parts.append(part.select("direction", *_COLUMNS).where(chosen))
        if sum(one.height for one in parts) >= MOST_DRAWN:
            break
    own = joined(parts)
    ways = own.column("direction")
    if len(ways.names) > 1:
        # The first of two equal directions.
        octets = np.bincount(ways.values, weights=own.numbers("payload_bytes"), minlength=len(ways.names))
        own = own.where(ways.values == octets.argmax())
    return own.select(*_COLUMNS).sort("sent_s")


def receiver(own: Table) -> Receiver | None:
    """Follow the arrivals; ``None`` if the log has several streams, or is too long."""
    import numpy as np

    first = own.numbers("sequence_bytes")[~own.flags("retransmission")]
    if own.height > MOST_ARRIVALS or not len(first) or (np.diff(first) < 0).any():
        return None
    rows = np.flatnonzero(own.has("received_s"))
    rows = rows[np.argsort(own.numbers("received_s")[rows], kind="stable")]
    starts = own.column("sequence_bytes").values[rows].astype(np.int64)
    expected = int(first[0])
    edges = _next_expected(starts, starts + own.column("payload_bytes").values[rows].astype(np.int64), expected)
    held = starts > np.concatenate([[expected], edges[:-1]]) if len(rows) else np.zeros(0, dtype=bool)
    return Receiver(own.numbers("received_s")[rows], edges.astype(np.float64), held, rows)


def _next_expected(starts: NDArray[np.int64], ends: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """The first missing octet from ``first`` on, after each arrival of the octets from a start to an end."""
    import numpy as np

    count = len(starts)
    bounds = np.sort(np.concatenate([starts, ends, [first]]))
    bounds = bounds[np.diff(bounds, prepend=-1) > 0]
    # The first arrival that covers the octets between each bound and the next; `count` if none does.
    low, high = np.searchsorted(bounds, starts), np.searchsorted(bounds, ends)
    offsets = np.arange((high - low).sum()) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    covered = np.full(len(bounds), count)
    # Of assignments to one place, the last counts.
    covered[(np.repeat(low, high - low) + offsets)[::-1]] = np.repeat(np.arange(count), high - low)[::-1]
    begin = int(np.searchsorted(bounds, first))
    complete = np.maximum.accumulate(covered[begin:])
    edges: NDArray[np.int64] = bounds[begin + np.searchsorted(complete, np.arange(count), side="right")]
    return edges


def sequence_chart(result: RunResult, scan: Scan, own: Table) -> Chart | None:
    """The chart of the flow that retransmitted most, of its packets ``own``."""
    flow = scan.most_retransmitting()
    if flow is None:
        return None
    is_again = own.flags("retransmission")
    gone = own.is_in("fate", *LOST)
    series = [
        _cloud("sent", own, ~is_again),
        _cloud("retransmitted", own, is_again, "marks"),
        _cloud("lost or dropped", own, gone, "marks"),
    ]
    settings = settings_of(result, flow)
    held = None if settings.get("fec", {}).get("kind", "off") != "off" else receiver(own)
    if held is not None:
        series += _edges(result, flow, own, held)
    count = len(scan.retransmissions)
    about = [] if count == 1 else [f"Flow {flow}, which retransmitted most; {file_name('packets')} has all {count}."]
    if held is not None:
        about.append(
            "Points are when a packet was sent; the lines of the receiver, and what it held, are when it arrived."
        )
    elif settings.get("fec", {}).get("kind", "off") == "off":
        about.append("What the receiver holds is not drawn: the log is of several streams, or too long.")
    series = [one for one in series if len(one.x)]
    return Chart("sequence", "Sequence", "sequence (MB)", tuple(series), " ".join(about), is_tall=True)


def _edges(result: RunResult, flow: str, own: Table, held: Receiver) -> list[SeriesColumns]:
    import numpy as np

    transport = settings_of(result, flow).get("transport", {})
    starts, octets = own.numbers("sequence_bytes"), own.numbers("payload_bytes")
    label = "held out of order (SACK)" if transport.get("sack") else "held out of order"
    late = np.flatnonzero(held.held)
    made = [
        SeriesColumns(label, held.time_s[late], starts[held.rows[late]] / 1e6, "points", faint=True),
        SeriesColumns("next expected (rcv_nxt)", held.time_s, held.rcv_nxt / 1e6, "step"),
    ]
    samples = result.plain("samples")
    samples = samples.where(samples.is_in("flow", flow)) if samples.height else samples
    mss = size(str(transport.get("mss", ""))) or float(octets.max(initial=0.0))
    largest = 0.0
    if samples.height:
        times, cwnd, flight = map(samples.numbers, ("time_s", "cwnd_packets", "in_flight_packets"))
        # The window's edge is above the highest octet sent by the unused part of the window.
        sent = own.numbers("sent_s")
        ends = np.maximum.accumulate(starts + octets)
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


def _cloud(label: str, own: Table, rows: NDArray[np.bool_], kind: str = "points") -> SeriesColumns:
    return SeriesColumns(label, own.numbers("sent_s")[rows], own.numbers("sequence_bytes")[rows] / 1e6, kind)
