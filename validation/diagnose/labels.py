"""Compare the diagnosis of labelled captures with their labels, and list each disagreement by packet number.

    tools/env python validation/diagnose/labels.py FOLDER

FOLDER holds ``labels.csv`` and ``traces/*.pcap``: a row for each retransmission that another
analyser found. Its labels are not ground truth. A disagreement is settled by inspecting the
packets; ``README.md`` in this folder has the settled ones.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from anabranch.diagnosis.diagnosis import diagnose, directions
from anabranch.diagnosis.document import Retransmission

TYPES = {
    1: {"rto", "tlp"},
    2: {"fast-retransmit"},
    3: {"fast-retransmit", "rack", "sack"},
    4: {"rack", "fast-retransmit"},
    5: {"sack", "go-back-n", "fast-retransmit", "rack"},
    13: {"sack", "fast-retransmit", "rack"},
    14: {"rto"},
    15: {"rto", "tlp"},
    16: {"fast-retransmit", "sack", "rack"},
}
"""The triggers of ours that match each type of label."""


@dataclass
class Outcome:
    """A trace: the number of retransmissions found by both sides, and those found by one side only."""

    agreed: int
    only_label: list[str]
    only_ours: list[str]
    triggers: list[str]


def labels(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of each trace."""
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (folder / "labels.csv").open() as file:
        for row in csv.DictReader(file):
            rows[row["trace"]].append(row)
    return rows


def compare(trace: Path, rows: list[dict[str, str]]) -> Outcome:
    """Compare one trace with its labels."""
    ours: dict[tuple[str, int], list[Retransmission]] = defaultdict(list)
    for connection in diagnose(trace).content["connections"]:
        for name, direction in directions(connection):
            sender = connection["a"] if name == "a_to_b" else connection["b"]
            for one in direction["retransmissions"]:
                ours[sender, round(one["time_s"] * 1e6)].append(one)
    outcome = Outcome(0, [], [], [])
    for row in rows:
        side = "orig" if row["sender_is_orig"] == "a_to_b" else "resp"
        sender = f"{row[f'{side}_addr']}:{row[f'{side}_port']}"
        whole, fraction = row["time_s"].split(".")
        time_us = int(whole) * 1_000_000 + int(fraction.ljust(6, "0")[:6])
        near = next((ours[sender, time_us + off] for off in (0, 1, -1) if ours.get((sender, time_us + off))), [])
        told = f"{row['time_s']} {sender} seq {row['seq']} reason {row['reason']} type {row['type']}"
        if not near:
            outcome.only_label.append(told)
            continue
        found = near.pop(0)
        outcome.agreed += 1
        allowed = TYPES.get(int(row["type"]))
        if allowed and found["trigger"] not in allowed:
            outcome.triggers.append(f"packet {found['packet']}: {told}; ours {found['trigger']}")
    for (sender, _), left in ours.items():
        outcome.only_ours += [
            f"packet {one['packet']} {sender} seq {one['seq']} {one['trigger']} {one['evidence']}" for one in left
        ]
    return outcome


def main() -> int:
    """Compare all traces; exit status 1 if a retransmission is found by one side only."""
    folder = Path(sys.argv[1])
    rows = labels(folder)
    total: Counter[str] = Counter()
    for trace in sorted((folder / "traces").glob("*.pcap")):
        outcome = compare(trace, rows.get(trace.stem, []))
        total["agreed"] += outcome.agreed
        total["trace"] += 1
        total["agreeing trace"] += not outcome.only_label and not outcome.only_ours
        for kind, lines in (
            ("only label", outcome.only_label),
            ("only ours", outcome.only_ours),
            ("trigger", outcome.triggers),
        ):
            total[kind] += len(lines)
            for line in lines:
                print(f"{trace.stem}: {kind}: {line}")
    print(", ".join(f"{name} {count}" for name, count in total.items()))
    return int(total["only label"] + total["only ours"] > 0)


if __name__ == "__main__":
    sys.exit(main())
