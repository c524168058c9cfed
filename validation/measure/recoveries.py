"""Data in flight at the end of the kernel's recoveries, and whether another recovery begins there.

    tools/env python validation/measure/recoveries.py [RUNS]

According to the profile (``window_rules``), a recovery that ends before a retransmission is
acknowledged is followed by another one at once. The script compares the kernel's window events with
captures of ``scenarios/live/two-routes.toml``, in which recoveries end both ways. Acknowledgments
reach the sender a known delay after they enter their route.
"""

from __future__ import annotations

import sys
from collections import Counter

from anabranch.live import prepare, run_audited, taint
from anabranch.scenario import Scenario
from anabranch.validate.segments import SYN, Segment, segments

FILE = "scenarios/live/two-routes.toml"

ROUTES_S = {"fast": 0.015, "slow": 0.025}

SAME_S = 0.0005
"""Events this close belong to one acknowledgment."""

SLACK_S = 0.0003
"""Maximum time from an acknowledgment's arrival to its event."""


def main() -> int:
    """Run live and print how recoveries ended."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    prepare()
    ends: Counter[tuple[bool, bool]] = Counter()
    for seed in range(1, runs + 1):
        result = run_audited(Scenario.from_file(FILE), seed=seed, captures=list(ROUTES_S), packets=True, trace="events")
        if reasons := taint(result):
            print(f"seed {seed}: left out, {'; '.join(reasons)}")
            continue
        sent = [(s.time_s, s) for route in ROUTES_S for s in segments(result.pcapng(f"{route}.forward"))]
        heard = [
            (s.time_s + delay, s)
            for route, delay in ROUTES_S.items()
            for s in segments(result.pcapng(f"{route}.reverse"))
        ]
        events = result.table("window_events").to_dicts()
        entered = [event["time_s"] for event in events if event["event"] == "recovery-entered"]
        undone = [event["time_s"] for event in events if event["event"] == "undo"]
        for event in events:
            at = event["time_s"]
            # An undone recovery does not count.
            if event["event"] == "recovery-left" and not any(abs(at - other) < SAME_S for other in undone):
                again = any(0 <= other - at < SAME_S for other in entered)
                ends[_under_way(sent, heard, at) > 0, again] += 1
    for under_way, again in sorted(ends):
        what = "a retransmission" if under_way else "nothing retransmitted"
        then = "another one begins" if again else "none begins"
        print(f"with {what} under way {then}: {ends[under_way, again]} of {ends.total()} recoveries")
    return 0


def _under_way(sent: list[tuple[float, Segment]], heard: list[tuple[float, Segment]], now: float) -> int:
    """Retransmitted segments that are neither acknowledged nor SACKed at this time."""
    seen: set[int] = set()
    again: set[int] = set()
    for _, segment in sorted((s for s in sent if s[0] < now), key=lambda s: s[0]):
        if segment.payload:
            (again if segment.seq in seen else seen).add(segment.seq)
    answers = [s for at, s in heard if at < now + SLACK_S and not s.flags & SYN]
    acknowledged = max((s.ack for s in answers), default=0)
    reported = [block for s in answers for block in s.sack]
    left = {seq for seq in again if seq >= acknowledged}
    return sum(not any(first <= seq < end for first, end in reported) for seq in left)


if __name__ == "__main__":
    sys.exit(main())
