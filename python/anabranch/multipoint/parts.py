"""Counts and delays of the packets of a part of the path, for each pair and for all."""

from __future__ import annotations

import numpy as np

from anabranch.multipoint.documents import Delay, Series, Way
from anabranch.multipoint.listing import Flags, Indices, Times
from anabranch.multipoint.matching import NONE
from anabranch.multipoint.passage import Passage, bursts, kinds_of_added

MOST_FRAMES = 8
"""Lost packets that are named."""
INTERVALS = 120
"""Intervals of a series."""
_QUANTILES = (("min", 0.0), ("median", 0.5), ("p95", 0.95), ("max", 1.0))


def ways(found: Passage, pairs: int) -> list[Way]:
    """One way of a part of the path: for each pair, and for all pairs together at the end."""
    sent, received = found.sent.pair, found.received.pair
    is_data = found.sent.length > 0
    due = found.is_due
    counts = {
        "packets": _counts(sent, due, pairs),
        "data_packets": _counts(sent, due & is_data, pairs),
        "lost": _counts(sent, found.is_lost, pairs),
        "lost_data": _counts(sent, found.is_lost & is_data, pairs),
        "unseen": _counts(sent, found.is_unseen, pairs),
        "missed": _counts(received, found.is_missed, pairs),
        "duplicated": _counts(received, found.is_duplicate, pairs),
        "reordered": _counts(received, found.is_reordered, pairs),
    }
    delays = _delays(found, pairs)
    lost = np.flatnonzero(found.is_lost)
    frames: dict[int, list[int]] = {}
    for index in lost.tolist():
        own = frames.setdefault(int(sent[index]), [])
        if len(own) < MOST_FRAMES:
            own.append(int(found.sent.rows["frame"][index]))
    added_pairs = set(np.unique(received[found.is_added]).tolist())
    made: list[Way] = []
    for number in range(pairs + 1):
        own_sent = (sent == number) if number in frames else None
        is_all = number == pairs
        if number in added_pairs or (is_all and added_pairs):
            added = kinds_of_added(found, found.is_added if is_all else found.is_added & (received == number))
        else:
            added = dict.fromkeys(("rst", "data", "ack", "other"), 0)
        runs = 0
        if is_all:
            runs = bursts(found, np.ones(len(sent), np.bool_))
        elif own_sent is not None:
            runs = bursts(found, own_sent)
        some = found.sent.rows["frame"][lost][:MOST_FRAMES].tolist() if is_all else frames.get(number, [])
        made.append({
            "packets": counts["packets"][number], "data_packets": counts["data_packets"][number],
            "lost": counts["lost"][number], "lost_data": counts["lost_data"][number], "bursts": runs,
            "unseen": counts["unseen"][number], "missed": counts["missed"][number],
            "duplicated": counts["duplicated"][number], "added": added, "reordered": counts["reordered"][number],
            "delay_ms": delays[number], "lost_frames": [int(frame) for frame in some],
        })  # fmt: skip
    return made


def _counts(pair: Indices, chosen: Flags, pairs: int) -> list[int]:
    counts = np.bincount(pair[chosen], minlength=pairs)
    return [*map(int, counts), int(counts.sum())]


def _delays(found: Passage, pairs: int) -> list[Delay]:
    came = np.flatnonzero(found.mate != NONE)
    pair, delay = found.sent.pair[came], found.delay_s[came] * 1e3
    order = np.lexsort((delay, pair))
    begins = np.searchsorted(pair[order], np.arange(pairs + 1))
    made = [_quantiles(delay[order[begins[i] : begins[i + 1]]]) for i in range(pairs)]
    return [*made, _quantiles(np.sort(delay))]


def _quantiles(ordered: Times) -> Delay:
    if not len(ordered):
        return {"min": None, "median": None, "p95": None, "max": None}
    at = {name: float(ordered[round(share * (len(ordered) - 1))]) for name, share in _QUANTILES}
    return {"min": at["min"], "median": at["median"], "p95": at["p95"], "max": at["max"]}


def series(found: Passage, pair: int | None = None) -> Series | None:
    """The delays of a way over time, by the time at which packets passed its first point."""
    is_own = np.ones(len(found.sent), np.bool_) if pair is None else found.sent.pair == pair
    own = np.flatnonzero(is_own & (found.is_due | (found.mate != NONE)))
    if not len(own):
        return None
    times = found.sent.time_s[own]
    start, span = float(times.min()), float(times.max() - times.min())
    length = span / INTERVALS if span > 0 else 1.0
    interval = np.minimum(((times - start) / length).astype(np.int64), INTERVALS - 1)
    came = found.mate[own] != NONE
    delay = found.delay_s[own[came]] * 1e3
    order = np.lexsort((delay, interval[came]))
    begins = np.searchsorted(interval[came][order], np.arange(INTERVALS + 1))
    ordered = delay[order]
    lows: list[float | None] = []
    middles: list[float | None] = []
    highs: list[float | None] = []
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        some = ordered[begin:end]
        lows.append(round(float(some[0]), 6) if len(some) else None)
        middles.append(round(float(some[len(some) // 2]), 6) if len(some) else None)
        highs.append(round(float(some[-1]), 6) if len(some) else None)
    lost = np.bincount(interval[found.is_lost[own]], minlength=INTERVALS)
    return {
        "start_s": start, "interval_s": length, "min_ms": lows, "median_ms": middles, "max_ms": highs,
        "packets": np.diff(begins).tolist(), "lost": lost.tolist(),
    }  # fmt: skip
