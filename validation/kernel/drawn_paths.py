"""Compare drawn paths on a Linux kernel in virtual time with the simulator, and write the page of the comparison."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from anabranch import Scenario  # noqa: E402
from anabranch.kernel.guests import Guests, Work  # noqa: E402
from anabranch.limits import thread_count  # noqa: E402

from comparison.pages import fill  # noqa: E402

# The package adds tools/ to the path.
from reference import markdown  # noqa: E402  # isort: skip

KERNEL = "6.12"
PROFILE = f"linux-{KERNEL}"
STEPS = (-0.03, 0.0, 0.03)
"""Changes of the delay. The mean of three runs depends less on a tie between two packets."""
NEAR = 0.05
LEAST = 0.9
"""The share of the paths that must be alike."""

Figures = Sequence[Mapping[str, float]]
"""A path's runs, one for each step."""


class Drawn(Protocol):
    """A random path with one flow, ``main``."""

    @property
    def number(self) -> int:
        """Its number and seed."""

    @property
    def transport(self) -> tuple[str, ...]:
        """Keys of the endpoint."""

    def text(self, step: float = 0.0, stack: str = PROFILE) -> str:
        """The scenario, with a delay that differs by this share."""

    def row(self) -> list[str]:
        """Its cells of the table."""


@dataclass(frozen=True)
class Comparison:
    """Paths that a page compares.

    Attributes:
        script: The name of the script that has them.
        page: The page.
        data: The kernel's figures on record.
        heads: Heads of the cells that describe a path.
        of: Draws the path with a number.
        first: The number of the first path; the numbers are seeds.
        count: The number of paths.
        groups: Groups of paths whose results are shown for information.
    """

    script: str
    page: Path
    data: Path
    heads: Sequence[str]
    of: Callable[[int], Drawn]
    first: int
    count: int
    groups: Mapping[str, Callable[[Drawn], bool]]

    def drawn(self) -> list[Drawn]:
        """The paths of the page."""
        return [self.of(number) for number in range(self.first, self.first + self.count)]

    def kept(self) -> list[Figures]:
        """The kernel's figures on record.

        Raises:
            SystemExit: They are of other scenarios.
        """
        record = json.loads(self.data.read_text("utf-8"))
        if record["scenarios"] != self._scenarios():
            raise SystemExit(f"{self.data.name} is of other paths: python validation/kernel/{self.script} --kernel")
        found: list[Figures] = record["runs"]
        return found

    def measure(self, jobs: int | None) -> None:
        """Run the kernel, and keep its figures."""
        record = {"kernel": KERNEL, "scenarios": self._scenarios(), "runs": measured(self.drawn(), jobs)}
        self.data.write_text(json.dumps(record, indent=1) + "\n", "utf-8")

    def _scenarios(self) -> list[str]:
        """The text of each path, by which the record is recognized."""
        return [path.text() for path in self.drawn()]

    def table(self, paths: Sequence[Drawn], ours: Sequence[Figures], theirs: Sequence[Figures]) -> str:
        """The rows of the page, those that are not alike first."""
        rows = []
        for path, here, there in zip(paths, ours, theirs, strict=True):
            cells = [f"{mean(runs, 'goodput'):.3f}" for runs in (there, here)]
            cells += [f"{mean(runs, 'retransmitted'):.0f}" for runs in (there, here)]
            alike = is_alike(here, there)
            rows.append((alike, [*path.row(), *cells[:2], "yes" if alike else "**no**", *cells[2:]]))
        rows.sort(key=lambda row: row[0])
        heads = [*self.heads, "goodput there", "here", "alike", "retransmitted there", "here"]
        return markdown.table(heads, [cells for _, cells in rows])

    def parts(self, ours: Sequence[Figures], theirs: Sequence[Figures]) -> dict[str, str]:
        """The generated parts of the page."""
        paths = self.drawn()
        alike = list(map(is_alike, ours, theirs))
        bound = f"goodput within {NEAR:.0%} or in the range of the kernel's runs, in at least {LEAST:.0%} of"
        rows = [_condition(f"{bound} the paths", alike)]
        for name, belongs in self.groups.items():
            some = [one for path, one in zip(paths, alike, strict=True) if belongs(path)]
            rows.append([*_condition(f"the same, {name} (for information)", some)[:2], "not judged"])
        pairs = zip(ours, theirs, strict=True)
        errors = [abs(mean(here, "goodput") / mean(there, "goodput") - 1) for here, there in pairs]
        rows.append(["median error of goodput (for information)", f"{statistics.median(errors):.1%}", "not judged"])
        return {
            "verdict": markdown.table(["condition", "found", "verdict"], rows),
            "rows": self.table(paths, ours, theirs),
        }

    def main(self, about: str) -> int:
        """Run, print, write or compare."""
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--kernel", action="store_true", help="run the kernel, and write the page")
        parser.add_argument("--write", action="store_true", help="write the page")
        parser.add_argument("--check", action="store_true", help="compare with the page, write nothing")
        parser.add_argument("--look", nargs=2, type=int, metavar=("FIRST", "COUNT"), help="run other paths in both")
        parser.add_argument("--jobs", type=int, help="guests at once; as many as processors when left out")
        options = parser.parse_args()
        if options.look is not None:
            first, count = options.look
            paths = [self.of(number) for number in range(first, first + count)]
            print(self.table(paths, list(map(simulated, paths)), measured(paths, options.jobs)))
            return 0
        if options.kernel:
            self.measure(options.jobs)
        found = self.parts([simulated(path) for path in self.drawn()], self.kept())
        old = self.page.read_text("utf-8")
        new = fill(old, found, self.page.name)
        if options.check:
            if new != old:
                told = f"{self.page.name} is out of date: python validation/kernel/{self.script} --write"
                print(told, file=sys.stderr)
            return int(new != old)
        if options.kernel or options.write:
            self.page.write_text(new, "utf-8")
        print(found["verdict"])
        return 0


def has_sack(path: Drawn) -> bool:
    """Whether its endpoints use SACK."""
    return "sack = false" not in path.transport


def simulated(path: Drawn, stack: str = PROFILE) -> Figures:
    """The simulator's runs of a path."""
    runs = (Scenario.from_text(path.text(step, stack)).run(seed=path.number, digest=False) for step in STEPS)
    return [_figures(run.flows["main"]) for run in runs]


def measured(paths: Sequence[Drawn], jobs: int | None = None) -> list[Figures]:
    """The kernel's runs of all paths."""
    work = [Work(Scenario.from_text(path.text(step)), path.number) for path in paths for step in STEPS]
    found: list[dict[str, float]] = [{} for _ in work]
    for at, future in Guests(KERNEL).side_by_side(iter(work), thread_count(jobs, len(work))):
        found[at] = _figures(json.loads(future.result().summary_json)["flows"]["main"])
    return [found[at : at + len(STEPS)] for at in range(0, len(found), len(STEPS))]


def _figures(flow: Mapping[str, Any]) -> dict[str, float]:
    return {"goodput": flow["goodput_mbit_s"], "retransmitted": flow["retransmitted_packets"]}


def mean(runs: Figures, name: str) -> float:
    """The mean of a figure over the runs of a path."""
    return sum(run[name] for run in runs) / len(runs)


def is_alike(ours: Figures, theirs: Figures) -> bool:
    """Whether our mean goodput is within 5 % of the kernel's, or within the range of its runs."""
    found, expected = mean(ours, "goodput"), mean(theirs, "goodput")
    values = [run["goodput"] for run in theirs]
    return abs(found - expected) <= NEAR * expected or min(values) <= found <= max(values)


def _condition(name: str, alike: Sequence[bool]) -> list[str]:
    """A row of the verdict: how many paths are alike."""
    word = "holds" if sum(alike) >= LEAST * len(alike) else "**does not hold**"
    return [name, f"{sum(alike)} of {len(alike)}", word]
