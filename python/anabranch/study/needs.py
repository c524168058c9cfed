"""The runs that an expression can depend on, so that no others need to be made to judge it.

Determined from the expression alone, and never too few: an expression that picks no variant by name needs all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.study.definition import Claim, Definition, Table
from anabranch.study.expression import Expression, picks
from anabranch.study.results import Job


@dataclass(frozen=True)
class Need:
    """The runs of one variant in an experiment, or of all its variants if none is named."""

    experiment: str
    variant: str | None = None

    def covers(self, job: Job) -> bool:
        """Whether a run is one of these."""
        return job.experiment == self.experiment and self.variant in {None, job.variant}


def of_claims(definition: Definition, claims: Iterable[Claim]) -> frozenset[Need]:
    """The runs that judging these claims can depend on."""
    needs: set[Need] = set()
    for claim in claims:
        walker = _Walker(definition, set(claim.measures))
        expressions = [*claim.measures.values(), *claim.accept, *([claim.undecided] if claim.undecided else [])]
        for expression in expressions:
            needs.update(walker.of(expression, claim.experiment))
    return frozenset(needs)


def of_expressions(definition: Definition, expressions: Iterable[Expression], experiment: str) -> frozenset[Need]:
    """The runs that expressions over an experiment can depend on."""
    walker = _Walker(definition, set())
    return frozenset(need for expression in expressions for need in walker.of(expression, experiment))


def of_table(definition: Definition, table: Table) -> frozenset[Need]:
    """The runs that the cells of a table can depend on."""
    walker = _Walker(definition, set())
    return frozenset(
        need
        for column in table.columns
        for expression in (column.value, column.at)
        if expression is not None
        for experiment in (table.experiments or (table.experiment,))
        for need in walker.of(expression, experiment)
    )


def only(jobs: Iterable[Job], needs: frozenset[Need]) -> list[Job]:
    """The needed runs among ``jobs``."""
    return [job for job in jobs if any(need.covers(job) for need in needs)]


class _Walker:
    def __init__(self, definition: Definition, measures: set[str]) -> None:
        self.definition = definition
        self.measures = measures

    def of(self, expression: Expression, experiment: str) -> Iterator[Need]:
        yield from self.node(expression.tree, experiment, None)

    def node(self, node: ast.AST, experiment: str, variant: str | None) -> Iterator[Need]:
        """The needs of a node; ``variant`` is the variant that is picked from its value later."""
        if isinstance(node, ast.Subscript):
            yield from self.selection(node, experiment, variant)
        elif isinstance(node, ast.Name):
            yield from self.name(node.id, experiment, variant)
        elif isinstance(node, ast.keyword) and node.arg == "over":
            return
        elif isinstance(node, ast.Call):
            # A function may cover all variants before one is picked.
            for argument in (*node.args, *node.keywords):
                yield from self.node(argument, experiment, None)
        else:
            for child in ast.iter_child_nodes(node):
                yield from self.node(child, experiment, variant)

    def selection(self, node: ast.Subscript, experiment: str, variant: str | None) -> Iterator[Need]:
        names = picks(node)
        chosen = next((name for name in names if name in self.definition.experiments), experiment)
        picked = [name for name in names if name in self.definition.variants]
        yield from self.node(node.value, chosen, picked[0] if picked else variant)
        # Axes in a condition are coordinates of existing points, so they need no runs.
        for part in ast.walk(node.slice):
            if isinstance(part, ast.Name) and part.id in self.definition.quantities:
                yield from self.name(part.id, chosen, None)

    def name(self, name: str, experiment: str, variant: str | None) -> Iterator[Need]:
        if name in self.measures or name in self.definition.variants or name in self.definition.experiments:
            return
        quantity = self.definition.quantities.get(name)
        if quantity is not None and quantity.expression is not None:
            yield from self.node(quantity.expression.tree, experiment, variant)
        elif quantity is not None:
            yield Need(experiment, variant)
        elif name == "variant":
            yield Need(experiment)
        else:
            # An axis, perhaps of another experiment: use the first that has it. All variants have the same points.
            experiments = self.definition.experiments
            having = next((e.name for e in experiments.values() if name in e.axes), experiment)
            at = experiments[experiment if name in experiments[experiment].axes else having]
            yield Need(at.name, next(iter(at.variants), ""))
