"""``anabranch plan``: what a component of the studies would bring on a link, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.command import Argument, Group, Option, command
from anabranch.cli.common import console, note, print_json
from anabranch.cli.options import Json, Out

if TYPE_CHECKING:
    from anabranch.plans.answer import Answer

plan = Group(
    "plan",
    "Predict what a component would bring on a link.",
    {
        "cc": ("plan:plan_cc", "Predict another congestion control for a captured connection."),
        "aqm": ("plan:plan_aqm", "Predict preferential dropping (share-red) at a router's egress."),
        "group": ("plan:plan_group", "Predict a controller that sleeps links of a group."),
    },
)

Seeds = Annotated[int, Option("--seeds", "Pairs of runs for each interval.", "N")]


@dataclass(frozen=True, kw_only=True)
class CcOptions:
    """The options of ``plan cc``."""

    file: Annotated[Path, Argument("CAPTURE", "A pcap or pcapng file with the connection.")]
    control: Annotated[str, Option("--control", "The control to install.", "NAME")] = "cubic-plus"
    now: Annotated[
        str | None, Option("--now", "The connection's present control, if the diagnosis does not name it.", "NAME")
    ] = None
    connection: Annotated[
        int | None, Option("--connection", "This connection, and not the one with the most data.", "N")
    ] = None
    seeds: Seeds = 5
    json: Json = False
    out: Out = None


@command(
    CcOptions,
    "anabranch plan cc slow.pcapng",
    "anabranch plan cc slow.pcapng --control bbr --connection 3 --out plan",
    name="cc",
)
def plan_cc(options: CcOptions) -> None:
    """Predict another congestion control for a captured connection.

    Fits a scenario to the connection, and simulates it with its present control and with the other, alone and beside
    a CUBIC flow. The first sentence is the answer.
    """
    from anabranch.plans import cc
    from anabranch.progress import Progress

    _check(options.out)
    simulated = cc.Options(options.control, options.now, options.connection, options.seeds)
    with Progress(options.file.name, cc.run_count(simulated)) as progress:
        _show(cc.make(options.file, simulated, progress.update), options.out, is_json=options.json)


@dataclass(frozen=True, kw_only=True)
class AqmOptions:
    """The options of ``plan aqm``."""

    file: Annotated[Path | None, Argument("[CAPTURE]", "A capture at the router; without one, --flows and --rtt.")] = (
        None
    )
    rate: Annotated[str, Option("--rate", "Rate of the egress, e.g. 100mbit or '100 Mbit/s'.", "RATE")]
    flows: Annotated[
        str | None, Option("--flows", "Numbers of bulk flows by control; cubic=2,reno=2 if left out.", "NAME=N,...")
    ] = None
    rtt: Annotated[str | None, Option("--rtt", "Round trip without queues; 40 ms if left out.", "TIME")] = None
    buffer: Annotated[str, Option("--buffer", "The egress's buffer: '1 bdp', '500 packets'.", "LIMIT")] = "1 bdp"
    seeds: Seeds = 10
    json: Json = False
    out: Out = None


@command(
    AqmOptions,
    "anabranch plan aqm --rate 100mbit --flows cubic=8,compound=8 --rtt 32ms",
    "anabranch plan aqm router.pcapng --rate 100mbit",
    name="aqm",
)
def plan_aqm(options: AqmOptions) -> None:
    """Predict preferential dropping (share-red) at a router's egress.

    Simulates the flows over the egress with a drop-tail queue and with share-red. The first sentence is the answer.
    """
    from anabranch.errors import UserError
    from anabranch.plans import aqm
    from anabranch.progress import Progress

    _check(options.out)
    for name, value in (("--flows", options.flows), ("--rtt", options.rtt)):
        if value is not None and options.file is not None:
            raise UserError(f"{name} {value}: {options.file} has the flows", hint="give one of them")
    simulated = aqm.Options(
        options.rate, options.flows or aqm.Options.flows, options.rtt or aqm.Options.rtt, options.buffer, options.seeds
    )
    with Progress(f"share-red at {options.rate}", aqm.run_count(simulated)) as progress:
        _show(aqm.make(options.file, simulated, progress.update), options.out, is_json=options.json)


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """The options of ``plan group``."""

    file: Annotated[Path, Argument("FILE", "Counters of the interface as CSV (TIME,BYTES, cumulative), or a capture.")]
    members: Annotated[int, Option("--members", "Links of the group.", "N")]
    rate: Annotated[str, Option("--rate", "Rate of each link, e.g. 1gbit or '1 Gbit/s'.", "RATE")]
    method: Annotated[
        str, Option("--method", "The controller: dynamic-lacp, or a name of `anabranch list control`.", "NAME")
    ] = "dynamic-lacp"
    senders: Annotated[
        str | None,
        Option(
            "--from", "Senders of the capture, an address or a network; the one with most data if left out.", "ADDRESS"
        ),
    ] = None
    seeds: Seeds = 5
    json: Json = False
    out: Out = None


@command(
    GroupOptions,
    "anabranch plan group counters.csv --members 4 --rate 1gbit",
    "anabranch plan group trunk.pcapng --members 8 --rate 100mbit --method peak-forecast",
    name="group",
)
def plan_group(options: GroupOptions) -> None:
    """Predict a controller that sleeps links of a group.

    Replays the load over the group with all links awake and with the controller, alone and beside a bulk CUBIC flow.
    The first sentence is the answer: energy and link hours, and at what delay, loss and goodput.
    """
    from anabranch.plans import group
    from anabranch.progress import Progress

    _check(options.out)
    simulated = group.Options(options.members, options.rate, options.method, options.senders, options.seeds)
    with Progress(options.file.name, group.run_count(simulated)) as progress:
        _show(group.make(options.file, simulated, progress.update), options.out, is_json=options.json)


def _check(out: Path | None) -> None:
    """Check the target before any work is done."""
    from anabranch.files.output import check_target

    interrupt.watch()
    if out is not None:
        check_target(out, "plan")


def _show(answer: Answer, out: Path | None, *, is_json: bool) -> None:
    from anabranch.cli.blocks import write

    if is_json:
        print_json(answer.document())
    else:
        write(console(), answer.lines())
    if out is not None:
        answer.write(out)
        note(f"wrote {out}")
