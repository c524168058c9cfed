"""A comparison as text for people: its figures, differences, and their explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.result.format import MEAN_OF_COPIES, NONE, figure, interval
from anabranch.statistics.bounds import CUT, is_cut

if TYPE_CHECKING:
    from anabranch.compare import Comparison
    from anabranch.compare.difference import Difference
    from anabranch.compare.inputs import Input
    from anabranch.result.measures import Measure
    from anabranch.sweep.sweep import Estimate

_TESTS = {
    "paired t": "paired t-test over the seeds, which are the same",
    "Welch t": "Welch's t-test, because the seeds are not the same",
}


_MANY_TESTS = 20
"""From this number of tests on, the legend warns that one in twenty has a star by chance."""


def cell(estimate: Estimate | None, measure: Measure) -> str:
    """A mean, with half of its interval if it has one, in the unit of the measure."""
    return interval(estimate, measure.name, measure.scale)


def percent(difference: Difference | None) -> str:
    """A difference with its sign; a dash if a percentage of the first mean is meaningless."""
    if difference is None or difference.percent is None:
        return NONE
    value = difference.percent
    if value == 0:
        return "0 %"
    digits = 1 if abs(value) < 100 else 0
    rounded = f"{value:+.{digits}f} %"
    return rounded if abs(value) >= 0.05 else f"{value:+.1g} %"


def heading_rows(comparison: Comparison) -> list[tuple[str, str]]:
    """The name and description of each input."""
    return [(one.name, _about(one)) for one in comparison.inputs]


def _about(one: Input) -> str:
    told = one.title or "scenario"
    seeds = f"seed {one.seeds_text}" if len(one.seeds) == 1 else f"seeds {one.seeds_text}"
    if one.kind == "sweep":
        runs = one.result.plain.height
        where = f" {_ENGINES[one.engine]}" if one.engine in _ENGINES else ""
        return f"{told}: {runs} {'run' if runs == 1 else 'runs'}{where}, {seeds}"
    return f"{told}: {seeds}, {figure(one.measured_s)} s {_ENGINES.get(one.engine, 'simulated')}"


_ENGINES = {"live": "live", "kernel": "in a Linux kernel, virtual time"}


def legend(comparison: Comparison) -> list[str]:
    """The meaning of the columns, and the significance test."""
    lines = [f"change: in per cent of {comparison.inputs[0].name}"]
    shown = {element for block in comparison.blocks for element in block.elements}
    means = [flow for flow in comparison.flows_with_copies if flow in shown]
    if means:
        lines.append(f"{', '.join(means)}: {MEAN_OF_COPIES}; the JSON document has each copy")
    named = [
        (c, block.measure.name) for block in comparison.blocks for row in block.rows for c in row.cells if c is not None
    ]
    cells = [cell for cell, _ in named]
    if any(c.interval.lower is not None for c in cells):
        lines.append("±: half of the 95 % interval over the seeds")
    if any(is_cut(cell.interval, name) for cell, name in named):
        lines.append(CUT)
    if any(c.deterministic for c in cells):
        lines.append("without ±: nothing in these runs is random, the seeds gave the same packets")
    tests = comparison.tests
    lines += [f"*: p < 0.05, {_TESTS[name]}" for name in tests]
    count = sum(d.test is not None for b in comparison.blocks for r in b.rows for d in r.differences if d)
    if count >= _MANY_TESTS:
        lines.append(f"{count} differences are tested; by chance about {round(count / 20)} of them get a *")
    return lines
