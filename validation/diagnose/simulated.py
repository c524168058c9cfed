"""Diagnose captures of simulated runs and compare the result with the engine's record of each packet.

    tools/env python validation/diagnose/simulated.py [SCENARIO…]

The engine records for each retransmission whether it was needed, and for each flow its limits. The
capture shows neither. Scenarios are built here, one for each cause.
"""

from __future__ import annotations

import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import polars as pl
from anabranch import RunResult, Scenario
from anabranch.diagnosis.diagnosis import diagnose

from diagnose.invariants import checked

TRIGGERS = {
    "dup-thresh": {"fast-retransmit", "sack"}, "rack": {"rack", "sack", "fast-retransmit"}, "tlp": {"tlp"},
    "rto": {"rto", "go-back-n"}, "partial-ack": {"fast-retransmit", "sack", "go-back-n"},
    "speculative": {"sack", "rack"}, "rescue": {"sack", "rack"},
}  # fmt: skip
"""The triggers of ours that match each cause of the engine."""

SHARES = {
    "cwnd_limited_share": ("congestion-window", "bottleneck"),
    "rwnd_limited_share": ("receive-window", "zero-window"),
    "sndbuf_limited_share": ("send-buffer",),
    "application_limited_share": ("application", "round-trips", "delayed-ack-nagle"),
}
"""The limits of ours that each share of the engine covers."""

PATH = """
duration = "{duration}"
[link.path]
between = ["A", "B"]
rate = "{rate}"
delay = "{delay}"
queue = {{ kind = "drop-tail", limit = "{limit}" }}
{extra}
[flow.main]
from = "A"
to = "B"
{flow}
"""
"""One flow over one link."""


def path(
    *,
    duration: str = "20 s",
    rate: str = "20 Mbit/s",
    delay: str = "20 ms",
    limit: str = "1 bdp",
    extra: str = "",
    flow: str = "",
) -> str:
    """A scenario with one flow."""
    return PATH.format(duration=duration, rate=rate, delay=delay, limit=limit, extra=extra, flow=flow)


HOPS = """
duration = "20 s"
[link.access]
between = ["A", "M"]
rate = "100 Mbit/s"
delay = "1 ms"
[link.middle]
between = ["M", "N"]
rate = "20 Mbit/s"
delay = "15 ms"
queue = {{ kind = "drop-tail", limit = "1 bdp" }}
{middle}
[link.last]
between = ["N", "B"]
rate = "100 Mbit/s"
delay = "10 ms"
{last}
[flow.main]
from = "A"
to = "B"
{flow}
"""
"""One flow over three links, each with a capture."""

LINKS = ("access", "middle", "last")


def hops(*, middle: str = "", last: str = "", flow: str = "") -> str:
    """A scenario with three links."""
    return HOPS.format(middle=middle, last=last, flow=flow)


LOSS = 'forward.impair = [{{ kind = "bernoulli-loss", rate = {} }}]'
SCENARIOS: dict[str, str] = {
    "loss": path(extra=LOSS.format(0.005)),
    "heavy-loss": path(extra=LOSS.format(0.05)),
    "burst-loss": path(extra='forward.impair = [{ kind = "gilbert-elliott", loss_rate = 0.02, mean_burst = 4 }]'),
    "loss-both-ways": path(extra='impair = [{ kind = "bernoulli-loss", rate = 0.02 }]'),
    "loss-without-sack": path(extra=LOSS.format(0.01), flow="transport = { sack = false }"),
    "loss-without-timestamps": path(extra=LOSS.format(0.01), flow="transport = { timestamps = false }"),
    "loss-bare": path(extra=LOSS.format(0.01), flow='stack = "ns3-2018"\ncc = "reno"'),
    "reordering": path(
        extra='forward.queue = { kind = "drop-tail", limit = "1 bdp", reorder = { kind = "interval", interval = 40 } }'
    ),
    "jitter": path(
        extra='forward.impair = [{ kind = "jitter", distribution = "exponential", mean = "2 ms", every = "50 ms" }]'
    ),
    "delay-spikes": path(
        extra="\n".join(
            f'[[at]]\ntime = "{at} s"\nset = {{ "link.path.forward.delay" = "{delay}" }}'
            for at, delay in (
                (4, "400 ms"),
                (4.4, "20 ms"),
                (7, "600 ms"),
                (7.5, "20 ms"),
                (12, "300 ms"),
                (12.2, "20 ms"),
            )
        )
    ),
    "tail-loss": path(
        extra=LOSS.format(0.03),
        flow='workload = { kind = "request-response", request = "300 bytes", response = "30 kB" }',
    ),
    "queue": path(limit="4 bdp"),
    "shallow-queue": path(limit="20 packets"),
    "receive-window": path(flow='transport = { receive_window = "32 KiB" }'),
    "send-buffer": path(
        rate="1 Gbit/s", delay="50 ms", flow='transport = { send_buffer = "256 KiB" }', duration="10 s"
    ),
    "slow-application": path(flow='workload = { kind = "paced", rate = "2 Mbit/s" }'),
    "bbr": path(flow='cc = "bbr"', extra=LOSS.format(0.01)),
    "bbr-clean": path(flow='cc = "bbr"'),
    "long-fat": path(
        rate="400 Mbit/s",
        delay="40 ms",
        duration="10 s",
        limit="0.2 bdp",
        flow='transport = { send_buffer = "64 MiB", receive_window = "64 MiB" }',
    ),
}


_EVERY_60TH = ", ".join(str(number) for number in range(50, 20_000, 60))
_LATE = (
    'forward.impair = [{{ kind = "jitter", distribution = "exponential", mean = "{}", packets = ['
    + _EVERY_60TH
    + "] }}]"
)
POINTS: dict[str, str] = {
    "loss": hops(middle=LOSS.format(0.01), last=LOSS.format(0.01)),
    "acks-lost": hops(
        middle='impair = [{ kind = "bernoulli-loss", rate = 0.05 }]',
        last='impair = [{ kind = "bernoulli-loss", rate = 0.05 }]',
    ),
    "loss-without-sack": hops(middle=LOSS.format(0.01), last=LOSS.format(0.01), flow="transport = { sack = false }"),
    "loss-without-timestamps": hops(
        middle=LOSS.format(0.01), last=LOSS.format(0.01), flow="transport = { timestamps = false }"
    ),
    "late": hops(middle=_LATE.format("6 ms")),
    "late-without-timestamps": hops(
        middle=_LATE.format("6 ms"), last=LOSS.format(0.003), flow="transport = { timestamps = false }"
    ),
    "request-response": hops(
        middle=LOSS.format(0.03),
        last=LOSS.format(0.01),
        flow='workload = { kind = "request-response", request = "300 bytes", response = "30 kB" }',
    ),
    "small-window": hops(middle=LOSS.format(0.002), flow='transport = { receive_window = "48 KiB" }'),
    "file": hops(middle=LOSS.format(0.01), flow='workload = { kind = "file", size = "20 MB" }'),
    "windows": hops(middle=LOSS.format(0.02), last=LOSS.format(0.01), flow='stack = "windows-7"'),
    "rfc": hops(middle=LOSS.format(0.02), last=LOSS.format(0.01), flow='stack = "rfc"\ncc = "reno"'),
}
"""Scenarios that are captured near the sender, in the middle and near the receiver."""


@dataclass
class Score:
    """Correct and wrong results of one run."""

    name: str
    wrong: list[str] = field(default_factory=list)
    undecided: int = 0
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    triggers: Counter[tuple[str, str]] = field(default_factory=Counter)
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)
    timer: float = 0.0
    pairs: list[tuple[bool | None, bool | None]] = field(default_factory=list)
    """The truth and the diagnosis of each retransmission."""
    overlooked: Counter[bool | None] = field(default_factory=Counter)
    """Retransmissions that were not found, by truth."""

    def f1(self, *, kind: bool) -> float | None:
        """F1 of one kind; ``None`` if neither side has it."""
        # Undecided retransmissions are counted separately.
        decided = [pair for pair in self.pairs if pair[1] is not None]
        true_positive = decided.count((kind, kind))
        truth = sum(1 for pair in decided if pair[0] is kind) + self.overlooked[kind]
        positive = truth + sum(1 for pair in decided if pair[1] is kind)
        return 2 * true_positive / positive if positive else None

    @property
    def time_right(self) -> float:
        """The share of time with the right limit."""
        off = sum(abs(ours - truth) for truth, ours in self.shares.values())
        rest = [1 - sum(values[k] for values in self.shares.values()) for k in (0, 1)]
        # The engine counts the wait for a timer under the sender's previous limit; the score does
        # the same.
        return min(1.0, 1 - (off + abs(rest[0] - rest[1])) / 2 + self.timer)


Row = dict[str, Any]
_COMMENT = re.compile(r"packet (\d+) of (\S+?)(, retransmission)?:")


def comments(file: Path) -> dict[int, int]:
    """Frame and index of each retransmission in one of our captures, whose packets have comments."""
    content = file.read_bytes()
    found: dict[int, int] = {}
    at = frame = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == ENHANCED_PACKET:
            frame += 1
            (captured,) = struct.unpack_from("<I", content, at + 20)
            options = content[at + 28 + (captured + 3) // 4 * 4 : at + length - 4]
            told = _COMMENT.search(options.decode("utf-8", "replace"))
            if told and told[3]:
                found[frame] = int(told[1])
        at += length
    return found


ENHANCED_PACKET = 6


def run(text: str, name: str, links: Sequence[str]) -> Iterator[tuple[RunResult, dict[str, Any], dict[int, int]]]:
    """A run, and for each link the diagnosis of its capture and the index of each retransmission in it."""
    result = Scenario.from_text(text, file=f"{name}.toml").run(packets=True, captures=list(links))
    with tempfile.TemporaryDirectory() as folder:
        for link in links:
            file = Path(folder) / f"{name}.pcapng"
            file.write_bytes(result.pcapng(link))
            yield result, checked(diagnose(file)), comments(file)


def score(name: str, text: str, links: Sequence[str] = ("path",)) -> Iterator[Score]:
    """Compare a run with the diagnoses of its captures, in the direction with the data."""
    for link, (result, document, frames) in zip(links, run(text, name, links), strict=True):
        told = Score(f"{name} at {link}" if len(links) > 1 else name)
        (connection,) = document["connections"]
        direction = max(connection["directions"].values(), key=lambda one: one["bytes"])
        rows = sent(result)
        compare(told, direction, {frame: rows[index] for frame, index in frames.items() if _is_again(rows, index)})
        compare_time(told, result, direction, connection["duration_s"])
        yield told


def sent(result: RunResult) -> dict[int, Row]:
    """The packets of the direction with the data, by index."""
    packets = result.table("packets")
    way = packets.group_by("direction").agg(pl.col("payload_bytes").sum()).sort("payload_bytes")["direction"][-1]
    return {row["packet_index"]: row for row in packets.filter(pl.col("direction") == way).iter_rows(named=True)}


def _is_again(rows: dict[int, Row], index: int) -> bool:
    return index in rows and bool(rows[index]["retransmission"])


def compare_time(told: Score, result: RunResult, direction: dict[str, Any], duration: float) -> None:
    """Compare the shares of time of each limit."""
    flow = result.flows["main"]
    told.timer = direction["limits_s"]["retransmission-timeout"] / duration
    for share, limits in SHARES.items():
        truth = flow.get(share)
        if isinstance(truth, int | float):
            time = sum(direction["limits_s"][limit] for limit in limits)
            told.shares[share] = (float(truth), time / duration)


def compare(told: Score, direction: dict[str, Any], again: dict[int, Row]) -> None:
    """Compare each retransmission that passed the capture point."""
    ours = {one["packet"]: one for one in direction["retransmissions"]}
    for frame, row in again.items():
        found = ours.pop(frame, None)
        if found is None:
            told.missed.append(f"packet {frame} {row['sent_s']:.6f} seq {row['sequence_bytes']} {row['cause']}")
            told.overlooked[row["needed"]] += 1
            continue
        if row["needed"] is not None:
            told.pairs.append((row["needed"], found["needed"]))
        if row["needed"] is not None and found["needed"] is None:
            told.undecided += 1
        if row["needed"] is not None and found["needed"] not in (None, row["needed"]):
            told.wrong.append(
                f"packet {found['packet']} {found['time_s']:.6f} seq {found['seq']}: needed {row['needed']}, "
                f"ours by {found['evidence']}; cause {row['cause']}, ours {found['trigger']}"
            )
        if row["cause"]:
            told.triggers[row["cause"], found["trigger"]] += 1
    for one in ours.values():
        told.extra.append(f"packet {one['packet']} {one['trigger']} {one['evidence']}")
        if one["needed"] is not None:
            told.pairs.append((not one["needed"], one["needed"]))


def report(told: Score) -> None:
    """Print a run's score."""
    needed, spurious = told.f1(kind=True), told.f1(kind=False)
    kinds = Counter(truth for truth, _ in told.pairs)
    print(
        f"{told.name}: {kinds[True]} needed (F1 {_shown(needed)}), {kinds[False]} spurious (F1 {_shown(spurious)}), "
        f"{told.undecided} undecided, {len(told.missed)} missed, {len(told.extra)} extra; "
        f"time right {told.time_right:.1%}"
    )
    for share, (truth, ours) in told.shares.items():
        if abs(truth - ours) > 0.01:
            print(f"    {share}: {truth:.3f}, ours {ours:.3f}")
    bad = {pair: count for pair, count in told.triggers.items() if pair[1] not in TRIGGERS.get(pair[0], {pair[1]})}
    if bad:
        print(f"    triggers: {bad}")
    for line in (
        *told.wrong[:8],
        *(f"missed {one}" for one in told.missed[:5]),
        *(f"extra {one}" for one in told.extra[:5]),
    ):
        print(f"    {line}")


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def main() -> int:
    """Score all scenarios, or the named ones."""
    names = sys.argv[1:]
    for name in names or SCENARIOS:
        if name in SCENARIOS:
            for told in score(name, SCENARIOS[name]):
                report(told)
    for name in names or POINTS:
        if name in POINTS:
            for told in score(name, POINTS[name], LINKS):
                report(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
