"""Invariants of every diagnosis: bounds are ordered, shares lie in [0, 1], sums add up, frames exist.

`violations` checks a document of `anabranch diagnose --json`. Tests, fuzzing and `public.py` use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeVar

Table = Mapping[str, Any]
Document = TypeVar("Document", bound=Table)

TOLERANCE_S = 1e-6
"""Rounding of sums of times."""

SHARES = {"ratio", "rate"}
"""Shares among the estimates, by key: `path.reordering.ratio` and `path.loss.rate`."""


def violations(document: Table) -> Iterator[str]:
    """Each broken invariant in a line: its location, and the figures."""
    yield from _finite("", document)
    packets = document["packets"]
    connections = document["connections"]
    counted = sum(one["packets"] for one in connections) + document["omitted"]["packets"]
    counted += sum(document["passed_over"].values())
    directions = (way for one in document["quic"] for way in one["directions"].values())
    counted += sum(way["datagrams"] for way in directions) + document["quic_not_listed"]
    if counted != packets:
        yield f"packets: {packets}, of which {counted} are counted"
    if not all(one["id"] < other["id"] for one, other in pairwise(connections)):
        yield "connections: numbers do not ascend"
    is_sorted = not document["time_went_back"]
    for connection in connections:
        for line in _connection(connection, packets, is_sorted=is_sorted):
            yield f"connection {connection['id']}: {line}"


def _finite(where: str, value: object) -> Iterator[str]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where}: {value}"
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _finite(f"{where}.{name}" if where else str(name), part)
    elif isinstance(value, list):
        for part in value:
            yield from _finite(f"{where}[]", part)


def _connection(connection: Table, packets: int, *, is_sorted: bool) -> Iterator[str]:
    if connection["duration_s"] < 0:
        yield f"duration_s {connection['duration_s']}"
    if connection["reset"]:
        yield from _frames("reset", [connection["reset"]["packet"]], packets)
    for finding in connection["findings"]:
        if not 0 <= finding["share"] <= 1:
            yield f"{finding['cause']}: share {finding['share']}"
        yield from _frames(finding["cause"], finding["packets"], packets)
    yield from _estimates("path", connection["path"])
    for name, direction in connection["directions"].items():
        for line in _direction(direction, connection, packets, is_sorted=is_sorted):
            yield f"{name}: {line}"


def _direction(direction: Table, connection: Table, packets: int, *, is_sorted: bool) -> Iterator[str]:
    duration = connection["duration_s"]
    start, end = connection["start_s"], connection["start_s"] + duration
    limits = direction["limits_s"]
    # Times since 1970 have a resolution of a quarter of a microsecond in a double.
    rounding = max(TOLERANCE_S, math.ulp(end) * 2)
    if abs(sum(limits.values()) - duration) > rounding:
        yield f"limits_s: {sum(limits.values())} s of {duration} s"
    yield from (f"limits_s: {name} {time}" for name, time in limits.items() if time < 0)
    for part, whole in (
        ("receiver_application_s", "application"),
        ("closing_s", "application"),
        ("receiver_unread_s", "receive-window"),
    ):
        if not -TOLERANCE_S <= direction[part] <= limits.get(whole, 0.0) + TOLERANCE_S:
            yield f"{part}: {direction[part]} of {limits.get(whole)} s"
    if direction["data_packets"] > direction["packets"]:
        yield f"data_packets: {direction['data_packets']} of {direction['packets']}"
    rate = direction["goodput_mbit_s"]
    if rate is not None and rate < 0:
        yield f"goodput_mbit_s {rate}"
    yield from _ordered("rtt_ms", [direction["rtt_ms"][name] for name in ("min", "median", "p95")])
    known = direction["rtt_ms"].items()
    yield from (f"rtt_ms: {name} {value}" for name, value in known if value is not None and value <= 0)
    yield from _counts(direction)
    before = -math.inf
    for one in direction["retransmissions"]:
        yield from _frames("retransmissions", [one["packet"]], packets)
        if one["earlier"] is not None:
            yield from _frames("retransmissions", [one["earlier"]], packets)
            if is_sorted and one["earlier"] >= one["packet"]:
                yield f"retransmissions: packet {one['packet']} repeats packet {one['earlier']}"
        yield from _within("retransmissions", one["time_s"], start - rounding, end + rounding)
        if one["time_s"] < before:
            yield f"retransmissions: packet {one['packet']} is before the one before"
        before = one["time_s"]
    for stall in direction["stalls"]:
        yield from _frames("stalls", stall["packets"], packets)
        yield from _within("stalls", stall["start_s"], start - rounding, end + rounding)
        yield from _within("stalls", stall["start_s"] + stall["duration_s"], start - rounding, end + rounding)
        if stall["duration_s"] < 0:
            yield f"stalls: {stall['duration_s']} s"
    for change in direction["route_changes"]:
        yield from _within("route_changes", change["time_s"], start - rounding, end + rounding)
        yield from (f"route_changes: {name} {change[name]}" for name in ("before_ms", "after_ms") if change[name] < 0)


def _counts(direction: Table) -> Iterator[str]:
    counts = direction["retransmission_counts"]
    if counts["all"] != counts["needed"] + counts["spurious"] + counts["undecided"]:
        yield f"retransmission_counts: {counts}"
    if counts["all"] != len(direction["retransmissions"]) + counts["not_listed"]:
        yield f"retransmission_counts: {counts['all']}, of which {len(direction['retransmissions'])} are listed"
    if sum(direction["triggers"].values()) != counts["all"]:
        yield f"triggers: {sum(direction['triggers'].values())} of {counts['all']}"


def _estimates(where: str, value: object) -> Iterator[str]:
    """Each estimate of a model: 0 <= low <= value <= high; a share is at most 1."""
    if isinstance(value, list):
        for part in value:
            yield from _estimates(f"{where}[]", part)
    if not isinstance(value, Mapping):
        return
    if {"value", "low", "high", "seen"} <= value.keys():
        figures = [value[name] for name in ("low", "value", "high")]
        yield from _ordered(where, figures)
        most = 1.0 if where.rpartition(".")[2] in SHARES and ".reverse" not in where else math.inf
        yield from (f"{where}: {one}" for one in figures if one is not None and not 0 <= one <= most)
        if (value["value"] is None) != (value["seen"] == "not-seen"):
            yield f"{where}: {value}"
        return
    for name, part in value.items():
        yield from _estimates(f"{where}.{name}", part)


def _ordered(where: str, values: list[float | None]) -> Iterator[str]:
    known = [value for value in values if value is not None]
    if any(one > other * (1 + 1e-9) + 1e-12 for one, other in pairwise(known)):
        yield f"{where}: {known} do not ascend"


def _frames(where: str, frames: list[int], packets: int) -> Iterator[str]:
    yield from (f"{where}: frame {frame} of {packets}" for frame in frames if not 1 <= frame <= packets)


def _within(where: str, time: float, start: float, end: float) -> Iterator[str]:
    if not start <= time <= end:
        yield f"{where}: {time} s is outside of {start} to {end} s"


def checked(document: Document) -> Document:
    """The document, if it breaks no invariant.

    Raises:
        ValueError: It breaks one.
    """
    broken = list(violations(document))
    if broken:
        raise ValueError("\n".join(broken))
    return document
