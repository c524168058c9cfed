"""Write expressions of claims with the command's values, for comparison with the studio's evaluation.

python studio/studies/expressions.py FILE

The results are random, with missing values, several seeds and samples over time. FILE has the values of the quantities
by experiment, and for each expression its tree and its value, or the message if it has none.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prepare import STUDIES, Writer

from anabranch import Study
from anabranch.study.expression import Names, compile_expression
from anabranch.study.functions import Value
from anabranch.study.series import Cell, NoValueError, Series, number

AXES = {"grid": ("variant", "a", "b", "seed"), "line": ("variant", "a", "seed"), "time": ("variant", "seed", "time_s")}
VALUES: dict[str, list[Any]] = {
    "variant": ["one", "two", "three"], "a": [1, 2.5, 4, 8], "b": [0, 0.001, 0.1], "seed": [1, 2, 3],
    "time_s": [i / 8 for i in range(24)],
}  # fmt: skip
EXPRESSIONS = """
x + y * 2 - x / y
x[one] ** 2 - y[one] ** 0.5
x / 0
0 ** (0 - x[one])
-x
not (x > y)
x > y and y > 0.5 or x < 0.1
min(x)
max(x, over=a)
mean(x[one])
mean(x, over=variant)
sum(x[two], over=b)
median(x)
median(x[one], over=a)
points(x)
count(x > 0.5)
share(x[one] > y[two])
all(x > 0)
any(x > 0.9, over=a)
argmin(x[one], over=a)
argmax(x[one, b == 0], over=a)
argmax(x[one], over=b)
seed_mean(x[one])
spearman(x[one], a)
spearman(x[one, b == 0.1], y[one, b == 0.1])
correlation(x[one], y[two])
slope(x[one], a)
lower95(x[one] - x[two])
upper95(x[one])
lower95_at_once(x[one] - y[one])
min(lower95(x[one] - x[two]))
abs(x - y)
log10(x)
larger(x[one], x[two], y[three])
smaller(x[one], 0.5)
lookup(x, b=0)
lookup(x[one], a=a)
lookup(x, a=seed_mean(k[one]))
x[one, 2 <= a <= 4]
x[one, a >= 2.5 and b > 0]
x[one, a == 4]
x[line, one]
x[line, two, a == 2.5] / x[line, one]
x[one, a == 3]
x[one, b == 0] > x[line, one]
gap
mean(gap)
count(gap > 0)
gap + x
x[one, a == 1, b == 0]
state == 'open'
runs(state[one] == 'open')
runs(t > 0.5)
time_when(t[one] > 0.99)
time_when(t > 5)
first(t)
last(t[two])
until(t, state == 'loss')
until(t[one], t[one] > 9)
mean(t[one, 1 <= time_s <= 2])
mean(t[one, 1 <= time_s <= 2]) / mean(t[two])
cross_correlation(t, u, 0.5)
cross_correlation(t[one], t[one], 1)
t[one, seed == 2]
max(x) > 0.5
x > 'text'
state > 1
mean(state)
min(t, over=time_s)
x[one] == y[one]
x[one] != 0.5
1 < 2 < 3
True
points(x[one]) == 36
a * 2
max(argmax(x[one], over=a)) / min(argmax(x[one], over=a))
share(x[one, a >= 2] >= max(x[a >= 2], over=variant))
mean(x[one])  +  mean(x[line, two])
twice[one]
min(x, over=c)
spearman(1, x)
runs(x)
lookup(x, b=t)
"""


class Random:
    """Random results."""

    def __init__(self) -> None:
        draw = random.Random(7)  # noqa: S311 - no secret
        self.series: dict[str, dict[str, Series]] = {}
        for experiment, axes in AXES.items():
            quantities = {"t": 1.0, "u": 1.0, "state": 1.0} if experiment == "time" else {"x": 1.0, "y": 2.0, "k": 0.0}
            if experiment == "grid":
                quantities["gap"] = 1.0
            self.series[experiment] = {name: self.made(draw, name, axes, most) for name, most in quantities.items()}

    @staticmethod
    def made(draw: random.Random, name: str, axes: tuple[str, ...], most: float) -> Series:
        """A series over all points."""
        cells: dict[tuple[Cell, ...], Cell] = {}
        for key in itertools.product(*(VALUES[axis] for axis in axes)):
            value: Cell = draw.random() * most
            if name == "state":
                value = draw.choice(("open", "open", "loss", "recovery"))
            elif name == "k":
                value = key[axes.index("a")]
            elif name == "gap" and draw.random() < 0.1:
                value = None
            cells[key] = value
        return Series(axes, cells)

    def quantity(self, name: str, experiment: str | None) -> Series:
        """A quantity; ``twice`` is an expression."""
        chosen = experiment or "grid"
        if name == "twice":
            return self.series["grid"]["x"].map(lambda value: 2 * number(value))
        if name not in self.series[chosen]:
            chosen = "time" if name in self.series["time"] else "grid"
        return self.series[chosen][name]

    def axis(self, name: str, experiment: str | None) -> Series:
        """An axis."""
        if name not in AXES[experiment or "grid"] or name == "time_s":
            raise NoValueError(f"the experiment has no axis {name}")
        return Series((name,), {(value,): value for value in VALUES[name]})


class _Definition:
    """The names that a :class:`Writer` reads."""

    axes = dict.fromkeys(("a", "b", "c"))
    variants = dict.fromkeys(VALUES["variant"])
    experiments = dict.fromkeys(AXES)


def plain(value: Value) -> Any:
    """A value as JSON; numbers that JSON lacks are texts."""
    if isinstance(value, Series):
        return {"axes": value.axes, "rows": [[list(key), plain(cell)] for key, cell in value.cells.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def evaluated(text: str, source: Random) -> dict[str, Any]:
    """An expression with its value."""
    names = Names(
        quantities=("x", "y", "k", "gap", "t", "u", "state", "twice"),
        axes=("a", "b", "c", "seed", "time_s"),
        variants=tuple(VALUES["variant"]),
        experiments=tuple(AXES),
    )
    expression = compile_expression(text, names)
    found: dict[str, Any] = Writer(_Definition()).expression(expression)  # type: ignore[arg-type]
    try:
        found["value"] = plain(expression.evaluate(source, {}))
    except NoValueError as error:
        found["none"] = str(error)
    return found


def functions() -> set[str]:
    """The functions in the expressions of the published studies."""
    found: set[str] = set()
    for name in STUDIES:
        definition = Study.load(name).definition
        trees = [one.tree for check in definition.checks for one in (*check.measures.values(), *check.accept)]
        trees += [one.expression.tree for one in definition.quantities.values() if one.expression]
        found |= {
            node.func.id
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
    return found


def main() -> None:
    """Write the file."""
    source = Random()
    texts = [line for line in EXPRESSIONS.splitlines() if line]
    missing = {name for name in functions() if not any(f"{name}(" in text for text in texts)}
    if missing:
        raise SystemExit(f"no expression has {', '.join(sorted(missing))}")
    series: Mapping[str, Any] = {
        experiment: {name: plain(one) for name, one in own.items()} for experiment, own in source.series.items()
    }
    content = {"series": series, "expressions": [evaluated(text, source) for text in texts]}
    Path(sys.argv[1]).write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main()
