"""``anabranch sweep``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import interrupt
from anabranch.cli.common import console, load_scenario, note, one_spelling, print_json

if TYPE_CHECKING:
    from anabranch.scenario import Scenario
    from anabranch.sweep import SweepResult

_MANY_FLOWS = 4
"""From so many flows on, the printed table shows the first ones only; the Parquet table has them all."""


@dataclass(frozen=True)
class SweepOptions:
    """The options of the command."""

    repeat: int | None
    jobs: int | None
    json: bool
    out: Path | None
    digest: bool
    untrusted: bool = False
    shard: str | None = None


def run_merge(directories: list[Path], sets: list[str], grids: list[str], options: SweepOptions) -> None:
    """Put shards together, print the table of the whole, write it.

    Raises:
        UserError: They are not the shards of one sweep, or an option is of runs.
    """
    from anabranch.errors import UserError
    from anabranch.sweep import SweepResult

    if sets or grids or options != SweepOptions(None, None, options.json, options.out, True):
        raise UserError("merge takes directories, --out and --json", hint="other options belong to the shards' sweeps")
    if options.out is None and not options.json:
        raise UserError("merge writes the whole sweep into a directory", hint="--out DIR, or --json")
    result = SweepResult.merge(directories, options.out)
    if options.out is not None:
        note(f"wrote {options.out / 'runs.csv'}, runs.parquet and table.parquet")
    if options.json:
        print_json(to_json(result))
    else:
        _print(result)


def run_sweep(files: list[Path], sets: list[str], grids: list[str], options: SweepOptions) -> None:
    """Run the grid, or a shard of it, print its table, write it.

    Raises:
        ScenarioError: The scenario, or a point of the grid, is wrong.
        UserError: An option is.
    """
    from anabranch.errors import UserError
    from anabranch.progress import Progress
    from anabranch.shards import parse_shard

    if len(files) > 1:
        raise UserError(
            f"one scenario is swept, and {len(files)} files are given", hint="or: anabranch sweep merge DIR…"
        )
    shard = None if options.shard is None else parse_shard(options.shard)
    interrupt.watch()
    scenario = load_scenario(files[0], sets, untrusted=options.untrusted)
    grid: dict[str, list[Any]] = {}
    for path, values in map(parse_grid, grids):
        if path in grid:
            raise UserError(f"--grid gives {path} twice", hint=f"give its values together: --grid {path}=A,B,C")
        grid[path] = values
    if sets:
        _reject_ignored(scenario, grid, options)
    with Progress("sweep", 1) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done)

        try:
            result = scenario.sweep(
                grid,
                repeat=options.repeat,
                jobs=options.jobs,
                digest=options.digest,
                out=options.out,
                shard=shard,
                progress=report,
                remark=note,
            )
        except KeyboardInterrupt:
            if options.out is not None:
                note(f"finished points are in {options.out}; the same command goes on from there")
            raise
    if shard is not None:
        note(f"shard {options.shard}: {result.frame.height} runs are in {options.out}; put all together: sweep merge")
        if options.json:
            print_json(to_json(result))
        return
    if result.frame.height == 1:
        note(
            "this was one run: there is no grid and no repeat; --grid PATH=A,B,C or --repeat N, or [sweep] in the file"
        )
    if options.out is not None:
        note(f"wrote {options.out / 'runs.csv'}, runs.parquet and table.parquet")
    if options.json:
        print_json(to_json(result))
    else:
        _print(result)


def _reject_ignored(scenario: Scenario, grid: dict[str, list[Any]], options: SweepOptions) -> None:
    """Refuse a change with --set that no run would have.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: There is such a change.
    """
    from anabranch.errors import UserError
    from anabranch.grid import reject_ignored
    from anabranch.sweep import planned_axes

    axes, given, _ = planned_axes(scenario, grid)
    reject_ignored(scenario.sets, axes, given)
    if options.repeat is not None:
        for change in scenario.sets:
            if one_spelling(change.partition("=")[0]) == "sweep.repeat":
                raise UserError(
                    f"--set {change!r} beside --repeat {options.repeat}: it would be ignored", hint="give one of them"
                )


def parse_grid(text: str) -> tuple[str, list[Any]]:
    """``PATH=A,B,C`` or ``PATH=[…]`` (TOML) as path and values.

    Raises:
        UserError: It is neither.
    """
    from anabranch import toml_text
    from anabranch.errors import UserError

    path, equals, values = text.partition("=")
    if not equals or not path.strip() or not values.strip():
        raise UserError(
            f"--grid {text!r}: PATH=A,B,C or PATH=[ … ] was expected", hint="--grid flow.main.cc=reno,cubic"
        )
    if values.strip().startswith("["):
        parsed = toml_text.parse_value(values)
        if not isinstance(parsed, list):
            raise UserError(f"--grid {text!r}: not a TOML array", hint='--grid \'flow.main.cc=["reno", "cubic"]\'')
        return path.strip(), parsed
    return path.strip(), [toml_text.parse_value(v.strip()) for v in values.split(",")]


def to_json(result: SweepResult) -> dict[str, Any]:
    """The sweep as one JSON document: every figure at every point, with its interval."""
    points: dict[tuple[Any, ...], dict[str, Any]] = {}
    for figure in result.figures():
        for point, value in result.estimates(figure):
            row = points.setdefault(point, {"point": dict(zip(result.axes, point, strict=True)), "figures": {}})
            row["figures"][figure] = value.to_json() if value else None
    return {"format": 1, "axes": result.axes, "points": list(points.values())}


def _print(result: SweepResult) -> None:
    from rich import box
    from rich.table import Table

    from anabranch.grid import short_names
    from anabranch.report.format import interval
    from anabranch.shown import plain
    from anabranch.sweep import value_text

    flows = [f.removeprefix("flow.").removesuffix(".goodput_mbit_s") for f in result.figures()
             if f.startswith("flow.") and f.endswith(".goodput_mbit_s")]  # fmt: skip
    shown: list[tuple[str, str]] = []
    for flow in flows[:_MANY_FLOWS]:
        who = f"{flow} " if len(flows) > 1 else ""
        shown.append((f"{who}goodput\nMbit/s", f"flow.{flow}.goodput_mbit_s"))
        shown.append((f"{who}srtt\nms", f"flow.{flow}.mean_srtt_ms"))
        shown.append((f"{who}retransmitted\npackets", f"flow.{flow}.retransmitted_packets"))
    if len(flows) > 1:
        shown.append(("Jain index", "fairness.jain_index"))
    columns = [result.estimates(figure) for _, figure in shown]
    spread = any(e is not None and e.interval.lower is not None for column in columns for _, e in column)
    caption = "mean ± half of the 95 % interval over the repeats" if spread else None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption)
    for name in short_names(result.axes):
        table.add_column(name)
    table.add_column("n", justify="right")
    for heading, _ in shown:
        table.add_column(heading, justify="right")
    deterministic = False
    for i, (point, first) in enumerate(columns[0] if columns else []):
        deterministic |= bool(first and first.deterministic)
        n = str(first.interval.n) if first else "–"
        table.add_row(*[plain(value_text(v)) for v in point], n, *[interval(column[i][1]) for column in columns])
    out = console()
    out.print(table)
    if deterministic:
        out.print(
            "n = 1: nothing in the scenario is random; the repeats gave the same packets, and there is no interval."
        )
    if len(flows) > _MANY_FLOWS:
        out.print(f"{_MANY_FLOWS} of {len(flows)} flows shown; --out keeps them all.")
