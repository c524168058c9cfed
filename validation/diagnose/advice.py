"""Compare the advice of diagnoses with the effect of the remedies, on a Linux kernel in virtual time.

    tools/env python validation/diagnose/advice.py [CAUSE…] [--paths N] [--first SEED] [--kernel RELEASE]
                                                   [--seeds N] [--keep FOLDER] [--write] [--verbose]

Each cause of ``causes.py`` that leaves a connection open is planted on N paths (20). The kernel runs the
connection, which is captured at the sender. The advice simulates remedies on the path that is fitted to this
capture. The kernel then runs the best of them, or the unchanged connection if none helps, on the true path with
three seeds. The first seed is drawn when the program starts and printed; --first repeats a judgement. --keep keeps
the results in a folder, and takes those that are in it. --write writes docs/validation/diagnosis.md. Exit status 1
if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(Path(__file__).parents[1]))

from anabranch import Scenario
from anabranch.diagnosis.diagnosis import diagnose
from anabranch.errors import UserError
from anabranch.fitted.advice import OF_THE_KERNEL, advised
from anabranch.fitted.scenario import LINK, fitted
from anabranch.text import toml_text

from diagnose import page
from diagnose.causes import CAUSES, POINTS, Cause

BOTTLENECK = "near"
"""The bottleneck of the planted causes' paths."""
CLOSED = frozenset({"SYN loss", "tail loss", "capture drops", "RST by a middlebox", "MTU black hole"})
"""Causes that no remedy of the advice concerns: the connection ends, does not begin, or the capture is damaged."""
SENDER = "10.113.0.1:"
"""The sending host's address, which the kernel engine gives to the first host."""
BAR = 0.10
LEAST = 0.90
"""Least share of the connections whose goodput is within the bar. Both were set before the first judgement."""


@dataclass(frozen=True)
class Judged:
    """The advice on one connection, and what it then gave."""

    cause: str
    seed: int
    remedy: str
    is_measured: bool
    """Whether the capture shows the path's rate; else the scenario assumes it, and the advice says so."""
    predicted: float
    """Goodput in Mbit/s."""
    given: float
    before: float
    predicted_rtt_ms: float
    given_rtt_ms: float

    @property
    def error(self) -> float:
        """The goodput's relative error."""
        return abs(self.predicted / self.given - 1) if self.given else 1.0

    def __str__(self) -> str:
        goodput = f"{self.before:.3g} Mbit/s before, predicted {self.predicted:.3g}, given {self.given:.3g}"
        rate = "" if self.is_measured else ", assumed rate"
        trip = f"round trip {self.predicted_rtt_ms:.1f} and {self.given_rtt_ms:.1f} ms"
        return f"{self.cause}, seed {self.seed}: {self.remedy}{rate}: {goodput} ({self.error:.1%}); {trip}"


def remedied(text: str, changes: dict[str, Any]) -> str:
    """The true scenario with a remedy, which names the link of a fitted path."""
    made = tomllib.loads(text)
    for path, value in changes.items():
        keys = [BOTTLENECK if key == LINK else key for key in path.split(".")]
        inner = made
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        inner[keys[-1]] = value
    return toml_text.write_document(made)


def runs(text: str, seeds: range, kernel: str) -> tuple[float, float]:
    """Goodput and mean round trip of the kernel's runs."""
    flows = [
        Scenario.from_text(text, file="true.toml").run_kernel(seed=seed, kernel=kernel).flows["main"] for seed in seeds
    ]
    goodput = statistics.fmean(flow["goodput_mbit_s"] or 0.0 for flow in flows)
    return goodput, statistics.fmean(flow["mean_srtt_ms"] or 0.0 for flow in flows)


def judged(cause: Cause, seed: int, seeds: range, kernel: str) -> Judged | None:
    """One connection; ``None`` if its capture gives no model of the path, or the receiver sends more."""
    text = cause.text(random.Random(f"{cause.name} {seed}"))
    made = Scenario.from_text(text, file="true.toml").run_kernel(
        seed=seed % 2**32, kernel=kernel, captures=[POINTS["sender"]]
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sender.pcapng"
        file.write_bytes(made.pcapng(POINTS["sender"]))
        connection = diagnose(file)["connections"][0]
    way = connection["path"]["direction"] if connection["path"] else ""
    if not way or not connection[way[0]].startswith(SENDER):
        return None
    try:
        rows = advised(connection, fitted(connection, "sender.pcapng"))
    except UserError:
        return None
    possible = [row for row in rows if row["helps"] and row["remedy"] in OF_THE_KERNEL - {"gateway"}]
    nothing = next(row for row in rows if row["remedy"] == "nothing")
    best = possible[0] if possible else nothing
    before = runs(text, seeds, kernel)
    given = runs(remedied(text, best["set"]), seeds, kernel) if possible else before
    is_measured = best is nothing or connection["path"]["rate_mbit_s"]["seen"] == "measured"
    return Judged(
        cause.name, seed, best["remedy"], is_measured, best["goodput_mbit_s"]["mean"], given[0], before[0],
        best["rtt_ms"]["mean"], given[1],
    )  # fmt: skip


def all_judged(
    causes: list[Cause], first: int, paths: int, seeds: range, kernel: str, kept: Path | None
) -> Iterator[Judged]:
    """Each cause on each path."""
    for seed in range(first, first + paths):
        for cause in causes:
            file = kept and kept / f"{cause.name.replace(' ', '-')}-{seed}.json"
            if file and file.exists():
                found = json.loads(file.read_text())
                yield Judged(**found)
                continue
            one = judged(cause, seed, seeds, kernel)
            if one is None:
                continue
            if file:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(asdict(one)))
            yield one


def main() -> int:
    """Judge the named causes, or all."""
    options = argparse.ArgumentParser()
    options.add_argument("cause", nargs="*")
    options.add_argument("--paths", type=int, default=20)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first", type=int)
    options.add_argument("--kernel", metavar="RELEASE", default="6.12")
    options.add_argument("--keep", type=Path, metavar="FOLDER")
    options.add_argument("--verbose", action="store_true")
    options.add_argument("--write", action="store_true")
    arguments = options.parse_args()
    causes = [one for one in CAUSES if one.name not in CLOSED and (not arguments.cause or one.name in arguments.cause)]
    first = secrets.randbelow(10**9) if arguments.first is None else arguments.first
    print(f"first seed {first}, {arguments.paths} paths")
    found = []
    seeds = range(1, 1 + arguments.seeds)
    for one in all_judged(causes, first, arguments.paths, seeds, arguments.kernel, arguments.keep):
        found.append(one)
        if arguments.verbose:
            print(one, flush=True)
    measured = [one for one in found if one.is_measured]
    share = within(measured)
    print("\n".join(table(found)))
    if arguments.write:
        told = (
            f"Seeds {first} to {first + arguments.paths - 1}, drawn when the program started; {arguments.seeds} "
            f"runs of the kernel for each figure. Goodput within {BAR:.0%} of what the remedy gave: **{share:.1%}** "
            f"of {len(measured)} connections whose path shows its rate, {within(found):.1%} of all {len(found)}."
        )
        missed = [f"- {one}" for one in found if one.error > BAR]
        page.write("advice", "\n".join([told, "", *table(found), "", "Beyond:", "", *(missed or ["- none"])]))
    return int(share < LEAST)


def within(found: Sequence[Judged]) -> float:
    """The share of connections whose goodput was predicted within the bar."""
    return statistics.fmean(one.error <= BAR for one in found) if found else 1.0


def table(found: Sequence[Judged]) -> Iterator[str]:
    """The errors by cause."""
    yield "| planted | connections | advice | median error | largest error | within 10 % |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for cause in dict.fromkeys(one.cause for one in found):
        here = [one for one in found if one.cause == cause]
        counts = Counter(one.remedy for one in here)
        advice = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        errors = [one.error for one in here]
        figures = f"{statistics.median(errors):.1%} | {max(errors):.1%} | {within(here):.0%}"
        yield f"| {cause} | {len(here)} | {advice} | {figures} |"


if __name__ == "__main__":
    sys.exit(main())
