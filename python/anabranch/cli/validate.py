"""``anabranch validate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anabranch import interrupt
from anabranch.cli.common import KERNEL, LIVE, check_engine, console, load_scenario, note, print_json
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


def run_validate(
    files: list[Path],
    sets: list[str],
    seeds: int,
    *,
    out: Path | None,
    keep: Path | None,
    host_times: Path | None,
    allow_tainted: bool = False,
    engine: str = LIVE,
    kernel: str | None = None,
    as_json: bool,
    untrusted: bool = False,
) -> None:
    """Compare, print, and fail where the engines do not agree.

    Raises:
        ScenarioError: A scenario is wrong, or cannot run live.
        UserError: An option is wrong, or this machine cannot run live.
        RunFailedError: The engines are further apart than they may be, or too many live runs are tainted.
    """
    from anabranch.errors import RunFailedError, UserError
    from anabranch.files.output import check_folder, check_target
    from anabranch.live import check, prepare
    from anabranch.progress import Progress
    from anabranch.validate import compare
    from anabranch.validate.host_times import HostTimes
    from anabranch.validate.judge import document, problems

    check_engine(engine, kernel, (LIVE, KERNEL))
    for name, is_given in (("--allow-tainted", allow_tainted), ("--host-times", host_times is not None)):
        if engine == KERNEL and is_given:
            raise UserError(f"{name} is of live runs: a kernel in virtual time is never late", hint="leave it out")
    if not 1 <= seeds <= MAX_SEEDS:
        raise UserError(f"--seeds is {seeds}; expected 1 to {MAX_SEEDS}")
    if out is not None:
        check_target(out, "validate")
    if keep is not None:
        check_folder(keep, "keep")
    times = HostTimes.read(host_times) if host_times is not None else None
    scenarios = [load_scenario(file, sets, untrusted=untrusted) for file in files]
    for scenario in scenarios:
        # What is wrong with the last file is told before the first is run.
        scenario.resolve()
    if engine == KERNEL:
        interrupt.watch()
        times = _check_kernel(scenarios, kernel)
    else:
        prepare()
        for scenario in scenarios:
            check(scenario.text, scenario._file, scenario.sets, machine=True)
    if times is None:
        times = _measure()
    comparisons = []
    for file, scenario in zip(files, scenarios, strict=True):
        with Progress(file.name, 1) as progress:
            compared = compare(
                scenario,
                str(file),
                seeds=seeds,
                keep=keep,
                times=times,
                allow_tainted=allow_tainted,
                engine=engine,
                kernel=kernel,
                progress=progress.update,
            )
            comparisons.append(compared)
    if out is not None:
        from anabranch.extras import remark_once

        _write(comparisons, out)
        remark_once(note, "matplotlib")
    if as_json:
        print_json(document(comparisons))
    else:
        _print(comparisons)
    wrong = problems(comparisons)
    if wrong:
        advice = "" if allow_tainted or not any(one.tainted_runs for one in comparisons) else _TAINTED
        raise RunFailedError("; ".join(wrong) + advice)


def _check_kernel(scenarios: Sequence[Scenario], kernel: str | None) -> HostTimes:
    """Refuse scenarios that a kernel does not run; how late its hosts are."""
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
