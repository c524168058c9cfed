"""Reno's throughput over CUBIC's under RED at 64 ms, over many seeds: one point of the study's part for kernels.

    python studies/fairness/seeds.py [--seeds N] [--first N] [--kernel 6.12]

Without ``--kernel`` the simulator makes the runs. Prints the mean ratio with its 95 % interval, and the range of the
means of four seeds, as many as the study has at this point.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anabranch import Scenario, Study

HERE = Path(__file__).resolve().parent
GROUP = 4


def scenario() -> Scenario:
    """The study's scenario for kernels with RED, at 64 ms."""
    live = Study.load(HERE).definition.live
    if live is None or live.kernel is None:
        raise SystemExit("study.toml has no [live.kernel] section")
    changes = {**live.kernel.variants["red"].set, **live.kernel.experiments["pair"].set}
    made = Scenario.from_file(HERE / "live.toml")
    for path, value in {**changes, "link.bottleneck.forward.delay": "64 ms"}.items():
        made = made.set(path, value)
    return made


def ratio(seed: int, kernel: str | None) -> float:
    """Throughput of the flow called compound over that of CUBIC."""
    made = scenario()
    run = made.run(seed=seed, digest=False) if kernel is None else made.run_kernel(seed=seed, kernel=kernel)
    flows = run.summary["flows"]
    return float(flows["compound"]["goodput_mbit_s"] / flows["cubic"]["goodput_mbit_s"])


def main() -> None:
    """Make the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=40, metavar="N", help="number of seeds")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="first seed")
    parser.add_argument("--kernel", metavar="RELEASE", help="the beginning of a release, in virtual time")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    with ThreadPoolExecutor(2) as pool:
        ratios = list(pool.map(lambda seed: ratio(seed, given.kernel), seeds))
    mean, half = statistics.fmean(ratios), 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5
    groups = [statistics.fmean(ratios[at : at + GROUP]) for at in range(0, len(ratios) - GROUP + 1, GROUP)]
    sys.stdout.write(f"mean {mean:.2f} ± {half:.2f}; groups of {GROUP}: {min(groups):.2f} to {max(groups):.2f}\n")


if __name__ == "__main__":
    main()
