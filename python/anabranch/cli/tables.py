"""``anabranch run --wide``: tables of flows, links, groups and gateways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.cli.common import styled
from anabranch.cli.cut import flows_shown, links_shown
from anabranch.result.format import end, figure, made_by
from anabranch.result.remarks import (
    audit,
    copies_of,
    ends_of,
    few,
    limits,
    mean,
    not_modelled,
    of,
    replays,
    surprises,
    times,
    trace,
)
from anabranch.text import shown

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.result.result import RunResult

_MANY_COPIES = 20
"""Copies of a flow that have a line each; more are summarised."""


def print_tables(result: RunResult, out: Console, *, all_flows: bool, all_links: bool = False) -> None:
    """Print a row per flow and per direction of a link, without a limit on width."""
    from rich import box
    from rich.table import Table

    summary = result.summary
    title = summary.get("scenario") or "scenario"
    out.print(
        styled(shown.plain(title)),
        f" seed {summary.get('seed')}, {figure(summary.get('duration_s'))} s {made_by(summary)}",
        *([styled("TAINTED: no result", "bold red")] if summary.get("tainted") else []),
    )
    flows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = _flow_figures(result)
    ended = any(flow.get("ended") for flow in result.flows.values())
    for heading in ("flow", *(heading for heading, *_ in columns), *(("ended",) if ended else ())):
        flows.add_column(heading, justify="left" if heading in ("flow", "ended") else "right")
    copies = {} if all_flows else copies_of(result, _MANY_COPIES)
    names, left_out = flows_shown(result, copies, all_flows=all_flows)
    for name in names:
        flow = result.flows[name]
        table = name.partition("/")[0]
        if table not in copies:
            flows.add_row(
                name,
                *(figure(of(flow, key), ratio=ratio) for _, key, ratio in columns),
                *((end(flow),) if ended else ()),
            )
        else:
            for word, reckon in (("mean", mean), ("least", min), ("most", max)):
                values = ([of(result.flows[n], key) for n in copies[table]] for _, key, _ in columns)
                told = ([v for v in column if v is not None] for column in values)
                cells = (reckon(v) if v else None for v in told)
                flows.add_row(
                    f"{table}: {word} of {len(copies[table]):,}" if word == "mean" else f"  {word}",
                    *(figure(cell, ratio=ratio) for cell, (*_, ratio) in zip(cells, columns, strict=True)),
                    *((ends_of(result, copies[table]) if word == "mean" else "",) if ended else ()),
                )
    out.print(flows)
    if copies:
        out.print("--all-flows prints every copy; --json and --out have them all.")
    if left_out:
        out.print(left_out, soft_wrap=True)
    for remark in (*few(limits(result, copies)), *few(times(result, copies)), *few(replays(result))):
        out.print(remark, soft_wrap=True)
    _print_links(result, out, all_links=all_links)
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
    for remark in surprises(result):
        out.print(remark, soft_wrap=True)
    if len(result.flows) > 1:
        out.print(f"Jain index {figure(summary.get('fairness', {}).get('jain_index'))}")
    if result.digest:
        out.print(f"digest {result.digest}")
    if result.live is not None:
        out.print(audit(result.live), soft_wrap=True)
        out.print(trace(result.live), soft_wrap=True)
        return
    for remark in not_modelled(result):
        out.print(remark, soft_wrap=True)


def _print_links(result: RunResult, out: Console, *, all_links: bool) -> None:
    from rich import box
    from rich.table import Table

    links = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("link", "direction", "sent\npackets", "dropped", "lost", "reordered", "utilization",
                    "mean queue\npackets", "max queue\npackets", "p95 queue\ndelay ms"):  # fmt: skip
        links.add_column(heading, justify="left" if heading in ("link", "direction") else "right")
    names, left_out = links_shown(result, all_links=all_links)
    for name in names:
        for direction, link in result.links[name].items():
            links.add_row(
                name, direction, figure(link.get("sent_packets")), figure(link.get("dropped_packets")),
                figure(link.get("lost_packets")), figure(link.get("reordered_packets")),
                figure(link.get("utilization"), ratio=True), figure(link.get("mean_queue_packets")),
                figure(link.get("max_queue_packets")), figure(link.get("p95_queue_delay_ms")),
            )  # fmt: skip
    out.print(links)
    if left_out:
        out.print(left_out, soft_wrap=True)


_FLOW_FIGURES = (
    ("goodput\nMbit/s", "goodput_mbit_s", False), ("throughput\nMbit/s", "throughput_mbit_s", False),
    ("srtt\nms", "mean_srtt_ms", False), ("cwnd\npackets", "mean_cwnd_packets", False),
    ("sent\npackets", "sent_packets", False), ("retrans-\nmitted", "retransmitted_packets", False),
    ("fast re-\ncoveries", "fast_recoveries", False), ("timeouts", "timeouts", False),
    ("reordered", "reordered_ratio", True),
)  # fmt: skip
"""Columns of the table of flows: heading, figure, whether it is a ratio."""
_COMPLETION = ("completion\ntime s", "flow_completion_time_s", False)


def _flow_figures(result: RunResult) -> tuple[tuple[str, str, bool], ...]:
    """The columns of the table of flows; completion times if a flow transfers a file."""
    completes = any(flow.get("flow_completion_time_s") is not None for flow in result.flows.values())
    return (*_FLOW_FIGURES, _COMPLETION) if completes else _FLOW_FIGURES
