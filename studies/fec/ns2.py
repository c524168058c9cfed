"""Timeouts of ns-2's TCP with SACK in slow start, over the study's path without error correction: for C10 and C11.

    python studies/fec/ns2.py                 the results of the stored runs
    python studies/fec/ns2.py --check         repeats the first seed of each row, ten minutes (with --all: every run)
    python studies/fec/ns2.py --write         makes the runs that are missing

The runs are in ``ns2.csv``, a row each, made by ``ns2.tcl``. Only the last two need ns-2 (Debian's package ``ns2``).
Rows at a loss rate of p · (1 − (1 − p)ᶠ) are for what an fmax of f leaves unrepaired of a loss rate p.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORED = HERE / "ns2.csv"
SCRIPT = HERE / "ns2.tcl"
SACK = HERE.parents[1] / "validation" / "data" / "ns2-sack-losses.csv"
"""More runs with the defaults, at every loss rate of the study."""
SEEDS = range(1, 10)
UNLIMITED = 1_000_000
"""Packets that the queue of a host without limit holds."""
LOSSES = (0.00001, 0.0001, 0.001, 0.01)
"""Loss rates with ns-2's defaults."""
VARIED_AT = (0.00001, 0.0001)
"""Loss rates with other settings: those at which the first loss falls into slow start with a long queue."""


@dataclass(frozen=True, order=True)
class Setting:
    """What a run is made with; the defaults are ns-2's, but for the host's queue."""

    loss: float
    host_queue: int = UNLIMITED
    tick_s: float = 0.01
    min_rto_s: float = 0.2
    first_rto_s: float = 3
    timestamps: int = 0


@dataclass(frozen=True)
class Result:
    """What one run prints."""

    throughput_mbit_s: float
    sent_packets: int
    retransmitted_packets: int
    timeouts: int
    slow_start_timeouts: int


VARIED = {
    "a tick of 0.1 s": Setting(0, tick_s=0.1),
    "a minimum of 1 s": Setting(0, min_rto_s=1),
    "a minimum of 3 s": Setting(0, min_rto_s=3),
    "a tick of 0.1 s and a minimum of 1 s": Setting(0, tick_s=0.1, min_rto_s=1),
    "a first timeout of 6 s": Setting(0, first_rto_s=6),
    "timestamps": Setting(0, timestamps=1),
    "a host's queue of 1,000 packets": Setting(0, host_queue=1000),
    "a host's queue of 50 packets": Setting(0, host_queue=50),
}
"""Title → setting, at a loss rate of its own."""
UNREPAIRED = {
    (fmax, loss): loss * (1 - (1 - loss) ** fmax)
    for fmax, loss in [(1, 0.005), (1, 0.01), (10, 0.001), (10, 0.002), (10, 0.005), (10, 0.01)]
}
"""fmax and loss rate → the loss rate that error correction leaves."""

Runs = dict[tuple[Setting, int], Result]


class NotInstalledError(Exception):
    """ns-2 is not installed."""


def settings() -> Iterator[Setting]:
    """Return every setting."""
    yield from map(Setting, LOSSES)
    for varied in VARIED.values():
        for loss in VARIED_AT:
            yield dataclasses.replace(varied, loss=loss)
    yield from (Setting(_shown(loss)) for loss in UNREPAIRED.values())


def _shown(loss: float) -> float:
    return float(f"{loss:.4g}")


def read(file: Path = STORED) -> Runs:
    """Read stored runs."""
    with file.open(encoding="utf-8", newline="") as lines:
        return {_key(row): _result(row) for row in csv.DictReader(lines)}


def _key(row: dict[str, str]) -> tuple[Setting, int]:
    setting = Setting(
        float(row["loss"]),
        int(row["host_queue"]),
        float(row["tick_s"]),
        float(row["min_rto_s"]),
        float(row["first_rto_s"]),
        int(row["timestamps"]),
    )
    return setting, int(row["seed"])


def _result(row: dict[str, str]) -> Result:
    counts = ("sent_packets", "retransmitted_packets", "timeouts", "slow_start_timeouts")
    return Result(float(row["throughput_mbit_s"]), *(int(row[name]) for name in counts))


def write(runs: Runs, file: Path = STORED) -> None:
    """Store runs."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines, lineterminator="\n")
        names = [field.name for field in dataclasses.fields(Setting)]
        rows.writerow([*names, "seed", *(field.name for field in dataclasses.fields(Result))])
        for (setting, seed), result in sorted(runs.items()):
            numbers = [f"{value:g}" if isinstance(value, float) else value for value in dataclasses.astuple(setting)]
            rows.writerow([*numbers, seed, f"{result.throughput_mbit_s:.2f}", *dataclasses.astuple(result)[1:]])


def run(wanted: Iterable[tuple[Setting, int]]) -> Runs:
    """Make runs in ns-2, two at a time."""
    if shutil.which("ns") is None:
        raise NotInstalledError(
            "ns-2 is not installed (Debian's package ns2); without it only stored runs can be shown"
        )
    keys = list(dict.fromkeys(wanted))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(keys, pool.map(_one, keys), strict=True))


def _one(key: tuple[Setting, int]) -> Result:
    setting, seed = key
    command = ["ns", str(SCRIPT), *(f"{value:.10g}" for value in dataclasses.astuple(setting)), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    mbit_s, *counts = next(line for line in done.stdout.splitlines() if line.count(",") >= 4).split(",")[:5]
    return Result(float(mbit_s), *map(int, counts))


@dataclass(frozen=True)
class Mean:
    """Means of a setting over its seeds."""

    seeds: int
    throughput_mbit_s: float
    retransmission_rate: float
    timeouts: float
    slow_start_timeouts: float


def mean(runs: Runs, setting: Setting) -> Mean:
    """Return the means of a setting; each run has the same weight."""
    some = [result for (other, _), result in runs.items() if other == setting]
    return Mean(
        len(some),
        statistics.fmean(result.throughput_mbit_s for result in some),
        statistics.fmean(result.retransmitted_packets / result.sent_packets for result in some),
        statistics.fmean(result.timeouts for result in some),
        statistics.fmean(result.slow_start_timeouts for result in some),
    )


def sack_rate(loss: float) -> float:
    """Return SACK's retransmission rate at a loss rate."""
    with SACK.open(encoding="utf-8", newline="") as lines:
        rows = [
            row for row in csv.DictReader(lines) if int(row["host_queue"]) == UNLIMITED and float(row["loss"]) == loss
        ]
    return statistics.fmean(int(row["retransmitted_packets"]) / int(row["sent_packets"]) for row in rows)


def summary(runs: Runs) -> str:
    """The means, by setting and loss rate, and what error correction leaves."""
    lines = [f"{'setting':38}  loss rate  Mbit/s  retransmitted  timeouts  of these in slow start"]

    def row(title: str, setting: Setting) -> None:
        found = mean(runs, setting)
        lines.append(
            f"{title:38}  {setting.loss:9.4g}  {found.throughput_mbit_s:6.2f}  {found.retransmission_rate:13.4%}  "
            f"{found.timeouts:8.2f}  {found.slow_start_timeouts:22.2f}"
        )

    for loss in LOSSES:
        row("ns-2's defaults", Setting(loss))
    for title, varied in VARIED.items():
        for loss in VARIED_AT:
            row(title, dataclasses.replace(varied, loss=loss))
    lines += ["", "fmax  loss rate  unrepaired  timeouts in slow start  retransmitted over SACK's"]
    for (fmax, loss), left in UNREPAIRED.items():
        found = mean(runs, Setting(_shown(left)))
        over = found.retransmission_rate / sack_rate(loss)
        lines.append(f"{fmax:4}  {loss:9g}  {_shown(left):10g}  {found.slow_start_timeouts:22.2f}  {over:25.2f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print, check or make the runs."""
    parser = argparse.ArgumentParser(description="Timeouts of ns-2's TCP with SACK in slow start.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="repeat the first seed of each setting and compare")
    what.add_argument("--write", action="store_true", help="make the runs that are not stored")
    parser.add_argument("--all", action="store_true", help="with --check: every run")
    given = parser.parse_args(arguments)
    runs = read() if STORED.exists() else {}
    try:
        if given.write:
            runs.update(run((s, seed) for s in settings() for seed in SEEDS if (s, seed) not in runs))
            write(runs)
        elif given.check:
            made = run(key for key in runs if given.all or key[1] == 1)
            found = [f"{key}: stored {runs[key]}, now {result}" for key, result in made.items() if result != runs[key]]
            print("\n".join(found) or f"{len(made)} of {len(runs)} runs are as stored")
            return 1 if found else 0
    except NotInstalledError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(summary(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
