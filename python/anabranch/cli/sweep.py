"""``anabranch sweep``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from anabranch import interrupt
from anabranch.cli.blocks import write
from anabranch.cli.columns import Column, print_table
from anabranch.cli.command import Argument, Option, command, typed
from anabranch.cli.common import KERNEL, check_engine, console, load_scenario, note, one_spelling, print_json
from anabranch.cli.options import Digest, Force, Jobs, Json, Kernel, Out, Sets, SimulatedEngine, Store, Untrusted
from anabranch.keys.grid import short_names
from anabranch.result.format import MEAN_OF_COPIES, NONE, interval
from anabranch.statistics.bounds import CUT, is_cut
from anabranch.sweep.quantities import numbers_of
from anabranch.text.lines import wrapped
from anabranch.text.shown import plain

if TYPE_CHECKING:
    from anabranch.scenario import Scenario
    from anabranch.sweep.sweep import Estimate, SweepResult

    _Estimates = list[tuple[tuple[Any, ...], Estimate | None]]

_MOST_POINTS = 1000
"""Rows of the printed table; the Parquet table and --json have all points."""
_MANY_FLOWS = 4
"""Flows of the printed table; the Parquet table has all."""


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of the command."""

    files: Annotated[
        tuple[Path, ...],
        Argument("FILE|merge DIR...", "Scenario file (TOML); or merge, and the shards' directories."),
    ]
    grids: Annotated[
        tuple[str, ...], Option("--grid", "Values of one path; may be given more than once.", "PATH=A,B,C")
    ] = ()
    repeat: Annotated[
        int | None,
        Option("--repeat", "Seeds per point, from the seed on (the file's when left out, else 1).", "N"),
    ] = None
    sets: Sets = ()
    jobs: Jobs = None
    json: Json = False
    out: Out = None
    shard: Annotated[
        str | None, Option("--shard", "Run part I of N into --out; `sweep merge` puts parts together.", "I/N")
    ] = None
    report: Annotated[Path | None, Option("--report", "Write charts of every measure as one page.", "FILE.html")] = None
    store: Store = None
    ranges: Annotated[
        tuple[str, ...],
        Option(
            "--range",
            "A range of which --points are run; LOW..HIGH:log for ratios; may be given more than once.",
            "PATH=LOW..HIGH",
        ),
    ] = ()
    design: Annotated[
        str | None,
        Option("--design", "How points of the ranges are chosen (sobol when left out).", "grid|lhs|sobol"),
    ] = None
    points: Annotated[int | None, Option("--points", "Points of the ranges; of a grid, of each range.", "N")] = None
    until: Annotated[
        str | None,
        Option(
            "--until",
            "Seeds of each point until its 95 % interval is that wide (0.2, or 5%); --repeat is the most (1000).",
            "FIGURE:WIDTH",
        ),
    ] = None
    refine: Annotated[
        str | None,
        Option("--refine", "N points more where the figure's curve over the one range bends.", "FIGURE:N"),
    ] = None
    ray: Annotated[str | None, Option("--ray", "Run on a Ray cluster; local starts one here.", "ADDRESS")] = None
    engine: SimulatedEngine = "sim"
    kernel: Kernel = None
    digest: Digest = True
    untrusted: Untrusted = False
    force: Force = False


@command(
    SweepOptions,
    "anabranch sweep scenarios/reordering.toml --repeat 5 --out out/sweep \\",
    "  --grid flow.main.cc=reno,cubic,bbr",
    "anabranch sweep path.toml --range 'link.a.rate=1..90 Mbit/s:log' --points 64",
    "anabranch sweep path.toml --until goodput:5%",
    "anabranch sweep path.toml --shard 1/2 --out part-1",
    "anabranch sweep merge part-1 part-2 --out whole",
)
def run_sweep(options: SweepOptions) -> None:
    """Run a scenario over a grid, on all cores.

    With --out an interrupted sweep goes on where it stopped. A point is made again if the scenario, a file that it
    names, or this program has changed.

    Parts of a sweep can run on machines that share nothing: --shard 1/4 to --shard 4/4, each with a separate --out.
    `anabranch sweep merge DIR... --out DIR` makes the tables of the whole.
    """
    files = options.files
    if files[0] == Path("merge") and (len(files) > 1 or not files[0].is_file()):
        _merge(options)
    else:
        _sweep(options)


def _merge(options: SweepOptions) -> None:
    """Put shards together, print the table of the whole, write it.

    Raises:
        UserError: They are not the shards of one sweep, or an option is of runs.
    """
    from anabranch.errors import UserError
    from anabranch.sweep.sweep import SweepResult

    allowed = SweepOptions(
        files=options.files, json=options.json, out=options.out, report=options.report, force=options.force
    )
    if options != allowed:
        raise UserError(
            "merge takes directories, --out, --report and --json", hint="other options belong to the shards' sweeps"
        )
    if options.out is None and not options.json and options.report is None:
        raise UserError("merge writes the whole sweep into a directory", hint="--out DIR, or --json")
    _check_report(options)
    directories = options.files[1:]
    result = SweepResult.merge(directories, options.out)
    _report(result, options, typed("sweep", options, "files"))
    if options.json:
        print_json(to_json(result))
    else:
        _print(result)


def _sweep(options: SweepOptions) -> None:
    """Run the grid, or a shard of it, print its table, write it.

    Raises:
        ScenarioError: The scenario, or a point of the grid, is wrong.
        UserError: An option is.
    """
    from anabranch.errors import RunFailedError, UserError
    from anabranch.progress import Progress
    from anabranch.sweep.shards import parse_shard

    files = options.files
    if len(files) > 1:
        raise UserError(
            f"one scenario is swept, and {len(files)} files are given", hint="or: anabranch sweep merge DIR…"
        )
    shard = None if options.shard is None else parse_shard(options.shard)
    if shard is not None and options.report is not None:
        raise UserError("--report shows a whole sweep, and --shard makes a part", hint="give it to sweep merge")
    _check_report(options)
    check_engine(options.engine, options.kernel, ("sim", KERNEL))
    interrupt.watch()
    scenario = load_scenario(files[0], options.sets, untrusted=options.untrusted)
    grid: dict[str, list[Any]] = {}
    for path, values in map(parse_grid, options.grids):
        if path in grid:
            raise UserError(f"--grid gives {path} twice", hint=f"give its values together: --grid {path}=A,B,C")
        grid[path] = values
    ranges = _ranges(options.ranges)
    if options.sets:
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
                store=options.store,
                ranges=ranges,
                design=options.design,
                points=options.points,
                until=options.until,
                refine=options.refine,
                ray=options.ray,
                engine=options.engine,
                kernel=options.kernel,
                progress=report,
                remark=note,
            )
        except (KeyboardInterrupt, RunFailedError):
            if options.store is not None or options.out is not None:
                note(f"finished points are in {options.store or options.out}; the same command goes on from there")
            raise
    if shard is not None:
        note(f"shard {options.shard}: {result.plain.height} runs are in {options.out}; put all together: sweep merge")
        if options.json:
            print_json(to_json(result))
        return
    if result.plain.height == 1:
        note(
            "this was one run: there is no grid and no repeat; --grid PATH=A,B,C or --repeat N, or [sweep] in the file"
        )
    names = ("files", "sets", "grids", "repeat", "engine", "kernel", "untrusted")
    _report(result, options, typed("sweep", options, *names))
    if options.json:
        print_json(to_json(result))
    else:
        _print(result)


def _check_report(options: SweepOptions) -> None:
    if options.report is not None:
        from anabranch.report.sweep_output import report_file

        report_file(options.report, force=options.force)
    elif options.force:
        from anabranch.errors import UserError

        raise UserError("--force is for the file of --report, and none is given", hint="leave it out")


def _wrote(out: Path, has_page: bool) -> None:
    from anabranch.extras import remark_once
    from anabranch.sweep.file import table_files

    tables = [name for name in table_files() if name.endswith((".parquet", ".csv")) and name != "runs.csv"]
    names = [*(["report.html"] if has_page else []), "runs.csv", *tables]
    names[0] = str(out / names[0])
    note(f"wrote {', '.join(names[:-1])} and {names[-1]}")
    remark_once(note, "polars")


def _report(result: SweepResult, options: SweepOptions, command: str) -> None:
    """Write the pages that are asked for."""
    if options.out is not None:
        from anabranch.report.sweep_output import write_into

        _wrote(options.out, write_into(result, options.out, f"{command} --out DIR"))
    if options.report is not None:
        from anabranch.report.sweep_output import write_report

        write_report(result, options.report, f"{command} --report FILE.html", force=options.force)
        note(f"wrote {options.report}")


def _ranges(texts: tuple[str, ...]) -> dict[str, str]:
    """Each ``PATH=LOW..HIGH`` as path and range.

    Raises:
        UserError: A text is malformed, or a path is given twice.
    """
    from anabranch.errors import UserError

    found: dict[str, str] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path.strip() or not value.strip():
            raise UserError(
                f"--range {text!r}: PATH=LOW..HIGH was expected", hint="--range 'link.a.rate=1 Mbit/s..100 Mbit/s:log'"
            )
        if path.strip() in found:
            raise UserError(f"--range gives {path.strip()} twice", hint="give each path once")
        found[path.strip()] = value.strip()
    return found


def _reject_ignored(scenario: Scenario, grid: dict[str, list[Any]], options: SweepOptions) -> None:
    """Refuse a change with --set that takes effect in no run.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: There is such a change.
    """
    from anabranch.errors import UserError
    from anabranch.keys.grid import reject_ignored
    from anabranch.sweep.sweep import planned_axes

    axes, given, _ = planned_axes(scenario, grid, live=options.engine == KERNEL)
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
    from anabranch.errors import UserError
    from anabranch.text import toml_text

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
    if path.strip() == "kernel":  # 6.1 and 6.10 are different releases
        return "kernel", [v.strip().strip("\"'") for v in values.split(",")]
    return path.strip(), [toml_text.parse_value(v.strip()) for v in values.split(",")]


def to_json(result: SweepResult) -> dict[str, Any]:
    """The sweep as one JSON document: every figure at every point, with its interval."""
    points: dict[tuple[Any, ...], dict[str, Any]] = {}
    for figure in result.figures():
        for point, value in result.estimates(figure):
            row = points.setdefault(point, {"point": dict(zip(result.axes, point, strict=True)), "figures": {}})
            row["figures"][figure] = value.to_json() if value else None
    for k, axis in enumerate(result.axes):
        if numbers := numbers_of(axis, [point[k] for point in points]):
            for row, number in zip(points.values(), numbers.values, strict=True):
                row.setdefault("numbers", {})[numbers.column] = number
    return {"format": 1, "axes": result.axes, "points": list(points.values())}


_DETERMINISTIC = (
    "n = 1: nothing in the scenario is random; the repeats gave the same packets, and there is no interval."
)


def _print(result: SweepResult) -> None:
    from anabranch.result.measures import columns_of, copies_of, without_copies

    columns = columns_of(result.figures())
    goodputs = [c for c in columns if c.measure.section == "flow" and c.measure.name == "goodput_mbit_s"]
    flows = [column.element for column in without_copies(goodputs)]
    means = list(copies_of(columns))
    shown = _shown(flows, with_jain=len(flows) > 1 or bool(means))
    every = [result.estimates(figure) for _, figure in shown]
    estimates = [column[:_MOST_POINTS] for column in every]
    out = console()
    short = short_names(result.axes)
    varied = [path if name == path else f"{name} ({path})" for name, path in zip(short, result.axes, strict=True)]
    if varied:
        write(out, wrapped(f"varied: {', '.join(varied)}", "  "))
    if varied:
        out.print()
    print_table(out, _points(short, estimates), [[column] for column in _figures(shown, estimates)])
    out.print()
    if means:
        write(out, wrapped(f"{', '.join(map(plain, means))}: {MEAN_OF_COPIES}; --out and --json keep each copy", "  "))
    named = [(one, name) for (_, name), column in zip(shown, estimates, strict=True) for _, one in column if one]
    known = [estimate for estimate, _ in named]
    if any(estimate.interval.lower is not None for estimate in known):
        rule = "confidence sequence" if result.scenario.is_sequential else "interval"
        out.print(f"±: half of the 95 % {rule} of the mean over the repeats")
    if any(is_cut(estimate.interval, name) for estimate, name in named):
        write(out, wrapped(CUT, "  "))
    if any(estimate.deterministic for estimate in known):
        write(out, wrapped(_DETERMINISTIC))
    if every and len(every[0]) > _MOST_POINTS:
        out.print(f"{_MOST_POINTS:,} of {len(every[0]):,} points shown; --out keeps them all.")
    if len(flows) > _MANY_FLOWS:
        out.print(f"{_MANY_FLOWS} of {len(flows)} flows shown; --out keeps them all.")


def _shown(flows: list[str], *, with_jain: bool) -> list[tuple[str, str]]:
    """Headings and figures of the table."""
    shown: list[tuple[str, str]] = []
    for flow in flows[:_MANY_FLOWS]:
        who = f"{plain(flow)}\n" if len(flows) > 1 else ""
        shown.append((f"{who}goodput\nMbit/s", f"flow.{flow}.goodput_mbit_s"))
        shown.append((f"{who}srtt\nms", f"flow.{flow}.mean_srtt_ms"))
        shown.append((f"{who}retransmitted\npackets", f"flow.{flow}.retransmitted_packets"))
    if with_jain:
        shown.append(("Jain index", "fairness.jain_index"))
    return shown


def _points(names: list[str], estimates: list[_Estimates]) -> list[Column]:
    """The values of the axes, and the number of runs of each point."""
    from anabranch.sweep.sweep import value_text

    first = estimates[0] if estimates else []
    values = [[plain(value_text(point[i])) for point, _ in first] for i in range(len(names))]
    # A figure may not apply at a point where others do.
    known = [next((column[i][1] for column in estimates if column[i][1]), None) for i in range(len(first))]
    counts = [str(one.interval.n) if one else NONE for one in known]
    return [
        *(Column(name, cells, is_text=True) for name, cells in zip(names, values, strict=True)),
        Column("n", counts),
    ]


def _figures(shown: list[tuple[str, str]], estimates: list[_Estimates]) -> list[Column]:
    return [
        Column(heading, [interval(one, name) for _, one in column])
        for (heading, name), column in zip(shown, estimates, strict=True)
    ]
