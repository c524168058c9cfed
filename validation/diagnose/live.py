"""Judge diagnoses of live runs: the kernel's TCP over the path of ``wire.py``."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from anabranch import diagnose_points
from anabranch.diagnosis.diagnosis import diagnose
from anabranch.kernel import program

from diagnose.causes import WINDOW, Cause
from diagnose.folder import within
from diagnose.judging import Judgement, Pause, is_notable
from diagnose.simulated import Score, compare

POINTS = ("sender", "middle", "receiver")
WIRE = Path(__file__).with_name("wire.py")
COUNTED = {
    "rwnd_us": frozenset({"receive-window", "zero-window"}), "sndbuf_us": frozenset({"send-buffer"}),
}  # fmt: skip
"""The findings that each of the kernel's counters shows."""
BULK = frozenset(
    {"lost acknowledgments", "late acknowledgments", "thinned acknowledgments", "pacing", "small send buffer", "none"}
)
"""Causes whose sender always has data."""
LONG_QUEUE_BDP = 2.0
"""A full queue of this many bandwidth-delay products makes the round trip three times the least one, which is the
finding."""
LATE = 0.005
"""A timer released the segment if it follows the last acknowledgment by more than this and a
quarter of a round trip (RFC 8985 §6.2)."""


def judgements(planted: Cause, seed: int, kept: Path | None = None, kernel: str | None = None) -> Iterator[Judgement]:
    """The diagnoses of one run at each point.

    `kept` names a folder of captures to reuse or fill. `kernel` is the release of a kernel in virtual
    time that runs the hosts, in place of this machine's.

    Raises:
        RuntimeError: The run failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if kept is None else kept / planted.name.replace(" ", "-") / str(seed)
        if not (folder / "truth.json").exists():
            _run(planted, seed, folder, kernel)
        truth = json.loads((folder / "truth.json").read_text())
        truth["captured_s"] = diagnose(folder / "sender.pcap")["connections"][0]["duration_s"]
        for point, numbers in truth["frames"].items():
            one = _judge(planted, seed, point, numbers, truth, diagnose(folder / f"{point}.pcap"))
            yield replace(one, changes=_changes(folder)) if point == POINTS[0] else one


def _changes(folder: Path) -> frozenset[str]:
    """The changes of headers between the points."""
    found = diagnose_points([folder / f"{point}.pcap" for point in POINTS])
    return frozenset(
        one["kind"] for connection in found["connections"] for part in connection["changes"] for one in part
    )


def _run(planted: Cause, seed: int, folder: Path, kernel: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(WIRE.resolve()), planted.name, str(seed), "."]
    if kernel is not None:
        with within(folder):
            status = program.run(words, seed=seed % 2**32, kernel=kernel)
        if status != 0:
            raise RuntimeError(f"{planted.name}, seed {seed}: status {status}")
        return
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(f"{planted.name}, seed {seed}: {done.stderr.strip()[-500:]}")


def _judge(
    planted: Cause, seed: int, point: str, numbers: list[int], truth: dict[str, Any], document: dict[str, Any]
) -> Judgement:
    told = Score(f"{planted.name}, live, seed {seed}, at the {point}")
    connection = document["connections"][0]
    direction = max(connection["directions"].values(), key=lambda one: int(one["bytes"]))
    rows = {row["packet"]: row for row in truth["rows"]}
    frames = {frame: rows[number] for frame, number in enumerate(numbers, 1) if number in rows}
    for row in frames.values():
        row.update({"retransmission": row["again"], "cause": _trigger(row, truth["rtt_s"])})
        row.update({"sent_s": row["sent"], "sequence_bytes": row["seq"]})
    again = {frame: row for frame, row in frames.items() if row["again"]}
    found = [one for one in direction["retransmissions"] if one["bytes"]]
    compare(told, {**direction, "retransmissions": found}, again)
    _compare_time(told, truth, direction, connection["duration_s"])
    if planted.name in BULK and truth["tcp_info"] is not None:
        _compare_idle(told, truth, direction, connection["duration_s"])
    pauses = []
    for stall in direction["stalls"]:
        row = frames.get(stall["packets"][-1])
        may_be = frozenset[str]()
        if row is not None:
            timed = frozenset({"retransmission-timeout"})
            may_be = (
                (timed if row["cause"] else frozenset({"fast-recovery", "reordering"}))
                if row["again"]
                else planted.stalls | (timed if _is_probe(row, planted, truth["rtt_s"]) else frozenset())
            )
        pauses.append(Pause(may_be, stall["cause"], stall["side"], stall["duration_s"], stall["packets"]))
    found_causes = tuple(one["cause"] for one in connection["findings"])
    # A capture downstream of the fault lacks the lost SYN, or all data.
    is_whole = connection["duration_s"] > 0.97 * truth["captured_s"] and direction["data_packets"] > 0
    is_visible = (is_whole or not planted.hidden) and point not in truth.get("unseen_at", ())
    return Judgement(planted, seed, point, told, tuple(pauses), found_causes, is_visible, _present(truth))


def _present(truth: dict[str, Any]) -> frozenset[str]:
    """The limits that the run had, independent of the planted cause: each with enough time to be a finding."""
    info, duration = truth["tcp_info"] or {}, truth["duration_s"]
    found = [names for key, names in COUNTED.items() if is_notable(info.get(key, 0) / 1e6, duration)]
    if is_notable(truth.get("unasked_s", 0.0), duration):
        found.append(frozenset({"application"}))
    if truth.get("queue_bdp", 0.0) >= LONG_QUEUE_BDP:
        found.append(frozenset({"bufferbloat"}))
    return frozenset().union(*found)


def _is_probe(row: dict[str, Any], planted: Cause, rtt: float) -> bool:
    """A sender with unlimited data may send new data as a tail loss probe (RFC 8985 §7.2) after two round trips."""
    since = row["since_ack"]
    return planted.stalls >= WINDOW and (since is None or since > 1.5 * rtt)


def _trigger(row: dict[str, Any], rtt: float) -> str | None:
    since = row["since_ack"]
    is_timed = since is None or since > rtt / 4 + LATE
    return "rto" if row["again"] and is_timed else None


def _compare_time(told: Score, truth: dict[str, Any], direction: dict[str, Any], duration: float) -> None:
    """Compare with the kernel's counters of the socket's limits: the receiver's window and the send buffer."""
    info = truth["tcp_info"]
    if info is None:
        return
    whole = truth["duration_s"] * 1e6
    limits = direction["limits_s"]
    told.shares["rwnd"] = (info["rwnd_us"] / whole, (limits["receive-window"] + limits["zero-window"]) / duration)
    told.shares["sndbuf"] = (info["sndbuf_us"] / whole, limits["send-buffer"] / duration)


def _compare_idle(told: Score, truth: dict[str, Any], direction: dict[str, Any], duration: float) -> None:
    """Compare idle time.

    The kernel counts a sender with data as busy. A sender that always has data is idle only before
    the connection opens.
    """
    limits = direction["limits_s"]
    idle = limits["application"] + limits["round-trips"] + limits["handshake"]
    busy = truth["tcp_info"]["busy_us"] / 1e6 / truth["duration_s"]
    told.shares["idle"] = (max(0.0, 1 - busy), idle / duration)


def is_possible() -> str | None:
    """The reason why live runs are not possible here; ``None`` if they are."""
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [sys.executable, str(WIRE), "slow client", str(random.randrange(1000)), name],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return None if done.returncode == 0 else done.stderr.strip()[-300:]
