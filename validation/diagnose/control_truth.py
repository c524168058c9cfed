"""Which runs of LP and Compound are Reno's, for ``controls.py``.

LP is Reno that also lowers the window before a loss, when it infers congestion from one-way delays. Compound
is Reno with a second window, the delay window. Where neither happens in a run, no observer of its packets can
tell it from Reno.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from anabranch import Scenario

from diagnose.control_runs import TestPath

INTERVAL_S = 0.2
FALL = 0.75
"""An early reduction leaves at most this share of the amount in flight."""
RECOVERY_S = 1.0
"""A retransmission explains reductions for this time."""
_COMPOUND = '"compound"'
_WITHOUT_DELAY_WINDOW = '{ kind = "compound", alpha = 0.0000001 }'
_PORT = 5001


def is_renos(path: TestPath, control: str, file: Path) -> bool:
    """Whether a run of another control, captured at the sender in `file`, is Reno's."""
    if control == "lp":
        return not has_early_reduction(file)
    return control == "compound" and not has_delay_window(path)


def has_early_reduction(file: Path) -> bool:
    """Whether the amount in flight falls without a retransmission before."""
    largest: dict[int, int] = {}
    highest = acknowledged = 0
    repeated: list[float] = []
    for time, seq, end, ack in _segments(file):
        if end > seq:
            if seq < highest:
                repeated.append(time)
            highest = max(highest, end)
            interval = int(time / INTERVAL_S)
            largest[interval] = max(largest.get(interval, 0), highest - acknowledged)
        acknowledged = max(acknowledged, ack)
    for interval in range(1, max(largest, default=0)):
        time = interval * INTERVAL_S
        is_explained = any(time - RECOVERY_S <= one <= time + INTERVAL_S for one in repeated)
        if largest.get(interval, 0) < FALL * largest.get(interval - 1, 0) and not is_explained:
            return True
    return False


def has_delay_window(path: TestPath) -> bool:
    """Whether the simulator's Compound sends other packets than without a delay window."""
    text = path.text("compound")
    with_it, without = (
        Scenario.from_text(one, file="compound.toml").run(seed=path.seed, captures=("sender",)).pcapng("sender")
        for one in (text, text.replace(_COMPOUND, _WITHOUT_DELAY_WINDOW))
    )
    return bytes(with_it) != bytes(without)


def _segments(file: Path) -> Iterator[tuple[float, int, int, int]]:
    """Time, first octet, one past the last octet, and acknowledged octet of each segment."""
    data = memoryview(file.read_bytes())
    at, start = 24, None
    first: dict[bool, int] = {}
    while at + 16 <= len(data):
        seconds, nanos, kept, _ = struct.unpack_from("=4I", data, at)
        packet, at = data[at + 16 : at + 16 + kept], at + 16 + kept
        if bytes(packet[12:14]) != b"\x08\x00":
            continue
        header = (packet[14] & 15) * 4
        octets = struct.unpack_from("!H", packet, 16)[0]
        tcp = packet[14 + header :]
        _, to, seq, ack = struct.unpack_from("!HHII", tcp)
        time = seconds + nanos / 1e9
        start = time if start is None else start
        is_data = to == _PORT
        seq_first = first.setdefault(is_data, seq)
        payload = octets - header - (tcp[12] >> 4) * 4
        if is_data:
            relative = (seq - seq_first) & 0xFFFFFFFF
            yield time - start, relative, relative + payload, 0
        elif True in first:
            yield time - start, 0, 0, (ack - first[True]) & 0xFFFFFFFF
