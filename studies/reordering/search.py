"""At which of the settings that the report leaves open does a claim hold on the full grid?

    python studies/reordering/search.py DIR [--threads N] [--groups N] [--best K]

Judges R1 to R7 at every combination of the open parameters of NewReno and CUBIC, with the payloads and windows below.
At each of them one way in which Cubic+ starts over is drawn, and R8, R9 and R11 are judged. Results are appended to
DIR, and a second call continues from them; the groups of settings are in random order, so that the first N sample all.
Prints how often each claim holds, also where the claims hold that are reproduced and not fragile; the effect of each
parameter; the settings of ns-3's releases; and the K settings with the largest share of R4.

Runs that can change no result are left out: R9 is judged at the intervals at which CUBIC has at most half of the link,
and R8 where R1 to R3 and R5 to R7 hold.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import multiprocessing
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from anabranch import _engine
from anabranch.study import needs
from anabranch.study.definition import Claim, Definition
from anabranch.study.parse import load
from anabranch.study.results import Condition, Job, Pool, Results, plan
from anabranch.study.verdict import judge

HERE = Path(__file__).resolve().parent
FILE = "settings.jsonl"
EXPERIMENTS = ("reordering", "plain")

PAYLOADS = (1448, 1460, 1474, 1487, 1500)
"""Bytes: 1,500 for a packet or for its payload, and two between."""
WINDOWS = (156, 157, 158)
OF_BOTH = ("R1", "R2", "R3", "R4", "R5", "R6", "R7")
OF_CUBIC_PLUS = ("R8", "R9", "R11")
SETTLED = ("R1", "R2", "R3", "R5", "R6", "R7", "R8")
"""Claims that are reproduced and not fragile, without R10."""
UNSETTLED = ("R4", "R9", "R11")
TOGETHER = (("R4", "R5"), ("R4", "R9"), ("R4", "R5", "R9"), ("R4", "R11"), ("R9", "R11"), UNSETTLED)
FIRST_R8, LAST = 30, 95
SAMPLED = 70
"""The interval of R11."""
FIRST_COLLAPSE = 50
SAMPLES_MS = 10.0
THROUGHPUT, RECOVERIES, TIMEOUTS = "flow.main.throughput_mbit_s", "flow.main.fast_recoveries", "flow.main.timeouts"
HALF_OF_THE_LINK = 5.0
"""Mbit/s. A ratio of two to a larger throughput would exceed the rate of the link."""

RELEASES = {
    "ns-3.21 (2014) and before": ("200 ms", False, True, True),
    "ns-3.22 to 3.24 (2015)": ("1 s", False, True, True),
    "ns-3.25 and 3.26 (2016)": ("1 s", True, False, True),
    "this study": ("200 ms", True, False, True),
    "RFC 6582, slow but steady": ("1 s", True, True, False),
}
"""Defaults of the parameters in :data:`OF_RELEASES`."""
OF_RELEASES = ("min_rto", "limited_transmit", "timer_restarts", "recover_inclusive")

Setting = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Group:
    """The settings that share NewReno's runs.

    Attributes:
        shared: Values of the parameters of all variants.
    """

    shared: tuple[tuple[str, Any], ...]

    @property
    def key(self) -> str:
        """The key of its results."""
        return json.dumps(self.shared)


class Box:
    """The settings of the search, and their judgements."""

    def __init__(self) -> None:
        study = load(HERE)
        self.study = with_variants(study, "newreno", "cubic", "cubic_plus")
        self.both = with_variants(study, "newreno", "cubic")
        self.plus = with_variants(study, "cubic_plus")
        self.claims: dict[str, Claim] = {claim.id: claim for claim in study.claims}

    @cached_property
    def inputs(self) -> str:
        """A hash of everything that decides the judgements."""
        conditions = {
            name: [(k, e.text) for k, e in claim.measures.items()] + [e.text for e in claim.accept]
            for name, claim in self.claims.items()
        }
        jobs = [job.sets for job in Pool(self.study, 1).plan(Condition(full=True))]
        content = [_engine.version(), conditions, jobs, sorted((str(p), t) for p, t in self.study.texts.items())]
        return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()

    def choices(self, variants: tuple[str, ...]) -> list[tuple[tuple[str, Any], ...]]:
        """Every combination of the discrete parameters that are open for these variants only."""
        opens = [p for p in self.study.opens if "reordering" in p.experiments and p.choices and p.variants == variants]
        return list(itertools.product(*([(p.name, value) for value in p.choices] for p in opens)))

    def largest_ratios(self, setting: tuple[tuple[str, Any], ...]) -> list[float]:
        """R9's figure with each way in which Cubic+ starts over; 0 if CUBIC always has more than half of the link."""
        pool = Pool(self.study, 1)
        cubic = unsampled(plan(with_variants(self.study, "cubic"), full_at(setting), pool.first_seed))
        pool.make(cubic)
        slow = [
            job for job in cubic if job.point and (pool.outcomes[job.key].figures[THROUGHPUT] or 0) <= HALF_OF_THE_LINK
        ]
        points = {job.point for job in slow}
        ratios = []
        for way in self.choices(("cubic_plus", "timer_alone")):
            planned = unsampled(plan(self.plus, full_at((*setting, *way)), pool.first_seed))
            runs = self.made(pool, [*slow, *(job for job in planned if job.point in points)])
            ratios.append(self.record(setting, ("R9",), runs)["figures"]["R9.largest_ratio"] if slow else 0.0)
        return ratios

    def restart(self, setting: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        """The way in which Cubic+ starts over at a setting of CUBIC: one of all, at random."""
        draw = random.Random(json.dumps(setting))  # noqa: S311 - a sample, no secret
        return draw.choice(self.choices(("cubic_plus", "timer_alone")))

    def groups(self) -> list[Group]:
        """The groups, in a fixed random order, so that the first of them are a sample of all."""
        groups = [
            Group((("mss", payload), ("window", window), *rest))
            for payload in PAYLOADS
            for window in WINDOWS
            for rest in self.choices(())
        ]
        order = random.Random(1)  # noqa: S311 - an order, no secret
        order.shuffle(groups)
        return groups

    def judged(self, group: Group) -> list[dict[str, Any]]:
        """The judgements of a group: for each setting its parameters, the claims that hold, and the figures."""
        pool = Pool(self.study, 1)
        found = []
        for of_cubic in self.choices(("cubic", "cubic_plus", "timer_alone")):
            setting = (*group.shared, *of_cubic)
            planned = plan(self.both, full_at(setting), pool.first_seed)
            runs = self.made(pool, unsampled(planned))
            record = self.record(setting, OF_BOTH, runs)
            more = self.of_cubic_plus(pool, (*setting, *self.restart(setting)), planned, record["holds"])
            found.append({key: {**record[key], **more[key]} for key in record})
        return found

    def of_cubic_plus(
        self, pool: Pool, setting: tuple[tuple[str, Any], ...], of_cubic: Sequence[Job], both: Mapping[str, bool]
    ) -> dict[str, Any]:
        """The judgement of the claims about Cubic+; ``of_cubic`` has CUBIC's runs."""
        cubic = [job for job in of_cubic if job.variant == "cubic"]
        planned = plan(self.plus, full_at(setting), pool.first_seed)
        slow = {
            job.point
            for job in unsampled(cubic)
            if job.point and (pool.outcomes[job.key].figures[THROUGHPUT] or 0) <= HALF_OF_THE_LINK
        }
        jobs = {
            "R9": [job for job in unsampled([*cubic, *planned]) if job.point in slow],
            "R11": [job for job in (*cubic, *planned) if job.point == (SAMPLED,)],
            "R8": [],
        }
        if all(both[name] for name in SETTLED if name in OF_BOTH):
            span = {(interval,) for interval in range(FIRST_R8, LAST + 1)} | {()}
            jobs["R8"] = [job for job in unsampled(planned) if job.point in span]
        parts = [self.record(setting, (name,), self.made(pool, chosen)) for name, chosen in jobs.items() if chosen]
        holds = {"R9": False}
        figures = {}
        for part in parts:
            holds.update(part["holds"])
            figures.update(part["figures"])
        return {"setting": dict(setting), "holds": holds, "figures": figures}

    @staticmethod
    def made(pool: Pool, jobs: Sequence[Job]) -> Results:
        """The runs of jobs."""
        pool.make(jobs)
        return pool.results(jobs)

    def record(self, setting: tuple[tuple[str, Any], ...], names: Sequence[str], results: Results) -> dict[str, Any]:
        """The judgement of claims at a setting."""
        done = {name: judge(self.claims[name], results) for name in names}
        figures = {f"{name}.{key}": value for name, one in done.items() for key, value in one.measures.items()}
        return {
            "setting": dict(setting),
            "holds": {name: one.holds is True for name, one in done.items()},
            "figures": figures,
        }

    def missed(self, setting: Setting) -> tuple[str, float, float]:
        """The claims that do not hold at a setting; NewReno's fast recoveries and CUBIC's timeouts over RI 4 to 95."""
        claims = [claim for claim in self.claims.values() if claim.section is None]
        pool = Pool(self.study, 1)
        jobs = pool.plan(full_at(tuple(setting.items())))
        results = self.made(pool, needs.only(jobs, needs.of_claims(self.study, claims)))
        done = {claim.id: judge(claim, results) for claim in claims}
        failed = "; ".join(f"{name}: {one.measured}" for name, one in done.items() if one.holds is not True)

        def total(variant: str, figure: str) -> float:
            rows = [out for job, out in results.runs if job.variant == variant and job.point and job.point[0] <= LAST]
            return sum(out.figures[figure] or 0 for out in rows)

        return failed or "none", total("newreno", RECOVERIES), total("cubic", TIMEOUTS)

    def collapses(self, setting: Setting) -> str:
        """At how many intervals R11 holds if it is checked at each of them in place of its own."""
        pool = Pool(self.study, 1)
        planned = pool.plan(full_at(tuple(setting.items())))
        every = range(FIRST_COLLAPSE, LAST + 1)
        held = 0
        for interval in every:
            jobs = [job for job in planned if job.point == (interval,) and job.variant != "newreno"]
            runs = self.made(pool, [replace(job, samples_ms=SAMPLES_MS) for job in jobs]).runs
            moved = [(replace(job, point=(SAMPLED,)), outcome) for job, outcome in runs]
            held += judge(self.claims["R11"], Results(self.study, moved)).holds is True
        return f"{held} of {len(every)}"


def with_variants(study: Definition, *variants: str) -> Definition:
    """The report's runs without reordering and with it, of some variants."""
    experiments = {name: replace(study.experiments[name], variants=variants) for name in EXPERIMENTS}
    return replace(study, experiments=experiments)


def full_at(setting: tuple[tuple[str, Any], ...]) -> Condition:
    """The full grid at a setting."""
    return Condition(full=True, opens=setting)


def unsampled(jobs: Sequence[Job]) -> list[Job]:
    """The jobs without samples."""
    return [replace(job, samples_ms=None) for job in jobs]


class Store:
    """Judged groups on disk."""

    def __init__(self, directory: Path, inputs: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / FILE
        self.inputs = inputs

    def read(self) -> dict[str, list[dict[str, Any]]]:
        """Group → its judgements; those of other inputs, and a last line that is not whole, are ignored."""
        found = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else ():
            try:
                kept = json.loads(line)
            except ValueError:
                continue
            if kept["inputs"] == self.inputs:
                found[kept["group"]] = kept["judged"]
        return found

    def add(self, group: Group, judged: list[dict[str, Any]]) -> None:
        """Append a group."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"inputs": self.inputs, "group": group.key, "judged": judged}) + "\n")


def work(group: Group) -> tuple[Group, list[dict[str, Any]]]:
    """One group, in a worker."""
    return group, Box().judged(group)


def share(rows: Rows, name: str) -> str:
    """The share of settings at which a claim holds."""
    held = sum(row["holds"].get(name, False) for row in rows)
    return f"{held} of {len(rows)} ({100 * held / len(rows):.1f} %)" if rows else "–"


def judged_on(rows: Rows, name: str) -> Rows:
    """The settings at which a claim was judged."""
    return [row for row in rows if name in row["holds"]]


def settled(rows: Rows, name: str) -> Rows:
    """The settings at which a claim was judged, and the claims hold that are not fragile; R8 only for Cubic+."""
    others = set(SETTLED) - {name} - (set() if name in OF_CUBIC_PLUS else {"R8"})
    return [row for row in judged_on(rows, name) if all(row["holds"].get(other, False) for other in others)]


def by_value(rows: Rows) -> Iterator[tuple[str, Any, list[Mapping[str, Any]]]]:
    """The settings with each value of each parameter."""
    for name in rows[0]["setting"] if rows else ():
        for value in dict.fromkeys(sorted((row["setting"][name] for row in rows), key=str)):
            yield name, value, [row for row in rows if row["setting"][name] == value]


def shown(value: Any) -> str:
    """A value of a parameter."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def report(rows: Rows) -> Iterator[str]:
    """The tables."""
    yield "| claim | holds at | where the settled claims hold |"
    yield "| --- | --- | --- |"
    for name in (*OF_BOTH, *OF_CUBIC_PLUS):
        every = "–" if name == "R8" else share(judged_on(rows, name), name)
        yield f"| {name} | {every} | {share(settled(rows, name), name)} |"
    for names in TOGETHER:
        judged = judged_on(rows, "R9")
        count = sum(all(row["holds"][name] for name in names) for row in judged)
        yield f"| {' and '.join(names)} | {count} of {len(judged)} | |"
    yield "\n| parameter | value | mean share below (R4) | R4 | R9 | R11 |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for parameter, value, having in by_value(rows):
        shares = " | ".join(share(judged_on(having, name), name) for name in UNSETTLED)
        yield f"| {parameter} | {shown(value)} | {below(having)} | {shares} |"


def releases(box: Box, rows: Rows) -> Iterator[str]:
    """The settings with the defaults of ns-3's releases, and these defaults with the study's other values."""
    yield "\n| defaults of | share below (R4) | R4 | R9 | R11 |"
    yield "| --- | --- | --- | --- | --- |"
    defaults = {release: dict(zip(OF_RELEASES, values, strict=True)) for release, values in RELEASES.items()}
    for release, setting in defaults.items():
        having = [row for row in rows if setting.items() <= row["setting"].items()]
        shares = " | ".join(share(judged_on(having, name), name) for name in UNSETTLED)
        yield f"| {release} | {below(having)} | {shares} |"
    yield "\n| defaults of | do not hold | recoveries of NewReno | timeouts of CUBIC | R11 at RI 50 to 95 |"
    yield "| --- | --- | --- | --- | --- |"
    for release, setting in defaults.items():
        failed, recoveries, timeouts = box.missed(setting)
        yield f"| {release} | {failed} | {recoveries:.0f} | {timeouts:.0f} | {box.collapses(setting)} |"


def below(rows: Rows) -> str:
    """The mean and the range of R4's figure."""
    values = [row["figures"]["R4.share_below"] for row in rows]
    return f"{statistics.fmean(values):.3f} ({min(values):.3f} to {max(values):.3f})" if values else "–"


def together(box: Box, rows: Rows) -> Iterator[str]:
    """R9 with every way in which Cubic+ starts over, at the settings at which R4 and R5 hold."""
    of_plus = {name for name, _ in box.choices(("cubic_plus", "timer_alone"))[0]}
    having = [row["setting"] for row in rows if row["holds"]["R4"] and row["holds"]["R5"]]
    settings = [tuple((name, value) for name, value in one.items() if name not in of_plus) for one in having]
    ratios = [ratio for setting in settings for ratio in box.largest_ratios(setting)]
    if ratios:
        held = f"\nR4 and R5 hold at {len(settings)} settings"
        yield f"{held}; with every way of starting over, {len(ratios)}, the largest ratio of R9 is {max(ratios):.3f}"


def best(box: Box, rows: Rows, count: int) -> Iterator[str]:
    """The settings with the largest share below, with every claim."""
    yield "\n| share below | setting | claims that do not hold |"
    yield "| --- | --- | --- |"
    for row in sorted(rows, key=lambda row: -row["figures"]["R4.share_below"])[:count]:
        setting = ", ".join(f"{name} = {shown(value)}" for name, value in row["setting"].items())
        yield f"| {row['figures']['R4.share_below']:.3f} | {setting} | {box.missed(row['setting'])[0]} |"


def main() -> int:
    """Search, and print the result."""
    parser = argparse.ArgumentParser(description="Judge the claims at every open setting on the full grid.")
    parser.add_argument("directory", type=Path, help="of the results, which a second call continues")
    parser.add_argument("--threads", type=int, default=multiprocessing.cpu_count(), help="processes (all processors)")
    parser.add_argument("--groups", type=int, help="judge at most this number of groups")
    parser.add_argument("--best", type=int, default=4, help="settings that are shown (4)")
    given = parser.parse_args()
    box = Box()
    store = Store(given.directory, box.inputs)
    done = store.read()
    groups = box.groups()
    todo = [group for group in groups if group.key not in done][: given.groups]
    with multiprocessing.get_context("spawn").Pool(max(given.threads, 1)) as workers:
        for count, (group, judged) in enumerate(workers.imap_unordered(work, todo), 1):
            store.add(group, judged)
            done[group.key] = judged
            sys.stderr.write(f"\r{count} of {len(todo)} groups")
    rows = [row for group in groups for row in done.get(group.key, ())]
    whole = sum(group.key in done for group in groups)
    sys.stdout.write(f"{whole} of {len(groups)} groups, {len(rows)} settings\n\n")
    for line in (*report(rows), *releases(box, rows), *best(box, rows, given.best), *together(box, rows)):
        sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
