"""``anabranch stress``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.blocks import write
from anabranch.cli.command import Argument, Option, command, typed
from anabranch.cli.common import KERNEL, check_engine, console, note, print_json, styled
from anabranch.cli.options import Jobs, Json, Kernel, Out
from anabranch.text.lines import wrapped
from anabranch.text.shown import terminal

if TYPE_CHECKING:
    from anabranch.stress.campaign import Outcome, Plan
    from anabranch.stress.search import State


@dataclass(frozen=True, kw_only=True)
class StressOptions:
    """The options of the command."""

    control: Annotated[
        str,
        Argument(
            "CONTROL", "Congestion control: a name, module:Class, FILE.bpf.c, or '{ kind = \"cubic\", beta = 0.5 }'."
        ),
    ]
    goals: Annotated[
        tuple[str, ...],
        Option("--goal", "A failure to look for; may be given more than once (all when left out).", "GOAL"),
    ] = ()
    against: Annotated[
        str | None, Option("--against", "The reference control (reno when left out; cubic for reno).", "CONTROL")
    ] = None
    events: Annotated[str | None, Option("--events", "Kinds of events to use (all when left out).", "KIND,KIND")] = None
    stack: Annotated[str, Option("--stack", "The stack profile of every TCP flow.", "NAME")] = "linux"
    budget: Annotated[
        str | None, Option("--budget", "Time of this call (60s when left out, without --runs).", "30min")
    ] = None
    runs: Annotated[
        int | None,
        Option(
            "--runs",
            "Stop after N candidates, those of earlier calls included, at the end of a generation of 32; shrinking a "
            "find tries more.",
            "N",
        ),
    ] = None
    first: Annotated[bool, Option("--first", "Stop at the first find.")] = False
    seed: Annotated[int, Option("--seed", "Seed of the search.", "N")] = 1
    jobs: Jobs = None
    json: Json = False
    out: Out = None
    ray: Annotated[str | None, Option("--ray", "Run on a Ray cluster; local starts one here.", "ADDRESS")] = None
    engine: Annotated[
        str,
        Option(
            "--engine",
            "kernel: run each find in a Linux kernel in virtual time as well, and confirm or withdraw it.",
            "sim|kernel",
        ),
    ] = "sim"
    kernel: Kernel = None


@command(
    StressOptions,
    "anabranch stress vegas --goal starvation --budget 20s",
    "anabranch stress bbr --budget 30min --out bbr-finds",
    "anabranch stress cubic --goal unfair --runs 5000 --engine kernel --out finds",
)
def run_stress(options: StressOptions) -> None:
    """Search for paths on which a congestion control fails.

    Each find is shrunk, said in a sentence, and written as a scenario that `anabranch run` reproduces. The same seed
    and number of candidates (--runs) give the same finds. With --out an interrupted search goes on where it stopped.
    Goals, thresholds and bounds: docs/guides/stress.md.
    """
    from anabranch.progress import Progress
    from anabranch.stress.campaign import stress

    check_engine(options.engine, options.kernel, ("sim", KERNEL))
    interrupt.watch()
    plan = _plan(options)
    with Progress("stress", 100) as bar:

        def report(state: State, used: float) -> None:
            bar.label = f"{len(state.finds)} finds, {state.evaluations:,} candidates"
            bar.update(100 * used)

        kept = None if options.out is None else f"finds are in {options.out}; the same command goes on from there"
        with interrupt.explained(kept and terminal(kept)):
            outcome = stress(plan, report, note)
    if options.json:
        print_json(outcome.to_json())
    else:
        _print(outcome, options)


def _plan(options: StressOptions) -> Plan:
    from anabranch.stress.campaign import Plan, budget

    names = (
        "control",
        "goals",
        "against",
        "events",
        "stack",
        "budget",
        "runs",
        "first",
        "seed",
        "out",
        "engine",
        "kernel",
    )
    return Plan(
        control=options.control,
        goals=options.goals,
        against=options.against,
        events=tuple(part.strip() for part in options.events.split(",")) if options.events is not None else (),
        stack=options.stack,
        budget_s=budget(options.budget) if options.budget is not None else None,
        runs=options.runs,
        first=options.first,
        seed=options.seed,
        jobs=options.jobs,
        out=options.out,
        ray=options.ray,
        kernel=(options.kernel or "") if options.engine == KERNEL else None,
        command=typed("stress", options, *names),
    )


def _print(outcome: Outcome, options: StressOptions) -> None:
    from anabranch.stress.report import counted, run_command

    out = console()
    rate = outcome.state.evaluations / max(outcome.elapsed_s, 1e-9)
    for told in outcome.tellings:
        out.print(styled(told.name), soft_wrap=True)
        write(out, wrapped(told.sentence, "  "))
        if told.confirmation is not None:
            write(out, wrapped(told.confirmation.sentence, "  "))
        if options.out is not None:
            write(out, wrapped(run_command(f"{options.out / told.name}.toml", outcome.pair), "  "))
        out.print()
    count = len(outcome.tellings)
    out.print(f"{counted(outcome.tellings)} in {outcome.state.evaluations:,} candidates, {rate:.0f} per second")
    if options.runs is not None and outcome.state.evaluations > options.runs:
        note(f"more than --runs {options.runs}: a generation has 32 candidates, and shrinking a find tries more")
    if options.out is not None:
        note(f"wrote {options.out / 'report.html'}, finds.json and {count} scenario{'' if count == 1 else 's'}")
