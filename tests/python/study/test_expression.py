"""The expression language on tables small enough to check by eye."""

from __future__ import annotations

import math

import pytest

from anabranch.study.expression import ExpressionError, Names, compile_expression
from anabranch.study.functions import FUNCTIONS, Value
from anabranch.study.series import Key, NoValueError, Series

NAMES = Names(
    quantities=["t", "cwnd", "state", "normalised"],
    axes=["ri", "loss", "variant", "seed", "time_s"],
    variants=["cubic", "reno", "fec+fmax10"],
    experiments=["main", "plain"],
    measures=["lowest"],
)


class Table:
    """t is 10·ri for cubic, 20·ri for reno, at ri 1‥4, ± 1 over two seeds; 100 and 200 in `plain`."""

    def quantity(self, name: str, experiment: str | None) -> Series:
        if name == "cwnd":
            return Series(("variant", "time_s"), {("cubic", float(i)): float(10 - abs(5 - i)) for i in range(10)})
        if name == "state":
            words = ["slow-start", "open", "open", "slow-start", "slow-start", "open"]
            return Series(("variant", "time_s"), {("cubic", i / 10): w for i, w in enumerate(words)})
        if name == "normalised":
            return compile_expression("t / t[plain]", NAMES).evaluate(self, {}, experiment)  # type: ignore[return-value]
        factor = {"cubic": 10.0, "reno": 20.0}
        if experiment == "plain":
            return Series(("variant", "seed"), {(v, s): 10 * f for v, f in factor.items() for s in (1, 2)})
        cells: dict[Key, float | None] = {
            (v, ri, s): f * ri + (1 if s == 1 else -1) for v, f in factor.items() for ri in (1, 2, 3, 4) for s in (1, 2)
        }
        return Series(("variant", "ri", "seed"), cells)

    def axis(self, name: str, experiment: str | None) -> Series:
        return Series((name,), {(ri,): ri for ri in (1, 2, 3, 4)})


def value(text: str, **measures: Value) -> Value:
    return compile_expression(text, NAMES).evaluate(Table(), measures)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - -4", 11),
        ("2 ** 3 / 4", 2),
        ("min(t[cubic])", 10),
        ("max(t[cubic])", 40),
        ("mean(t[cubic, 2 <= ri <= 3])", 25),
        ("mean(t[cubic, ri == 2])", 20),
        ("t[cubic, ri == 4] / t[cubic, ri == 2] > 1.5", True),
        ("sum(t[reno, ri < 3])", 60),
        ("median(t[cubic])", 25),
        ("points(t[cubic])", 4),
        ("max(t[reno] / t[cubic]) < 2.2", True),
        ("share(t[cubic] < t[reno])", 1),
        ("share(t[cubic] >= 20)", 0.75),
        ("count(t[cubic] > 15)", 3),
        ("all(t[reno] > t[cubic])", True),
        ("any(t[cubic] > 40)", False),
        ("all(not t[cubic] > 40)", True),
        ("spearman(t[cubic], ri)", 1),
        ("spearman(-t[cubic], ri)", -1),
        ("slope(t[reno], ri)", 20),
        ("max(normalised[cubic])", 0.4),
        ("normalised[cubic, ri == 4] >= 0.4 and normalised[cubic, ri == 4] < 0.5", True),
        ("argmax(t[cubic], over=ri)", 4),
        ("max(max(t, over=variant)) == 80", True),
        ("all(lower95(t[reno] - t[cubic]) > 0)", True),
        ("any(lower95(t[reno] - 2 * t[cubic]) > 0)", False),
        ("abs(-3) + log10(100)", 5),
        ("max(larger(t[cubic], t[reno]))", 80),
        ("min(smaller(t[cubic], t[reno]))", 10),
        ("min(lookup(t[cubic], ri=4))", 40),
        ("max(lookup(t[cubic], ri=larger(ri, 2)))", 40),
        ("min(lookup(t[cubic], ri=larger(ri, 2)))", 20),
        ("runs(state[cubic] == 'slow-start')", 2),
        ("time_when(cwnd[cubic] >= 9)", 4),
        ("time_when(cwnd[cubic] >= 99) > 1e9", True),
        ("until(cwnd[cubic], cwnd[cubic] >= 8)", 8),
        ("until(cwnd[cubic], cwnd[cubic] >= 99)", 6),
        ("last(cwnd[cubic])", 6),
        ("first(cwnd[cubic])", 5),
        ("mean(cwnd[cubic, 4 <= time_s <= 6])", 28 / 3),
        ("cross_correlation(cwnd[cubic], cwnd[cubic], 1)", 1),
        ("lowest / 2", 4),
        ("0.3 <= lowest / 20 <= 0.5", True),
    ],
)
def test_value(text: str, expected: float | bool) -> None:
    result = value(text, lowest=8.0)
    if isinstance(result, Series):
        assert len(result.collapsed().cells) == 1
        result = next(iter(result.collapsed().cells.values()))
    assert isinstance(result, (int, float))
    assert math.isclose(result, expected)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("min(t[cubic]", "not an expression: '(' was never closed", 3),
        ("minimum(t)", 'there is no function "minimum"', 0),
        ("min(throughput)", '"throughput" is no quantity, axis or measure', 4),
        ("min(t[vegas])", '"vegas" is no variant and no experiment', 6),
        ("min(t[ri])", '"ri" is no variant and no experiment', 6),
        ("min(t[ri + 1])", "a variant, an experiment or a condition was expected", 6),
        ("min(t[3 < 4])", "a condition needs an axis", 6),
        ("min(t, t)", "2 arguments; expected min(x)", 0),
        ("spearman(t, over=ri)", "1 arguments; expected spearman(x, y)", 0),
        ("min(t, over=3)", "over= needs an axis", 12),
        ("abs(t, over=ri)", 'no argument "over"; expected abs(x)', 0),
        ("t.cells", "this has no meaning in a claim", 0),
        ("[x for x in t]", "this has no meaning in a claim", 0),
        ("__import__('os')", 'there is no function "__import__"', 0),
        ("(lambda: 1)()", 'there is no function "this"', 0),
        ("min", '"min" is no quantity, axis or measure', 0),
        ("t % 2", "this has no meaning in a claim", 0),
        ("1j", "1j means nothing here", 0),
    ],
)
def test_mistakes(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, NAMES)
    assert (caught.value.message, caught.value.column) == (message, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("min(t[cubic, ri > 9])", "no point of the grid has ri > 9"),
        ("min(t['fec+fmax10'])", r"has no variant fec\+fmax10"),
        ("min(t[plain, cubic, ri == 4])", "there is no axis ri here"),
        ("all(lower95(cwnd[cubic]) > 0)", "at least 2 seeds"),
        ("min(t[cubic] / 0)", "no value at ri 1"),
        ("state[cubic] > 3", "compares text with a number"),
        ("runs(t[cubic])", "needs samples over time"),
        ("until(t[cubic], t[cubic] > 1)", "needs samples over time"),
        ("min(3)", "needs a series"),
    ],
)
def test_figures_that_do_not_exist(text: str, message: str) -> None:
    with pytest.raises(NoValueError, match=message):
        value(text)


def test_a_very_long_expression_is_refused() -> None:
    with pytest.raises(ExpressionError):
        compile_expression("(" * 5000, NAMES)
    with pytest.raises(ExpressionError):
        compile_expression("-" * 1999 + "1", NAMES)


def test_every_function_is_in_the_guide() -> None:
    from pathlib import Path

    guide = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
    for function in FUNCTIONS.values():
        assert f"| `{function.usage}` | {function.help} |" in guide
