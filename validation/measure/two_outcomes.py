"""The two outcomes of CUBIC over 10 Mbit/s and 70 ms, in the simulator and in the kernel.

    tools/env python validation/measure/two_outcomes.py [--live RUNS]

Prints the distribution of the mean round-trip time over 64 simulated runs, and over the live runs
that are not tainted. The simulated hosts have measured processing times and start at a random point
of a tick of the kernel's clock (:mod:`anabranch.validate.host_times`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.live import prepare, run_audited, taint
from anabranch.scenario import Scenario
from anabranch.validate.host_times import HostTimes, with_host_times

if TYPE_CHECKING:
    from anabranch.result.result import RunResult

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "live"))

from test_reference import THIN  # type: ignore[import-not-found] # noqa: E402

DRAWS = 64


def rtt_ms(run: RunResult) -> float:
    """Mean smoothed round-trip time, rounded to tenths."""
    told = run.summary["flows"]["main"]["mean_srtt_ms"]
    assert told is not None
    return round(told, 1)


def main() -> None:
    """Print the outcomes and their frequencies."""
    parser = argparse.ArgumentParser(description="The two outcomes of CUBIC over 10 Mbit/s and 70 ms.")
    parser.add_argument("--live", type=int, default=0, metavar="RUNS", help="so many live runs (default: none)")
    asked = parser.parse_args().live
    scenario = Scenario.from_text(THIN.text("cubic"))
    drawn = with_host_times(scenario, DRAWS, HostTimes.read(ROOT / "validation" / "data" / "host_times.json"))
    outcomes = {"simulated": Counter(rtt_ms(one.run(samples_ms=10.0, digest=False)) for one in drawn)}
    if asked:
        prepare()
        runs = [run_audited(scenario, samples_ms=10.0) for _ in range(asked)]
        outcomes["live"] = Counter(rtt_ms(run) for run in runs if not taint(run))
    for engine, counts in outcomes.items():
        for time, count in sorted(counts.items()):
            print(f"{engine}: {time:.1f} ms in {count} of {counts.total()} runs")


if __name__ == "__main__":
    main()
