"""The counters of attached queues, and their text for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from anabranch import _engine
from anabranch.aqm.attach import refusal
from anabranch.errors import require_linux

METRICS: Sequence[tuple[str, str, str, str]] = (
    ("packets", "packets_total", "counter", "Packets that arrived at the queue."),
    ("bytes", "bytes_total", "counter", "Bytes of the IP packets that arrived at the queue."),
    ("dropped_packets", "dropped_packets_total", "counter", "Packets that the queue dropped."),
    ("dropped_bytes", "dropped_bytes_total", "counter", "Bytes of the packets that the queue dropped."),
    ("marked_packets", "marked_packets_total", "counter", "Packets that the queue marked (ECN)."),
    ("full_packets", "full_packets_total", "counter", "Packets dropped because the queue was full."),
    ("aggregates", "aggregates_total", "counter", "Arrivals of several segments in one buffer (GSO, GRO)."),
    ("other_frames", "other_frames_total", "counter", "Frames without an IP packet, which pass."),
    ("average", "average_length", "gauge", "Average length of the queue, in the unit of its thresholds."),
    ("waiting_packets", "waiting_packets", "gauge", "Packets in the virtual queue after the last arrival."),
    ("waiting_bytes", "waiting_bytes", "gauge", "Bytes in the virtual queue after the last arrival."),
    ("connections", "recorded_connections", "gauge", "Connections in the history."),
    ("active_connections", "active_connections", "gauge", "Connections that take part, by the history."),
    ("load", "load_ratio", "gauge", "Arrival rate as a share of the rate."),
    ("rate_bit_s", "rate_bits_per_second", "gauge", "Rate of the virtual link."),
    ("confirmed", "confirmed", "gauge", "1: the queue remains; 0: it has to be confirmed."),
)
"""Key of the status, name after ``anabranch_aqm_``, type, help text."""


def status(device: str | None = None) -> list[dict[str, Any]]:
    """The queue of a device, or the queues of all devices of this network namespace.

    Raises:
        UserError: There is no such device, or the privilege is missing.
    """
    require_linux("a queue at a device")
    try:
        queues: list[dict[str, Any]] = json.loads(_engine.aqm_status(device))
    except _engine.AqmError as error:
        raise refusal(error) from None
    return queues


def metrics(queues: Sequence[dict[str, Any]]) -> str:
    """The queues in Prometheus's text format, also without any queue."""
    lines = []
    for key, name, kind, text in METRICS:
        metric = f"anabranch_aqm_{name}"
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
        for queue in queues:
            labels = f'device="{_escaped(queue["device"])}",kind="{_escaped(queue["kind"])}"'
            value = queue[key]
            lines.append(f"{metric}{{{labels}}} {float(value) if isinstance(value, float) else int(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A label's value in the text format."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
