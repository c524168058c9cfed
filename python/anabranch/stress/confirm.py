"""Confirmation of finds in a Linux kernel in virtual time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from anabranch.errors import RunFailedError, UserError
from anabranch.stress.genome import Genome
from anabranch.stress.goals import GOALS, Case, Goal, Measured, measured
from anabranch.stress.judge import Pair, runs
from anabranch.stress.words import result_words


@dataclass(frozen=True)
class Confirmation:
    """The outcome in a kernel.

    Attributes:
        outcome: ``confirmed``, ``withdrawn`` or ``not run``.
        sentence: The outcome in a sentence, with the figures or the reason.
        case: Figures of both runs; ``None`` if there are none.
    """

    outcome: str
    sentence: str
    case: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The form in files."""
        return asdict(self)


def confirm(goal: str, genome: Genome, pair: Pair, kernel: str | None = None) -> Confirmation:
    """Make both runs of a find in a kernel, and judge them by the same threshold.

    Raises:
        UserError: No kernel is built.
    """
    from anabranch import _engine
    from anabranch.kernel.images import chosen

    image = chosen(kernel)
    name = f"Linux {image.release}"
    refusal = _refusal(genome, pair)
    if refusal:
        return Confirmation("not run", f"Not run in {name}: {refusal}.")
    figures: list[Measured] = []
    for text, _, sets, seed in runs(pair, GOALS[goal], genome):
        try:
            figures.append(_run(text, sets, seed, genome, kernel))
        except (_engine.ScenarioError, RunFailedError, UserError) as error:
            return Confirmation("not run", f"Not run in {name}: {str(error).splitlines()[0]}.")
    return _judged(GOALS[goal], Case(genome, figures[0], figures[1]), pair, name)


def _judged(goal: Goal, case: Case, pair: Pair, name: str) -> Confirmation:
    score = goal.score(case)
    told = result_words(goal.name, case.genome, case.own, case.reference, pair)
    outcome = "confirmed" if score >= 1 else "withdrawn"
    verb = "Confirmed in" if score >= 1 else "Withdrawn: the threshold is not reached in"
    return Confirmation(
        outcome, f"{verb} {name}: {told}", {"own": asdict(case.own), "reference": asdict(case.reference)}
    )


def _refusal(genome: Genome, pair: Pair) -> str:
    if pair.classes:
        return "a kernel runs no congestion control in Python"
    if "ack-ratio" in genome.kinds:
        return "the receiver's acknowledgments are the kernel's own"
    return ""


def _run(text: str, sets: list[str], seed: int | None, genome: Genome, kernel: str | None) -> Measured:
    from anabranch.scenario import Scenario

    result = Scenario.from_text(text).with_sets(*sets).run_kernel(seed=seed, kernel=kernel)
    return measured(result.summary, genome)
