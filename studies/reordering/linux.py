"""Linux's NewReno and CUBIC beside the simulator's Cubic+: the witness of R4 and R9, and R11.

    anabranch study reordering --engine kernel --kernel 6.12 --out DIR
    python studies/reordering/linux.py DIR                  writes linux.csv from the runs in DIR and the simulator's
    python studies/reordering/linux.py --kernel 6.12        judges R11, which needs samples: one run in the kernel

Linux has no Cubic+, so its runs are the simulator's, with the model of Linux at the ends, over the same path.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from anabranch.study.definition import Definition
from anabranch.study.kernel import KernelPool
from anabranch.study.parse import load
from anabranch.study.results import Condition, Job, Outcome, Pool, Results
from anabranch.study.verdict import judge

HERE = Path(__file__).resolve().parent
FIGURE = "flow.main.throughput_mbit_s"
SAMPLED = 70


def part() -> Definition:
    """The study's part for kernels."""
    live = load(HERE).live
    if live is None or live.kernel is None:
        raise SystemExit("study.toml has no [live.kernel] section")
    return live.kernel


def only(definition: Definition, variant: str) -> Definition:
    """A definition with one variant of the report's own experiments."""
    own = (definition.experiments[name] for name in ("reordering", "plain"))
    return replace(definition, experiments={one.name: replace(one, variants=(variant,)) for one in own})


def made(pool: Pool, ri: int | None = None, *, full: bool = True) -> Sequence[tuple[Job, Outcome]]:
    """The runs of a pool on a grid, or the run at one interval, with samples."""
    jobs = pool.plan(Condition(full=full))
    if ri is not None:
        jobs = [replace(job, samples_ms=10.0) for job in jobs if job.point == (ri,)]
    pool.make(jobs)
    return pool.results(jobs).runs


def throughputs(directory: Path) -> list[tuple[str, str, str, str]]:
    """Throughput at every interval: of the kernel's controls from stored runs, and of Cubic+."""
    stored = pl.read_parquet(directory / "kernel-runs.parquet").filter(
        pl.col("experiment").is_in(["reordering", "plain"])
    )
    rows = stored.select("experiment", "variant", "ri", FIGURE).rows()
    is_full = json.loads((directory / "study.json").read_text("utf-8"))["mode"] == "full"
    rows += [
        (job.experiment, job.variant, job.point[0] if job.point else None, outcome.figures[FIGURE])
        for job, outcome in made(Pool(only(part(), "cubic_plus")), full=is_full)
    ]
    return [
        (experiment, variant, "" if ri is None else f"{ri:g}", f"{value:.6f}")
        for experiment, variant, ri, value in rows
    ]


def collapse(kernel: str | None) -> str:
    """R11: windows over time, of the kernel's CUBIC and of Cubic+."""
    definition = part()
    pools = KernelPool(only(definition, "cubic"), 1, kernel), Pool(only(definition, "cubic_plus"))
    runs = [run for pool in pools for run in made(pool, SAMPLED)]
    claim = next(claim for claim in load(HERE).claims if claim.id == "R11")
    done = judge(claim, Results(definition, runs))
    return f"R11: {done.measured} ({done.word})\n"


def main() -> int:
    """Write the witness, or judge R11."""
    parser = argparse.ArgumentParser(description="Linux's controls beside Cubic+.")
    parser.add_argument("directory", nargs="?", type=Path, help="of the study's runs in a kernel")
    parser.add_argument("--kernel", help="the beginning of a release")
    options = parser.parse_args()
    if options.directory is None:
        sys.stdout.write(collapse(options.kernel))
        return 0
    # Before the file is opened: the study reads it.
    runs = throughputs(options.directory)
    with (HERE / "linux.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("experiment", "variant", "ri", "throughput"))
        rows.writerows(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
