"""Reads the trace of another stack: times and congestion windows, of a CSV file or a qlog."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import UserError, nearest

_LARGEST = 256 << 20
"""Octets of a file."""
_TIMES = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6}
"""Columns of times, and their unit in seconds."""
_WINDOWS = ("cwnd_bytes", "cwnd_packets")
_METRICS = ("metrics_updated", "recovery_metrics_updated")
"""Names of the qlog event, without the namespace."""
_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of times in qlog; the drafts have milliseconds, older files name another."""


@dataclass(frozen=True)
class Trace:
    """Congestion windows over time.

    Attributes:
        times: In seconds, not decreasing; the first is 0.
        windows: In octets, or in packets.
        is_packets: Whether the windows are in packets.
    """

    times: tuple[float, ...]
    windows: tuple[float, ...]
    is_packets: bool = False


def read(file: Path) -> Trace:
    """The trace of a file. ``.qlog``, ``.sqlog`` and ``.json`` are qlogs, other files CSV.

    Raises:
        UserError: The file cannot be read, or has no windows.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None
    if len(content) > _LARGEST:
        raise UserError(f"{file}: more than {_LARGEST >> 20} MiB", hint="cut it to the connection in question")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise UserError("this is no UTF-8 text", file=str(file), hint="a CSV file or a qlog was expected") from None
    is_qlog = file.suffix.lower() in (".qlog", ".sqlog", ".json") or text[:1] in ("\x1e", "{")
    return _qlog(text, file) if is_qlog else _csv(text, file)


def _trace(found: list[tuple[float, float]], file: Path, what: str, *, is_packets: bool = False) -> Trace:
    if len(found) < 2:
        raise UserError(f"{file}: {len(found)} congestion windows; expected a series of them", hint=what)
    start = found[0][0]
    return Trace(tuple(time - start for time, _ in found), tuple(window for _, window in found), is_packets)


def _csv(text: str, file: Path) -> Trace:
    lines = csv.reader(io.StringIO(text))
    heads = [head.strip() for head in next(lines, [])]
    times = [head for head in heads if head in _TIMES]
    windows = [head for head in heads if head in _WINDOWS]
    for found, valid in ((times, list(_TIMES)), (windows, list(_WINDOWS))):
        if len(found) != 1:
            told = "no column" if not found else "more than one column"
            hint = nearest(heads[0], valid) if len(heads) == 1 else f"the columns are {', '.join(heads)}"
            raise UserError(f"{told} of {' or '.join(valid)}", file=str(file), line=1, hint=hint)
    at = heads.index(times[0]), heads.index(windows[0])
    unit = _TIMES[times[0]]
    found_rows: list[tuple[float, float]] = []
    for row in lines:
        if not row:
            continue
        number = lines.line_num
        try:
            time, window = (row[column] for column in at)
            if not window.strip():
                continue
            pair = float(time) * unit, float(window)
        except (ValueError, IndexError):
            raise UserError(
                f"a row without numbers in {times[0]} and {windows[0]}",
                file=str(file),
                line=number,
                source=",".join(row),
            ) from None
        _check(pair, found_rows, file, number)
        found_rows.append(pair)
    return _trace(found_rows, file, f"rows with {times[0]} and {windows[0]}", is_packets=windows[0] == "cwnd_packets")


def _check(pair: tuple[float, float], before: list[tuple[float, float]], file: Path, line: int | None) -> None:
    time, window = pair
    if not (math.isfinite(time) and math.isfinite(window) and window > 0):
        raise UserError(
            f"a window of {window:g} at {time:g} s; expected a finite one above 0", file=str(file), line=line
        )
    if before and time < before[-1][0]:
        raise UserError(f"{time:g} s follows {before[-1][0]:g} s; expected times in order", file=str(file), line=line)


def _qlog(text: str, file: Path) -> Trace:
    found: list[tuple[float, float]] = []
    unit = 1e-3
    clock = end = 0.0
    is_relative = False
    for line, record in _records(text, file):
        unit = _UNITS.get(str(_inside(record, "configuration", "time_units") or ""), unit)
        format_ = _inside(record, "common_fields", "time_format")
        is_relative = format_ in ("relative", "delta", "relative_to_previous_event") if format_ else is_relative
        for time, name, data in _events(record):
            is_delta = is_relative and format_ != "relative"
            clock = clock + time if is_delta else time
            end = max(end, clock * unit)
            window = data.get("congestion_window", data.get("cwnd"))
            if name.rpartition(":")[2] in _METRICS and isinstance(window, (int, float)):
                pair = clock * unit, float(window)
                _check(pair, found, file, line)
                found.append(pair)
    if found and math.isfinite(end) and end > found[-1][0]:
        # A window holds until the end of the record, since the event is one of changes.
        found.append((end, found[-1][1]))
    return _trace(found, file, "events `metrics_updated` with `congestion_window`")


def _records(text: str, file: Path) -> Iterator[tuple[int | None, Any]]:
    """The JSON documents of a file: one, or one for each line or record separator; with their lines."""
    if "\x1e" not in text:
        try:
            yield None, json.loads(text)
        except ValueError:
            pass
        else:
            return
    for number, line in enumerate(text.split("\n"), 1):
        record = line.strip("\x1e \r\t")
        if not record:
            continue
        try:
            yield number, json.loads(record)
        except ValueError as error:
            raise UserError(f"this is no JSON: {error}", file=str(file), line=number) from None
        except RecursionError:
            raise UserError("this JSON is nested too deeply", file=str(file), line=number) from None


def _inside(record: Any, *names: str) -> Any:
    """A value of the header, which is at several places in the versions of qlog."""
    for place in (record, *(_list(record, "traces")[:1]), _get(record, "trace")):
        value = place
        for name in names:
            value = _get(value, name)
        if value is not None:
            return value
    return None


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _list(value: Any, name: str) -> list[Any]:
    found = _get(value, name)
    return found if isinstance(found, list) else []


def _events(record: Any) -> Iterator[tuple[float, str, Mapping[str, Any]]]:
    """Events of a document: of a separate record, or of `traces`."""
    within = [event for trace in _list(record, "traces") for event in _list(trace, "events")]
    for event in within or [record]:
        if isinstance(event, list) and len(event) >= 4:
            time, *names, data = event
            name = ":".join(str(one) for one in names[:2])
        else:
            time, name, data = _get(event, "time"), str(_get(event, "name") or ""), _get(event, "data")
        if isinstance(time, str):
            try:
                time = float(time)
            except ValueError:
                continue
        if isinstance(time, (int, float)) and isinstance(data, Mapping):
            yield float(time), name, data
