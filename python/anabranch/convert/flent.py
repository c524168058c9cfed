"""flent's data files (``.flent``, ``.flent.gz``): read as a table, written from a run.

Series of flent are goodput in Mbit/s (``TCP upload…``, ``TCP download…``), round-trip times in ms
(``Ping…``, ``UDP RTT…``), and samples of a socket (``…::tcp_rtt``, ``…::tcp_cwnd``). Sums, means
and totals are computed from these series and are left out.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch.convert import json_text, summary_json
from anabranch.convert.content import Names, Notes, Run, Source, Table, Text, Written
from anabranch.convert.json_text import Node
from anabranch.errors import UserError

COLUMNS = ("time_s", "flow", "goodput_mbit_s", "cwnd_packets", "srtt_ms", "rtt_ms")

_GZIP = b"\x1f\x8b"
_MOST = 1024 * 1024 * 1024
_FORMAT = 3
"""The version of the file format that is written; later versions of flent read it."""
_NEWEST = 4
_STEP_S = 0.2
"""flent's interval between two points."""

_DERIVED = re.compile(r"(?:^|\s)(?:sum|avg|totals?|fairness)$", re.IGNORECASE)
_RATE = re.compile(r"^(?:TCP|UDP) (?:upload|download|totals)|^(?:TCP|UDP)\b.*(?:upload|download)", re.IGNORECASE)
_RTT = re.compile(r"^Ping\b|\bRTT\b|\(ms\)", re.IGNORECASE)
_SOCKET = {"tcp_rtt": "srtt_ms", "tcp_cwnd": "cwnd_packets"}


def recognise(name: str, head: bytes) -> bool:
    """Whether a file is flent's, by its name or its keys."""
    if name.lower().endswith((".flent", ".flent.gz")):
        return True
    return head.lstrip().startswith(b"{") and b'"x_values"' in head


def read(source: Source, notes: Notes) -> Table:
    """A row per time and series, and a summary of every flow.

    Raises:
        UserError: It is not flent's file.
    """
    text = Text.decode(source.name, _plain(source))
    root = Node(text, json_text.parse(text))
    version = root.maybe("version") or 1
    if version > _NEWEST:
        raise root.need("version").error(f"version {version:g} of flent's files; at most {_NEWEST} was expected")
    times = [entry.number() for entry in root.need("x_values").entries()]
    cells: dict[str, dict[str, list[float | None]]] = {}
    for name, series in root.need("results").items():
        flow, column = _series(name)
        if column is None:
            if flow:
                notes.lost(f"the series {name!r}")
            continue
        values = series.entries()
        if len(values) != len(times):
            raise series.error(f"{len(values)} values; as many as x_values, {len(times)}, were expected")
        cells.setdefault(flow, {})[column] = [None if v.value is None else v.number() for v in values]
    if not cells:
        raise root.need("results").error("no series of rates or round-trip times")
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for flow, known in cells.items():
        for number, time in enumerate(times):
            row = (time, flow, *(known[c][number] if c in known else None for c in COLUMNS[2:]))
            for column, value in zip(COLUMNS, row, strict=True):
                columns[column].append(value)
    return Table(columns, _summary(source, root, times, cells))


def _plain(source: Source) -> bytes:
    if not source.content.startswith(_GZIP):
        return source.content
    try:
        inflater = zlib.decompressobj(wbits=31)
        content = inflater.decompress(source.content, _MOST)
    except zlib.error as error:
        raise UserError("not gzip data", file=source.name, line=1, column=1, hint=str(error)) from None
    if not inflater.eof:
        what = "is cut short" if len(content) < _MOST else f"has more than {_MOST:,} bytes"
        raise UserError(f"the compressed file {what}", file=source.name, line=1, column=1)
    return content


def _series(name: str) -> tuple[str, str | None]:
    """The flow and the column of a series; no flow if it is computed from others."""
    flow, _, part = name.rpartition("::")
    if flow and part in _SOCKET:
        return flow, _SOCKET[part]
    if _DERIVED.search(name):
        return "", None
    if _RTT.search(name):
        return name, "rtt_ms"
    if flow and not (part.isascii() and part.isdigit()):
        return name, None
    return name, "goodput_mbit_s" if _RATE.search(name) else None


def _summary(
    source: Source, root: Node, times: list[float], cells: Mapping[str, Mapping[str, list[float | None]]]
) -> summary_json.OtherSummary:
    metadata = root.get("metadata")
    title = metadata.get("TITLE") if metadata is not None else None
    name = title.value if title is not None and title.value else Path(source.name).name
    flows: dict[str, summary_json.Figures] = {}
    for flow, known in cells.items():
        goodput, cwnd, srtt, rtt = (_known(known.get(column, [])) for column in COLUMNS[2:])
        if not goodput:
            continue
        least = min(srtt or rtt, default=None)
        flows[flow] = {
            "goodput_mbit_s": _mean(goodput), "mean_cwnd_packets": _mean(cwnd), "mean_srtt_ms": _mean(srtt),
            "min_rtt_ms": least,
        }  # fmt: skip
    return summary_json.summary(f"flent: {name}", "flent", max(times, default=None), flows)


def _known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def write(run: Run, names: Names, notes: Notes) -> Written:
    """A data file of the test ``tcp_nup``: goodput of every flow, its smoothed round-trip time and its window."""
    samples = run.table("samples")
    duration = float(run.summary["duration_s"])
    times = [round(number * _STEP_S, 6) for number in range(1, int(duration / _STEP_S) + 1)]
    results: dict[str, list[float | None]] = {}
    flows = list(run.summary["flows"])
    for number, flow in enumerate(flows, 1):
        of_flow = samples.where(samples.is_in("flow", flow)).sort("time_s")
        known = {c: of_flow[c] for c in ("time_s", "delivered_bytes", "srtt_ms", "cwnd_packets")}
        results |= _flow_series(f"TCP upload::{number}", known, times)
    rates = [results[f"TCP upload::{number}"] for number in range(1, len(flows) + 1)]
    results["TCP upload sum"] = [sum(v for v in at if v is not None) for at in zip(*rates, strict=True)]
    results["TCP upload avg"] = [_mean(_known(list(at))) for at in zip(*rates, strict=True)]
    notes.remarks.append("flent has series of flows over time: packets and queues of the run are not in the file")
    document = {"metadata": _metadata(run, names, flows), "version": _FORMAT, "x_values": times, "results": results,
                "raw_values": {}}  # fmt: skip
    from anabranch.files.output import to_json

    content = to_json(document)
    # No time stamp, so that the same run gives the same file.
    return Written(gzip.compress(content, mtime=0) if names.compressed else content)


def _flow_series(name: str, known: Mapping[str, list[Any]], times: list[float]) -> dict[str, list[float | None]]:
    """Goodput over each step, and the last sample in it of the other two."""
    series: dict[str, list[float | None]] = {name: [], f"{name}::tcp_rtt": [], f"{name}::tcp_cwnd": []}
    at, before = 0, 0
    for time in times:
        while at + 1 < len(known["time_s"]) and known["time_s"][at + 1] <= time + 1e-9:
            at += 1
        is_there = bool(known["time_s"]) and known["time_s"][0] <= time
        delivered = known["delivered_bytes"][at] if is_there else None
        series[name].append(None if delivered is None else (delivered - before) * 8 / _STEP_S / 1e6)
        before = delivered if delivered is not None else before
        series[f"{name}::tcp_rtt"].append(known["srtt_ms"][at] if is_there else None)
        series[f"{name}::tcp_cwnd"].append(known["cwnd_packets"][at] if is_there else None)
    return series


def _metadata(run: Run, names: Names, flows: list[str]) -> dict[str, object]:
    return {
        "NAME": "tcp_nup",
        "TITLE": Path(str(run.summary["scenario"])).stem,
        "NOTE": f"anabranch {run.summary['anabranch_version']}, seed {run.summary['seed']}; flows: {', '.join(flows)}",
        # A simulated run has no date; flent needs one.
        "TIME": "1970-01-01T00:00:00.000000Z",
        "T0": "1970-01-01T00:00:00.000000Z",
        "HOST": "anabranch",
        "HOSTS": ["anabranch"],
        "LOCAL_HOST": "anabranch",
        "LENGTH": run.summary["duration_s"],
        "TOTAL_LENGTH": run.summary["duration_s"],
        "STEP_SIZE": _STEP_S,
        "IP_VERSION": 4,
        "FLENT_VERSION": "2.0.0",
        "TEST_PARAMETERS": {"upload_streams": str(len(flows))},
        "DATA_FILENAME": f"{names.stem}.flent.gz",
    }
