"""``anabranch run``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from anabranch import interrupt, shown
from anabranch.cli.common import console, is_live, load_scenario, note, styled, write_json
from anabranch.cli.why import print_why, with_why

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.capture_file import CaptureFile
    from anabranch.result import RunResult
    from anabranch.scenario import Scenario
    from anabranch.summary import FlowSummary, LiveSummary
    from anabranch.why import Why


@dataclass(frozen=True)
class RunOptions:
    """The options of the command; those that only go with another are ``None`` where they were left out."""

    seed: int | None
    json: bool
    out: Path | None
    engine: str
    digest: bool
    packets: bool | None
    samples_ms: float | None
    fast_path: bool
    pcap: list[str]
    snap_length: int | None
    why: bool
    trace: str | None = None
    all_flows: bool = False
    allow_tainted: bool = False
    untrusted: bool = False


def run_once(file: Path, sets: list[str], options: RunOptions) -> None:
    """Run, print, write.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: An option is.
    """
    from anabranch.capture import SNAP_LENGTH, check_snap_length
    from anabranch.errors import UserError
    from anabranch.limits import SAMPLES_MS, check_samples, check_seed
    from anabranch.live import remarks, run_audited
    from anabranch.output import check_target
    from anabranch.progress import Progress

    live = is_live(options.engine)
    if options.trace is not None and not live:
        raise UserError("--trace traces the kernel's TCP, and --engine sim has none", hint="give --engine live")
    if options.allow_tainted and not live:
        raise UserError("--allow-tainted is of live runs, and --engine sim has none", hint="give --engine live")
    if options.trace == "off" and options.why:
        raise UserError("--why reads the trace, and --trace off makes none", hint="give one of them")
    if live:
        _check_live()
    else:
        interrupt.watch()
    check_seed(options.seed)
    check_samples(options.samples_ms)
    snap_length = SNAP_LENGTH if options.snap_length is None else options.snap_length
    check_snap_length(snap_length)
    _check_together(options)
    scenario = load_scenario(file, sets, seed=options.seed, untrusted=options.untrusted)
    if options.out is not None:
        check_target(options.out, "run")
    captures = _captures(file, scenario, options)
    samples_ms = (options.samples_ms or SAMPLES_MS) if options.out else None
    with Progress(file.name, 1) as progress:
        packets = options.packets is not False and (options.why or options.out is not None)
        if live:
            result = run_audited(
                scenario,
                seed=options.seed,
                packets=packets,
                samples_ms=samples_ms,
                captures=[capture.capture for capture in captures],
                snap_length=snap_length,
                # Only the trace tells what the kernel retransmits, and why.
                trace=options.trace or (("acks" if options.out else "events") if options.why else None),
                progress=progress.update,
                otherwise="--engine sim" + (", which has no --trace" if options.trace else ""),
                untraced="without --trace and --why",
            )
        else:
            result = scenario.run(
                seed=options.seed,
                digest=options.digest,
                samples_ms=samples_ms,
                packets=packets,
                fast_path=options.fast_path,
                captures=[capture.capture for capture in captures],
                snap_length=snap_length,
                progress=progress.update,
            )
    interrupt.watch()
    for told in remarks(result.live) if result.live is not None else ():
        note(told)
    _check_taint(result, options)
    why = result.why() if options.why else None
    if options.out is not None:
        from anabranch.report.run_output import write_run

        write_run(result, options.out, [(c.capture, c.inside) for c in captures if c.inside is not None])
        note(f"wrote {options.out / 'report.html'}, figures and tables")
    for capture in captures:
        whole = capture.inside is not None or capture.write(result.pcapng(capture.capture))
        note(f"wrote {capture.given}" + ("" if whole else " until its reader went away"))
    # A capture on standard output has it for itself.
    _show(result, why, options, to_error=any(capture.is_standard_output for capture in captures))


def _show(result: RunResult, why: Why | None, options: RunOptions, *, to_error: bool) -> None:
    """Print the document, or the tables."""
    if options.json:
        # As the engine wrote it: the document is the contract's, digit by digit.
        document = result.summary_json.rstrip()
        write_json((document if why is None else with_why(document, why)) + "\n")
    else:
        out = console(error=to_error)
        _print(result, out, all_flows=options.all_flows)
        if why is not None:
            print_why(why, out, result.flows)


def _check_taint(result: RunResult, options: RunOptions) -> None:
    """Let no tainted run through, unless it was asked for; then it is marked.

    Raises:
        RunFailedError: It is tainted.
    """
    from anabranch.errors import RunFailedError
    from anabranch.live import taint, taint_advice, tainted_message

    reasons = taint(result)
    if not reasons:
        return
    if not options.allow_tainted:
        raise RunFailedError(tainted_message(result, "--allow-tainted shows its figures, marked"))
    note("the live run is tainted, and its figures are no result: " + "; ".join(reasons))
    note(f"  {taint_advice(result)}")


def _check_together(options: RunOptions) -> None:
    """Refuse options that would do nothing, or contradict each other.

    Raises:
        UserError: There is one.
    """
    from anabranch.errors import UserError

    if options.why and options.packets is False:
        raise UserError("--why reads every packet, and --no-packets records none", hint="give one of them")
    if options.out is None:
        wrote = "says what --out writes, and there is no --out"
        if options.samples_ms is not None:
            raise UserError(f"--samples {wrote}", hint="give --out DIR, or leave it out")
        if options.packets is not None:
            name = "--packets" if options.packets else "--no-packets"
            raise UserError(f"{name} {wrote}", hint="give --out DIR, or leave it out")
    if options.snap_length is not None and not options.pcap:
        raise UserError(
            "--snaplen says what --pcap keeps, and there is no --pcap", hint="give --pcap LINK=FILE, or leave it out"
        )
    if options.all_flows and options.json:
        raise UserError("--all-flows is of the printed table; --json has every flow", hint="give one of them")


def _captures(file: Path, scenario: Scenario, options: RunOptions) -> list[CaptureFile]:
    """Where captures go, in place of nothing that the run reads: the scenario, and the files that it names.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: An option is.
    """
    import json

    from anabranch import _engine
    from anabranch.capture_file import capture_files
    from anabranch.errors import UserError

    if not options.pcap:
        return []
    live = options.engine == "live"
    resolved = json.loads(
        _engine.resolve(scenario.text, scenario.file, scenario.sets, options.seed, live, untrusted=scenario.untrusted)
    )
    captures = capture_files(options.pcap, [file, *map(Path, resolved["files"])], options.out)
    for capture in captures:
        if capture.is_standard_output and options.json:
            raise UserError(
                f"--pcap {capture.capture}={capture.given} and --json both write standard output",
                hint="give one of them another place",
            )
    return captures


def _check_live() -> None:
    """See to it that this process may run live.

    Raises:
        UserError: The machine does not permit it.
    """
    from anabranch.live import prepare

    # Before anything starts a thread: a process with several cannot move into a user namespace.
    prepare("--engine sim")


_MANY_COPIES = 20
"""So many copies of one flow have a line each; more are summarised."""


def _print(result: RunResult, out: Console, *, all_flows: bool) -> None:
    from rich import box
    from rich.table import Table

    from anabranch.report.format import end, figure

    summary = result.summary
    title = summary.get("scenario") or "scenario"
    engine = "live" if summary.get("engine") == "live" else "simulated"
    out.print(
        styled(shown.plain(title)),
        f" seed {summary.get('seed')}, {figure(summary.get('duration_s'))} s {engine}",
        *([styled("TAINTED: no result", "bold red")] if summary.get("tainted") else []),
    )
    flows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = _flow_figures(result)
    ends = any(flow.get("ended") for flow in result.flows.values())
    for heading in ("flow", *(heading for heading, *_ in columns), *(("ended",) if ends else ())):
        flows.add_column(heading, justify="left" if heading in ("flow", "ended") else "right")
    copies = {} if all_flows else _copies(result)
    for name, flow in result.flows.items():
        table = name.partition("/")[0]
        if table not in copies:
            flows.add_row(
                name,
                *(figure(_of(flow, key), ratio=ratio) for _, key, ratio in columns),
                *((end(flow),) if ends else ()),
            )
        elif name == copies[table][0]:
            for word, reckon in (("mean", _mean), ("least", min), ("most", max)):
                values = ([_of(result.flows[n], key) for n in copies[table]] for _, key, _ in columns)
                told = ([v for v in column if v is not None] for column in values)
                cells = (reckon(v) if v else None for v in told)
                flows.add_row(
                    f"{table}: {word} of {len(copies[table]):,}" if word == "mean" else f"  {word}",
                    *(figure(cell, ratio=ratio) for cell, (*_, ratio) in zip(cells, columns, strict=True)),
                    *((_ends(result, copies[table]) if word == "mean" else "",) if ends else ()),
                )
    out.print(flows)
    if copies:
        out.print("--all-flows prints every copy; --json and --out have them all.")
    for remark in (*limits(result, copies), *times(result, copies), *replays(result)):
        out.print(remark, soft_wrap=True)
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
                        "max held\npackets", "mean wait\nms", "p95 wait\nms", "silent\nms"):  # fmt: skip
            gateways.add_column(heading, justify="left" if heading in ("gateway", "direction") else "right")
        for name, both in result.gateways.items():
            for direction, gateway in both.items():
                gateways.add_row(
                    name, direction, figure(gateway.get("released_packets")), figure(gateway.get("held_packets")),
                    figure(gateway.get("gaps_given_up")), figure(gateway.get("duplicates_dropped")),
                    figure(gateway.get("max_held_packets")), figure(gateway.get("mean_wait_ms")),
                    figure(gateway.get("p95_wait_ms")), figure(gateway.get("silent_ms")),
                )  # fmt: skip
        out.print(gateways)
    if len(result.flows) > 1:
        out.print(f"Jain index {figure(summary.get('fairness', {}).get('jain_index'))}")
    if result.digest:
        out.print(f"digest {result.digest}")
    if result.live is not None:
        out.print(_audit(result.live), soft_wrap=True)
        out.print(_trace(result.live), soft_wrap=True)
        return
    for remark in not_modelled(result):
        out.print(remark, soft_wrap=True)


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


_FLOW_FIGURES = (
    ("goodput\nMbit/s", "goodput_mbit_s", False), ("throughput\nMbit/s", "throughput_mbit_s", False),
    ("srtt\nms", "mean_srtt_ms", False), ("cwnd\npackets", "mean_cwnd_packets", False),
    ("sent\npackets", "sent_packets", False), ("retrans-\nmitted", "retransmitted_packets", False),
    ("fast re-\ncoveries", "fast_recoveries", False), ("timeouts", "timeouts", False),
    ("reordered", "reordered_ratio", True),
)  # fmt: skip
"""What the table of flows shows of each: the heading, the figure, and whether it is a ratio."""
_COMPLETION = ("completion\ntime s", "flow_completion_time_s", False)


def _flow_figures(result: RunResult) -> tuple[tuple[str, str, bool], ...]:
    """The columns of the table of flows; completion times where a flow transfers a file."""
    completes = any(flow.get("flow_completion_time_s") is not None for flow in result.flows.values())
    return (*_FLOW_FIGURES, _COMPLETION) if completes else _FLOW_FIGURES


def _ends(result: RunResult, names: list[str]) -> str:
    """How many of some flows ended in each way."""
    counts = Counter(result.flows[name].get("ended") for name in names)
    return ", ".join(f"{count:,} {ended}" for ended, count in counts.most_common() if ended)


def _of(flow: FlowSummary, key: str) -> float | None:
    value: float | None = cast("dict[str, Any]", flow).get(key)
    return value


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _copies(result: RunResult) -> dict[str, list[str]]:
    """The flows with too many copies to print, each with the names of its copies."""
    names: dict[str, list[str]] = {}
    for name in result.flows:
        table, slash, _ = name.partition("/")
        if slash:
            names.setdefault(table, []).append(name)
    return {table: copies for table, copies in names.items() if len(copies) > _MANY_COPIES}


_LIMITS = (
    ("cwnd_limited_share", "the congestion window"), ("rwnd_limited_share", "the receive window"),
    ("sndbuf_limited_share", "the send buffer"), ("application_limited_share", "the application"),
)  # fmt: skip
"""What can limit a sender, by the name of its share."""


def limits(result: RunResult, copies: Mapping[str, list[str]] = MappingProxyType({})) -> list[str]:
    """What limited each TCP flow, a sentence each; flows with ``copies`` are left out."""
    told = []
    for name, flow in result.flows.items():
        shares = [(_of(flow, key), what) for key, what in _LIMITS]
        if name.partition("/")[0] in copies or all(share is None for share, _ in shares):
            continue
        known = sorted(((share, what) for share, what in shares if share is not None and share >= 0.005), reverse=True)
        parts = ", ".join(f"{what} {share:.0%}" for share, what in known) or "nothing of these"
        rest = 1.0 - sum(share for share, _ in known)
        rest_too = f"; pacing, recovery and set-up {rest:.0%}" if rest >= 0.005 else ""
        told.append(f"{name}: limited by {parts}{rest_too}")
    return told


def times(result: RunResult, copies: Mapping[str, list[str]] = MappingProxyType({})) -> list[str]:
    """Delays of UDP flows and response times, a sentence each; of ``copies`` one sentence for all."""
    from anabranch.report.format import figure

    told = []
    for table, names in copies.items():
        for what, values in (
            ("mean one-way delay", [_of(result.flows[n], "mean_one_way_delay_ms") for n in names]),
            (
                "mean response time",
                [(result.flows[n].get("exchanges") or {}).get("mean_response_time_ms") for n in names],
            ),
        ):
            known = [v for v in values if v is not None]
            if known:
                told.append(
                    f"{table}: {what} {figure(min(known))} to {figure(max(known))} ms among {len(names):,} copies"
                )
    for name, flow in result.flows.items():
        if name.partition("/")[0] in copies:
            continue
        mean = flow.get("mean_one_way_delay_ms")
        if mean is not None:
            p95 = figure(flow.get("p95_one_way_delay_ms"))
            told.append(f"{name}: one-way delay {figure(mean)} ms, 95th percentile {p95} ms")
        exchanges = flow.get("exchanges")
        if exchanges is not None:
            middle, p95 = figure(exchanges.get("mean_response_time_ms")), figure(exchanges.get("p95_response_time_ms"))
            told.append(f"{name}: {exchanges.get('completed')} responses in {middle} ms, 95th percentile {p95} ms")
    return told


def replays(result: RunResult) -> list[str]:
    """A sentence for each flow that replays a capture: what was read of it, and what was skipped."""
    told = []
    for flow, capture in result.summary.get("captures", {}).items():
        parts = [f"{flow}: replays {capture['replayed_packets']} of {capture['ip_packets']} IP packets of its capture"]
        if capture["skipped"]:
            reasons = ", ".join(f"{count} {reason}" for reason, count in capture["skipped"].items())
            parts.append(f"skipped {sum(capture['skipped'].values())} of {capture['frames']} frames ({reasons})")
        if capture["time_went_back"]:
            parts.append(f"sorted by time: {capture['time_went_back']} packets stood behind later ones")
        if capture["fragments"]:
            parts.append(f"{capture['fragments']} are fragments")
        if capture["cut_off"]:
            parts.append("the capture is cut off, and its whole packets are used")
        if capture["trailing_bytes"]:
            parts.append(f"the capture ends with {capture['trailing_bytes']:,} bytes that are no part of it")
        told.append("; ".join(parts))
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
