"""Reads the JSON of an iperf3 client (``iperf3 -c HOST --json``): a row per interval and stream, and a summary.

iperf3 counts application bytes, so its rates are goodput: the receiver's if it reports, otherwise
the sender's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anabranch.convert import json_text, summary_json
from anabranch.convert.content import Notes, Source, Table
from anabranch.convert.json_text import Node

COLUMNS = ("time_s", "flow", "goodput_mbit_s", "cwnd_packets", "srtt_ms", "delivered_bytes", "retransmitted_packets")


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file begins as iperf3's JSON does."""
    return head.lstrip().startswith(b"{") and b'"start"' in head and (b'"test_start"' in head or b'"cookie"' in head)


def read(source: Source, notes: Notes) -> Table:
    """Rows per interval, with counts since the start as in ``samples``, and the summary of each stream.

    Raises:
        UserError: It is not iperf3's JSON, or iperf3 reports an error.
    """
    text = source.text()
    root = Node(text, json_text.parse(text))
    error = root.get("error")
    if error is not None:
        raise error.error(f"iperf3 failed: {error.text()}")
    start = root.need("start")
    mss = start.maybe("tcp_mss") or start.maybe("tcp_mss_default")
    intervals = root.need("intervals").entries()
    names = _names(intervals)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    cwnd: dict[str, list[tuple[float, float]]] = {name: [] for name in names.values()}
    totals = {name: [0.0, 0.0] for name in names.values()}
    for interval in intervals:
        for stream in interval.need("streams").entries():
            if _is_set(stream, "omitted"):
                notes.lost("intervals that iperf3 omitted (--omit)")
                continue
            flow = names[int(stream.need("socket").number())]
            _row(columns, stream, flow, mss, totals[flow], cwnd[flow])
    end = root.need("end")
    flows = {name: _flow(stream, cwnd[name], notes) for name, stream in _streams(end, names).items()}
    duration = max((time for time in columns["time_s"]), default=None)
    title = f"iperf3: {Path(source.name).name}"
    return Table(columns, summary_json.summary(title, "iperf3", duration, flows))


def _is_set(node: Node, key: str) -> bool:
    found = node.get(key)
    return found is not None and bool(found.value)


def _names(intervals: list[Node]) -> dict[int, str]:
    """``main`` for one stream; ``main/0``, ``main/1``, … for several, in the order of their first interval."""
    sockets: dict[int, None] = {}
    for interval in intervals:
        for stream in interval.need("streams").entries():
            sockets[int(stream.need("socket").number())] = None
    if len(sockets) == 1:
        return dict.fromkeys(sockets, "main")
    return {socket: f"main/{number}" for number, socket in enumerate(sockets)}


def _row(
    columns: dict[str, list[Any]],
    stream: Node,
    flow: str,
    mss: float | None,
    totals: list[float],
    cwnd: list[tuple[float, float]],
) -> None:
    seconds = stream.need("end").number() - stream.need("start").number()
    window, rtt, again = (stream.maybe(name) for name in ("snd_cwnd", "rtt", "retransmits"))
    packets = window / mss if window is not None and mss else None
    totals[0] += stream.need("bytes").number()
    totals[1] += again or 0
    if packets is not None and seconds > 0:
        cwnd.append((packets, seconds))
    row = (
        stream.need("end").number(),
        flow,
        stream.need("bits_per_second").number() / 1e6,
        packets,
        rtt / 1000 if rtt else None,
        round(totals[0]),
        None if again is None else round(totals[1]),
    )
    for name, value in zip(COLUMNS, row, strict=True):
        columns[name].append(value)


def _streams(end: Node, names: dict[int, str]) -> dict[str, Node]:
    found = {}
    for stream in end.need("streams").entries():
        side = stream.get("sender") or stream.get("udp")
        if side is None:
            raise stream.error('"sender" or "udp" was expected and is missing')
        socket = side.need("socket")
        if int(socket.number()) not in names:
            raise socket.error(f"stream {socket.value} has no interval")
        found[names[int(socket.number())]] = stream
    return found


def _flow(stream: Node, cwnd: list[tuple[float, float]], notes: Notes) -> summary_json.Figures:
    sender = stream.get("sender") or stream.need("udp")
    counted = stream.get("receiver")
    if counted is None or not counted.maybe("bytes"):
        if stream.get("sender") is not None:
            notes.lost("the receiver's counts: iperf3 has only those of the sender")
        counted = sender
    again, rtt, least = (sender.maybe(name) for name in ("retransmits", "mean_rtt", "min_rtt"))
    length = sum(seconds for _, seconds in cwnd)
    return {
        "goodput_mbit_s": counted.need("bits_per_second").number() / 1e6,
        "delivered_bytes": round(counted.need("bytes").number()),
        "retransmitted_packets": None if again is None else round(again),
        "mean_cwnd_packets": sum(packets * seconds for packets, seconds in cwnd) / length if length else None,
        "mean_srtt_ms": rtt / 1000 if rtt else None,
        "min_rtt_ms": least / 1000 if least else None,
    }
