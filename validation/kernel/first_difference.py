"""Find the first packet at which a kernel in virtual time and the simulator differ.

    python validation/kernel/first_difference.py SCENARIO [--kernel RELEASE] [--stack NAME] [--flow NAME] [--within S]

Both runs count time from the first data and have the send buffer of live applications, so that a
mechanism of TCP causes the first difference. Prints the packets around it, the kernel's beside the
simulator's.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from anabranch.live import first_send_buffer
from anabranch.result.result import RunResult
from anabranch.scenario import Scenario

BEFORE, AFTER = 4, 10
"""Packets printed around the difference."""


def packets(result: RunResult, flow: str) -> list[dict[str, Any]]:
    """Packets of a flow in order of sending, with times since the first data."""
    rows = [row for row in result.table("packets").to_dicts() if row["flow"] == flow]
    start = next(row["sent_s"] for row in rows if row["payload_bytes"] > 0)
    return [{**row, "sent_s": row["sent_s"] - start} for row in rows]


def first_difference(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], within_s: float) -> int | None:
    """Index of the first packet that differs in content or in time."""
    keys = ("direction", "sequence_bytes", "payload_bytes", "fate")
    for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if any(one[key] != other[key] for key in keys) or abs(one["sent_s"] - other["sent_s"]) > within_s:
            return index
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


def told(row: dict[str, Any] | None) -> str:
    """A packet as a cell of the table."""
    if row is None:
        return "-"
    return f"{row['sent_s']:.6f} {row['sequence_bytes']:>9} {row['payload_bytes']:>5} {row['fate']}"


def main() -> int:
    """Run both and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario")
    parser.add_argument("--kernel", help="the beginning of a release, or a folder")
    parser.add_argument("--stack", help="the simulator's profile, in place of the scenario's")
    parser.add_argument("--flow", help="the first one when left out")
    parser.add_argument("--within", type=float, default=20e-6, help="seconds that times may be apart")
    options = parser.parse_args()
    scenario = Scenario.from_file(options.scenario)
    kernel = scenario.run_kernel(kernel=options.kernel, packets=True)
    for name in kernel.flows if options.stack else ():
        scenario = scenario.set(f"flow.{name.split('/')[0]}.stack", options.stack)
    buffer = first_send_buffer(scenario)
    for name in kernel.flows if buffer else ():
        scenario = scenario.set(f"flow.{name.split('/')[0]}.transport.send_autotuning_start", f"{buffer} bytes")
    flow = options.flow or next(iter(kernel.flows))
    theirs, ours = packets(kernel, flow), packets(scenario.run(packets=True), flow)
    at = first_difference(ours, theirs, options.within)
    if at is None:
        print(f"{len(ours)} packets are equal")
        return 0
    print(f"{at} packets are equal; then: kernel | simulator")
    for index in range(max(0, at - BEFORE), at + AFTER):
        pair = (rows[index] if index < len(rows) else None for rows in (theirs, ours))
        print(f"{index:>6}  {'  |  '.join(map(told, pair))}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
