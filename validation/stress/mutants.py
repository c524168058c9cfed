"""Counterexample search on controls with planted faults, and on controls without one.

    python validation/stress/mutants.py               # all parts; prints tables; about an hour on two cores
    python validation/stress/mutants.py mutants sham  # some parts
    python validation/stress/mutants.py --write       # brings docs/validation/stress.md up to date

Parts: ``null`` (no events: no goal is missed), ``sham`` (changes without a fault: no find), ``declared`` (a control
with one declared fault: no other find), ``known`` (known failures), ``mutants`` (40 planted faults).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))
sys.path.insert(0, str(ROOT / "tools"))

from anabranch.stress.campaign import Plan, read_control, stress  # noqa: E402
from anabranch.stress.genome import draw, space  # noqa: E402
from anabranch.stress.goals import GOALS  # noqa: E402
from anabranch.stress.judge import Judge, Pair  # noqa: E402
from anabranch.stress.report import tell  # noqa: E402
from anabranch.stress.search import Find, State  # noqa: E402
from reference import markdown  # noqa: E402

from comparison.pages import fill  # noqa: E402
from stress.faults import DRAFT_ROUNDS, SHAM, Fault, faults  # noqa: E402

PAGE = ROOT / "docs/validation/stress.md"
RELATIVE = tuple(name for name, goal in GOALS.items() if not goal.even)
"""Goals that compare with the control without the fault."""
MUTANT_RUNS = 6_000
"""Candidates of a mutant at most: a limit of time would depend on the machine."""
SHAM_RUNS = 128
DECLARED_RUNS, DECLARED_SEEDS = 96, 20
NULL_PATHS = 20
KNOWN_S = 1_800.0
"""Seconds of a known failure; ``--seconds`` sets another limit."""
RETURN_PATH = ("ack-gap", "ack-hold", "ack-loss", "aggregation", "ack-ratio")
"""Events in the search for CUBIC's unfairness by ACK ratio. BBR, which paces, shares more evenly than Reno."""
INTERRUPTIONS = ("outage", "hold", "loss", "ack-gap", "ack-hold")
"""Events in the search for BBRv1's stall. CC-Fuzz searched for times at which the link serves packets."""
NEIGHBOURS = ((0.95, 1.0), (1.05, 1.0), (1.0, 0.95), (1.0, 1.05), (1.02, 1.02))
"""Paths that the search does not try: most of them must show a find as well."""


def null() -> tuple[str, bool]:
    """Reno on random paths without events: each goal, against CUBIC, and low-rate with even traffic."""
    random, missed, worst = Random(83), [], dict.fromkeys(GOALS, 0.0)  # noqa: S311
    judge = Judge(Pair(read_control("reno", "control", "linux"), read_control("cubic", "against", "linux")))
    for _ in range(NULL_PATHS):
        for goal in GOALS.values():
            whole = draw(random, space(goal.companies, ("loss",), goal.needs, passes=goal.passes))
            genome = type(whole)(whole.rate, whole.delay, whole.buffer, whole.company, ())
            score = judge.scores([(goal, genome)])[0]
            worst[goal.name] = max(worst[goal.name], score)
            if score >= 1:
                missed.append(goal.name)
    rows = [[name, f"{NULL_PATHS}", str(missed.count(name)), f"{score:.2f}"] for name, score in worst.items()]
    return markdown.table(("goal", "paths", "missed", "largest score"), rows), not missed


def sham() -> tuple[str, bool]:
    """Changes without a fault."""
    rows, count = [], 0
    for fault in SHAM:
        for seed in range(1, 6):
            outcome = stress(_plan(fault, runs=SHAM_RUNS, seed=seed))
            count += len(outcome.tellings)
            rows.append([fault.what, str(seed), str(outcome.state.evaluations), str(len(outcome.tellings))])
            _say(rows[-1])
    return markdown.table(("change", "seed", "candidates", "finds"), rows), count == 0


def declared() -> tuple[str, bool]:
    """A control whose only fault is declared: four segments at 2.5 times the minimum round-trip time.

    A find that most of other paths nearby do not show is false.
    """
    folder = Path(tempfile.mkdtemp(prefix="stress-"))
    fault = next(one for one in faults(folder) if "2.5 times the minimum" in one.what)
    pair = Pair(read_control(fault.control, "control", "linux"), read_control(fault.against, "against", "linux"))
    rows, false = [], 0
    for seed in range(1, DECLARED_SEEDS + 1):
        outcome = stress(_plan(fault, runs=DECLARED_RUNS, seed=seed))
        wrong = 0
        for told in outcome.tellings:
            goal, genome = GOALS[told.find.goal], told.find.genome
            near = [
                type(genome)(genome.rate * rate, genome.delay * delay, genome.buffer, genome.company, genome.events)
                for rate, delay in NEIGHBOURS
            ]
            scores = [Judge(pair).scores([(goal, one)], 7 + k)[0] for k, one in enumerate(near)]
            wrong += sum(score >= 1 for score in scores) < len(NEIGHBOURS) / 2
        false += wrong
        rows.append([str(seed), str(outcome.state.evaluations), str(len(outcome.tellings)), str(wrong)])
        _say(rows[-1])
    return markdown.table(("seed", "candidates", "finds", "false"), rows), false == 0


def known(seconds: float = KNOWN_S) -> tuple[str, bool]:
    """Failures that are known: that of BBRv1 with the rounds of its draft, and with those of Linux."""
    cases = (
        ("Low-rate attack on the minimum RTO", Plan("reno", ("low-rate",)), "pulses"),
        ("Vegas' base RTT after a re-route", Plan("vegas", ("starvation",)), "delay"),
        ("CUBIC's unfairness by ACK ratio", Plan("cubic", ("unfair",), "bbr", RETURN_PATH), "ack-ratio"),
        (
            "BBRv1 after a gap in the service, rounds of draft 00",
            Plan(DRAFT_ROUNDS, ("stall",), "bbr", INTERRUPTIONS, "rfc"),
            "hold",
        ),
        ("BBRv1 after a gap, rounds of Linux", Plan("bbr", ("stall",), None, INTERRUPTIONS, "rfc"), "hold"),
    )
    rows, good = [], True
    for name, plan, kind in cases:
        began, find, evaluations = time.monotonic(), None, 0
        found: list[Find] = []

        def watch(state: State, _used: float, kind: str = kind, found: list[Find] = found) -> None:
            found += [one for one in state.finds if kind in one.genome.kinds][: 1 - len(found)]
            if found:
                raise _Enough(state.evaluations)

        try:
            outcome = stress(replace(plan, budget_s=seconds), watch)
            evaluations = outcome.state.evaluations
        except _Enough as enough:
            evaluations, find = enough.evaluations, found[0]
        good = good and find is not None
        pair = Pair(*(read_control(one, "control", plan.stack) for one in (plan.control, plan.against or "reno")))
        told = tell([find], pair)[0].sentence if find is not None else "no find"
        paths = str(find.paths) if find is not None else ""
        rows.append([name, str(evaluations), f"{time.monotonic() - began:.0f}", paths, told])
        _say(rows[-1])
    return markdown.table(("failure", "candidates", "s", "of 9 paths nearby", "find"), rows), good


class _Enough(Exception):  # noqa: N818 - ends a search
    """The find has been made."""

    def __init__(self, evaluations: int) -> None:
        super().__init__()
        self.evaluations = evaluations


def mutants() -> tuple[str, bool]:
    """Planted faults, each until the first find."""
    rows, killed = [], 0
    every = faults(Path(tempfile.mkdtemp(prefix="stress-")))
    for fault in every:
        outcome = stress(_plan(fault, runs=MUTANT_RUNS, seed=1, first=True))
        killed += bool(outcome.tellings)
        goal = outcome.tellings[0].find.goal if outcome.tellings else "survives"
        events = ", ".join(outcome.tellings[0].find.genome.kinds) or "none" if outcome.tellings else ""
        rows.append([fault.what, goal, events, str(outcome.state.evaluations)])
        _say(rows[-1])
    text = markdown.table(("fault", "goal of the first find", "events", "candidates"), rows)
    return f"{killed} of {len(every)} faults are found.\n\n{text}", killed >= 0.95 * len(every)


def _plan(fault: Fault, runs: int, seed: int, *, first: bool = False) -> Plan:
    return Plan(fault.control, RELATIVE, fault.against, runs=runs, seed=seed, classes=fault.classes, first=first)


def _say(row: Sequence[str]) -> None:
    print(" | ".join(row), file=sys.stderr, flush=True)


PARTS: dict[str, Callable[[], tuple[str, bool]]] = {
    "null": null, "sham": sham, "declared": declared, "known": known, "mutants": mutants,
}  # fmt: skip


def main() -> int:
    """Make the parts."""
    parser = argparse.ArgumentParser(description="Counterexample search on planted faults.")
    parser.add_argument(
        "parts", metavar="PART", nargs="*", choices=[*PARTS, []], help=f"{', '.join(PARTS)}; all if none"
    )
    parser.add_argument("--write", action="store_true", help="bring the page up to date")
    parser.add_argument("--seconds", type=float, default=KNOWN_S, help="limit of each known failure")
    given = parser.parse_args()
    good, texts = True, {}
    for name in given.parts or PARTS:
        texts[name], is_good = known(given.seconds) if name == "known" else PARTS[name]()
        good = good and is_good
        print(f"{name}: {'passes' if is_good else 'fails'}\n\n{texts[name]}\n", flush=True)
    if given.write:
        PAGE.write_text(fill(PAGE.read_text("utf-8"), texts, PAGE.stem), "utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
