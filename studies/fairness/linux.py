"""Linux's Vegas and Westwood+ in the place of Compound TCP, for F2, F3 and F6.

    python studies/fairness/linux.py --kernel 6.12 [--keep DIR]    makes the runs; writes a file for each control

Linux has no Compound TCP. Its Reno stands in for it in `anabranch study fairness --engine kernel`; these runs are the
same with another control that leaves room to CUBIC. ``DIR`` keeps finished runs.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import replace
from pathlib import Path

from anabranch import Study
from anabranch.study.definition import Definition
from anabranch.study.keep import Kept
from anabranch.study.kernel import KernelPool
from anabranch.study.results import Condition, Results

HERE = Path(__file__).resolve().parent
RIVALS = {"vegas": "vegas", "westwood": "westwood-plus"}
"""The names of the files, and the controls."""
CLAIMS = ("F2", "F3", "F6")
QUANTITIES = ("cubic", "compound", "carried")


def against(rival: str) -> Definition:
    """The study's part for kernels with ``rival`` in the place of Compound TCP, one run a point."""
    live = Study.load(HERE).definition.live
    if live is None or live.kernel is None:
        raise SystemExit("study.toml has no [live.kernel] section")
    pair = live.kernel.experiments["pair"]
    pair = replace(pair, set={**pair.set, "flow.compound.cc": rival}, repeat_full=1)
    claims = tuple(claim for claim in live.kernel.claims if claim.id in CLAIMS)
    return replace(live.kernel, experiments={"pair": pair}, claims=claims, tables=())


def runs(definition: Definition, kernel: str | None, kept: Kept | None) -> list[tuple[object, ...]]:
    """A row for each run: of the study's own systems, then of the wrong ones."""
    pool = KernelPool(definition, kernel=kernel, kept=kept)
    names = ["", *dict.fromkeys(claim.control or "" for claim in definition.claims)]
    plans = {name: pool.plan(Condition(full=True, wrong=definition.wrongs.get(name))) for name in names}
    # A wrong system that only replaces variants has no runs of its own, unless it needs a new variant.
    pool.make([job for plan in plans.values() for job in plan])
    rows: list[tuple[object, ...]] = []
    for name, jobs in plans.items():
        results = Results(definition, [(job, pool.outcomes[job.key]) for job in jobs])
        values = [results.quantity(quantity, "pair") for quantity in QUANTITIES]
        for job in jobs:
            key = (job.variant, *job.point, job.seed)
            figures = [f"{value.cells[key]:.3f}" for value in values]
            rows.append((job.experiment, job.variant, f"{job.point[0]:g}", name, *figures))
    return rows


def main() -> int:
    """Make the runs of both rivals."""
    parser = argparse.ArgumentParser(description="Linux's controls in the place of Compound TCP.")
    parser.add_argument("--kernel", help="the beginning of a release")
    parser.add_argument("--keep", type=Path, help="a directory for finished runs")
    options = parser.parse_args()
    for file, rival in RIVALS.items():
        kept = None if options.keep is None else Kept(None, HERE, None, options.keep)
        rows = runs(against(rival), options.kernel, kept)
        with (HERE / f"linux-{file}.csv").open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream, lineterminator="\n")
            table.writerow(("experiment", "variant", "rtt", "wrong", *QUANTITIES))
            table.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
