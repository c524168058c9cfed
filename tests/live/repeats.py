"""Live against live: how far repeats of one run are apart, beside how late the engine was.

    tools/env python tests/live/repeats.py [REPEATS]

The limits past which a run is tainted come from this (`docs/concepts/live.md`); nothing of the simulator is in it.
"""

from __future__ import annotations

import sys

from anabranch.live import run_audited
from anabranch.scenario import Scenario

PATHS = ((10, 70, "100 packets"), (100, 20, "1 bdp"), (100, 100, "1 bdp"))
"""Rate in Mbit/s, round-trip time in ms, queue."""

CONTROLS = ("cubic", "reno")


def scenario(rate_mbit_s: int, rtt_ms: int, queue: str, cc: str) -> Scenario:
    """Five seconds of one flow."""
    return Scenario.from_text(
        f"""
        duration = "5 s"
        [link.path]
        between = ["A", "B"]
        rate = "{rate_mbit_s} Mbit/s"
        delay = "{rtt_ms / 2} ms"
        forward.queue = {{ kind = "drop-tail", limit = "{queue}" }}
        [flow.main]
        from = "A"
        to = "B"
        cc = "{cc}"
        """
    )


def main() -> None:
    """Print a table in Markdown: a row per path and control."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print("| path | control | runs | goodput in Mbit/s | spread | p99 lateness in ms, worst | latest packet in ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rate, rtt, queue in PATHS:
        for cc in CONTROLS:
            goodputs, p99, latest = [], [], []
            for _ in range(repeats):
                run = run_audited(scenario(rate, rtt, queue, cc))
                assert run.live is not None
                audit = run.live["audit"]
                goodputs.append(run.flows["main"]["goodput_mbit_s"] or 0.0)
                p99.append(audit["p99_lateness_ms"] or 0.0)
                latest.append(audit["max_lateness_ms"] or 0.0)
            low, high = min(goodputs), max(goodputs)
            print(
                f"| {rate} Mbit/s, {rtt} ms, {queue} | {cc} | {repeats} | {low:.4g}–{high:.4g} | {high / low - 1:.2%} "
                f"| {max(p99):.2g} | {max(latest):.2g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
