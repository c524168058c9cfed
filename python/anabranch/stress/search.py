"""The search: evolution over lists of events, with one archive of niches per goal.

A niche is a set of kinds of events, a company, and a class of rates and round-trip times; it keeps its best candidate.
Half of the parents are drawn evenly from all niches, which rewards novelty, and half by score. One generator makes all
choices, in generations of a fixed size, so that the finds depend only on the seed and on the number of evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from anabranch.stress.bounds import FOUND_EVENTS, KINDS
from anabranch.stress.genome import Genome, cross, draw, mutate, space
from anabranch.stress.goals import Case, Goal
from anabranch.stress.judge import SEED, Judge, figures
from anabranch.stress.shrink import shrink

GENERATION = 32
"""Candidates of a generation. It is independent of the cores, because finds are."""
_FRESH, _CROSSED = 0.25, 0.15
_TOURNAMENT = 5
_GREEDY = 0.5
NEIGHBOURS = (
    (1.0, 1.0), (0.97, 1.0), (1.03, 1.0), (1.0, 0.97), (1.0, 1.03), (0.94, 1.0), (1.06, 1.0), (1.0, 0.94), (1.0, 1.06),
)  # fmt: skip
"""Factors of rate and delay. A find holds on the first path and on all but two, each with another seed of the random
draws in the network: a find of a single path is a phase effect (Floyd and Jacobson, 1992), except for goals with
``nearby`` off."""
_MISSED = 2
"""Neighbouring paths on which a find may be below the threshold."""
_STRONG = 1.5
"""Score that a find shall have: then shrinking keeps a margin to the threshold."""
_KEPT = 0.9
"""Part of the score that shrinking keeps, below :data:`_STRONG`."""
_ROUNDS = 4
_MOST_PER_GOAL = 12
"""Finds of one goal after which only the archive grows."""
_MOST_TRIES = 3
"""Candidates of one niche that are shrunk without becoming a new find."""


@dataclass(frozen=True)
class Find:
    """A failure that holds.

    Attributes:
        goal: The name of the goal.
        genome: The shrunk candidate.
        score: The third lowest of its scores on neighbouring paths; of a goal for which one path suffices: its score.
        evaluation: Number of candidates run when it was found.
        case: Figures with the first seed.
        paths: Number of neighbouring paths on which it holds, its own included.
    """

    goal: str
    genome: Genome
    score: float
    evaluation: int
    case: dict[str, Any]
    paths: int = 0

    @property
    def signature(self) -> tuple[str, ...]:
        """Its kind: finds of one goal, company, and kinds of events are the same."""
        return (self.genome.company, *signature_kinds(self.genome))


def signature_kinds(genome: Genome) -> tuple[str, ...]:
    """The kinds of events with their places, sorted."""
    return tuple(sorted({f"{event.kind}/{event.place}" for event in genome.events}))


@dataclass
class State:
    """The state of a search, which a file holds."""

    generation: int = 0
    evaluations: int = 0
    random: list[Any] = field(default_factory=list)
    archive: dict[str, dict[str, tuple[float, Genome]]] = field(default_factory=dict)
    """Goal → niche → best score and its candidate."""
    finds: list[Find] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)
    """Niche with its goal → number of candidates that were shrunk."""


class Search:
    """A search for counterexamples.

    Args:
        judge: Runs and scores candidates.
        goals: The goals, which take turns.
        seed: The seed of all choices.
        state: The state of an earlier call.
        kinds: The kinds of events; default: all.
    """

    def __init__(
        self, judge: Judge, goals: Sequence[Goal], seed: int, state: State | None = None, kinds: Sequence[str] = ()
    ) -> None:
        self.judge = judge
        self.goals = list(goals)
        self.state = state or State()
        self._kinds = tuple(kinds or KINDS)
        self._random = Random(seed)  # noqa: S311 - choices of a search, which a seed repeats
        if self.state.random:
            version, inner, gauss = self.state.random
            self._random.setstate((version, tuple(inner), gauss))
        judge.evaluations = self.state.evaluations
        self._complete: State | None = None

    @property
    def complete(self) -> State | None:
        """The state after the last complete generation; ``None`` before :meth:`run`."""
        return self._complete

    def run(self, go_on: Callable[[State], bool]) -> State:
        """Make generations as long as ``go_on`` says so; it is asked between generations."""
        self._complete = self._copy()
        while go_on(self.state):
            self.generation()
            self._complete = self._copy()
        return self.state

    def _copy(self) -> State:
        state = self.state
        archive = {goal: dict(niches) for goal, niches in state.archive.items()}
        return replace(state, archive=archive, finds=list(state.finds), tried=dict(state.tried))

    def generation(self) -> None:
        """Make one generation, and shrink its finds."""
        candidates = []
        for k in range(GENERATION):
            goal = self.goals[(self.state.generation * GENERATION + k) % len(self.goals)]
            candidates.append((goal, self._candidate(goal)))
        scores = self.judge.scores(candidates)
        hits = []
        for (goal, genome), score in zip(candidates, scores, strict=True):
            niche = _niche(genome)
            best = self.state.archive.setdefault(goal.name, {})
            if niche not in best or score > best[niche][0]:
                best[niche] = (score, genome)
            if score >= 1:
                hits.append((score, goal, genome))
        for score, goal, genome in sorted(hits, key=lambda hit: -hit[0]):
            self._found(goal, genome, score)
        self.state.generation += 1
        self.state.evaluations = self.judge.evaluations
        version, inner, gauss = self._random.getstate()
        self.state.random = [version, list(inner), gauss]

    def _candidate(self, goal: Goal) -> Genome:
        random, niches = self._random, self.state.archive.get(goal.name, {})
        of = space(goal.companies, self._kinds, goal.needs, passes=goal.passes)
        choice = random.random()
        if not niches or choice < _FRESH:
            return draw(random, of)
        pool = list(niches.values())
        if choice < _FRESH + _CROSSED:
            others = list(self.state.archive[random.choice(list(self.state.archive))].values())
            return mutate(random, cross(random, self._parent(pool), random.choice(others)[1], of), of)
        return mutate(random, self._parent(pool), of)

    def _parent(self, pool: list[tuple[float, Genome]]) -> Genome:
        random = self._random
        if random.random() >= _GREEDY:
            return random.choice(pool)[1]
        # A find is no reason to stay there: scores above 1 count as 1 at most.
        entrants = [random.choice(pool) for _ in range(_TOURNAMENT)]
        return max(entrants, key=lambda entry: min(entry[0], 1.0))[1]

    def _found(self, goal: Goal, genome: Genome, score: float) -> None:
        """Shrink a find, unless its kind is known or was tried often enough."""
        state = self.state
        same = [find for find in state.finds if find.goal == goal.name]
        kinds = set(signature_kinds(genome))
        known = any(set(find.signature[1:]) <= kinds and find.genome.company in ("alone", genome.company)
                    for find in same)  # fmt: skip
        mark = f"{goal.name} {genome.company} {' '.join(sorted(kinds))}"
        if known or len(same) >= _MOST_PER_GOAL or state.tried.get(mark, 0) >= _MOST_TRIES:
            return
        state.tried[mark] = state.tried.get(mark, 0) + 1
        genome, score = self._stronger(goal, genome, score)
        small = shrink(genome, goal, self.judge, floor=max(1.0, min(_STRONG, _KEPT * score)))
        if len(small.events) > FOUND_EVENTS:
            return
        cases = self.around(goal, small)
        scores = [goal.score(case) for case in cases]
        held = sorted(scores)[_MISSED] if goal.nearby else scores[0]
        paths = sum(one >= 1 for one in scores)
        find = Find(goal.name, small, held, self.judge.evaluations, figures(cases[0]), paths)
        if min(scores[0], find.score) >= 1 and all(other.signature != find.signature for other in same):
            state.finds.append(find)

    def _stronger(self, goal: Goal, genome: Genome, score: float) -> tuple[Genome, float]:
        """A find of the same kinds of events with a higher score: those at the threshold seldom hold elsewhere."""
        of = space((genome.company,), genome.kinds or self._kinds, goal.needs, passes=goal.passes)
        for _ in range(_ROUNDS):
            if score >= _STRONG:
                break
            tries = [mutate(self._random, genome, of) for _ in range(GENERATION // 2)]
            scores = self.judge.scores([(goal, one) for one in tries])
            best = max(range(len(tries)), key=lambda k: (scores[k], -k))
            if scores[best] > score:
                genome, score = tries[best], scores[best]
        return genome, score

    def around(self, goal: Goal, genome: Genome) -> list[Case]:
        """The figures of a candidate on neighbouring paths, its own first."""
        cases = []
        for number, (rate, delay) in enumerate(NEIGHBOURS):
            near = replace(genome, rate=genome.rate * rate, delay=genome.delay * delay)
            cases += self.judge.cases([(goal, near)], SEED + number)
        return cases


def _niche(genome: Genome) -> str:
    rate = "slow" if genome.rate < 8 else "fast"
    delay = "near" if genome.delay < 20 else "far"
    return f"{genome.company} {rate} {delay} {' '.join(sorted(event.kind for event in genome.events))}"
