"""``anabranch gateway plan``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from anabranch.cli.command import Argument, Group, Option, command
from anabranch.cli.common import console, exit_status, print_json
from anabranch.cli.options import Json
from anabranch.text import shown

if TYPE_CHECKING:
    from anabranch.gateway.plan import Case, Figure, Plan

_MOST_LABEL = 18
_WIDE, _NARROW = 20, 9
"""Columns of a figure with its range, and of one without."""


_PASSED = "anabranch-gateway"


class _Daemon(click.Command):
    """The hidden command that passes all its arguments to the daemon."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments."""
        ctx.args = list(args)
        return args

    def invoke(self, ctx: click.Context) -> None:
        """Hand over."""
        with exit_status():
            from anabranch.gateway.daemon import hand_over

            hand_over(ctx.args)


class _Group(Group):
    """The ``gateway`` group, which passes unknown commands to ``anabranch-gateway``."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command, or the hidden one, whose first argument is then the daemon's command."""
        if args[0] in self.commands and args[0] != _PASSED:
            return super().resolve_command(ctx, args)
        return _PASSED, self.commands[_PASSED], args


daemon = _Daemon(_PASSED, hidden=True, add_help_option=False)
gateway = _Group(
    "gateway",
    "Predict the performance of a gateway, or call anabranch-gateway.\n\nAll commands but plan are the daemon's: "
    "init, keygen, check, up, status, page, reload, down, protect, peer.",
    {
        _PASSED: ("gateway:daemon", ""),
        "plan": ("gateway:run_plan", "Predict a configuration's performance on paths of known properties."),
    },
    epilog="\b\nExample:\n  anabranch gateway status gateway.toml",
)


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of ``gateway plan``."""

    file: Annotated[Path, Argument("FILE", "The daemon's configuration, of the end that has the paths (gateway.toml).")]
    paths: Annotated[
        tuple[str, ...],
        Option(
            "--path",
            "A path's properties: rate (or DOWN/UP), one-way delay, loss and jitter in the units of netem, or a "
            "scenario, netem script, mahimahi command line or trace, whose forward direction is up. Once per path.",
            "NAME=RATE,DELAY[,LOSS[,JITTER]]|NAME=FILE",
        ),
    ] = ()
    status: Annotated[
        Path | None,
        Option("--status", "Output of `anabranch-gateway status --json`, for paths without --path.", "FILE"),
    ] = None
    flows: Annotated[int, Option("--flows", "Flows at once, beside one flow alone.", "N")] = 8
    control: Annotated[str, Option("--cc", "Congestion control of the flows.", "NAME")] = "cubic"
    seconds: Annotated[int, Option("--seconds", "How long each run measures; a path fails for a third of it.", "S")] = (
        12
    )
    seeds: Annotated[int, Option("--seeds", "Runs for each figure.", "N")] = 3
    json: Json = False


@command(
    PlanOptions,
    "anabranch gateway plan gateway.toml --path fibre=100mbit/40mbit,8ms \\",
    "  --path lte=30mbit,40ms,0.5%,8ms",
    "anabranch gateway plan gateway.toml --status status.json --path lte=lte.toml",
    name="plan",
)
def run_plan(options: PlanOptions) -> None:
    """Predict a configuration's performance on paths of known properties.

    Simulates the tunnel, and each path alone, in both directions: goodput of one flow and of several, response time
    of small requests beside one flow, and the effect of each path's failure.
    """
    from anabranch import interrupt
    from anabranch.cli.blocks import write
    from anabranch.gateway import config, lines, plan
    from anabranch.progress import Progress

    configured = config.read(options.file)
    simulated = plan.Options(options.flows, options.control, options.seconds, options.seeds)
    simulated.check()
    found = lines.gather(configured, options.paths, options.status)
    interrupt.watch()
    with Progress(options.file.name, plan.run_count(configured, simulated)) as progress:
        made = plan.make(configured, found, simulated, progress.update)
    if options.json:
        print_json(made.document())
    else:
        write(console(), _text(made))


def _text(plan: Plan) -> Iterator[str]:
    """The plan in 80 columns."""
    from anabranch.gateway.lines import DIRECTIONS
    from anabranch.text.lines import wrapped

    options = plan.options
    count = f"{options.seeds} seed" + ("s" if options.seeds > 1 else "")
    head = f"{Path(plan.config.file).name}: {options.control}, {count}, {options.seconds} s each"
    yield from wrapped(shown.plain(head), "  ")
    for name, path in plan.config.paths.items():
        up, down = (plan.lines[name].shown(direction) for direction in DIRECTIONS)
        sides = f"{up} both ways" if up == down else f"up {up}; down {down}"
        months = (_number(figures[name]) for figures in (plan.idle_mb_month, plan.absent_mb_month))
        idle = "idle {} MB a month, and {} MB while the other end is absent".format(*months)
        yield from wrapped(shown.plain(f"  {name} ({path.policy}): {sides}; {idle}"), "    ")
    for one in plan.config.classes:
        yield from wrapped(shown.plain(f"  class {one.name}: {one.shown()}"), "    ")
    for direction, title in zip(DIRECTIONS, ("Up, from this end", "Down, to this end"), strict=True):
        yield ""
        yield from _direction(plan, direction, title)
        if plan.config.classes:
            yield from _classes(plan, direction)
    if plan.remarks:
        yield ""
    for remark in plan.remarks:
        yield from wrapped(shown.plain(f"- {remark}"), "  ")


def _direction(plan: Plan, direction: str, title: str) -> Iterator[str]:
    from anabranch.gateway.plan import Case

    many = f"{plan.options.flows} flows"
    yield _row(title, [("one flow", _WIDE), (many, _WIDE), ("response", _NARROW), ("p95", _NARROW)])
    yield _row("", [("Mbit/s", _WIDE), ("Mbit/s", _WIDE), ("ms", _NARROW), ("ms", _NARROW)])
    for alone in (None, *plan.config.paths):
        one = plan.figures[Case(direction, alone=alone)]
        goodputs = (one["goodput_mbit_s"], plan.figures[Case(direction, alone=alone, many=True)]["goodput_mbit_s"])
        cells = [(_ranged(figure), _WIDE) for figure in goodputs]
        cells += [(_short(one[f"response_ms/{which}"]), _NARROW) for which in ("p50", "p95")]
        yield from _named("together" if alone is None else f"{alone} alone", cells)
    yield from _gain(plan, direction)
    yield _row("A path fails", [("longest silence, ms", 29), ("goodput, Mbit/s", 31)])
    heads = (("before", _NARROW), ("during", _WIDE), ("before", 13), ("during", _NARROW), ("after", _NARROW))
    yield _row("", list(heads))
    for name in plan.config.paths:
        failed = plan.figures[Case(direction, fails=name)]
        cells = [(_short(failed["before_silent_ms"]), _NARROW), (_ranged(failed["silent_ms"]), _WIDE)]
        cells += [(_short(failed["before_mbit_s"]), 13)]
        cells += [(_short(failed[f"{when}_mbit_s"]), _NARROW) for when in ("during", "after")]
        yield from _named(name, cells)


def _classes(plan: Plan, direction: str) -> Iterator[str]:
    """Figures for the packets of each class, and of no class."""
    from anabranch.gateway.plan import ClassCase, simulated_classes

    rows: list[tuple[str | None, str]] = [
        (None, "no class"),
        *((one.name, one.name) for one in simulated_classes(plan.config)),
    ]
    yield _row("Class", [("one flow", _WIDE), ("call: mean", 13), ("p95", _NARROW), ("lost", _NARROW)])
    yield _row("", [("Mbit/s", _WIDE), ("ms", 13), ("ms", _NARROW), ("packets", _NARROW)])
    for name, label in rows:
        goodput = plan.figures[ClassCase(direction, name)]["goodput_mbit_s"]
        call = plan.figures[ClassCase(direction, name, is_call=True)]
        cells = [(_ranged(goodput), _WIDE), (_short(call["mean_delay_ms"]), 13)]
        cells += [(_short(call[key]), _NARROW) for key in ("p95_delay_ms", "lost_packets")]
        yield from _named(label, cells)
    yield _row("A path fails", [("call alone: longest silence, ms", 38), ("lost packets", 16)])
    for path in plan.config.paths:
        for name, label in rows:
            failed = plan.figures[ClassCase(direction, name, is_call=True, fails=path)]
            cells = [(_ranged(failed["silent_ms"]), 38), (_ranged(failed["lost_packets"]), 16)]
            yield from _named(f"{path}: {label}", cells)


def _gain(plan: Plan, direction: str) -> Iterator[str]:
    """The gateway's gain over the best path alone."""
    from anabranch.gateway.plan import Case
    from anabranch.text.lines import wrapped

    told = []
    for many, label in ((False, "one flow"), (True, f"{plan.options.flows} flows")):
        alone = {name: _median(plan, Case(direction, alone=name, many=many)) for name in plan.config.paths}
        best = max(alone, key=alone.__getitem__)
        if alone[best] > 0:
            gain = _median(plan, Case(direction, many=many)) / alone[best]
            told.append(f"{gain:.2f} times {best} alone with {label}")
    if told:
        yield from wrapped(shown.plain(f"  Together is {' and '.join(told)}."), "  ")


def _median(plan: Plan, case: Case) -> float:
    figure = plan.figures[case]["goodput_mbit_s"]
    return 0.0 if figure is None else figure.median


def _named(name: str, cells: list[tuple[str, int]]) -> Iterator[str]:
    """A row; a name too long for its column has a separate line."""
    label = f"  {shown.plain(name)}"
    if len(label) > _MOST_LABEL:
        yield label
        label = ""
    yield _row(label, cells)


def _row(label: str, cells: list[tuple[str, int]]) -> str:
    return f"{label:<{_MOST_LABEL}}" + "".join(f"{text:>{width}}" for text, width in cells)


def _short(figure: Figure | None) -> str:
    from anabranch.result.format import NONE

    return NONE if figure is None else _number(figure.median)


def _ranged(figure: Figure | None) -> str:
    """The median, followed by the range if there is one."""
    if figure is None:
        return _short(figure)
    low, high = _number(figure.min), _number(figure.max)
    return _number(figure.median) if low == high else f"{_number(figure.median)} ({low}–{high})"


def _number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
