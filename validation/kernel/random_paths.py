"""Compare random paths on a Linux kernel in virtual time with the simulator.

    python validation/kernel/random_paths.py            # prints the table of docs/validation/random-paths.md
    python validation/kernel/random_paths.py --write    # brings the page up to date, from the kept figures
    python validation/kernel/random_paths.py --kernel   # runs the kernel, keeps its figures, and writes the page
    python validation/kernel/random_paths.py --check    # exit status 1 if the page is not up to date
    python validation/kernel/random_paths.py --look 7000 20    # runs 20 other paths in both, and prints them

``--kernel`` and ``--look`` need a kernel that ``anabranch kernel build`` has made.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from anabranch import Scenario  # noqa: E402
from anabranch.kernel.guests import Guests, Work  # noqa: E402
from anabranch.limits import thread_count  # noqa: E402

from comparison.pages import fill  # noqa: E402

# The package adds tools/ to the path.
from reference import markdown  # noqa: E402  # isort: skip

PAGE = ROOT / "docs/validation/random-paths.md"
DATA = ROOT / "validation/data/random-paths.json"
KERNEL = "6.12"
PROFILE = f"linux-{KERNEL}"
FIRST, COUNT = 1000, 60
"""The numbers of the page's paths, which are their seeds."""
STEPS = (-0.03, 0.0, 0.03)
"""Changes of the delay. The mean of three runs depends less on a tie between two packets."""
NEAR = 0.05
LEAST = 0.9
"""The share of the paths that must be alike."""

Figures = Sequence[Mapping[str, float]]
"""A path's runs, one for each step."""


@dataclass(frozen=True)
class Drawn:
    """A random path with one flow.

    Attributes:
        number: Its number and seed.
        rate: Mbit/s.
        rtt: Milliseconds without queueing.
        queue: The queue, a table of the scenario format.
        impair: The impairment, a table of the scenario format, or an empty text.
        transport: Keys of the endpoint.
        control: The congestion control.
        seconds: The duration.
    """

    number: int
    rate: int
    rtt: int
    queue: str
    impair: str
    transport: tuple[str, ...]
    control: str
    seconds: int

    @classmethod
    def of(cls, number: int) -> Drawn:
        """Draw the path with this number."""
        draw = random.Random(number)  # noqa: S311
        rate, rtt = draw.choice((2, 5, 10, 20)), draw.choice((10, 30, 60, 120, 200))
        product = rate * 1e6 * rtt / 1e3 / 8 / 1500
        limit = max(5, round(product * draw.choice((0.3, 1, 2))))
        kind = draw.choice(("drop-tail", "drop-tail", "codel", "fq-codel", "pie"))
        size = f', limit = "{limit} packets"' if kind == "drop-tail" else ""
        losses = [
            *(f'kind = "bernoulli-loss", rate = {rate}' for rate in (0.0003, 0.001, 0.005, 0.02)),
            *(f'kind = "gilbert-elliott", p = {p}, r = {r}' for p in (0.0005, 0.002) for r in (0.2, 0.5)),
            *(f'kind = "jitter", mean = "{mean} ms"' for mean in (1, 5)),
        ]
        impair = draw.choice(losses) if draw.random() < 0.6 else ""
        keys = [("sack = false", 0.3), ("timestamps = false", 0.3), ('mss = "1200 bytes"', 0.15)]
        transport = tuple(key for key, chance in keys if draw.random() < chance)
        control = draw.choice(("cubic", "cubic", "reno", "bbr", "vegas", "westwood-plus", "dctcp", "htcp", "bic"))
        return cls(number, rate, rtt, f'kind = "{kind}"{size}', impair, transport, control, draw.choice((8, 12)))

    def text(self, step: float = 0.0, stack: str = PROFILE) -> str:
        """The scenario, with a delay that differs by this share."""
        lines = [
            f'duration = "{self.seconds} s"',
            "[link.path]",
            'between = ["A", "B"]',
            f'rate = "{self.rate} Mbit/s"',
            f'delay = "{round(self.rtt * 500 * (1 + step))} us"',
            f"forward.queue = {{ {self.queue} }}",
            *([f"forward.impair = [{{ {self.impair} }}]"] if self.impair else []),
            "[flow.main]",
            'from = "A"',
            'to = "B"',
            f'stack = "{stack}"',
            f'cc = "{self.control}"',
            *([f"transport = {{ {', '.join(self.transport)} }}"] if self.transport else []),
        ]
        return "\n".join(lines) + "\n"

    def row(self) -> list[str]:
        """Its cells of the table."""
        words = ("kind = ", '"', "{", "}")
        queue, impair, keys = self.queue, self.impair or "–", ", ".join(self.transport) or "–"
        for word in words:
            queue, impair, keys = (text.replace(word, "") for text in (queue, impair, keys))
        return [str(self.number), self.control, f"{self.rate} Mbit/s, {self.rtt} ms", queue, impair, keys]


def drawn(first: int = FIRST, count: int = COUNT) -> list[Drawn]:
    """Paths by number."""
    return [Drawn.of(number) for number in range(first, first + count)]


def _figures(flow: Mapping[str, Any]) -> dict[str, float]:
    return {"goodput": flow["goodput_mbit_s"], "retransmitted": flow["retransmitted_packets"]}


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


def mean(runs: Figures, name: str) -> float:
    """The mean of a figure over the runs of a path."""
    return sum(run[name] for run in runs) / len(runs)


def is_alike(ours: Figures, theirs: Figures) -> bool:
    """Whether our mean goodput is within 5 % of the kernel's, or within the range of its runs."""
    found, expected = mean(ours, "goodput"), mean(theirs, "goodput")
    values = [run["goodput"] for run in theirs]
    return abs(found - expected) <= NEAR * expected or min(values) <= found <= max(values)


def table(paths: Iterable[Drawn], ours: Iterable[Figures], theirs: Iterable[Figures]) -> str:
    """The rows of the page, those that are not alike first."""
    rows = []
    for path, here, there in zip(paths, ours, theirs, strict=True):
        cells = [f"{mean(runs, 'goodput'):.3f}" for runs in (there, here)]
        cells += [f"{mean(runs, 'retransmitted'):.0f}" for runs in (there, here)]
        alike = is_alike(here, there)
        rows.append((alike, [*path.row(), *cells[:2], "yes" if alike else "**no**", *cells[2:]]))
    rows.sort(key=lambda row: row[0])
    heads = ["path", "control", "rate, RTT", "queue", "impairment", "endpoints"]
    heads += ["goodput there", "here", "alike", "retransmitted there", "here"]
    return markdown.table(heads, [cells for _, cells in rows])


def parts(ours: Sequence[Figures], theirs: Sequence[Figures]) -> dict[str, str]:
    """The generated parts of the page."""
    paths = drawn()
    alike = list(map(is_alike, ours, theirs))
    bound = f"goodput within {NEAR:.0%} or in the range of the kernel's runs, in at least {LEAST:.0%} of"
    rows = [_condition(f"{bound} the paths", alike)]
    for name, has_sack in (("with SACK", True), ("without SACK", False)):
        some = [
            one for path, one in zip(paths, alike, strict=True) if ("sack = false" not in path.transport) == has_sack
        ]
        rows.append([*_condition(f"the same, {name} (for information)", some)[:2], "not judged"])
    errors = [abs(mean(here, "goodput") / mean(there, "goodput") - 1) for here, there in zip(ours, theirs, strict=True)]
    rows.append(["median error of goodput (for information)", f"{statistics.median(errors):.1%}", "not judged"])
    return {
        "verdict": markdown.table(["condition", "found", "verdict"], rows),
        "rows": table(paths, ours, theirs),
    }


def _condition(name: str, alike: Sequence[bool]) -> list[str]:
    """A row of the verdict: how many paths are alike."""
    word = "holds" if sum(alike) >= LEAST * len(alike) else "**does not hold**"
    return [name, f"{sum(alike)} of {len(alike)}", word]


def kept() -> list[Figures]:
    """The kernel's figures on record.

    Raises:
        SystemExit: They are of other scenarios.
    """
    record = json.loads(DATA.read_text("utf-8"))
    if record["scenarios"] != scenarios():
        raise SystemExit(f"{DATA.name} is of other paths: python validation/kernel/random_paths.py --kernel")
    found: list[Figures] = record["runs"]
    return found


def scenarios() -> list[str]:
    """The text of each path, by which the record is recognized."""
    return [path.text() for path in drawn()]


def main() -> int:
    """Run, print, write or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernel", action="store_true", help="run the kernel, and write the page")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--check", action="store_true", help="compare with the page, write nothing")
    parser.add_argument("--look", nargs=2, type=int, metavar=("FIRST", "COUNT"), help="run other paths in both")
    parser.add_argument("--jobs", type=int, help="guests at once; as many as processors when left out")
    options = parser.parse_args()
    if options.look is not None:
        paths = drawn(*options.look)
        print(table(paths, map(simulated, paths), measured(paths, options.jobs)))
        return 0
    if options.kernel:
        runs = measured(drawn(), options.jobs)
        DATA.write_text(
            json.dumps({"kernel": KERNEL, "scenarios": scenarios(), "runs": runs}, indent=1) + "\n", "utf-8"
        )
    found = parts([simulated(path) for path in drawn()], kept())
    old = PAGE.read_text("utf-8")
    new = fill(old, found, PAGE.name)
    if options.check:
        if new != old:
            print(f"{PAGE.name} is out of date: python validation/kernel/random_paths.py --write", file=sys.stderr)
        return int(new != old)
    if options.kernel or options.write:
        PAGE.write_text(new, "utf-8")
    print(found["verdict"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
