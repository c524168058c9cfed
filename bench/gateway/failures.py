"""Traffic through the tunnel while a path fails and returns, in virtual time: python bench/gateway/failures.py.

Each phase is a separate tunnel over two paths of 20 Mbit/s with one-way delays of 10 and 15 ms, without any setting
but a class. The path with the lower delay fails after five seconds and a part of a second that differs from phase to
phase, and returns three seconds later. A call sends a packet of 200 octets every 20 ms with DSCP 46, which matches an
interactive class; a download is one CUBIC flow. The gap of a load is the longest time without an arrival from the
failure to the end of the run, a second and a half after the return.

The figures are the same on every machine. The program exits with 1 if a target of the design is missed, but for
the rows that are known to miss it, or if one of these is met.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from anabranch import Scenario

FAIL_S, AWAY_S, AFTER_S = 5.0, 3.0, 1.5
END_S = FAIL_S + 1 + AWAY_S + AFTER_S
GOLDEN = (math.sqrt(5) - 1) / 2
"""The phases are its multiples, modulo one second: any number of them lies evenly."""
FAILURES: dict[str, Mapping[str, tuple[Any, Any]]] = {
    "black hole towards the branch": {"forward.up": (False, True)},
    "black hole from the branch": {"reverse.up": (False, True)},
    "black hole in both directions": {"up": (False, True)},
    "loss of half of the packets": {"impair.0.rate": (0.5, 0)},
    "rate of 64 kbit/s": {"rate": ("64 kbit/s", "20 Mbit/s")},
}
"""The keys of the failing path: the value during the failure, and after it."""
LOADS = ("call", "download", "both")
GAP_MS = 300
"""Of the design: silence at a failure of a path that carries traffic, 95th percentile."""
KNOWN: set[tuple[str, str, str]] = set()
"""Failure, load and flow that miss it."""


def scenario(failure: str, load: str, phase: float) -> Scenario:
    """Return a phase's scenario."""
    lan = {"rate": "1 Gbit/s", "delay": "0 ms"}
    path = {
        "between": ["near", "far"],
        "rate": "20 Mbit/s",
        "queue": {"kind": "drop-tail", "limit": "100 packets"},
        "impair": [{"kind": "bernoulli-loss", "rate": 0}],
    }
    begin = FAIL_S + phase
    flow = {"from": "server", "to": "client", "start": "1 s"}
    call = {"protocol": "udp", "dscp": 46, "workload": {"kind": "paced", "rate": "68.8 kbit/s", "payload": "172 bytes"}}
    download = {"cc": "cubic", "workload": {"kind": "bulk"}}
    document: dict[str, Any] = {
        "title": f"{load}, {failure}",
        "duration": f"{END_S} s",
        "warmup": "1 s",
        "link": {
            "lan1": {"between": ["server", "near"], **lan},
            "lan2": {"between": ["far", "client"], **lan},
            "path1": {**path, "delay": "10 ms"},
            "path2": {**path, "delay": "15 ms"},
        },
        "gateway": {
            "bond": {
                "kind": "tunnel",
                "between": ["near", "far"],
                "routes": ["path1", "path2"],
                "class": {"calls": {"match": {"dscp": 46}, "mode": "interactive"}},
            }
        },
        "flow": {},
        "at": [
            {
                "time": f"{time:.6f} s",
                "set": {f"link.path1.{key}": values[n] for key, values in FAILURES[failure].items()},
            }
            for n, time in enumerate((begin, begin + AWAY_S))
        ],
    }
    if load != "download":
        document["flow"]["call"] = {**flow, **call}
    if load != "call":
        document["flow"]["download"] = {**flow, **download}
    return Scenario.from_dict(document)


def measure(failure: str, load: str, phase: float) -> dict[str, Any]:
    """Return the longest gap of each flow in milliseconds, and how many packets of the call were lost."""
    run = scenario(failure, load, phase).run(seed=1, digest=False, packets=True)
    packets = run.table("packets")
    names, ways = packets["flow"], packets["direction"]
    received, fates = packets["received_s"], packets["fate"]
    found: dict[str, Any] = {"failure": failure, "load": load, "phase": phase}
    for flow in run.summary["flows"]:
        mine = [n for n in range(len(names)) if names[n] == flow and ways[n] == "forward"]
        times = sorted(at for n in mine if (at := received[n]) is not None and at >= FAIL_S + phase)
        ends = [FAIL_S + phase, *times, END_S]
        found[f"{flow}_gap_ms"] = 1e3 * max(later - sooner for sooner, later in itertools.pairwise(ends))
        if flow == "call":
            found["lost"] = sum(fates[n] not in ("delivered", "in-flight") for n in mine)
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that this share of the values do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def main() -> int:
    """Measure, and print a row for each failure and load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phases", type=int, default=200, metavar="N", help="phases of each failure and load")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each phase's figures there too")
    options = parser.parse_args()
    phases = [n * GOLDEN % 1 for n in range(options.phases)]
    cells = ["failure", "load", "flow", "gap, median (ms)", "p95 (ms)", "longest (ms)", "packets lost", "target"]
    print("|", " | ".join(cells), "|")
    print("|", " | ".join("---" for _ in cells), "|")
    every, changed = [], 0
    with ThreadPoolExecutor() as pool:
        for failure, load in itertools.product(FAILURES, LOADS):
            rows = list(pool.map(lambda phase, failure=failure, load=load: measure(failure, load, phase), phases))
            every += rows
            for flow in ("call", "download"):
                if f"{flow}_gap_ms" not in rows[0]:
                    continue
                gaps = [row[f"{flow}_gap_ms"] for row in rows]
                lost = sum(row["lost"] for row in rows) if flow == "call" else None
                is_met = percentile(gaps, 0.95) <= GAP_MS and not lost
                changed += is_met == ((failure, load, flow) in KNOWN)
                values = [statistics.median(gaps), percentile(gaps, 0.95), max(gaps)]
                shown = [f"{value:.0f}" for value in values] + ["–" if lost is None else str(lost)]
                print("|", " | ".join([failure, load, flow, *shown, "met" if is_met else "missed"]), "|", flush=True)
    if options.json:
        options.json.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
