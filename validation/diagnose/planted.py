"""Plant causes in runs, diagnose their captures, and say how often the diagnosis is right: the confusion matrix.

    tools/env python validation/diagnose/planted.py [CAUSE…] [--seeds N] [--first SEED] [--live] [--write] [--verbose]

Each cause is run with N seeds (4; --write takes 100), which draw path and fault, and captured near the sender, in the middle
and near the receiver. The first seed is drawn when the program starts and printed, so that rules are judged with runs that
nobody has seen; --first repeats a judgement. --write writes docs/validation/diagnosis.md. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from anabranch import Scenario
from anabranch.diagnosis import diagnose

from diagnose import editing, live
from diagnose.causes import CAUSES, POINTS, Cause
from diagnose.judging import Judgement, Pause, Tally, judge_bars, matrix, truth_of_pause
from diagnose.simulated import Row, Score, compare, compare_time, sent
from diagnose.truth import SYN, Acks, Sent, needed


def judgements(cause: Cause, seed: int) -> Iterator[Judgement]:
    """The diagnoses of one run, at each point."""
    text = cause.text(random.Random(f"{cause.name} {seed}"))
    result = Scenario.from_text(text, file=f"{cause.name}.toml").run(
        seed=seed % 2**32, packets=True, captures=list(POINTS.values())
    )
    rows = accepted(sent(result), result.pcapng(POINTS["receiver"]))
    whole = 0.0
    for point, link in POINTS.items():
        content = result.pcapng(link)
        if cause.edit is not None:
            content = cause.edit(content, random.Random(f"{cause.name} {seed} {point}"))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "planted.pcapng"
            file.write_bytes(content)
            document = diagnose(file)
        connection = document["connections"][0]
        name, direction = max(connection["directions"].items(), key=lambda one: int(one[1]["bytes"]))
        sender = ip_address(connection["a" if name == "a_to_b" else "b"].rpartition(":")[0]).packed
        told = Score(f"{cause.name}, seed {seed}, at the {point}")
        index = {frame: int(block.comment[1]) for frame, block in editing.frames(content) if _is_data(block, sender)}
        again = {frame: rows[one] for frame, one in index.items() if one in rows and rows[one]["retransmission"]}
        compare(told, {**direction, "retransmissions": [one for one in direction["retransmissions"] if one["seq"] >= 0]}, again)
        # A capture that lacks the first SYN lacks a part of the flow's time.
        whole = whole or connection["duration_s"]
        if cause.edit is None and connection["duration_s"] > 0.99 * whole:
            compare_time(told, result, direction, connection["duration_s"])
        pauses = []
        for stall in direction["stalls"]:
            row = rows.get(index.get(stall["packets"][-1], -1))
            side = stall["side"]
            pauses.append(Pause(truth_of_pause(row, cause), stall["cause"], side, stall["duration_s"], stall["packets"]))
        findings = tuple(one["cause"] for one in connection["findings"])
        yield Judgement(cause, seed, point, told, tuple(pauses), findings)


def accepted(rows: dict[int, Row], capture: bytes) -> dict[int, Row]:
    """The packets, with the need of retransmissions by what the receiver took. The engine asks what arrived.

    `capture` was made near the receiver.
    """
    found = [(block, editing.Segment.of(block.packet)) for _, block in editing.frames(capture)]
    sums: Counter[bytes] = Counter()
    for _, segment in found:
        sums[segment.source] += segment.payload
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
        # What was in flight at the end has no verdict of the engine's.
        if row["retransmission"] and row["needed"] is not None:
            row["needed"] = verdict
    return rows


def _is_data(block: editing.Block, sender: bytes) -> bool:
    """A segment with data of this host."""
    segment = editing.Segment.of(block.packet)
    return block.comment is not None and segment.payload > 0 and segment.source[:4] == sender


def main() -> int:
    """Judge the causes that are named, or all."""
    options = argparse.ArgumentParser()
    options.add_argument("cause", nargs="*")
    options.add_argument("--seeds", type=int, default=4)
    options.add_argument("--first", type=int)
    options.add_argument("--live", action="store_true")
    options.add_argument("--verbose", action="store_true")
    arguments = options.parse_args()
    first = secrets.randbelow(10**9) if arguments.first is None else arguments.first
    print(f"first seed {first}, {arguments.seeds} seeds")
    planted, judge = (live.causes(), live.judgements) if arguments.live else (list(CAUSES), judgements)
    tally = Tally()
    for cause in planted:
        if arguments.cause and cause.name not in arguments.cause:
            continue
        for seed in range(first, first + arguments.seeds):
            for one in judge(cause, seed):
                tally.add(one)
                if arguments.verbose:
                    print("".join(f"{line}\n" for line in one.complaints()), end="", flush=True)
    print(matrix(tally))
    missed = judge_bars(tally, "live" if arguments.live else "simulated")
    print("\n".join(str(bar) for bar in missed))
    return int(any(not bar.is_met for bar in missed))


if __name__ == "__main__":
    sys.exit(main())
