"""The simulator compared with Linux kernels in virtual time: ``docs/validation/kernel.md``.

    python validation/kernel/beside.py            # prints the page's parts
    python validation/kernel/beside.py --write    # brings the page up to date
    python validation/kernel/beside.py --tables   # prints the tables alone

Needs kernels that ``anabranch kernel build 6.12`` and ``anabranch kernel build 6.1`` have made.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))
sys.path.insert(0, str(ROOT / "tools"))

from anabranch.kernel.images import chosen  # noqa: E402
from anabranch.limits import thread_count  # noqa: E402
from reference import markdown  # noqa: E402

from comparison.pages import fill  # noqa: E402
from kernel.tables import TABLES, Table, kernels, simulated  # noqa: E402

PAGE = ROOT / "docs/validation/kernel.md"
FIGURE = "kernel-validation.svg"
KERNEL, OLDER = "6.12", "6.1"
SEEDS = 6
"""Default number of seeds of each scenario, with two runs each."""
ALIKE = 0.01
"""Relative difference of a figure above which two kernels differ."""


def scenarios(seeds: int, keep: Path | None) -> dict[str, str]:
    """Compare ``scenarios/live``: verdict and rows; the figure is written to the page's folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        # A kernel in virtual time has no eBPF controls.
        files = sorted(
            str(file.relative_to(ROOT))
            for file in (ROOT / "scenarios/live").glob("*.toml")
            if '"bpf"' not in file.read_text("utf-8")
        )
        options = ["--engine", "kernel", "--kernel", KERNEL, "--seeds", str(seeds), "--out", str(out)]
        options += ["--keep", str(keep)] if keep else []
        command = [sys.executable, "-m", "anabranch", "validate", *options, *files]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        if done.returncode > 1 or not (out / "validation.json").exists():
            raise SystemExit(f"anabranch validate ended with status {done.returncode}")
        document = json.loads((out / "validation.json").read_text("utf-8"))
        verdict, _, rows = (out / "validation.md").read_text("utf-8").partition("\n\n")
        shutil.copyfile(out / "validation.svg", PAGE.with_name(FIGURE))
    wrong = "\n".join(f"- {problem}" for problem in document["problems"])
    about = f"Linux {chosen(KERNEL).release} in virtual time, {seeds} seeds of each scenario, two runs each.\n"
    verdict = f"{about}\n{verdict.strip()}\n\n" + (f"It fails:\n\n{wrong}" if wrong else "It passes.")
    return {"verdict": verdict, "rows": rows.strip()}


def part(table: Table) -> tuple[str, str]:
    """A table of the page, and the number of its rows in which ours is inside."""
    most = thread_count(None, 1 << 10)
    releases = [chosen(kernel).release for kernel in (KERNEL, *([OLDER] if table.has_older else []))]
    with ThreadPoolExecutor(1) as pool:
        ours = pool.submit(lambda: list(simulated(table, releases[0])))
        theirs, *others = (kernels(table, release, most, _told(table, release)) for release in releases)
        here = ours.result()
    older = others[0] if others else theirs
    head = [*table.head]
    for name in table.columns:
        head += [f"{name}: {KERNEL}", "here", *([OLDER] if table.has_older else [])]
    inside = [table.is_inside(one, other) for one, other in zip(theirs, here, strict=True)]
    lines = []
    for row, linux, we, before, is_inside in zip(table.rows, theirs, here, older, inside, strict=True):
        cells = [*row.cells]
        for name, form in table.columns.items():
            cells += [format(linux[name], form), format(we[name], form)]
            if table.has_older:
                cells.append(
                    format(before[name], form) if abs(before[name] - linux[name]) > ALIKE * linux[name] else "="
                )
        lines.append([*cells, "" if is_inside else "outside"])
    bound = f"{table.bound:.0%}" if table.is_relative else f"{table.bound:g}"
    verdict = f"{table.judged} within ± {bound} of the kernel's: {sum(inside)} of {len(inside)} rows"
    return markdown.table([*head, ""], lines), verdict


def _told(table: Table, release: str) -> Callable[[int], None]:
    total = sum(row.seeds for row in table.rows)

    def told(made: int) -> None:
        print(f"\r{table.name}, Linux {release}: {made} of {total}", end="\n" if made == total else "", file=sys.stderr)

    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the parts, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="bring the page up to date")
    parser.add_argument("--tables", action="store_true", help="the tables alone")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"of each scenario; {SEEDS} when left out")
    parser.add_argument("--keep", type=Path, help="directory of kernel runs that need not be made again")
    options = parser.parse_args(arguments)
    parts = {} if options.tables else scenarios(options.seeds, options.keep)
    verdicts = []
    for table in TABLES:
        parts[table.name], verdict = part(table)
        verdicts.append([table.name, verdict])
    parts["tables"] = markdown.table(["table", "found"], verdicts)
    if options.write:
        PAGE.write_text(fill(PAGE.read_text("utf-8"), parts, str(PAGE)), "utf-8")
    else:
        for name, text in parts.items():
            print(f"\n== {name}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
