"""Anabranch beside ns-3 on the reordering study's path: normalised throughput, setting by setting.

    python studies/reordering/compare_ns3.py [--csv FILE]

ns-3's figures are given data (``tests/studies/data/ns3-reordering.csv``; its README says what they come from). Ours
are computed here: the study's scenario, with the transport and the congestion controls of each setting.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anabranch import _engine

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
GIVEN = CHECKOUT / "tests" / "studies" / "data" / "ns3-reordering.csv"

FIRST_COMPARED = 10
"""Below this interval two implementations of one standard differ by more than the tolerance."""
TOLERANCE = 0.1
CHAOTIC = "iw1-nodelack-nosack"
CHAOTIC_TOLERANCE = 0.15
NO_REORDERING = 1_000_000

TRANSPORT = {
    "mss": '"1448 bytes"',
    "timestamps": "true",
    "min_rto": '"1 s"',
    "send_buffer": '"16 MiB"',
    "receive_window": '"158 packets"',
    "cwnd_validation": "false",
    "partial_ack_restarts_timer": "false",
}
DELAYED = {"initial_cwnd": "10", "delayed_ack": '{ segments = 2, timeout = "200 ms" }'}
PROMPT = {"initial_cwnd": "1", "delayed_ack": '"off"'}
WITH_SACK = {"sack": "true", "recovery": '"rfc6675"'}
WITHOUT_SACK = {"sack": "false", "recovery": '"new-reno"', "recover_inclusive": "true"}

SETTINGS = {
    "iw10-delack-sack": {**DELAYED, **WITH_SACK},
    "iw10-delack-classic-recovery": {**DELAYED, **WITH_SACK},
    "iw1-nodelack-sack": {**PROMPT, **WITH_SACK},
    CHAOTIC: {**PROMPT, **WITHOUT_SACK},
}
"""ns-3's "classic" is how cwnd moves during a recovery; losses are found by SACK there, too."""

NEWRENO = '{ kind = "reno", avoidance = "acks" }'


def cubic(*, tcp_friendly: bool) -> str:
    """ns-3's CUBIC: from Linux, HyStart with a longer delay bound; a Reno-friendly region only in later versions."""
    friendly = "true" if tcp_friendly else "false"
    return (
        f'{{ kind = "cubic", tcp_friendly = {friendly}, reduce_from = "cwnd", first_epoch_growth = 0.05, '
        'slow_start_limit = "1000 packets", hystart = "linux", hystart_delay_max = "1 s" }'
    )


CONTROLS = {
    "NewReno": {"3.37": NEWRENO, "3.44": NEWRENO},
    "Cubic": {"3.37": cubic(tcp_friendly=False), "3.44": cubic(tcp_friendly=True)},
}


@dataclass
class Row:
    """One interval of one setting and congestion control: ns-3's range over versions, and ours over the same variants.

    Attributes:
        interval: Reorder interval in packets.
        theirs: Normalised throughput by version of ns-3.
        ours: The same by us, with the congestion control set as in that version.
        their_timeouts: Retransmission timeouts, by version.
        our_timeouts: Retransmission timeouts, by version.
    """

    setting: str
    control: str
    interval: int
    theirs: dict[str, float] = field(default_factory=dict)
    ours: dict[str, float] = field(default_factory=dict)
    their_timeouts: dict[str, int] = field(default_factory=dict)
    our_timeouts: dict[str, int] = field(default_factory=dict)

    @property
    def distance(self) -> float:
        """How far ours lies outside ns-3's range, at most over the versions; 0 inside."""
        low, high = min(self.theirs.values()), max(self.theirs.values())
        return max(max(low - ours, ours - high, 0.0) for ours in self.ours.values())


def given(file: Path = GIVEN) -> list[dict[str, str]]:
    """ns-3's figures, row by row."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def changes(setting: str, control: str, version: str, interval: int) -> list[str]:
    """What the study's scenario becomes for one run."""
    transport = {**TRANSPORT, **SETTINGS[setting]}
    return [
        *(f"flow.main.transport.{key}={value}" for key, value in transport.items()),
        f"flow.main.cc={CONTROLS[control][version]}",
        f"link.bottleneck.forward.queue.reorder.interval={interval or NO_REORDERING}",
    ]


def compare(rows: Iterable[Mapping[str, str]]) -> list[Row]:
    """Runs every setting of ns-3's figures and puts both beside each other."""
    file = HERE / "reordering.toml"
    text = file.read_text(encoding="utf-8")
    theirs = {(r["setting"], r["cc"], r["ns3_version"], int(r["reorder_interval"])): r for r in rows}
    runs = _engine.run_many([(text, str(file), changes(*key), None) for key in theirs], digest=False)
    flows = {key: json.loads(run.summary_json)["flows"]["main"] for key, run in zip(theirs, runs, strict=True)}
    result: dict[tuple[str, str, int], Row] = {}
    for key, row in theirs.items():
        setting, control, version, interval = key
        if interval == 0:
            continue
        plain = flows[setting, control, version, 0]["goodput_mbit_s"]
        into = result.setdefault((setting, control, interval), Row(setting, control, interval))
        into.theirs[version] = float(row["normalised"])
        into.ours[version] = flows[key]["goodput_mbit_s"] / plain
        into.their_timeouts[version] = int(row["timeouts"])
        into.our_timeouts[version] = flows[key]["timeouts"]
    return list(result.values())


def groups(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by setting and congestion control, by rising interval."""
    result: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        result.setdefault((row.setting, row.control), []).append(row)
    return {key: sorted(group, key=lambda row: row.interval) for key, group in result.items()}


def outside(group: Iterable[Row]) -> list[Row]:
    """Rows that lie further from ns-3's range than the tolerance."""
    return [row for row in group if row.interval >= FIRST_COMPARED and row.distance > TOLERANCE]


def medians(group: Iterable[Row]) -> tuple[float, float]:
    """Median over the intervals that reorder (RI < 100): ns-3's and ours."""
    reordering = [row for row in group if row.interval < 100]
    return (
        statistics.median(value for row in reordering for value in row.theirs.values()),
        statistics.median(value for row in reordering for value in row.ours.values()),
    )


def markdown(rows: Iterable[Row]) -> str:
    """The summary table of ``docs/studies/reordering.md``."""
    lines = ["| setting | control | compared | result |", "| --- | --- | --- | --- |"]
    for (setting, control), group in groups(rows).items():
        if setting == CHAOTIC:
            theirs, ours = medians(group)
            with_timeouts = sum(max(row.our_timeouts.values()) > 0 for row in group)
            compared = f"median over RI: ns-3 {theirs:.2f}, ours {ours:.2f} (± {CHAOTIC_TOLERANCE})"
            result = "within" if abs(theirs - ours) <= CHAOTIC_TOLERANCE else "outside"
            result += f"; ours has timeouts at {with_timeouts} of {len(group)} intervals"
        else:
            far = outside(group)
            count = sum(row.interval >= FIRST_COMPARED for row in group)
            compared = f"{count} intervals from {FIRST_COMPARED} on, range over versions ± {TOLERANCE}"
            result = (
                "all within"
                if not far
                else "outside at RI " + ", ".join(f"{row.interval} (by {row.distance:.2f})" for row in far)
            )
        lines.append(f"| {setting} | {control} | {compared} | {result} |")
    return "\n".join(lines)


def table(rows: Iterable[Row]) -> str:
    """Every row, as comma-separated values."""
    lines = ["setting,cc,ns3_version,reorder_interval,ns3_normalised,normalised,ns3_timeouts,timeouts"]
    lines += [
        f"{row.setting},{row.control},{version},{row.interval},{row.theirs[version]:.4f},"
        f"{row.ours[version]:.4f},{row.their_timeouts[version]},{row.our_timeouts[version]}"
        for row in rows
        for version in row.theirs
    ]
    return "\n".join(lines)


def main() -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description="Anabranch beside ns-3 on the reordering study's path.")
    parser.add_argument("--csv", action="store_true", help="every row instead of the summary")
    rows = compare(given())
    print(table(rows) if parser.parse_args().csv else markdown(rows))


if __name__ == "__main__":
    main()
