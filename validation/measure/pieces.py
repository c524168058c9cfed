"""Ends of packet trains at the boundaries of writes, which are ``size`` segments apart.

    anabranch run scenarios/live/reverse-load.toml --engine live --seed 4 --pcap bottleneck.reverse=back.pcapng
    tools/env python validation/measure/pieces.py back.pcapng 633 45

Segments are counted from 1, without retransmissions. A segment within 30 us of the previous one
belongs to its burst.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from anabranch.validate.segments import Segment, segments

PSH = 8
TOGETHER_S = 30e-6


def main() -> int:
    """Print the number of boundaries of each kind."""
    parser = argparse.ArgumentParser(description="How trains end where pieces may.")
    parser.add_argument("capture", type=Path, help="a capture of a live run (pcapng)")
    parser.add_argument("first", type=int, help="the last segment of a piece")
    parser.add_argument("size", type=int, help="segments of a piece")
    options = parser.parse_args()
    sent = _first_sent(list(segments(options.capture.read_bytes())))
    kinds: Counter[str] = Counter()
    for end in range(options.first, max(sent) - 1, options.size):
        before, last, after = sent[end - 1], sent[end], sent[end + 1]
        begins = last.time_s - before.time_s > TOGETHER_S or bool(before.flags & PSH)
        goes_on = after.time_s - last.time_s <= TOGETHER_S
        pushed = bool(last.flags & PSH)
        if not begins:
            kinds["the last of several"] += 1
        elif goes_on:
            kinds["left before the next by itself" if pushed else "left as one with the next"] += 1
        else:
            kinds["left alone, with PSH" if pushed else "left alone, without PSH"] += 1
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}")
    return 0


def _first_sent(all_segments: list[Segment]) -> dict[int, Segment]:
    data = [segment for segment in all_segments if segment.payload]
    full = max(Counter(segment.payload for segment in data).items(), key=lambda found: found[1])[0]
    sent: dict[int, Segment] = {}
    for segment in data:
        sent.setdefault((segment.seq - data[0].seq) // full + 1, segment)
    return sent


if __name__ == "__main__":
    raise SystemExit(main())
