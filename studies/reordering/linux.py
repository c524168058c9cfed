"""Linux's NewReno and CUBIC beside the simulator's Cubic+: the witness of R4 and R9, and R11.

    anabranch study reordering --engine kernel --kernel 6.12 --out DIR
    python studies/reordering/linux.py DIR                  writes linux.csv from the runs in DIR and the simulator's
    python studies/reordering/linux.py --kernel 6.12        judges R11, which needs samples: one run in the kernel
    python studies/reordering/linux.py --beside             sets the kernel's stored runs beside the simulator's

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
from statistics import median

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


def beside() -> str:
    """Each control's throughput in the kernel over the simulator's, at all intervals."""
    with (HERE / "linux.csv").open(encoding="utf-8") as file:
        stored = {(row["variant"], row["ri"]): float(row["throughput"]) for row in csv.DictReader(file)}
    head = ["control", "median ratio kernel / simulator", "median deviation", "worst ratio", "intervals within 5 %"]
    lines = [head, ["---"] * len(head)]
    for variant in ("newreno", "cubic"):
        runs = made(Pool(only(part(), variant)))
        ratios = {
            job.point[0]: stored[variant, f"{job.point[0]:g}"] / outcome.figures[FIGURE]
            for job, outcome in runs
            if job.point
        }
        off = {ri: max(ratio, 1 / ratio) for ri, ratio in ratios.items()}
        worst = max(off, key=lambda ri: off[ri])
        near = sum(value <= 1.05 for value in off.values())
        label = load(HERE).variants[variant].label
        lines.append([
            label, f"{median(ratios.values()):.3f}", f"{median(off.values()):.3f}",
            f"{ratios[worst]:.3f} at RI {worst:g}", f"{near} of {len(off)}",
        ])  # fmt: skip
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Write the witness, judge R11, or compare with the simulator."""
    parser = argparse.ArgumentParser(description="Linux's controls beside Cubic+.")
    parser.add_argument("directory", nargs="?", type=Path, help="of the study's runs in a kernel")
    parser.add_argument("--kernel", help="the beginning of a release")
    parser.add_argument("--beside", action="store_true", help="compare the stored runs with the simulator's")
    options = parser.parse_args()
    if options.beside:
        sys.stdout.write(beside())
        return 0
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
