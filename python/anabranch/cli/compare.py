"""``anabranch compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import interrupt
from anabranch.cli.common import console, note, print_json, styled
from anabranch.extras import is_installed, remark_once

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from anabranch.compare import Block, Comparison, Row
    from anabranch.compare.difference import Difference

WIDTH = 80
"""Columns of the terminal that a table takes at most."""
MOST_ROWS = 24
"""Rows of one table; --json has them all."""
MOST_SETTINGS = 8
MOST_OF_A_CELL = 20


@dataclass(frozen=True)
class CompareOptions:
    """The options of the command."""

    measures: list[str]
    seed: int | None
    repeat: int | None
    json: bool
    out: Path | None
    untrusted: bool = False
    store: Path | None = None


def run_compare(paths: list[Path], options: CompareOptions) -> None:
    """Read or run the inputs, print the comparison, write it.

    Raises:
        ScenarioError: A scenario is wrong.
        UserError: The inputs cannot be compared, or an option is wrong.
    """
    from anabranch.compare import compare
    from anabranch.compare.inputs import read_inputs
    from anabranch.limits import SAMPLES_MS, check_seed
    from anabranch.output import check_target
    from anabranch.progress import Progress

    interrupt.watch()
    check_seed(options.seed)
    if options.out is not None:
        check_target(options.out, "compare")
    with Progress("compare", 1) as bar:
        inputs = read_inputs(
            paths,
            seed=options.seed,
            repeat=options.repeat,
            samples_ms=SAMPLES_MS if options.out is not None else None,
            untrusted=options.untrusted,
            store=options.store,
            progress=bar.update,
        )
    comparison = compare(inputs, options.measures)
    if options.out is not None:
        from anabranch.report.compare_output import write_comparison

        write_comparison(comparison, options.out, _document(comparison, options))
        figures = ", figures" if is_installed("matplotlib") else ""
        note(f"wrote {options.out / 'report.html'}{figures} and comparison.json")
        remark_once(note, "matplotlib")
    if options.json:
        print_json(_document(comparison, options))
    else:
        _print(comparison, console())


def _document(comparison: Comparison, options: CompareOptions) -> dict[str, Any]:
    """All measures, unless some were asked for."""
    from anabranch.compare import compare

    return compare(comparison.inputs, options.measures, everything=True).to_json()


def _print(comparison: Comparison, out: Console) -> None:
    from anabranch.report.compare_format import heading_rows, legend

    headings = heading_rows(comparison)
    width = max(len(name) for name, _ in headings)
    for name, told in headings:
        out.print(styled(name), " " * (width - len(name)), told, soft_wrap=True)
    if comparison.axes:
        out.print(f"varied: {', '.join(comparison.axes)}", soft_wrap=True)
    for path, values in comparison.settings[:MOST_SETTINGS]:
        out.print(f"{path}: {' | '.join(values)}", style="dim", soft_wrap=True)
    if len(comparison.settings) > MOST_SETTINGS:
        out.print(f"{len(comparison.settings) - MOST_SETTINGS} more keys differ; --json has them", style="dim")
    for remark in comparison.remarks:
        out.print(remark, soft_wrap=True)
    cut = False
    for block in comparison.blocks:
        for title, rows in _parts(comparison, block):
            out.print()
            out.print(styled(title))
            for i, table in enumerate(tables(comparison, block, rows[:MOST_ROWS], out)):
                if i:
                    out.print()
                out.print(table)
            cut |= len(rows) > MOST_ROWS
    if not comparison.blocks:
        out.print("no input has anything but 0 of what is shown by default; --measure NAME shows another measure")
    out.print()
    for line in legend(comparison):
        out.print(line, soft_wrap=True)
    if cut:
        out.print(f"the first {MOST_ROWS} rows of a table are shown; --json has them all")


def _parts(comparison: Comparison, block: Block) -> list[tuple[str, list[Row]]]:
    """A table for the block, or of sweeps over a grid one for each flow or link."""
    if not comparison.axes:
        return [(block.measure.heading, list(block.rows))]
    return [(block.measure.of(element), block.of(element)) for element in block.elements]


def tables(comparison: Comparison, block: Block, rows: Sequence[Row], out: Console) -> list[Table]:
    """The rows as tables no wider than :data:`WIDTH`: the first input in each, and as many others as there is room."""
    others = list(range(1, len(comparison.inputs)))
    made = []
    while others:
        count = len(others)
        while count > 1 and out.measure(_table(comparison, block, rows, others[:count])).maximum > WIDTH:
            count -= 1
        made.append(_table(comparison, block, rows, others[:count]))
        others = others[count:]
    return made


def _table(comparison: Comparison, block: Block, rows: Sequence[Row], others: Sequence[int]) -> Table:
    from rich import box
    from rich.table import Table

    from anabranch.grid import short_names
    from anabranch.report.compare_format import cell
    from anabranch.shown import plain
    from anabranch.sweep import value_text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in short_names(comparison.axes) or [block.measure.section]:
        table.add_column(shorten(name), overflow="ellipsis")
    names = [plain(one.name) for one in comparison.inputs]
    table.add_column(names[0], justify="right")
    for i in others:
        table.add_column(names[i], justify="right")
        table.add_column("change", justify="right")
    tested = any(d is not None and d.test is not None for row in rows for d in row.differences)
    for row in rows:
        labels = [value_text(value) for value in row.point] if comparison.axes else [row.element or "all"]
        cells = [shorten(plain(label)) for label in labels]
        cells.append(cell(row.cells[0], block.measure))
        for i in others:
            cells += [cell(row.cells[i], block.measure), change(row.differences[i], tested=tested)]
        table.add_row(*cells)
    return table


def change(difference: Difference | None, *, tested: bool) -> str:
    """A difference in per cent, with a star where it is significant, and room for one in a table with tests."""
    from anabranch.report.compare_format import percent

    star = " *" if difference and difference.test and difference.test.is_significant else "  "
    return percent(difference) + (star if tested else "")


def shorten(text: str) -> str:
    """A label with its middle left out where it is too long for a table."""
    if len(text) <= MOST_OF_A_CELL:
        return text
    half = MOST_OF_A_CELL // 2
    return f"{text[: half - 1]}…{text[-half:]}"
