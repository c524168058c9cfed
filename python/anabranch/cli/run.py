"""``anabranch run``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.common import console, is_live, load_scenario, note
from anabranch.cli.why import print_why, with_why

if TYPE_CHECKING:
    from anabranch.result import RunResult
    from anabranch.summary import LiveSummary


@dataclass(frozen=True)
class RunOptions:
    """The options of the command; ``samples_ms`` and ``packets`` matter only with ``out``."""

    seed: int | None
    json: bool
    out: Path | None
    engine: str
    digest: bool
    packets: bool
    samples_ms: float
    fast_path: bool
    pcap: list[str]
    snap_length: int
    why: bool
    trace: str | None = None


def run_once(file: Path, sets: list[str], options: RunOptions) -> None:
    """Run, print, write.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: An option is.
    """
    from anabranch.capture import parse_option
    from anabranch.errors import UserError
    from anabranch.limits import check_samples, check_seed
    from anabranch.live import uncontained
    from anabranch.output import check_target, write_whole
    from anabranch.progress import Progress

    live = is_live(options.engine)
    if options.trace is not None and not live:
        raise UserError("--trace traces the kernel's TCP, and --engine sim has none", hint="give --engine live")
    if options.trace == "off" and options.why:
        raise UserError("--why reads the trace, and --trace off makes none", hint="give one of them")
    if live:
        _check_live()
    if options.why and not options.packets:
        raise UserError("--why reads every packet, and --no-packets records none", hint="give one of them")
    check_seed(options.seed)
    check_samples(options.samples_ms)
    scenario = load_scenario(file, sets)
    if options.out is not None:
        check_target(options.out, "run")
    captures = [parse_option(option) for option in options.pcap]
    with Progress(file.name, 1) as progress:
        packets = options.packets and (options.why or options.out is not None)
        if live:
            result = scenario.run_live(
                seed=options.seed,
                packets=packets,
                samples_ms=options.samples_ms if options.out else None,
                captures=[name for name, _ in captures],
                snap_length=options.snap_length,
                # What is sent again, and why, the kernel tells in the trace alone.
                trace=options.trace or (("acks" if options.out else "events") if options.why else None),
                progress=progress.update,
            )
        else:
            result = scenario.run(
                seed=options.seed,
                digest=options.digest,
                samples_ms=options.samples_ms if options.out else None,
                packets=packets,
                fast_path=options.fast_path,
                captures=[name for name, _ in captures],
                snap_length=options.snap_length,
                progress=progress.update,
            )
    if result.live is not None and (told := uncontained(result.live)):
        note(told)
    why = result.why() if options.why else None
    if options.out is not None:
        result.write(options.out)
        note(f"wrote {options.out / 'report.html'}, figures and tables")
    for name, target in captures:
        write_whole(target, result.pcapng(name))
        note(f"wrote {target}")
    if options.json:
        # As the engine wrote it: the document is the contract's, digit by digit.
        document = result.summary_json.rstrip()
        sys.stdout.write((document if why is None else with_why(document, why)) + "\n")
    else:
        _print(result)
        if why is not None:
            print_why(why)


def _check_live() -> None:
    """See to it that this process may run live.

    Raises:
        UserError: The machine does not permit it.
    """
    from anabranch.live import prepare

    # Before anything starts a thread: a process with several cannot move into a user namespace.
    prepare()


def _print(result: RunResult) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from anabranch.report.format import figure

    summary = result.summary
    out = console()
    title = summary.get("scenario") or "scenario"
    out.print(
        f"[bold]{escape(title)}[/bold]  seed {summary.get('seed')}, {figure(summary.get('duration_s'))} s "
        + ("live" if summary.get("engine") == "live" else "simulated")
    )
    flows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("flow", "goodput\nMbit/s", "throughput\nMbit/s", "srtt\nms", "cwnd\npackets", "sent\npackets",
                    "retrans-\nmitted", "fast re-\ncoveries", "timeouts", "reordered"):  # fmt: skip
        flows.add_column(heading, justify="left" if heading == "flow" else "right")
    for name, flow in result.flows.items():
        flows.add_row(
            name, figure(flow.get("goodput_mbit_s")), figure(flow.get("throughput_mbit_s")),
            figure(flow.get("mean_srtt_ms")), figure(flow.get("mean_cwnd_packets")), figure(flow.get("sent_packets")),
            figure(flow.get("retransmitted_packets")), figure(flow.get("fast_recoveries")),
            figure(flow.get("timeouts")), figure(flow.get("reordered_ratio"), ratio=True),
        )  # fmt: skip
    out.print(flows)
    for remark in times(result):
        out.print(escape(remark), soft_wrap=True)
    links = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("link", "direction", "sent\npackets", "dropped", "lost", "reordered", "utilization",
                    "mean queue\npackets", "max queue\npackets", "p95 queue\ndelay ms"):  # fmt: skip
        links.add_column(heading, justify="left" if heading in ("link", "direction") else "right")
    for name, directions in result.links.items():
        for direction, link in directions.items():
            links.add_row(
                name, direction, figure(link.get("sent_packets")), figure(link.get("dropped_packets")),
                figure(link.get("lost_packets")), figure(link.get("reordered_packets")),
                figure(link.get("utilization"), ratio=True), figure(link.get("mean_queue_packets")),
                figure(link.get("max_queue_packets")), figure(link.get("p95_queue_delay_ms")),
            )  # fmt: skip
    out.print(links)
    if result.groups:
        groups = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("group", "mean active\nmembers", "member-\nseconds off", "energy\nJ", "energy\nJ/Gbit",
                        "changes"):  # fmt: skip
            groups.add_column(heading, justify="left" if heading == "group" else "right")
        for name, group in result.groups.items():
            groups.add_row(
                name, figure(group.get("mean_active_members")), figure(group.get("member_seconds_off")),
                figure(group.get("energy_joules")), figure(group.get("joules_per_gigabit")),
                figure(group.get("changes")),
            )  # fmt: skip
        out.print(groups)
    if result.gateways:
        gateways = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("gateway", "direction", "released\npackets", "held", "gaps\ngiven up", "duplicates\ndropped",
                        "max held\npackets", "mean wait\nms", "p95 wait\nms"):  # fmt: skip
            gateways.add_column(heading, justify="left" if heading in ("gateway", "direction") else "right")
        for name, both in result.gateways.items():
            for direction, gateway in both.items():
                gateways.add_row(
                    name, direction, figure(gateway.get("released_packets")), figure(gateway.get("held_packets")),
                    figure(gateway.get("gaps_given_up")), figure(gateway.get("duplicates_dropped")),
                    figure(gateway.get("max_held_packets")), figure(gateway.get("mean_wait_ms")),
                    figure(gateway.get("p95_wait_ms")),
                )  # fmt: skip
        out.print(gateways)
    if len(result.flows) > 1:
        out.print(f"Jain index {figure(summary.get('fairness', {}).get('jain_index'))}")
    if result.digest:
        out.print(f"digest {result.digest}")
    if result.live is not None:
        out.print(escape(_audit(result.live)), soft_wrap=True)
        out.print(escape(_trace(result.live)), soft_wrap=True)
        return
    for remark in not_modelled(result):
        out.print(escape(remark), soft_wrap=True)


def _audit(live: LiveSummary) -> str:
    """What the live engine says of itself, in one sentence."""
    from anabranch.report.format import figure

    audit = live["audit"]
    late = [figure(audit[key]) for key in ("p50_lateness_ms", "p99_lateness_ms", "max_lateness_ms")]
    return (
        f"kernel {live['machine']['kernel']}; {audit['released_packets']} packets left late by {late[0]} ms (median), "
        f"{late[1]} ms (99th percentile), {late[2]} ms (at most); {audit['io_drops']} lost between kernel and engine"
    )


def _trace(live: LiveSummary) -> str:
    """What of the kernel's TCP was traced, or why nothing was."""
    trace = live["trace"]
    if trace["detail"] is None:
        return f"the kernel's TCP was not traced: {trace['why_not']}"
    told = f"traced: {trace['detail']}, {trace['records']} records"
    return told + (f"; {trace['lost_records']} more are LOST" if trace["lost_records"] else "")


def times(result: RunResult) -> list[str]:
    """Delays of UDP flows and response times, a sentence each."""
    from anabranch.report.format import figure

    told = []
    for name, flow in result.flows.items():
        mean = flow.get("mean_one_way_delay_ms")
        if mean is not None:
            p95 = figure(flow.get("p95_one_way_delay_ms"))
            told.append(f"{name}: one-way delay {figure(mean)} ms, 95th percentile {p95} ms")
        exchanges = flow.get("exchanges")
        if exchanges is not None:
            middle, p95 = figure(exchanges.get("mean_response_time_ms")), figure(exchanges.get("p95_response_time_ms"))
            told.append(f"{name}: {exchanges.get('completed')} responses in {middle} ms, 95th percentile {p95} ms")
    return told


def not_modelled(result: RunResult) -> list[str]:
    """One line per stack of the run that lacks something of what its name stands for."""
    from anabranch.cli.explain import aliases, engine_registry

    flows = result.summary.get("resolved_scenario", {}).get("flow", {}).values()
    used = dict.fromkeys(flow["stack"] for flow in flows if "stack" in flow)
    stacks = [item for item in engine_registry() if item["kind"] == "stack"]
    told = []
    for stack in stacks:
        missing = stack.get("details", {}).get("not_modelled", [])
        if missing and not used.keys().isdisjoint({stack["name"], *aliases(stack)}):
            name = stack["name"]
            told.append(
                f"stack {name}: not modelled in this version: {'; '.join(missing)}; see anabranch explain {name}"
            )
    return told
