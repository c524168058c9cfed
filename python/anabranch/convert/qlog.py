"""Writes a run as qlog (draft-ietf-quic-qlog-main-schema-14, sequential JSON-SEQ): the events of its TCP.

The drafts define events of QUIC. TCP's events are in a separate namespace, ``tcp``. They have the
names and fields of draft-ietf-quic-qlog-quic-events-14 if TCP has the same event: ``packet_sent``,
``packet_received``, ``packet_lost``, ``recovery_metrics_updated``, ``congestion_state_updated``.
Times are in milliseconds since the start of the run, windows in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from anabranch.convert.content import Names, Notes, Run, Written
from anabranch.errors import UserError
from anabranch.files import stored
from anabranch.text import quantity

_RECORD = b"\x1e"
METRICS = "recovery_metrics_updated"
SCHEMA = "urn:anabranch:qlog:events:tcp"

_LOST_BY = {
    "rto": "pto_expired", "tlp": "pto_expired", "rack": "time_threshold", "fast-retransmit": "reordering_threshold",
    "sack": "reordering_threshold",
}  # fmt: skip
"""The QUIC draft's triggers of ``packet_lost``; other causes keep our name."""

_STATES = {
    "recovery-entered": ("recovery", None), "recovery-left": ("congestion_avoidance", None),
    "rto": ("slow_start", "pto_expired"), "ecn": ("recovery", "ecn"), "timer-rule": ("slow_start", "timer-rule"),
    "undo": ("congestion_avoidance", "undo"), "loss-repaired": ("recovery", "loss-repaired"),
    "tlp": ("recovery", "tlp"),
}  # fmt: skip

_METRICS = (
    ("srtt_ms", "smoothed_rtt", False), ("cwnd_packets", "congestion_window", True),
    ("in_flight_packets", "bytes_in_flight", True), ("ssthresh_packets", "ssthresh", True), ("rto_ms", "rto", False),
)  # fmt: skip
"""Columns of ``samples``, the draft's names, and whether they become bytes; ``rto`` exists only in TCP."""


_Data = dict[str, object]


class _Event(TypedDict):
    time: float
    name: str
    group_id: str
    data: _Data


def write(run: Run, _names: Names, notes: Notes) -> Written:
    """The header and every event in the order of time."""
    events = [event for flow in run.summary["flows"] for event in _flow_events(run, flow)]
    # Python's sort keeps the order of events of one time.
    events.sort(key=lambda event: event["time"])
    if not events:
        notes.lost("the flows of this run: none of them is TCP's with samples or packets")
    notes.remarks.append("qlog has the events of a connection's ends: packet drops on the path are not in the file")
    records = [_header(run), *_changes(events)]
    content = b"".join(
        _RECORD + json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        for record in records
    )
    return Written(content)


def _header(run: Run) -> dict[str, object]:
    return {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": Path(str(run.summary["scenario"])).name,
        "description": f"anabranch {run.summary['anabranch_version']}, seed {run.summary['seed']}",
        "trace": {
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            },
            # The capture shows both ends; the client is the sender.
            "vantage_point": {"name": "anabranch", "type": "network", "flow": "client"},
            "event_schemas": [SCHEMA],
        },
    }


def _changes(events: list[_Event]) -> Iterator[_Event]:
    """The same events; metrics only if they have changed since the flow's last ones."""
    known: dict[str, _Data] = {}
    for event in events:
        if event["name"] != f"tcp:{METRICS}":
            yield event
            continue
        before = known.setdefault(event["group_id"], {})
        changed = {name: value for name, value in event["data"].items() if before.get(name) != value}
        before |= changed
        if changed:
            yield {**event, "data": changed}


def _flow_events(run: Run, flow: str) -> Iterator[_Event]:
    mss = _mss(run.summary["resolved_scenario"], flow)
    for time, name, data in _events(run, flow, mss):
        yield {"time": round(time * 1000, 6), "name": f"tcp:{name}", "group_id": flow, "data": data}


class _Transport(TypedDict, total=False):
    mss: str


class _Flow(TypedDict, total=False):
    transport: _Transport | None


class _Resolved(TypedDict):
    flow: dict[str, _Flow]


def _mss(resolved: Any, flow: str) -> int:
    """Bytes of a full segment; copies of a flow are called ``NAME/0``, ``NAME/1``, ….

    Raises:
        UserError: The resolved scenario of the summary was altered.
    """
    try:
        stored.check(resolved, _Resolved)
        read: _Resolved = resolved
        described = read["flow"].get(flow) or read["flow"].get(flow.rpartition("/")[0]) or {}
        return quantity.size((described.get("transport") or {}).get("mss", "1448 bytes"))
    except (LookupError, ValueError, ArithmeticError) as error:
        raise UserError(f"resolved_scenario of the summary is not as it was written: {error}") from None


def _events(run: Run, flow: str, mss: int) -> Iterator[tuple[float, str, _Data]]:
    yield from _packets(run, flow)
    yield from _metrics(run, flow, mss)
    yield from _states(run, flow, mss)


def _rows(run: Run, table: str, flow: str) -> list[dict[str, Any]]:
    found = run.table(table)
    return found.where(found.is_in("flow", flow)).to_dicts()


def _packets(run: Run, flow: str) -> Iterator[tuple[float, str, _Data]]:
    for row in _rows(run, "packets", flow):
        header = {"packet_number": row["packet_index"], "sequence_number": row["sequence_bytes"]}
        raw = {"length": row["size_bytes"], "payload_length": row["payload_bytes"]}
        sent: _Data = {"header": header, "raw": raw}
        if row["retransmission"]:
            cause = row["cause"]
            sent["is_retransmission"] = True
            if cause is not None:
                sent["trigger"] = cause
                # The sender has marked an earlier packet of these octets lost; a tail loss probe
                # marks none.
                if cause != "tlp":
                    lost = {"sequence_number": row["sequence_bytes"]}
                    yield row["sent_s"], "packet_lost", {"header": lost, "trigger": _LOST_BY.get(cause, cause)}
        yield row["sent_s"], "packet_sent", sent
        if row["received_s"] is not None:
            yield row["received_s"], "packet_received", {"header": header, "raw": raw}


def _metrics(run: Run, flow: str, mss: int) -> Iterator[tuple[float, str, _Data]]:
    for row in _rows(run, "samples", flow):
        found = {}
        for column, name, is_packets in _METRICS:
            value = row.get(column)
            if value is not None:
                found[name] = round(value * mss) if is_packets else round(value, 6)
        yield row["time_s"], METRICS, found


def _states(run: Run, flow: str, mss: int) -> Iterator[tuple[float, str, _Data]]:
    state = "slow_start"
    for row in _rows(run, "window_events", flow):
        new, trigger = _STATES.get(row["event"], (row["event"], None))
        data: _Data = {"old": state, "new": new}
        if trigger is not None:
            data["trigger"] = trigger
        yield row["time_s"], "congestion_state_updated", data
        window = {"congestion_window": row["cwnd_after_packets"], "ssthresh": row["ssthresh_packets"]}
        known = {name: round(value * mss) for name, value in window.items() if value is not None}
        yield row["time_s"], METRICS, known
        state = new
