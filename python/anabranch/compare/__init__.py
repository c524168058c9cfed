"""Comparison of runs or of sweeps, as ``anabranch compare`` shows it.

from anabranch.compare import compare
from anabranch.compare.inputs import read_inputs

comparison = compare(read_inputs(["reno", "cubic"]))
for block in comparison.blocks:
    print(block.measure.heading, [row.differences for row in block.rows])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, overload

from anabranch.compare.difference import Difference, Sample, difference
from anabranch.compare.inputs import Input, InputRun
from anabranch.compare.settings import differing
from anabranch.errors import UserError
from anabranch.result.flat import flow_of_copy
from anabranch.result.measures import (
    MOST_COPIES,
    Column,
    Measure,
    chosen,
    columns_of,
    copies_of,
    shown_by_default,
    without_copies,
)
from anabranch.sweep.sweep import Estimate, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Block", "Comparison", "Input", "InputRun", "Row", "compare"]


@dataclass(frozen=True)
class Row:
    """One measure of one flow, link, group or gateway, at one point of the grid.

    Attributes:
        element: The flow or link; empty if a measure is of the whole run.
        point: The values of the axes; empty for runs.
        cells: Mean and interval, one for each input; ``None`` if an input has no such figure.
        differences: From the first input, which has none itself.
    """

    element: str
    point: tuple[Any, ...]
    cells: tuple[Estimate | None, ...]
    differences: tuple[Difference | None, ...]

    @property
    def is_empty(self) -> bool:
        """Every value of the row is 0."""
        return all(cell is None or cell.interval.mean == 0 for cell in self.cells)


@dataclass(frozen=True)
class Block:
    """One measure with all its rows."""

    measure: Measure
    rows: tuple[Row, ...]

    @property
    def elements(self) -> list[str]:
        """The flows or links, in order."""
        return list(dict.fromkeys(row.element for row in self.rows))

    def of(self, element: str) -> list[Row]:
        """The rows of one flow or link."""
        return [row for row in self.rows if row.element == element]


class ComparisonDocument(TypedDict):
    """The document of ``anabranch compare --json``."""

    format: int
    kind: str
    of: str
    inputs: list[dict[str, object]]
    axes: list[str]
    settings: list[dict[str, object]]
    measures: list[dict[str, object]]
    remarks: list[str]
    anabranch_version: str


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        inputs: The compared inputs; the others are compared with the first.
        axes: The dotted paths that sweeps vary; none of runs.
        blocks: The measures.
        settings: The keys in which the scenarios differ, and each input's value.
        remarks: Remarks that a reader should see before the figures.
    """

    inputs: tuple[Input, ...]
    axes: tuple[str, ...]
    blocks: tuple[Block, ...]
    settings: tuple[tuple[str, tuple[str, ...]], ...]
    remarks: tuple[str, ...]

    @property
    def kind(self) -> str:
        """``"run"`` or ``"sweep"``."""
        return self.inputs[0].kind

    @property
    def flows_with_copies(self) -> list[str]:
        """The flows with several copies in any input; their figures are means over the copies."""
        return list(dict.fromkeys(flow for one in self.inputs for flow in copies_of(columns_of(one.result.figures()))))

    @property
    def tests(self) -> list[str]:
        """The names of the tests that were made."""
        made = (d.test.name for b in self.blocks for r in b.rows for d in r.differences if d and d.test)
        return list(dict.fromkeys(made))

    @overload
    def plot(
        self, y: str, *, x: str | None = None, color: str | None = None, col: None = None, ax: Axes | None = None
    ) -> Axes: ...

    @overload
    def plot(self, y: str, *, x: str | None = None, color: str | None = None, col: str) -> Figure: ...

    def plot(
        self,
        y: str,
        *,
        x: str | None = None,
        color: str | None = None,
        col: str | None = None,
        ax: Axes | None = None,
    ) -> Axes | Figure:
        """Draw a measure of every input, with 95 % intervals over seeds, as :meth:`SweepResult.plot` does of a sweep.

        Args:
            y: The measure, whether it is among ``blocks`` or not: ``"goodput"``, ``"bottleneck.forward.queue_delay"``.
            x: The horizontal axis; by default the first axis of sweeps, and ``"input"`` of runs.
            color: The axis shown by colour; by default the inputs.
            col: The axis with a panel for each value. All three take an axis, ``"input"``, and ``"flow"``, ``"link"``,
                ``"group"`` or ``"gateway"``, which draws the measure of each of them.
            ax: The axes to draw into; by default axes of a new figure.

        Returns:
            The axes that were drawn into; with ``col`` the figure.

        Raises:
            UserError: There is no such measure or axis, or a short name is ambiguous.
        """
        from anabranch.plot.comparison import plot_comparison

        return plot_comparison(self, y, x=x, color=color, col=col, ax=ax)

    def to_json(self) -> ComparisonDocument:
        """The document of ``anabranch compare --json``."""
        from anabranch import _engine

        return {
            "format": 1,
            "kind": "comparison",
            "of": self.kind,
            "inputs": [one.to_json() for one in self.inputs],
            "axes": list(self.axes),
            "settings": [{"path": path, "values": list(values)} for path, values in self.settings],
            "measures": [
                {
                    "name": block.measure.name,
                    "section": block.measure.section,
                    "unit": block.measure.unit or None,
                    "rows": [_row_json(row, self.axes) for row in block.rows],
                }
                for block in self.blocks
            ],
            "remarks": list(self.remarks),
            "anabranch_version": _engine.version(),
        }


def compare(inputs: Sequence[Input], measures: Sequence[str] = (), *, everything: bool = False) -> Comparison:
    """Compare inputs.

    Args:
        inputs: At least two, all of them runs or all of them sweeps.
        measures: Names of measures; by default the usual ones.
        everything: All measures if none is named, and every copy of a flow, instead of a selection.

    Raises:
        UserError: The inputs do not match, or no input has such a measure.
    """
    inputs = tuple(inputs)
    axes = _common_axes(inputs)
    points, remarks = _common_points(inputs, axes)
    columns = columns_of([name for one in inputs for name in one.result.figures()])
    wanted = chosen(columns, measures) if measures else columns
    if not everything:
        # The points of a sweep may differ in the number of copies.
        wanted = without_copies(wanted, measures, MOST_COPIES if inputs[0].kind == "run" else 0)
    blocks = []
    for measure, own in _by_measure(wanted).items():
        if not measures and not everything and not shown_by_default(measure, columns):
            continue
        rows = [row for column in own for row in _rows(inputs, axes, points, column)]
        if not measures and not everything:
            rows = _without_empty(rows)
        if rows:
            blocks.append(Block(measure, tuple(rows)))
    blocks.sort(key=lambda block: block.measure.rank)
    settings = tuple(differing([one.result.scenario.resolved for one in inputs], without=axes))
    return Comparison(inputs, axes, tuple(blocks), settings, (*_remarks(inputs), *remarks))


def _common_axes(inputs: tuple[Input, ...]) -> tuple[str, ...]:
    """The axes of all inputs.

    Raises:
        UserError: They vary different things.
    """
    first = inputs[0]
    for other in inputs[1:]:
        if set(other.result.axes) != set(first.result.axes):
            raise UserError(
                f"the sweeps vary different things: {first.path} {_told(first)}, {other.path} {_told(other)}",
                hint="sweeps over the same paths can be compared",
            )
    return tuple(first.result.axes)


def _told(one: Input) -> str:
    return ", ".join(one.result.axes) or "only the seed"


def _common_points(
    inputs: tuple[Input, ...], axes: tuple[str, ...]
) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
    """The points that all inputs have, by name, and a remark if some have more.

    Raises:
        UserError: They have none in common.
    """
    each = [{_point_name(point): point for point in one.points(axes)} for one in inputs]
    common = {name: point for name, point in each[0].items() if all(name in points for points in each[1:])}
    if not common:
        raise UserError(
            f"{inputs[0].path} and the others have no point of the grid in common",
            hint="sweeps over the same values can be compared",
        )
    left = len({name for points in each for name in points}) - len(common)
    remark = f"{left} points of the grid are not in all inputs and are left out"
    return common, (remark,) if left else ()


def _point_name(point: tuple[Any, ...]) -> str:
    """A point's name, which is the same for 5 and 5.0."""
    return ", ".join(f"{v:g}" if isinstance(v, float) else value_text(v) for v in point)


def _by_measure(columns: Sequence[Column]) -> Mapping[Measure, list[Column]]:
    found: dict[Measure, list[Column]] = {}
    for column in columns:
        found.setdefault(column.measure, []).append(column)
    return found


def _rows(
    inputs: tuple[Input, ...], axes: tuple[str, ...], points: Mapping[str, tuple[Any, ...]], column: Column
) -> list[Row]:
    samples = []
    for one in inputs:
        by_point = one.samples_of(column.figure, axes)
        samples.append({_point_name(point): sample for point, sample in by_point.items()})
    rows = []
    for name, point in points.items():
        own = [by_name.get(name, Sample()) for by_name in samples]
        differences = [None, *(difference(own[0], other) for other in own[1:])]
        rows.append(Row(column.element, point, tuple(s.estimate for s in own), tuple(differences)))
    return rows


def _without_empty(rows: Sequence[Row]) -> list[Row]:
    """The rows without flows and links whose values are all 0."""
    full = {row.element for row in rows if not row.is_empty}
    return [row for row in rows if row.element in full]


def _remarks(inputs: tuple[Input, ...]) -> list[str]:
    remarks = [f"{one.name} is a tainted live run: its figures are no result" for one in inputs if one.is_tainted]
    for what, values in (
        ("engines", [one.engine for one in inputs]),
        ("measured times", [f"{one.measured_s:g} s" if one.measured_s is not None else "" for one in inputs]),
        ("seeds", [one.seeds_text for one in inputs]),
    ):
        if len(set(values)) > 1:
            told = ", ".join(f"{one.name} {value or '–'}" for one, value in zip(inputs, values, strict=True))
            remarks.append(f"the {what} differ: {told}")
    names = [{flow_of_copy(flow) or flow for flow in one.flows} for one in inputs]
    if not set.intersection(*names):
        remarks.append("no flow has the same name in all inputs; flows are compared by name")
    return remarks


def _row_json(row: Row, axes: tuple[str, ...]) -> dict[str, object]:
    return {
        "of": row.element or None,
        **({"point": dict(zip(axes, row.point, strict=True))} if axes else {}),
        "values": [cell.to_json() if cell else None for cell in row.cells],
        "differences": [one.to_json() if one else None for one in row.differences],
    }
