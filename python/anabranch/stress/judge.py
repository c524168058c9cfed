"""Runs candidates and scores them: two runs each, on all cores or on a Ray cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from anabranch.limits import thread_count
from anabranch.stress.genome import Genome
from anabranch.stress.goals import IDEAL, Case, Goal, Measured, measured
from anabranch.stress.scene import Control, as_last, text
from anabranch.sweep.maker import Order, make_here

if TYPE_CHECKING:
    from anabranch.sweep.maker import Engine, Jobs
    from anabranch.sweep.points import Job

SEED = 1
_FILE = "stress.toml"
_PROMISING = 0.5
"""Score with an ideal reference from which the reference is run."""


@dataclass(frozen=True)
class Pair:
    """The controls of a search.

    Attributes:
        tested: The control under test.
        reference: The control in its place in the run to compare with.
    """

    tested: Control
    reference: Control

    @property
    def classes(self) -> list[tuple[str, type]]:
        """Controls in Python that the runs need, each once."""
        return list({name: (name, kind) for name, kind in (*self.tested.classes, *self.reference.classes)}.values())


class Judge:
    """Scores candidates.

    Args:
        pair: The controls.
        jobs: Number of threads; default: the cores.
        engine: Where runs are made; default: this machine.

    Attributes:
        evaluations: Number of candidates that have been run.
    """

    def __init__(self, pair: Pair, jobs: int | None = None, engine: Engine | None = None) -> None:
        self.pair = pair
        self.evaluations = 0
        self._jobs = jobs
        self._engine = engine

    def cases(self, candidates: Sequence[tuple[Goal, Genome]], seed: int = SEED) -> list[Case]:
        """The figures of candidates, each with its goal.

        Raises:
            ScenarioError: The engine rejects a scenario.
        """
        pairs = [runs(self.pair, goal, genome, seed) for goal, genome in candidates]
        own = self._measured([pair[0] for pair in pairs], candidates)
        reference = self._measured([pair[1] for pair in pairs], candidates)
        self.evaluations += len(candidates)
        return [Case(genome, one, other) for (_, genome), one, other in zip(candidates, own, reference, strict=True)]

    def scores(self, candidates: Sequence[tuple[Goal, Genome]], seed: int = SEED) -> list[float]:
        """The score of each candidate.

        The run to compare with is left out if no outcome of it could make a find; the score is then an upper bound.
        """
        pairs = [runs(self.pair, goal, genome, seed) for goal, genome in candidates]
        own = self._measured([pair[0] for pair in pairs], candidates)
        self.evaluations += len(candidates)
        bounds = [goal.score(Case(genome, one, IDEAL)) for (goal, genome), one in zip(candidates, own, strict=True)]
        open_ = [k for k, bound in enumerate(bounds) if bound >= _PROMISING]
        reference = self._measured([pairs[k][1] for k in open_], [candidates[k] for k in open_])
        for k, other in zip(open_, reference, strict=True):
            goal, genome = candidates[k]
            bounds[k] = goal.score(Case(genome, own[k], other))
        return bounds

    def _measured(self, work: list[Job], candidates: Sequence[tuple[Goal, Genome]]) -> list[Measured]:
        if not work:
            return []
        made = zip(self._make(work), candidates, strict=True)
        return [measured(json.loads(summary), genome) for summary, (_, genome) in made]

    def _make(self, work: list[Job]) -> list[str]:
        order = Order(digest=False, untrusted=False, controls=self.pair.classes, jobs=self._jobs)
        if self._engine is None:
            return [summary for summary, _ in make_here(work, thread_count(self._jobs, len(work)), order)]
        found: dict[int, str] = {}
        # An engine only reads the runs by number.
        for runs, made in self._engine.make(cast("Jobs", _Work(work)), range(len(work)), order, lambda _: None):
            found.update(zip(runs, (summary for summary, _ in made), strict=True))
        return [found[run] for run in range(len(work))]


class _Work:
    """Runs by number, as an engine reads them."""

    def __init__(self, work: Sequence[Job]) -> None:
        self._work = work

    def __getitem__(self, run: int) -> Job:
        return self._work[run]


def runs(pair: Pair, goal: Goal, genome: Genome, seed: int = SEED) -> list[Job]:
    """The two runs of a candidate: with the tested control, and the run to compare with."""
    own = text(genome, pair.tested, pair.reference, whole=goal.whole)
    if goal.even:
        even = text(genome, pair.tested, pair.reference, whole=goal.whole, even=True)
        return [(own, _FILE, [], seed), (even, _FILE, [], seed)]
    return [(own, _FILE, [], seed), (own, _FILE, [*as_last(genome, pair.reference), *_stack(genome, pair)], seed)]


def _stack(genome: Genome, pair: Pair) -> tuple[str, ...]:
    if pair.tested.stack == pair.reference.stack:
        return ()
    flows = ("main", "twin") if genome.company == "twin" else ("main",)
    return tuple(f'flow.{flow}.stack="{pair.reference.stack}"' for flow in flows)


def figures(case: Case) -> dict[str, Any]:
    """The figures of a case, for JSON."""
    from dataclasses import asdict

    return {"own": asdict(case.own), "reference": asdict(case.reference)}
