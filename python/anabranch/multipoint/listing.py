"""The segments of a capture as columns, with the diagnosis that numbered their connections."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch import _engine
from anabranch.diagnosis.diagnosis import Diagnosis
from anabranch.errors import UserError
from anabranch.text import shown

MOST_SEGMENTS = 5_000_000
"""Segments of each of two captures that are compared, and fewer of more; they take 4.5 GB of memory."""

FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128
CONTROL_BITS, ECN_SHIFT, CE = 0x0FFF, 14, 3
"""The control bits in a record's flags, the place of the ECN field above them, and its value for a congestion mark."""
FROM_A, HAS_ID, HAS_STAMPS, SACK_PERMITTED, ALL_OPTIONS, HAS_MSS, HAS_SCALE = (1 << bit for bit in range(7))
"""Bits of a record, as ``crates/diagnose/src/listing.rs`` sets them."""

RECORD = np.dtype([
    ("time_ns", "<i8"), ("connection", "<u4"), ("frame", "<u4"), ("seq", "<u4"), ("ack", "<u4"), ("bytes", "<u4"),
    ("ts_value", "<u4"), ("ts_echo", "<u4"), ("sack_left", "<u4"), ("sack_right", "<u4"), ("flags", "<u2"),
    ("window", "<u2"), ("mss", "<u2"), ("ip_id", "<u2"), ("hops", "u1"), ("shift", "u1"), ("bits", "u1"),
    ("blocks", "u1"),
])  # fmt: skip
"""A record of ``_engine.diagnose_segments``."""

Rows: TypeAlias = NDArray[Any]
"""Records, by columns."""
Indices: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.uint64]
Times: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Listing:
    """The segments of a capture.

    Attributes:
        name: The name of its point.
        path: The capture.
        diagnosis: Its diagnosis.
        rows: The segments of the listed connections, in order of time.
        start_s: The time of its first segment.
        end_s: The time of its last segment.
        left_out: Segments that are not listed, because there are too many.
    """

    name: str
    path: Path
    diagnosis: Diagnosis
    rows: Rows
    start_s: float
    end_s: float
    left_out: int


def list_segments(
    path: Path,
    name: str,
    *,
    any_expansion: bool = False,
    most: int = MOST_SEGMENTS,
    progress: Callable[[float], None] | None = None,
) -> Listing:
    """Diagnose a capture and list its segments.

    Raises:
        UserError: It is no capture, cannot be read, or has no TCP connection.
    """
    shown_path = shown.plain(str(path))
    try:
        document, records, left_out = _engine.diagnose_segments(str(path), str(path), most, any_expansion, progress)
    except _engine.CaptureError as error:
        raise UserError(str(error), file=shown_path) from None
    found = Diagnosis(json.loads(document))
    rows = np.frombuffer(records, RECORD)
    if not len(rows):
        raise UserError("it has no TCP segment, so that there is nothing to compare", file=shown_path)
    times = rows["time_ns"]
    return Listing(name, path, found, rows, int(times.min()) / 1e9, int(times.max()) / 1e9, left_out)


def mixed(*columns: NDArray[Any]) -> Numbers:
    """One number of 64 bits for each row of columns; equal rows have equal numbers."""
    made = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        made = _scrambled(made ^ column.astype(np.uint64))
    return made


def _scrambled(value: Numbers) -> Numbers:
    """A bijection of 64-bit numbers (the finalizer of SplitMix64)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed_up: Numbers = value ^ (value >> np.uint64(31))
    return mixed_up


def groups(keys: NDArray[Any]) -> tuple[Indices, Indices]:
    """The order that brings equal keys together, and where each group begins in it, with the length at the end."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(keys) else np.zeros(0, int)
    return order, np.concatenate((begins, [len(keys)])).astype(np.int64)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values in ascending order; numpy's hash table takes several times as long for numbers of 64 bits."""
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def is_among(values: NDArray[Any], known: NDArray[Any]) -> Flags:
    """Whether each value is one of some ascending values."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Flags = known[at] == values
    return found


def has(rows: Rows, bit: int) -> Flags:
    """Whether a bit of the record is set."""
    found: Flags = (rows["bits"] & np.uint8(bit)) != 0
    return found


def ecn(rows: Rows) -> NDArray[np.uint16]:
    """The ECN field: 0 for a packet that is not ECN-capable."""
    field: NDArray[np.uint16] = rows["flags"] >> np.uint16(ECN_SHIFT)
    return field


def flagged(rows: Rows, flags: int) -> Flags:
    """Whether one of these control bits is set."""
    found: Flags = (rows["flags"] & np.uint16(flags)) != 0
    return found
