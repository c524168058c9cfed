"""``anabranch compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.blocks import write
from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import KERNEL, check_engine, console, note, print_json, styled
from anabranch.cli.options import Json, Kernel, Out, SimulatedEngine, Store, Untrusted
from anabranch.extras import is_installed, remark_once
from anabranch.text.lines import wrapped
from anabranch.text.shown import plain

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.cli.columns import Column
    from anabranch.compare import Block, Comparison, ComparisonDocument, Row
    from anabranch.compare.difference import Difference

MOST_ROWS = 24
"""Rows of one table; --json has all rows."""
MOST_SETTINGS = 8
MOST_OF_A_CELL = 20


_ALL_ZERO = "all measures shown by default are 0 in every input; --measure NAME shows another measure"


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of the command."""

    inputs: Annotated[
        tuple[Path, ...],
        Argument("A B...", "Directories of run --out or sweep --out, JSON of run --json, or scenario files."),
    ]
    measures: Annotated[
        tuple[str, ...],
        Option("--measure", "goodput, link.utilization, flow.main.timeouts, …; may be given more than once.", "NAME"),
    ] = ()
    seed: Annotated[
        int | None, Option("--seed", "Of scenario files; the seed of the first input when left out.", "N")
    ] = None
    repeat: Annotated[int | None, Option("--repeat", "Run each scenario file with N seeds, from the seed on.", "N")] = (
        None
    )
    json: Json = False
    out: Out = None
    store: Store = None
    engine: SimulatedEngine = "sim"
    kernel: Kernel = None
    untrusted: Untrusted = False


@command(CompareOptions, "anabranch compare reno.toml cubic.toml", "anabranch compare out/a out/b --measure goodput")
def run_compare(options: CompareOptions) -> None:
    """Set runs, or sweeps, side by side.

    Differences are in per cent of the first. Scenario files are run first, all with the same seeds. With repeats
    it also says which differences are significant: by a paired t-test where the seeds are the same, by Welch's
    otherwise.
    """
    from anabranch.compare import compare
    from anabranch.compare.inputs import read_inputs
    from anabranch.files.output import check_target
    from anabranch.limits import SAMPLES_MS, check_seed
    from anabranch.progress import Progress

    check_engine(options.engine, options.kernel, ("sim", KERNEL))
    interrupt.watch()
    check_seed(options.seed)
    if options.out is not None:
        check_target(options.out, "compare")
    with Progress("compare", 1) as bar:
        inputs = read_inputs(
            options.inputs,
            seed=options.seed,
            repeat=options.repeat,
            samples_ms=SAMPLES_MS if options.out is not None else None,
            untrusted=options.untrusted,
            store=options.store,
            engine=options.engine,
            kernel=options.kernel,
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


def _document(comparison: Comparison, options: CompareOptions) -> ComparisonDocument:
    """All measures, unless some were selected."""
    from anabranch.compare import compare

    return compare(comparison.inputs, options.measures, everything=True).to_json()


def _print(comparison: Comparison, out: Console) -> None:
    from anabranch.cli.columns import print_table
    from anabranch.report.compare_format import heading_rows, legend

    headings = heading_rows(comparison)
    width = max(len(name) for name, _ in headings)
    for name, told in headings:
        line, *more = wrapped(plain(f"{name:<{width}}  {told}"), " " * (width + 2))
        out.print(styled(line[: len(name)]).append(line[len(name) :], style="not bold"), soft_wrap=True)
        write(out, more)
    if comparison.axes:
        write(out, wrapped(f"varied: {', '.join(comparison.axes)}", "  "))
    for path, values in comparison.settings[:MOST_SETTINGS]:
        for line in wrapped(plain(f"{path}: {' | '.join(values)}"), "  "):
            out.print(line, style="dim", soft_wrap=True)
    if len(comparison.settings) > MOST_SETTINGS:
        out.print(f"{len(comparison.settings) - MOST_SETTINGS} more keys differ; --json has them", style="dim")
    for remark in comparison.remarks:
        write(out, wrapped(plain(remark), "  "))
    cut = False
    for block in comparison.blocks:
        for title, rows in _parts(comparison, block):
            out.print()
            out.print(styled(title))
            print_table(out, *columns(comparison, block, rows[:MOST_ROWS]))
            cut |= len(rows) > MOST_ROWS
    if not comparison.blocks:
        write(out, wrapped(_ALL_ZERO, "  "))
    out.print()
    for line in legend(comparison):
        write(out, wrapped(plain(line), "  "))
    if cut:
        out.print(f"the first {MOST_ROWS} rows of a table are shown; --json has them all")


def _parts(comparison: Comparison, block: Block) -> list[tuple[str, list[Row]]]:
    """One table for the block, or one for each flow or link of sweeps over a grid."""
    if not comparison.axes:
        return [(block.measure.heading, list(block.rows))]
    return [(block.measure.of(element), block.of(element)) for element in block.elements]


def columns(comparison: Comparison, block: Block, rows: Sequence[Row]) -> tuple[list[Column], list[list[Column]]]:
    """The first columns of every table, with the first input, and each further input with its change."""
    from anabranch.cli.columns import Column
    from anabranch.keys.grid import short_names
    from anabranch.report.compare_format import cell
    from anabranch.sweep.sweep import value_text

    heads = short_names(comparison.axes) or [block.measure.section]
    labels = [[value_text(value) for value in row.point] if comparison.axes else [row.element or "all"] for row in rows]
    first = [
        Column(shorten(head), [shorten(plain(cells[i])) for cells in labels], is_text=True)
        for i, head in enumerate(heads)
    ]
    inputs = [
        Column(plain(one.name), [cell(row.cells[i], block.measure) for row in rows])
        for i, one in enumerate(comparison.inputs)
    ]
    tested = any(d is not None and d.test is not None for row in rows for d in row.differences)
    changes = [
        Column("change", [change(row.differences[i], tested=tested) for row in rows])
        for i in range(len(comparison.inputs))
    ]
    return [*first, inputs[0]], [list(pair) for pair in zip(inputs[1:], changes[1:], strict=True)]


def change(difference: Difference | None, *, tested: bool) -> str:
    """A difference in per cent, with a star if it is significant, and space for a star in a table with tests."""
    from anabranch.report.compare_format import percent

    star = " *" if difference and difference.test and difference.test.is_significant else "  "
    return percent(difference) + (star if tested else "")


def shorten(text: str) -> str:
    """A label whose middle is left out if it is too long for a table."""
    if len(text) <= MOST_OF_A_CELL:
        return text
    half = MOST_OF_A_CELL // 2
    return f"{text[: half - 1]}…{text[-half:]}"
