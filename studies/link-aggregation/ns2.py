"""The study's five variants in ns-2, with all links on and with the control: a witness for L3, L6 and L7.

    python studies/link-aggregation/ns2.py                 the results of the stored runs
    python studies/link-aggregation/ns2.py --check         repeats the runs in the study's setting, one minute
    python studies/link-aggregation/ns2.py --check --all   repeats every run, half an hour
    python studies/link-aggregation/ns2.py --write         makes the runs that are missing

The runs are in ``ns2.csv``, a row each, made by ``ns2.tcl``; ``witness.csv`` has those that judge claims.
 Only the last two need ns-2 (Debian's package ``ns2``).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from anabranch import Scenario
from anabranch.scenario import Value

HERE = Path(__file__).resolve().parent
STORED = HERE / "ns2.csv"
SCRIPT = HERE / "ns2.tcl"
DURATION_S = 100
LINKS = 8

VARIANTS: dict[str, Value] = {
    "ctcp": "compound",
    "cubic": {"kind": "cubic", "beta": 0.8},
    "westwood": {"kind": "westwood-plus", "form": "linux"},
    "newreno": "reno",
    "vegas": "vegas",
}
"""The variants of study.toml and their congestion controls in our simulator."""
PUBLISHED_OFF = {"ctcp": 793.9, "cubic": 797.6, "westwood": 763.2, "newreno": 694.9, "vegas": 592.1}
PUBLISHED_ON = {"ctcp": 782.6, "cubic": 703.3, "westwood": 633.4, "newreno": 595.0, "vegas": 564.1}
"""Table 1 (Mbit/s)."""

QUEUE = 400
CORE_DELAY_MS = 5
"""The study's setting."""
PLACES = tuple(itertools.product((300, 400, 500), (4, 5, 6)))
"""Queue and core delay of the runs with all links on."""

SECTIONS_MS = (1, 2, 5, 10)
INTERVALS_MS = (200, 300, 500, 1000)
PERCENTILES = range(30, 101)
STEPS = (10, 2, 1)
"""Steps of the percentile: the whole range by the first, the others between values that enclose CUBIC's cell."""
UP_MS = 15
"""Time from a decision until a link is on: an exchange of LACPDUs over 5 ms, as in our simulator."""
FITTED = 0.02
"""A setting of the control is fitted if CUBIC's cell is met within this share."""
CLOSE = 0.05
"""Bound of L3."""


@dataclass(frozen=True, order=True)
class Control:
    """Control of the links: a method of ``ns2.tcl``, and the parameters of ``peaks``."""

    method: str
    section_ms: int = 0
    interval_ms: int = 0
    percentile: int = 0
    up_ms: int = 0


@dataclass(frozen=True, order=True)
class Point:
    """One run."""

    variant: str
    control: Control
    queue: int = QUEUE
    core_delay_ms: int = CORE_DELAY_MS


@dataclass(frozen=True)
class Result:
    """What one run prints."""

    throughput_mbit_s: float
    retransmitted_packets: int
    mean_links: float


ALL_ON = Control("all-on")
APART = Control("apart")
SCHEDULE = Control("schedule")
ONE_LINK = Control("one-link")
"""One link all along: a wrong system of the study."""
COLUMNS = [
    *("experiment", "variant", "queue", "core_delay_ms", "method", "section_ms", "interval_ms", "percentile", "up_ms"),
    *("throughput_mbit_s", "retransmitted_packets", "mean_links"),
]

Runs = dict[Point, Result]
Run = Callable[[Iterable[Point]], Runs]


class NotInstalledError(Exception):
    """ns-2 is not installed."""


def read(file: Path = STORED) -> Runs:
    """Read stored runs."""
    with file.open(encoding="utf-8", newline="") as lines:
        return dict(map(_parsed, csv.DictReader(lines)))


def _parsed(row: Mapping[str, str]) -> tuple[Point, Result]:
    numbers = (int(row[name] or 0) for name in ("section_ms", "interval_ms", "percentile", "up_ms"))
    point = Point(row["variant"], Control(row["method"], *numbers), int(row["queue"]), int(row["core_delay_ms"]))
    result = Result(float(row["throughput_mbit_s"]), int(row["retransmitted_packets"]), float(row["mean_links"]))
    return point, result


def write(runs: Runs, file: Path = STORED) -> None:
    """Store runs."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow(COLUMNS)
        for point, result in sorted(runs.items()):
            control = point.control
            numbers = (control.section_ms, control.interval_ms, control.percentile, control.up_ms)
            rows.writerow(
                [
                    "off" if control in (ALL_ON, APART, ONE_LINK) else "on",
                    point.variant,
                    point.queue,
                    point.core_delay_ms,
                    control.method,
                    *(numbers if control.method == "peaks" else [""] * len(numbers)),
                    f"{result.throughput_mbit_s:.1f}",
                    result.retransmitted_packets,
                    f"{result.mean_links:.3f}",
                ]
            )


def run(points: Iterable[Point]) -> Runs:
    """Run points in ns-2, two at a time."""
    if shutil.which("ns") is None:
        raise NotInstalledError(
            "ns-2 is not installed (Debian's package ns2); without it only stored runs can be shown"
        )
    wanted = list(dict.fromkeys(points))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(wanted, pool.map(_one, wanted), strict=True))


def _one(point: Point) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        control = point.control
        more: list[object] = []
        if control.method == "peaks":
            more = [control.section_ms, control.interval_ms, control.percentile, control.up_ms]
        elif control in (SCHEDULE, ONE_LINK):
            file = Path(directory) / "schedule"
            lines = [(0.0, 1)] if control == ONE_LINK else schedule(point)
            file.write_text("".join(f"{time:g} {links}\n" for time, links in lines), encoding="utf-8")
            more = [file]
        where = [point.queue, point.core_delay_ms, DURATION_S]
        method = SCHEDULE.method if control == ONE_LINK else control.method
        command = ["ns", SCRIPT, point.variant, *where, method, *more]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)  # noqa: S603
    row = next(line for line in done.stdout.splitlines() if line.count(",") == 2)
    throughput, retransmitted, links = row.split(",")
    return Result(float(throughput), int(retransmitted), float(links))


def schedule(point: Point) -> Iterator[tuple[float, int]]:
    """Return the times at which the number of links changes in our simulator, and the numbers."""
    scenario = (
        Scenario.from_file(HERE / "flow.toml")
        .set("flow.main.cc", VARIANTS[point.variant])
        .set("group.core.delay", f"{point.core_delay_ms} ms")
        .set("group.core.queue.limit", f"{point.queue} packets")
    )
    samples = scenario.run(samples_ms=1).table("group_samples")
    before = None
    for time, links in zip(samples["time_s"].to_list(), samples["active_members"].to_list(), strict=True):
        if links != before:
            yield time, links
        before = links


@dataclass
class Witness:
    """Runs, made as they are needed."""

    runs: Runs

    def make(self, points: Iterable[Point]) -> None:
        """Make the runs that are missing."""
        self.runs.update(run(point for point in points if point not in self.runs))

    def throughput(
        self, variant: str, control: Control, queue: int = QUEUE, core_delay_ms: int = CORE_DELAY_MS
    ) -> float:
        """Throughput of a run (Mbit/s)."""
        return self.runs[Point(variant, control, queue, core_delay_ms)].throughput_mbit_s

    def loss(self, variant: str, control: Control) -> float:
        """Throughput that a control costs, in per cent of that with all links on."""
        return 100 * (1 - self.throughput(variant, control) / self.throughput(variant, ALL_ON))

    def scanned(self) -> dict[tuple[int, int], dict[int, Result]]:
        """CUBIC's runs by percentile, for each section and interval."""
        found: dict[tuple[int, int], dict[int, Result]] = {}
        for point, result in sorted(self.runs.items()):
            control = point.control
            if point == Point("cubic", control) and control.method == "peaks" and control.up_ms == UP_MS:
                found.setdefault((control.section_ms, control.interval_ms), {})[control.percentile] = result
        return found

    def fitted(self) -> list[Control]:
        """Return the settings of the controller that meet CUBIC's cell."""
        return [
            Control("peaks", *pair, percentile, UP_MS)
            for pair, line in self.scanned().items()
            for percentile, result in line.items()
            if _meets(result)
        ]

    def predicted(self) -> list[Control]:
        """Return the fitted settings that every variant was run with."""
        return [
            control for control in self.fitted() if all(Point(variant, control) in self.runs for variant in VARIANTS)
        ]


def wanted(witness: Witness, step: int) -> Iterator[Point]:
    """Return CUBIC's runs at every ``step`` of the percentile between neighbours that enclose its cell.

    Percentiles that choose the same peak of an interval are one setting. Above a percentile at which all links stay
    on nothing changes. The last step is for sections and intervals without a setting that meets the cell.
    """
    scanned = witness.scanned()
    for section, interval in itertools.product(SECTIONS_MS, INTERVALS_MS):
        line = scanned.get((section, interval), {})
        if step == STEPS[-1] and any(map(_meets, line.values())):
            continue
        ranks = {_rank(section, interval, percentile) for percentile in line}
        for low, high in (
            itertools.pairwise(sorted(line)) if line else [(PERCENTILES[0] - step, PERCENTILES[-1] + step)]
        ):
            if line and (not _encloses(line[low], line[high]) or line[low].mean_links == LINKS):
                continue
            for percentile in range(low + step, high, step):
                if (rank := _rank(section, interval, percentile)) not in ranks:
                    ranks.add(rank)
                    yield Point("cubic", Control("peaks", section, interval, percentile, UP_MS))


def _rank(section_ms: int, interval_ms: int, percentile: int) -> int:
    return -(-percentile * (interval_ms // section_ms) // 100)


def _meets(result: Result) -> bool:
    return abs(result.throughput_mbit_s / PUBLISHED_ON["cubic"] - 1) <= FITTED


def _encloses(one: Result, other: Result) -> bool:
    cell = PUBLISHED_ON["cubic"]
    low, high = sorted((one.throughput_mbit_s, other.throughput_mbit_s))
    return low <= cell * (1 + FITTED) and high >= cell * (1 - FITTED)


def make(witness: Witness) -> None:
    """Make every run that is missing."""
    witness.make(Point(variant, ALL_ON, *place) for place in PLACES for variant in VARIANTS)
    witness.make(Point(variant, control) for control in (APART, SCHEDULE) for variant in VARIANTS)
    witness.make([Point("westwood", ONE_LINK)])
    for step in STEPS:
        witness.make(wanted(witness, step))
    witness.make(Point(variant, control) for control in witness.fitted() for variant in VARIANTS)


def write_witness(runs: Runs) -> None:
    """Write the runs that judge claims, in the form of a study's witness."""
    rows = [("experiment", "variant", "queue", "core_delay", "wrong", "throughput")]

    def add(experiment: str, point: Point, wrong: str = "") -> None:
        place = (str(point.queue), str(point.core_delay_ms))
        rows.append((experiment, point.variant, *place, wrong, f"{runs[point].throughput_mbit_s:.1f}"))

    for place, variant in itertools.product(PLACES, VARIANTS):
        add("off", Point(variant, ALL_ON, *place))
    for variant in VARIANTS:
        add("on", Point(variant, SCHEDULE))
        # A control that never switches is no control: the same run.
        add("on", Point(variant, ALL_ON), "never_switches")
    for experiment in ("off", "on"):
        add(experiment, Point("westwood", ONE_LINK), "one_link")
    with (HERE / "witness.csv").open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows(rows)


def near(mbit_s: float, published: float) -> bool:
    """Whether a cell is met as L3 requires."""
    return abs(mbit_s / published - 1) <= CLOSE


def l3(witness: Witness, control: Control) -> bool:
    """Whether both cells of Westwood+ are met."""
    off, on = (witness.throughput("westwood", some) for some in (ALL_ON, control))
    return near(off, PUBLISHED_OFF["westwood"]) and near(on, PUBLISHED_ON["westwood"])


def l6(witness: Witness, *place: int) -> bool:
    """Whether the variants have the published order with all links on."""
    order = [witness.throughput(name, ALL_ON, *place) for name in ("cubic", "ctcp", "westwood", "newreno", "vegas")]
    return all(more > less for more, less in itertools.pairwise(order)) and abs(order[0] / order[1] - 1) <= 0.03


def l7(witness: Witness, control: Control) -> bool:
    """Whether the control costs CTCP next to nothing, and each other variant as much as L7 requires."""
    loses = {variant: witness.loss(variant, control) for variant in VARIANTS}
    return (
        loses["ctcp"] <= 3
        and all(loses[name] >= 8 for name in ("cubic", "westwood", "newreno"))
        and 2 <= loses["vegas"] <= 10
    )


def summary(witness: Witness) -> str:
    """What the runs say about L3, L6 and L7."""
    lines = ["throughput (Mbit/s)  " + "  ".join(f"{variant:>8}" for variant in VARIANTS)]

    def row(title: str, control: Control) -> None:
        cells = "  ".join(f"{witness.throughput(variant, control):8.1f}" for variant in VARIANTS)
        lines.append(f"{title:19}  {cells}")

    row("all links on", ALL_ON)
    row("eight links apart", APART)
    row("our decisions", SCHEDULE)
    predicted = witness.predicted()
    for control in sorted(predicted):
        row(f"{control.section_ms} / {control.interval_ms} ms, {control.percentile}", control)
    held = sum(l6(witness, *place) for place in PLACES)
    met = sum(near(witness.throughput("westwood", ALL_ON, *place), PUBLISHED_OFF["westwood"]) for place in PLACES)
    fitted = len(witness.fitted())
    lines += [
        "",
        f"{fitted} settings (section / interval, percentile) meet CUBIC's cell; {len(predicted)} have every variant",
        f"L6 holds at {held} of {len(PLACES)} points of queue and delay",
        f"L3's cell with all links on is met at {met} of {len(PLACES)}",
    ]
    for name, holds in (("L3", l3), ("L7", l7)):
        count = sum(holds(witness, control) for control in predicted)
        ours = "holds" if holds(witness, SCHEDULE) else "fails"
        lines.append(f"{name} holds at {count} of {len(predicted)} settings, and {ours} with our decisions")
    return "\n".join(lines)


def differences(stored: Runs, made: Runs) -> list[str]:
    """Return one line for each run that is not as stored."""
    return [
        f"{point}: stored {stored[point]}, now {result}" for point, result in made.items() if result != stored[point]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print, check or make the runs."""
    parser = argparse.ArgumentParser(description="The study's five variants in ns-2.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="run the study's own setting again and compare")
    what.add_argument("--write", action="store_true", help="make the runs that are not stored")
    parser.add_argument("--all", action="store_true", help="with --check: every row, which takes hours")
    given = parser.parse_args(arguments)
    witness = Witness(read() if STORED.exists() else {})
    try:
        if given.write:
            make(witness)
            write(witness.runs)
            write_witness(witness.runs)
        elif given.check:
            own = (ALL_ON, APART, SCHEDULE, ONE_LINK)
            points = [
                point
                for point in witness.runs
                if given.all or (point == Point(point.variant, point.control) and point.control in own)
            ]
            found = differences(witness.runs, run(points))
            print("\n".join(found) or f"{len(points)} of {len(witness.runs)} rows are as stored")
            return 1 if found else 0
    except NotInstalledError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(summary(witness))
    return 0


if __name__ == "__main__":
    sys.exit(main())
