"""Plant causes in runs, diagnose their captures, and print how often the diagnosis is right: the confusion matrix.

    tools/env python validation/diagnose/planted.py [CAUSE…] [--seeds N] [--first SEED]
                                                    [--engine simulator|live|kernel] [--kernel RELEASE]
                                                    [--keep FOLDER] [--write] [--verbose]

Each cause is run with N seeds (4; 100 with --write; 2 live), which draw path and fault, and
captured near the sender, in the middle and near the receiver. The first seed is drawn when the
program starts and printed, so that rules are judged with unseen runs; --first repeats a judgement.
--engine live, or --live, runs the TCP of this machine, and kernel that of a Linux kernel in virtual time.
--keep keeps the captures of these runs in a folder, and judges the ones already in it. --write
writes docs/validation/diagnosis.md. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import bisect
import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_address
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import polars as pl
from anabranch import RunResult, Scenario
from anabranch.diagnosis.diagnosis import diagnose

from diagnose import editing, live, page
from diagnose.causes import CAUSES, LIVE, POINTS, WINDOW, Cause
from diagnose.invariants import checked
from diagnose.judging import (
    LEAST_NAMED_EXACT,
    LEAST_STALLS,
    Judgement,
    Pause,
    Tally,
    judge_bars,
    matrix,
    truth_of_pause,
)
from diagnose.simulated import Row, Score, compare, compare_time, sent
from diagnose.truth import SYN, Acks, Sent, needed

FEW, SEEDS, LIVE_SEEDS = 4, 100, 2


def judgements(cause: Cause, seed: int) -> Iterator[Judgement]:
    """The diagnoses of one run, at each point."""
    text = cause.text(random.Random(f"{cause.name} {seed}"))
    result = Scenario.from_text(text, file=f"{cause.name}.toml").run(
        seed=seed % 2**32, packets=True, captures=list(POINTS.values())
    )
    rows = accepted(sent(result), result.pcapng(POINTS["receiver"]))
    probes = _probes(result, rows) if cause.stalls >= WINDOW else frozenset()
    whole = 0.0
    for point, link in POINTS.items():
        content = result.pcapng(link)
        if cause.edit is not None:
            content = cause.edit(content, random.Random(f"{cause.name} {seed} {point}"))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "planted.pcapng"
            file.write_bytes(content)
            document = checked(diagnose(file))
        if not document["connections"]:
            # Every SYN was lost before this point.
            continue
        connection = document["connections"][0]
        name, direction = max(connection["directions"].items(), key=lambda one: int(one[1]["bytes"]))
        sender = ip_address(connection["a" if name == "a_to_b" else "b"].rpartition(":")[0]).packed
        told = Score(f"{cause.name}, seed {seed}, at the {point}")
        index = _numbers(content, sender)
        again = {frame: rows[one] for frame, one in index.items() if one in rows and rows[one]["retransmission"]}
        compare(
            told,
            {**direction, "retransmissions": [one for one in direction["retransmissions"] if one["seq"] >= 0]},
            again,
        )
        # A capture that lacks the first SYN lacks a part of the flow's time.
        whole = whole or connection["duration_s"]
        is_whole = connection["duration_s"] > 0.99 * whole
        if cause.edit is None and is_whole:
            compare_time(told, result, direction, connection["duration_s"])
        pauses = []
        for stall in direction["stalls"]:
            number = index.get(stall["packets"][-1], -1)
            may_be = truth_of_pause(rows.get(number), cause)
            if number in probes:
                may_be |= {"retransmission-timeout"}
            pauses.append(Pause(may_be, stall["cause"], stall["side"], stall["duration_s"], stall["packets"]))
        findings = tuple(one["cause"] for one in connection["findings"])
        yield Judgement(cause, seed, point, told, tuple(pauses), findings, is_whole or not cause.hidden)


def _probes(result: RunResult, rows: dict[int, Row]) -> frozenset[int]:
    """The numbers of segments of new data that may be tail loss probes (RFC 8985 §7.2), sent after two round trips."""
    packets = result.table("packets")
    size = pl.col("payload_bytes").sum()
    back = packets.group_by("direction").agg(size).sort("payload_bytes")["direction"][0]
    came = packets.filter((pl.col("direction") == back) & pl.col("received_s").is_not_null())["received_s"].sort()
    acks = came.to_list()
    opened = min(row["sent_s"] for row in rows.values())
    round_trip = next((time for time in acks if time > opened), opened) - opened
    found = set()
    for number, row in rows.items():
        latest = bisect.bisect_right(acks, row["sent_s"])
        if latest and not row["retransmission"] and row["sent_s"] - acks[latest - 1] > 1.5 * round_trip:
            found.add(number)
    return frozenset(found)


def accepted(rows: dict[int, Row], capture: bytes) -> dict[int, Row]:
    """The packets; a retransmission is needed if the receiver had not accepted the data. The engine judges by arrival.

    `capture` was made near the receiver.
    """
    found = [(block, editing.Segment.of(block.packet)) for _, block in editing.frames(capture)]
    sums: Counter[bytes] = Counter()
    for _, segment in found:
        sums[segment.source] += segment.payload
    if not sums:
        return rows
    sender = sums.most_common(1)[0][0]
    first = next((segment.seq for _, segment in found if segment.source == sender and segment.flags & SYN), None)
    if first is None:
        return rows
    acks = Acks()
    for block, segment in found:
        if segment.target == sender:
            acks.add(block.time / 1e9, block.packet, first + 1)
    segments = [
        Sent(row["sequence_bytes"] - 1, row["sequence_bytes"] - 1 + row["payload_bytes"], row["received_s"])
        for row in rows.values()
    ]
    for row, verdict in zip(rows.values(), needed(segments, acks), strict=True):
        # The engine has no verdict for packets in flight at the end.
        if row["retransmission"] and row["needed"] is not None:
            row["needed"] = verdict
    return rows


def _numbers(content: bytes, sender: bytes) -> dict[int, int]:
    """The frames with data of a host, and the number of each packet in its flow."""
    found = {}
    for frame, block in editing.frames(content):
        packet = block.packet
        # Half of the frames are acknowledgments.
        if packet[12:16] == sender and editing.Segment.of(packet).payload > 0 and (number := block.number) is not None:
            found[frame] = number
    return found


def main() -> int:
    """Judge the named causes, or all."""
    options = argparse.ArgumentParser()
    options.add_argument("cause", nargs="*")
    options.add_argument("--seeds", type=int, default=0)
    options.add_argument("--first", type=int)
    options.add_argument("--live", action="store_true")
    options.add_argument("--engine", choices=("simulator", "live", "kernel"), default="simulator")
    options.add_argument("--kernel", metavar="RELEASE", default="6.12")
    options.add_argument("--keep", type=Path, metavar="FOLDER")
    options.add_argument("--verbose", action="store_true")
    options.add_argument("--write", action="store_true")
    arguments = options.parse_args()
    engine = "live" if arguments.live else arguments.engine
    if arguments.keep and engine == "simulator":
        options.error("--keep: expected --engine live or kernel as well: simulated runs are made anew")
    causes = CAUSES if engine == "simulator" else (*CAUSES, *LIVE)
    unknown = set(arguments.cause) - {cause.name for cause in causes}
    if unknown:
        options.error(f"no such cause: {', '.join(sorted(unknown))}")
    usual = LIVE_SEEDS if engine != "simulator" else SEEDS if arguments.write else FEW
    seeds = arguments.seeds or usual
    first = secrets.randbelow(10**9) if arguments.first is None else arguments.first
    print(f"first seed {first}, {seeds} seeds")
    kernel = arguments.kernel if engine == "kernel" else None
    real = partial(live.judgements, kept=arguments.keep, kernel=kernel)
    judge = judgements if engine == "simulator" else real
    tally = Tally()
    for cause in causes:
        if arguments.cause and cause.name not in arguments.cause:
            continue
        for seed in range(first, first + seeds):
            for one in judge(cause, seed):
                tally.add(one)
                if arguments.verbose:
                    print("".join(f"{line}\n" for line in one.complaints()), end="", flush=True)
    bars = judge_bars(
        tally,
        "simulated" if engine == "simulator" else "live",
        LEAST_NAMED_EXACT if engine == "kernel" else LEAST_STALLS,
    )
    print(matrix(tally))
    print("\n".join(str(bar) for bar in bars))
    if arguments.write:
        page.write("simulated" if engine == "simulator" else engine, page.generated(tally, bars, first, seeds))
    return int(any(not bar.is_met for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
