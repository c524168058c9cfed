"""The part of a capture's report on all connections: properties that the bad ones share, tables, and a heat map."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.charts.heat import heat_map
from anabranch.diagnosis.diagnosis import Diagnosis
from anabranch.diagnosis.document import Connection
from anabranch.diagnosis.rollup import BINS, KEYS, By, Group, Rollup, host, interval, limits_of, roll_up
from anabranch.diagnosis.rollup_text import MEASURES, key_text
from anabranch.report.page import table, text
from anabranch.text.lines import amount, number

MOST_GROUPS = 50
"""Groups of a table."""
MOST_SERVERS = 20
"""Rows of the heat map."""


def rollup_section(document: Diagnosis) -> str:
    """The section, for captures with several connections; otherwise nothing."""
    connections = document.content["connections"]
    if len(connections) < 2:
        return ""
    found = roll_up(document)
    body = [f"<h2>All connections</h2><p>{text(found['sentence'])}</p>", _map(connections, found)]
    for by in KEYS:
        groups = found["groups"][by]
        if len(groups) > 1:
            is_open = " open" if by == "server" else ""
            shown = _groups(groups[:MOST_GROUPS], by)
            body.append(f"<details{is_open}><summary>By {by}: {len(groups):,}</summary>{shown}</details>")
    body.append(_outliers(found))
    return "".join(body)


def _groups(groups: Sequence[Group], by: By) -> str:
    rows = [
        (key_text(one["key"], by), f"{one['connections']:,}", f"{one['bad']:,}", f"{one['failed']:,}",
         amount(one["bytes"]), number(one["goodput_mbit_s"]), number(one["rtt_ms"]), f"{one['retransmitted']:.2%}",
         f"{one['lost_s']:.2f}", limits_of(one, 3), str(one["slowest"]))
        for one in groups
    ]  # fmt: skip
    head = (by, "connections", "bad", "failed", "data", "median goodput (Mbit/s)", "median RTT (ms)", "retransmitted",
            "time lost (s)", "time by limit", "slowest connection")  # fmt: skip
    return table(head, rows, words=(9,))


def _map(connections: Sequence[Connection], found: Rollup) -> str:
    """The share of bad connections by server and time."""
    first, length = interval(connections)
    servers = [group["key"] for group in found["groups"]["server"]][:MOST_SERVERS]
    if length <= 0 or len(connections) < BINS:
        return ""
    bad = {one["id"] for one in found["bad"]}
    all_of: dict[tuple[str, int], int] = {}
    bad_of: dict[tuple[str, int], int] = {}
    for one in connections:
        key = (host(one["b"]), min(int((one["start_s"] - first) / length), BINS - 1))
        all_of[key] = all_of.get(key, 0) + 1
        bad_of[key] = bad_of.get(key, 0) + (one["id"] in bad)
    cells = [
        [
            100.0 * bad_of[server, place] / all_of[server, place] if (server, place) in all_of else None
            for place in range(BINS)
        ]
        for server in servers
    ]
    names = [key_text(f"{first + place * length:.6f}", "time").partition(" ")[2] for place in range(BINS)]
    caption = "Bad connections by server and by the time of their start (%)"
    return heat_map(caption, ("start", names), ("server", servers), cells, (0.0, 100.0))


def _outliers(found: Rollup) -> str:
    if not found["outliers"]:
        return ""
    rows = []
    for one in found["outliers"]:
        _, unit = MEASURES[one["measure"]]
        measure = one["measure"].rpartition("_")[0].replace("_mbit", "").replace("_", " ")
        rows.append((str(one["id"]), one["server"], f"{measure} ({unit})", number(one["value"]), number(one["usual"]),
                     f"{one['peers']:,}"))  # fmt: skip
    head = ("connection", "server", "measure", "value", "median of its peers", "peers")
    return f"<h3>Outliers among connections to one server and port</h3>{table(head, rows, left=3)}"
