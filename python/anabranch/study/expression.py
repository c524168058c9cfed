"""The expression language of claims: arithmetic, comparisons, selections and a closed set of functions.

    min(normalised[newreno, 4 <= ri <= 99])
    share(normalised[cubic] < normalised[newreno]) >= 0.8

Expressions have Python's syntax and are parsed by its parser, but never run by Python: only the nodes below have a
meaning, and a name means a quantity, an axis, or an earlier measure. ``quantity[…]`` selects: a bare name or a string
picks an experiment or a variant, a comparison keeps the points where it holds; ``axis == value`` also drops the axis.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from anabranch.errors import nearest
from anabranch.study.functions import FUNCTIONS, Value
from anabranch.study.series import Cell, NoValueError, Series, combine, number

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
MAX_LENGTH = 2000
"""Characters in one expression."""
MAX_DEPTH = 50
"""Levels of nesting in one expression; checking and evaluating recurse."""


class ExpressionError(ValueError):
    """The expression is not well formed; ``column`` counts its characters from 0."""

    def __init__(self, message: str, column: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.hint = hint


@dataclass(frozen=True)
class Names:
    """The valid names in an expression."""

    quantities: Collection[str] = ()
    axes: Collection[str] = ()
    variants: Collection[str] = ()
    experiments: Collection[str] = ()
    measures: Collection[str] = ()


class Source(Protocol):
    """The source of quantities."""

    def quantity(self, name: str, experiment: str | None) -> Series:
        """Every value of a quantity, over all axes of the experiment (the default one if ``None``)."""
        ...

    def axis(self, name: str, experiment: str | None) -> Series:
        """An axis as a series of its coordinates."""
        ...


@dataclass(frozen=True)
class Expression:
    """A checked expression.

    Attributes:
        text: The expression as written.
        tree: Its syntax tree, with only the nodes that the language has.
    """

    text: str
    tree: ast.expr
    names: Names = field(repr=False, default_factory=Names)

    def evaluate(self, source: Source, measures: Mapping[str, Value], experiment: str | None = None) -> Value:
        """Compute it.

        Args:
            source: The source of quantities.
            measures: Values of the measures named before it.
            experiment: The experiment to use if none is named.

        Raises:
            NoValueError: A value that it needs does not exist in the results.
        """
        return _Evaluator(self.names, source, measures, experiment).value(self.tree)


def compile_expression(text: str, names: Names) -> Expression:
    """Parse and check.

    Raises:
        ExpressionError: It is not well formed, or contains a name that does not exist.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"more than {MAX_LENGTH} characters", 0)
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"not an expression: {error.msg}", max((error.offset or 1) - 1, 0)) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an expression", 0) from None
    if _depth(tree) > MAX_DEPTH:
        raise ExpressionError(f"nested more than {MAX_DEPTH} deep", 0)
    _Checker(names).check(tree)
    return Expression(text, tree, names)


class _Checker:
    def __init__(self, names: Names) -> None:
        self.names = names

    def check(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, (bool, int, float, str)):
                raise ExpressionError(f"{node.value!r} means nothing here", node.col_offset)
        elif isinstance(node, ast.Name):
            self.name(
                node,
                [*self.names.measures, *self.names.quantities, *self.names.axes],
                "quantity, axis or measure",
            )
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            self.check(node.left)
            self.check(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            self.check(node.operand)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.check(value)
        elif isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            for value in (node.left, *node.comparators):
                self.check(value)
        elif isinstance(node, ast.Subscript):
            self.selection(node)
        elif isinstance(node, ast.Call):
            self.call(node)
        else:
            raise ExpressionError("this has no meaning in a claim", node.col_offset, "see docs/studies.md")

    def name(self, node: ast.Name, valid: Collection[str], what: str) -> None:
        if node.id not in valid:
            hint = f"{node.id}() is a function" if node.id in FUNCTIONS else nearest(node.id, valid)
            raise ExpressionError(f'"{node.id}" is no {what}', node.col_offset, hint)

    def selection(self, node: ast.Subscript) -> None:
        if not isinstance(node.value, ast.Name):
            raise ExpressionError("only a quantity can be followed by [ ]", node.col_offset)
        self.name(node.value, self.names.quantities, "quantity")
        for part in _parts(node):
            if isinstance(part, ast.Name) or (isinstance(part, ast.Constant) and isinstance(part.value, str)):
                picked = part.id if isinstance(part, ast.Name) else str(part.value)
                valid = [*self.names.variants, *self.names.experiments]
                if picked not in valid:
                    hint = f"write {picked} == value" if picked in self.names.axes else nearest(picked, valid)
                    raise ExpressionError(f'"{picked}" is no variant and no experiment', part.col_offset, hint)
            else:
                self.condition(part)

    def condition(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self.condition(value)
        elif isinstance(node, ast.Compare):
            self.check(node)
            if not any(isinstance(n, ast.Name) and n.id in self.names.axes for n in ast.walk(node)):
                raise ExpressionError("a condition needs an axis", node.col_offset, nearest("", self.names.axes))
        else:
            raise ExpressionError("a variant, an experiment or a condition was expected", node.col_offset)

    def call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = node.func.id if isinstance(node.func, ast.Name) else "this"
            raise ExpressionError(f'there is no function "{name}"', node.col_offset, nearest(name, FUNCTIONS))
        function = FUNCTIONS[node.func.id]
        low, high = function.arity
        if not low <= len(node.args) <= high:
            raise ExpressionError(f"{len(node.args)} arguments; expected {function.usage}", node.col_offset)
        for argument in node.args:
            self.check(argument)
        for keyword in node.keywords:
            if function.over and keyword.arg == "over":
                if not isinstance(keyword.value, ast.Name) or (
                    keyword.value.id not in self.names.axes and keyword.value.id != "variant"
                ):
                    raise ExpressionError("over= needs an axis", keyword.value.col_offset, nearest("", self.names.axes))
            elif node.func.id == "lookup" and keyword.arg in self.names.axes:
                self.check(keyword.value)
            else:
                raise ExpressionError(f'no argument "{keyword.arg}"; expected {function.usage}', node.col_offset)


class _Evaluator:
    def __init__(self, names: Names, source: Source, measures: Mapping[str, Value], experiment: str | None) -> None:
        self.names = names
        self.source = source
        self.measures = measures
        self.experiment = experiment

    def value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, (bool, int, float, str)) else None
        if isinstance(node, ast.Name):
            return self.named(node.id)
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node)
        if isinstance(node, ast.UnaryOp):
            value = self.value(node.operand)
            if isinstance(node.op, ast.Not):
                return value.map(lambda v: not v) if isinstance(value, Series) else not value
            return combine(0.0, value, lambda a, b: number(a) - number(b))
        if isinstance(node, ast.BoolOp):
            return self.logic(node)
        if isinstance(node, ast.Compare):
            return self.compare(node)
        if isinstance(node, ast.Subscript):
            return self.selection(node)
        assert isinstance(node, ast.Call)  # noqa: S101 - the checker let nothing else through
        assert isinstance(node.func, ast.Name)  # noqa: S101 - likewise
        arguments = [self.value(a) for a in node.args]
        keywords: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg == "over" and isinstance(keyword.value, ast.Name):
                keywords["over"] = keyword.value.id
            elif keyword.arg is not None:
                keywords[keyword.arg] = self.value(keyword.value)
        return FUNCTIONS[node.func.id].call(*arguments, **keywords)

    def named(self, name: str) -> Value:
        if name in self.measures:
            return self.measures[name]
        if name in self.names.quantities:
            return self.source.quantity(name, self.experiment)
        return self.source.axis(name, self.experiment)

    def arithmetic(self, node: ast.BinOp) -> Value:
        function = _ARITHMETIC[type(node.op)]

        def apply(a: Cell, b: Cell) -> Cell:
            try:
                return float(function(number(a), number(b)))
            except (ZeroDivisionError, OverflowError):
                return None

        return combine(self.value(node.left), self.value(node.right), apply)

    def logic(self, node: ast.BoolOp) -> Value:
        values = [self.value(v) for v in node.values]
        result = values[0]
        for value in values[1:]:
            if isinstance(node.op, ast.And):
                result = combine(result, value, lambda a, b: bool(a) and bool(b))
            else:
                result = combine(result, value, lambda a, b: bool(a) or bool(b))
        return result

    def compare(self, node: ast.Compare) -> Value:
        left = _for_comparison(self.value(node.left))
        result: Value = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = _for_comparison(self.value(comparator))
            step = combine(left, right, _comparison(type(op)))
            result = combine(result, step, lambda a, b: bool(a) and bool(b))
            left = right
        return result

    def selection(self, node: ast.Subscript) -> Series:
        assert isinstance(node.value, ast.Name)  # noqa: S101 - the checker let nothing else through
        named = picks(node)
        experiment = next((p for p in named if p in self.names.experiments), self.experiment)
        series = self.source.quantity(node.value.id, experiment)
        for pick in named:
            if pick in self.names.variants and pick not in self.names.experiments:
                series = self.variant(series, pick)
        for part in _parts(node):
            if _picked(part) is None:
                series = self.filtered(series, part)
        return series

    def variant(self, series: Series, name: str) -> Series:
        if "variant" not in series.axes:
            raise NoValueError(f"the experiment has no variant {name}")
        kept = series.keep(lambda point: point["variant"] == name)
        if not kept.cells:
            raise NoValueError(f"the experiment has no variant {name}")
        return kept.drop("variant")

    def filtered(self, series: Series, condition: ast.expr) -> Series:
        for node in ast.walk(condition):
            if isinstance(node, ast.Name) and node.id in self.names.axes and node.id not in series.axes:
                raise NoValueError(f"there is no axis {node.id} here, only {', '.join(series.axes) or 'one value'}")
        kept = series.keep(lambda point: bool(self.at(condition, point)))
        if not kept.cells:
            raise NoValueError(f"no point of the grid has {ast.unparse(condition)}")
        single = _fixed_axis(condition, self.names.axes)
        return kept.drop(single) if single else kept

    def at(self, node: ast.expr, point: Mapping[str, Cell]) -> Value:
        """The value of the condition at one point, whose coordinates are the values of the axes."""
        return _Evaluator(self.names, self.source, {**self.measures, **point}, self.experiment).value(node)


def _depth(tree: ast.expr) -> int:
    deepest = 0
    todo: list[tuple[ast.AST, int]] = [(tree, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        todo.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return deepest


def picks(node: ast.Subscript) -> list[str]:
    """The variants and experiments that a selection names."""
    return [name for name in map(_picked, _parts(node)) if name is not None]


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _picked(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _fixed_axis(node: ast.expr, axes: Collection[str]) -> str | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        left, right = node.left, node.comparators[0]
        if isinstance(left, ast.Name) and left.id in axes:
            inner = [n.id for n in ast.walk(right) if isinstance(n, ast.Name)]
            return None if any(n in axes for n in inner) else left.id
    return None


def _for_comparison(value: Value) -> Value:
    """Series are compared by their means over seeds, samples run by run."""
    return value.collapsed() if isinstance(value, Series) and "time_s" not in value.axes else value


def _comparison(op: type[ast.cmpop]) -> Callable[[Cell, Cell], Cell]:
    function = _COMPARE[op]

    def apply(a: Cell, b: Cell) -> Cell:
        if isinstance(a, str) != isinstance(b, str):
            raise NoValueError(f"{a!r} {_SYMBOLS[op]} {b!r} compares text with a number")
        return function(a, b)

    return apply
