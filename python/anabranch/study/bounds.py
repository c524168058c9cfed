"""Bounds of an expression: amounts are not below 0, and a share of a run's summary is not above 1."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from anabranch.statistics.bounds import is_share

if TYPE_CHECKING:
    from anabranch.study.definition import Definition
    from anabranch.study.expression import Expression

Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)

_SIGNED = frozenset({"spearman", "correlation", "slope", "lower95", "lower95_at_once", "log10"})
"""Functions whose value may be negative even if no argument is."""


def bounds_of(definition: Definition, expression: Expression) -> Bounds:
    """The smallest and largest possible value of an expression.

    A difference, or an expression that contains one, has no bounds: an interval that reaches below 0 is its result.
    """
    if _may_be_negative(definition, expression):
        return UNBOUNDED
    return 0.0, 1.0 if _is_share(definition, expression) else math.inf


def _may_be_negative(definition: Definition, expression: Expression) -> bool:
    for node in ast.walk(expression.tree):
        if isinstance(node, ast.Sub | ast.USub) or (isinstance(node, ast.Name) and node.id in _SIGNED):
            return True
        quantity = definition.quantities.get(node.id) if isinstance(node, ast.Name) else None
        made_of = quantity.expression if quantity is not None else None
        if made_of is not None and _may_be_negative(definition, made_of):
            return True
    return False


def _is_share(definition: Definition, expression: Expression) -> bool:
    """A quantity alone, or selected points of it, that is a share in the summary."""
    node = expression.tree
    while isinstance(node, ast.Subscript):
        node = node.value
    quantity = definition.quantities.get(node.id) if isinstance(node, ast.Name) else None
    return quantity is not None and quantity.path is not None and quantity.combine is None and is_share(quantity.path)
