"""How the points of a claim's robustness differ: the points at which it holds, by a parameter's values.

A claim that holds in less than half of the plausible settings depends on what the source leaves open. These counts
point at it; with few points a difference may be chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.study import needs

if TYPE_CHECKING:
    from anabranch.study.definition import Claim, Definition, Open

LEAST_DIFFERENCE = 0.3
"""Between the largest and the smallest share of a parameter's groups. In halves of 32 points one standard deviation of
the difference is up to 0.18."""
LEAST_POINTS = 5
"""In a group."""
MOST = 2
"""Parameters that are named."""


@dataclass(frozen=True)
class Group:
    """Points with the same value of a parameter, or with values in one half of its range."""

    values: str
    held: int
    points: int

    @property
    def share(self) -> float:
        """The share of the points at which the claim holds."""
        return self.held / self.points


@dataclass(frozen=True)
class Split:
    """The points by the values of one parameter."""

    title: str
    groups: Sequence[Group]

    @property
    def difference(self) -> float:
        """Between the largest and the smallest share."""
        shares = [group.share for group in self.groups]
        return max(shares) - min(shares)

    def __str__(self) -> str:
        counts = ", ".join(f"{group.values}: {group.held} of {group.points}" for group in self.groups)
        return f"{self.title} ({counts})"


def splits(definition: Definition, claim: Claim, points: Iterable[tuple[Mapping[str, Any], bool]]) -> list[Split]:
    """The parameters whose values separate the points with and without the claim most, at most :data:`MOST`.

    Args:
        definition: The study.
        claim: Of the study.
        points: The open parameters at each point, and whether the claim holds there.
    """
    known = list(points)
    found = [_split(one, known) for one in definition.opens if _concerns(definition, claim, one)]
    telling = [
        one
        for one in found
        if len(one.groups) > 1
        and min(group.points for group in one.groups) >= LEAST_POINTS
        and one.difference >= LEAST_DIFFERENCE
    ]
    return sorted(telling, key=lambda one: -one.difference)[:MOST]


def _concerns(definition: Definition, claim: Claim, parameter: Open) -> bool:
    """Whether a parameter changes a run that judges the claim."""
    for need in needs.of_claims(definition, [claim]):
        variants = {need.variant} if need.variant else set(definition.experiments[need.experiment].variants)
        if need.experiment in parameter.experiments and (not parameter.variants or variants & set(parameter.variants)):
            return True
    return False


def _split(parameter: Open, points: Sequence[tuple[Mapping[str, Any], bool]]) -> Split:
    having = [(values[parameter.name], holds) for values, holds in points if parameter.name in values]
    if parameter.choices:
        groups = [
            (_word(choice), [holds for value, holds in having if value == choice]) for choice in parameter.choices
        ]
    else:
        ordered = sorted(value for value, _ in having)
        middle = ordered[len(ordered) // 2] if ordered else 0
        groups = [
            (f"below {middle:.4g}", [holds for value, holds in having if value < middle]),
            (f"from {middle:.4g} on", [holds for value, holds in having if value >= middle]),
        ]
    return Split(parameter.title, [Group(name, sum(held), len(held)) for name, held in groups if held])


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_word(inner)}" for key, inner in value.items())
    return str(value)
