"""Make the figures of a comparison with a Linux kernel in virtual time.

    python validation/kernel/rows.py linux-controls                 writes validation/data/linux-controls.csv
    python validation/kernel/rows.py linux-controls --kernel 6.1    writes validation/data/linux-controls-6.1.csv
    python validation/kernel/rows.py linux-controls --only htcp     only the rows of a control; the others stay

``[kernel]`` of ``validation/comparisons/NAME.toml`` names the release of the comparison's file, the
rows and the figures; ``[versions]`` names the rows that other releases run. The scenario file and
``[set]`` are those of the simulator's side. A row is one run, or ``seeds`` runs. The file has the
mean of each figure, and also the minimum and maximum of the judged one.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anabranch.kernel.guests import Guests, Work
from anabranch.limits import thread_count
from anabranch.live import first_send_buffer
from anabranch.progress import Progress
from anabranch.scenario import Scenario

from comparison import oracle
from comparison.rows import Rows, figures_of, value

BUFFER = "send_buffer_start_bytes"
"""Column: the initial send buffer of a live application."""


def inputs(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Expand ``[[kernel.rows]]``: the product of its lists; a table in a list has several columns."""
    for block in spec["rows"]:
        lists = {key: some if isinstance(some, list) else [some] for key, some in block.items()}
        for values in itertools.product(*lists.values()):
            row: dict[str, Any] = {}
            for key, chosen in zip(lists, values, strict=True):
                row.update(chosen if isinstance(chosen, dict) else {key: chosen})
            yield {**spec.get("defaults", {}), **row}


def scenario(comparison: Rows, row: Mapping[str, Any]) -> Scenario:
    """The kernel's scenario of a row."""
    path = oracle.DATA / f"{comparison.name}.toml"
    return Scenario.from_file(path).with_sets(*comparison.sets(comparison.worded(row)))


def file_of(name: str, release: str, kernel: str) -> Path:
    """The file with the figures of a kernel."""
    return oracle.DATA / (f"{name}.csv" if kernel == release else f"{name}-{kernel}.csv")


def measured(comparison: Rows, rows: Sequence[Mapping[str, Any]], kernel: str, jobs: int) -> list[dict[str, Any]]:
    """Run all rows and return their figures."""
    scenarios = [scenario(comparison, row) for row in rows]
    work = [
        (index, Work(one, seed))
        for index, (row, one) in enumerate(zip(rows, scenarios, strict=True))
        for seed in range(1, int(row["seeds"]) + 1)
    ]
    # Longest first, so that no guest runs alone at the end.
    work.sort(key=lambda item: -rows[item[0]]["rate_mbit_s"] * rows[item[0]]["duration_s"])
    names = comparison.spec["kernel"]["figures"]
    found: list[list[dict[str, float]]] = [[] for _ in rows]
    guests = Guests(kernel)
    with Progress(f"{comparison.name}, Linux {kernel}", len(work)) as progress:
        done = 0
        for at, future in guests.side_by_side((one for _, one in work), jobs):
            run = figures_of(json.loads(future.result().summary_json))
            found[work[at][0]].append({name: float(run[key]) for name, key in names.items()})
            progress.update(done := done + 1)
    judged = comparison.spec["kernel"]["judged"]
    table = []
    for row, one, runs in zip(rows, scenarios, found, strict=True):
        means = {name: sum(run[name] for run in runs) / len(runs) for name in names}
        ends = {f"{judged}_low": min(run[judged] for run in runs), f"{judged}_high": max(run[judged] for run in runs)}
        table.append({**row, BUFFER: first_send_buffer(one) or 0, **means, **ends})
    return table


def written(cell: Any) -> str:
    """A cell of the file."""
    return f"{cell:.4f}".rstrip("0").rstrip(".") if isinstance(cell, float) else str(cell)


def write(path: Path, table: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, str]], only: str | None) -> None:
    """Write the file; with ``only`` the rows of other controls keep their content and position."""
    fresh = iter([{key: written(cell) for key, cell in row.items()} for row in table])
    rows = list(fresh) if only is None else [next(fresh) if row["cc"] == only else row for row in kept]
    aside = path.with_name(path.name + ".new")
    with aside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    aside.replace(path)


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="a comparison with [kernel] in its file")
    parser.add_argument("--kernel", help="the beginning of a release; that of the comparison when left out")
    parser.add_argument("--only", metavar="CONTROL", help="only the rows of a control")
    parser.add_argument("--jobs", type=int, help="guests at once; as many as processors when left out")
    options = parser.parse_args()
    spec = oracle.spec(options.name)
    if "kernel" not in spec:
        parser.error(f"validation/comparisons/{options.name}.toml has no [kernel]")
    release = spec["kernel"]["release"]
    kernel = options.kernel or release
    path = file_of(options.name, release, kernel)
    rows = list(inputs(spec["kernel"]))
    if kernel != release and "rows" in spec.get("versions", {}):
        rows = [row for row in rows if value(spec["versions"]["rows"], row)]
    kept = []
    if options.only is not None:
        if options.only not in {row["cc"] for row in rows}:
            parser.error(f"{options.name} has no control {options.only}")
        kept = oracle.read(path.name)
        if len(kept) != len(rows):
            parser.error(f"{path.name} does not have the rows of {options.name}: run it without --only once")
        rows = [row for row in rows if row["cc"] == options.only]
    start = time.monotonic()
    table = measured(Rows(options.name, spec), rows, kernel, thread_count(options.jobs, len(rows)))
    write(path, table, kept, options.only)
    print(f"{path.relative_to(oracle.ROOT)}: {len(table)} rows in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
