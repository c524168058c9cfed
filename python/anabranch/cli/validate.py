"""``anabranch validate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import KERNEL, LIVE, check_engine, console, load_scenario, note, print_json
from anabranch.cli.options import Json, Kernel, Out, Sets, Untrusted, directory
from anabranch.extras import is_installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anabranch.scenario import Scenario
    from anabranch.validate import Comparison
    from anabranch.validate.host_times import HostTimes

MAX_SEEDS = 1000

_TAINTED = (
    "\n  of tainted runs: validate when the machine is less busy, or with lower rates; --allow-tainted shows their "
    "figures, marked"
)


@dataclass(frozen=True, kw_only=True)
class ValidateOptions:
    """The options of the command."""

    files: Annotated[tuple[Path, ...], Argument("FILE...", "Scenario files (TOML).")]
    seeds: Annotated[int, Option("--seeds", "Seeds per file, from its seed on.", "N")] = 3
    sets: Sets = ()
    json: Json = False
    out: Out = None
    keep: Annotated[
        Path | None,
        Option("--keep", "Keep live runs here, and reuse runs kept earlier.", "DIR", directory),
    ] = None
    host_times: Annotated[
        Path | None,
        Option(
            "--host-times",
            "How late this machine's hosts are, as an earlier `validate --out DIR` has measured it: "
            "DIR/host_times.json (default: they are measured first, about two minutes).",
            "FILE",
        ),
    ] = None
    allow_tainted: Annotated[
        bool, Option("--allow-tainted", "Show the figures of tainted live runs as well, marked.")
    ] = False
    engine: Annotated[
        str,
        Option(
            "--engine",
            "With which kernel's TCP: this machine's (live), or a Linux kernel's in virtual time (kernel).",
            "live|kernel",
        ),
    ] = LIVE
    kernel: Kernel = None
    untrusted: Untrusted = False


@command(
    ValidateOptions,
    "anabranch validate scenarios/live/thin.toml --seeds 2 --keep out/live",
    "anabranch validate scenarios/live/thin.toml --engine kernel",
)
def run_validate(options: ValidateOptions) -> None:
    """Run scenarios in two engines and compare the results.

    The simulator, and the TCP of a kernel: of this machine's, or of a Linux kernel in virtual time.
    """
    from anabranch.errors import RunFailedError, UserError
    from anabranch.files.output import check_folder, check_target
    from anabranch.live import check, prepare
    from anabranch.progress import Progress
    from anabranch.validate import compare
    from anabranch.validate.host_times import HostTimes
    from anabranch.validate.judge import document, problems

    check_engine(options.engine, options.kernel, (LIVE, KERNEL))
    for name, is_given in (
        ("--allow-tainted", options.allow_tainted),
        ("--host-times", options.host_times is not None),
    ):
        if options.engine == KERNEL and is_given:
            raise UserError(f"{name} is for live runs: a kernel in virtual time is never late", hint="leave it out")
    if not 1 <= options.seeds <= MAX_SEEDS:
        raise UserError(f"--seeds is {options.seeds}; expected 1 to {MAX_SEEDS}")
    if options.out is not None:
        check_target(options.out, "validate")
    if options.keep is not None:
        check_folder(options.keep, "keep")
    times = HostTimes.read(options.host_times) if options.host_times is not None else None
    scenarios = [load_scenario(file, options.sets, untrusted=options.untrusted) for file in options.files]
    for scenario in scenarios:
        # Errors of the last file are reported before the first is run.
        scenario.resolve()
    if options.engine == KERNEL:
        interrupt.watch()
        times = _check_kernel(scenarios, options.kernel)
    else:
        prepare()
        for scenario in scenarios:
            check(scenario.text, scenario._file, scenario.sets, machine=True)
    if times is None:
        times = _measure()
    comparisons = []
    for file, scenario in zip(options.files, scenarios, strict=True):
        with Progress(file.name, 1) as progress:
            compared = compare(
                scenario,
                str(file),
                seeds=options.seeds,
                keep=options.keep,
                times=times,
                allow_tainted=options.allow_tainted,
                engine=options.engine,
                kernel=options.kernel,
                progress=progress.update,
            )
            comparisons.append(compared)
    if options.out is not None:
        from anabranch.extras import remark_once

        _write(comparisons, options.out)
        remark_once(note, "matplotlib")
    if options.json:
        print_json(document(comparisons))
    else:
        _print(comparisons)
    wrong = problems(comparisons)
    if wrong:
        advice = "" if options.allow_tainted or not any(one.tainted_runs for one in comparisons) else _TAINTED
        raise RunFailedError("; ".join(wrong) + advice)


def _check_kernel(scenarios: Sequence[Scenario], kernel: str | None) -> HostTimes:
    """Refuse scenarios that a kernel does not run. Returns the lateness of its hosts."""
    from anabranch.kernel.engine import check, image_of
    from anabranch.validate.host_times import HostTimes

    for scenario in scenarios:
        check(scenario)
        image_of(scenario, kernel)
    return HostTimes.none()


def _measure() -> HostTimes:
    from anabranch.progress import Progress
    from anabranch.validate.measure_hosts import measure_hosts

    said = False
    with Progress("hosts", 1) as progress:

        def update(done: float) -> None:
            nonlocal said
            if not said:
                said = True
                console(error=True).print(
                    "measuring how late this machine's hosts are: about two minutes (--host-times FILE takes a file)"
                )
            progress.update(done)

        return measure_hosts(update)


def _write(comparisons: Sequence[Comparison], out: Path) -> None:
    from anabranch.files.output import to_json, whole_directory
    from anabranch.plot.style import house_style, save
    from anabranch.plot.validate import distances
    from anabranch.validate.judge import document
    from anabranch.validate.page import page

    with whole_directory(out, "validate") as aside:
        (aside / "validation.json").write_bytes(to_json(document(comparisons)))
        if comparisons[0].times is not None:
            (aside / "host_times.json").write_bytes(to_json(comparisons[0].times.document()))
        (aside / "validation.md").write_text(page(comparisons), encoding="utf-8")
        if is_installed("matplotlib"):
            with house_style():
                save(distances(comparisons), aside / "validation")


def _print(comparisons: Sequence[Comparison]) -> None:
    from anabranch.cli.blocks import write
    from anabranch.cli.columns import Column, print_table
    from anabranch.text.lines import wrapped
    from anabranch.validate.page import headings, rows, verdicts

    made = list(rows(comparisons))
    columns = [Column(head, [row[i] for row in made], is_text=i < 2) for i, head in enumerate(headings(comparisons))]
    out = console()
    print_table(out, columns[:2], [[column] for column in columns[2:]])
    out.print()
    for line in verdicts(comparisons):
        write(out, wrapped(line, "  "))
