"""Makes vectors: a run for each control and scenario, as CSV and as qlog."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anabranch.convert.qlog import METRICS, SCHEMA
from anabranch.vectors.scenarios import RTT_S, SMSS, Vector

COLUMNS = (
    "time_s",
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    "pacing_rate_bit_s",
    "srtt_ms",
    "delivered_bytes",
    "event",
)
"""Columns of a vector's CSV file."""
STEP_S = RTT_S
"""Time between two samples: one round trip without a queue."""
RULE = "one row per round trip without a queue (40 ms), and one per event; nothing is left out or smoothed"
"""The rule of decimation, for the manifest."""


@dataclass(frozen=True)
class Row:
    """A sample, or an event.

    Attributes:
        time_s: Time since the start of the run.
        cwnd: The congestion window, in octets; of an event, after it.
        ssthresh: The slow start threshold, in octets; ``None`` before the first reduction.
        in_flight: Octets in flight; ``None`` of events.
        pacing_rate: In bit/s; ``None`` if the sender does not pace, and of events.
        srtt_ms: The smoothed round-trip time; ``None`` before the first measurement, and of events.
        delivered: Octets delivered in order; ``None`` of events.
        event: The event's name, as in the table ``window_events``; empty of samples.
    """

    time_s: float
    cwnd: int
    ssthresh: int | None = None
    in_flight: int | None = None
    pacing_rate: int | None = None
    srtt_ms: float | None = None
    delivered: int | None = None
    event: str = ""


def rows(vector: Vector, control: str) -> list[Row]:
    """Run a scenario with a control.

    Raises:
        ScenarioError: There is no such control.
    """
    from anabranch.scenario import Scenario

    run = Scenario.from_text(vector.text(control), file=f"{control}/{vector.name}").run(
        samples_ms=STEP_S * 1000, packets=True
    )
    found = [
        Row(
            time_s=one["time_s"],
            cwnd=_octets(one["cwnd_packets"]),
            ssthresh=None if one["ssthresh_packets"] is None else _octets(one["ssthresh_packets"]),
            in_flight=_octets(one["in_flight_packets"]),
            pacing_rate=None if one["pacing_rate_mbit_s"] is None else round(one["pacing_rate_mbit_s"] * 1e6),
            srtt_ms=one["srtt_ms"],
            delivered=one["delivered_bytes"],
        )
        for one in run.plain("samples").to_dicts()
    ]
    found += [
        Row(
            time_s=one["time_s"],
            cwnd=_octets(one["cwnd_after_packets"]),
            ssthresh=None if one["ssthresh_packets"] is None else _octets(one["ssthresh_packets"]),
            event=one["event"],
        )
        for one in run.plain("window_events").to_dicts()
    ]
    # Events precede the sample of the same time. Python's sort keeps the order of events.
    return sorted(found, key=lambda row: (row.time_s, not row.event))


def _octets(packets: float) -> int:
    return round(packets * SMSS)


def to_csv(found: Sequence[Row]) -> bytes:
    """The rows as CSV: times in microseconds' precision, octets as whole numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in found:
        writer.writerow((
            f"{row.time_s:.6f}", row.cwnd, *map(_cell, (row.ssthresh, row.in_flight, row.pacing_rate)),
            "" if row.srtt_ms is None else f"{row.srtt_ms:.3f}", _cell(row.delivered), row.event,
        ))  # fmt: skip
    return text.getvalue().encode()


def _cell(value: int | None) -> str:
    return "" if value is None else str(value)


def to_qlog(found: Sequence[Row], title: str) -> bytes:
    """The rows as qlog (JSON text sequences), with the names of the drafts, in the namespace ``tcp``."""
    header = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": title,
        "trace": {
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            },
            "vantage_point": {"name": "anabranch", "type": "client"},
            "event_schemas": [SCHEMA],
        },
    }
    records: list[object] = [header, *_events(found)]
    return b"".join(b"\x1e" + json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in records)


def _events(found: Sequence[Row]) -> Iterator[dict[str, object]]:
    known: dict[str, object] = {}
    for row in found:
        time = round(row.time_s * 1000, 3)
        if row.event:
            yield {"time": time, "name": "tcp:congestion_state_updated", "data": {"trigger": row.event}}
        data = {
            "congestion_window": row.cwnd,
            "ssthresh": row.ssthresh,
            "bytes_in_flight": row.in_flight,
            "pacing_rate": row.pacing_rate,
            "smoothed_rtt": None if row.srtt_ms is None else round(row.srtt_ms, 3),
        }
        changed = {name: value for name, value in data.items() if value is not None and known.get(name) != value}
        known |= changed
        if row is found[-1]:
            # The record says how long its last window held.
            changed["congestion_window"] = row.cwnd
        if changed:
            yield {"time": time, "name": f"tcp:{METRICS}", "data": changed}
