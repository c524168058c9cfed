"""A check: a figure in a set of scenarios, and the criterion for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.evaluate.build import Build
from anabranch.evaluate.judge import Rule
from anabranch.evaluate.measures import MAIN, Measure
from anabranch.evaluate.subject import Subject


@dataclass(frozen=True)
class Plan:
    """The options that select scenarios.

    Attributes:
        against: The competitors.
        is_quick: Whether each set has its smallest size.
    """

    against: tuple[Subject, ...]
    is_quick: bool = False


@dataclass(frozen=True)
class Case:
    """One scenario of a check, with the subject and each reference in the same place.

    Attributes:
        label: Its place in the set, on the axis of the figure.
        runs: The scenario of each role.
        measure: The figure.
        rule: The criterion.
        is_quick: Whether ``--quick`` has it, too.
        group: Separate lines of the figure.
    """

    label: str
    runs: Mapping[str, Build]
    measure: Measure
    rule: Rule
    is_quick: bool = True
    group: str = ""
    sampled: bool = False


@dataclass(frozen=True)
class Check:
    """A set of scenarios with one criterion.

    Attributes:
        id: Its name.
        title: The examined property.
        about: The scenarios.
        criterion: The criterion, in words.
        source: Where the criterion is from.
        cases: Makes the cases.
    """

    id: str
    title: str
    about: str
    criterion: str
    source: str
    cases: Callable[[Plan], Sequence[Case]] = field(repr=False)


def one(build: Build) -> dict[str, Build]:
    """The only run of a case."""
    return {MAIN: build}
