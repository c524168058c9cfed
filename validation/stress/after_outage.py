"""Measure how long a flow waits after an outage: the table of docs/findings/bbr-outage.md.

    python validation/stress/after_outage.py                   # in the simulator
    python validation/stress/after_outage.py --kernel 6.12     # in that Linux kernel, in virtual time: ten minutes

A flow waits from the end of the outage to the first second in which it delivers half of the rate.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from anabranch import Scenario

FILE = Path(__file__).parents[2] / "docs/findings/bbr-outage.toml"
STARTS = (8.0, 8.5, 9.0, 9.5, 10.5, 12.5)
"""Seconds until the outage. The phase of BBR's ProbeRTT differs with it."""
LENGTHS = (1, 3, 10)
TENTHS = 10
LONGEST_S = 38
HALF_MBIT_S = 10.0


def waiting_s(control: str, start: float, length: float, kernel: str | None) -> float:
    """Seconds until a flow of a control delivers half of the rate."""
    end = start + length
    scenario = Scenario.from_file(FILE).set("flow.main.cc", control).set("warmup", "0 s")
    scenario = scenario.set("at.0.time", f"{start:g} s").set("at.1.time", f"{end:g} s")
    scenario = scenario.set("duration", f"{end + LONGEST_S + 2:g} s")
    if kernel is None:
        run = scenario.run(samples_ms=100, digest=False)
    else:
        run = scenario.run_kernel(kernel=kernel, samples_ms=100)
    samples = run.table("samples")
    octets = {
        round(time * TENTHS): count for time, count in zip(samples["time_s"], samples["delivered_bytes"], strict=True)
    }
    first = round(end * TENTHS)
    for at in range(first, first + LONGEST_S * TENTHS):
        if (octets[at + TENTHS] - octets[at]) * 8 / 1e6 >= HALF_MBIT_S:
            return (at - first) / TENTHS
    return float("inf")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernel", help="run Linux kernels of this release")
    options = parser.parse_args()
    for control in ("bbr", "cubic") if options.kernel else ("bbr", "bbr3", "cubic"):
        for length in LENGTHS:
            found = [waiting_s(control, start, length, options.kernel) for start in STARTS]
            print(f"{control}, {length} s: {', '.join(f'{one:.1f}' for one in found)}", flush=True)


if __name__ == "__main__":
    main()
