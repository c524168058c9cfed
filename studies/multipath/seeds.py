"""The variance that the total loss explains for method B (M3), over many groups of seeds: the study's part for kernels.

    python studies/multipath/seeds.py [--groups N] [--kernel 6.12]

Without ``--kernel`` the simulator makes the runs. A group has four seeds, as many as the study has at each point.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anabranch import Scenario, Study

HERE = Path(__file__).resolve().parent
GROUP = 4


def ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value; equal values share the mean of theirs."""
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]


def main() -> None:
    """Make the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--groups", type=int, default=20, metavar="N", help="number of groups of four seeds")
    parser.add_argument("--kernel", metavar="RELEASE", help="the beginning of a release, in virtual time")
    given = parser.parse_args()
    study = Study.load(HERE).definition
    live = study.live
    if live is None or live.kernel is None:
        raise SystemExit("study.toml has no [live.kernel] section")
    made = Scenario.from_file(HERE / "live.toml")
    for path, value in study.variants["B"].set.items():
        made = made.set(path, value)
    rates = live.kernel.axes["l1"].full
    points = [(one, two) for one, two in itertools.product(rates, rates) if one <= two]

    def goodput(one: float, two: float, seed: int) -> float:
        run = made.set("link.isp1.impair.0.rate", one).set("link.isp2.impair.0.rate", two)
        done = (
            run.run(seed=seed, digest=False) if given.kernel is None else run.run_kernel(seed=seed, kernel=given.kernel)
        )
        return float(done.summary["flows"]["main"]["goodput_mbit_s"])

    def explained(group: int) -> float:
        seeds = range(GROUP * group + 1, GROUP * (group + 1) + 1)
        means = [statistics.fmean(goodput(*point, seed) for seed in seeds) for point in points]
        return statistics.correlation(ranks(means), ranks([one + two for one, two in points])) ** 2

    with ThreadPoolExecutor(2) as pool:
        shares = sorted(pool.map(explained, range(given.groups)))
    sys.stdout.write(
        f"{given.groups} groups of {GROUP} seeds: median {statistics.median(shares):.2f}, "
        f"{shares[0]:.2f} to {shares[-1]:.2f}; {sum(share >= 0.9 for share in shares)} of at least 0.9\n"
    )


if __name__ == "__main__":
    main()
