"""``anabranch run --wide``: tables of flows, links, groups and gateways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

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

D = TypeVar("D")

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
    links, left_out = links_shown(result, all_links=all_links)
    _print(out, ("link", "direction"), _LINK_FIGURES, _directions({name: result.links[name] for name in links}))
    if left_out:
        out.print(left_out, soft_wrap=True)
    if result.groups:
        _print(out, ("group",), _GROUP_FIGURES, (((name,), group) for name, group in result.groups.items()))
    if result.gateways:
        _print(out, ("gateway", "direction"), _GATEWAY_FIGURES, _directions(result.gateways))
    for remark in surprises(result):
        out.print(remark, soft_wrap=True)
    if (jain := summary.get("fairness", {}).get("jain_index")) is not None and len(result.flows) > 1:
        out.print(f"Jain index {figure(jain)}")
    if result.digest:
        out.print(f"digest {result.digest}")
    if result.live is not None:
        out.print(audit(result.live), soft_wrap=True)
        out.print(trace(result.live, result.summary.get("engine")), soft_wrap=True)
        return
    for remark in not_modelled(result):
        out.print(remark, soft_wrap=True)


_Figures = tuple[tuple[str, str, bool], ...]
"""Columns of a table: heading, figure, whether it is a ratio."""


def _print(
    out: Console, names: Sequence[str], figures: _Figures, rows: Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]
) -> None:
    """Print a table: columns of names and of figures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (*names, *(heading for heading, *_ in figures)):
        table.add_column(heading, justify="left" if heading in names else "right")
    for own, found in rows:
        table.add_row(*own, *(figure(found.get(key), ratio=ratio) for _, key, ratio in figures))
    out.print(table)


def _directions(tables: Mapping[str, Mapping[str, D]]) -> Iterator[tuple[tuple[str, str], D]]:
    return (((name, direction), one) for name, both in tables.items() for direction, one in both.items())


_FLOW_FIGURES = (
    ("goodput\nMbit/s", "goodput_mbit_s", False), ("throughput\nMbit/s", "throughput_mbit_s", False),
    ("srtt\nms", "mean_srtt_ms", False), ("cwnd\npackets", "mean_cwnd_packets", False),
    ("sent\npackets", "sent_packets", False), ("retrans-\nmitted", "retransmitted_packets", False),
    ("fast re-\ncoveries", "fast_recoveries", False), ("timeouts", "timeouts", False),
    ("reordered", "reordered_ratio", True),
)  # fmt: skip
_COMPLETION = ("completion\ntime s", "flow_completion_time_s", False)
_LINK_FIGURES = (
    ("sent\npackets", "sent_packets", False), ("dropped", "dropped_packets", False), ("lost", "lost_packets", False),
    ("reordered", "reordered_packets", False), ("utilization", "utilization", True),
    ("mean queue\npackets", "mean_queue_packets", False), ("max queue\npackets", "max_queue_packets", False),
    ("p95 queue\ndelay ms", "p95_queue_delay_ms", False),
)  # fmt: skip
_GROUP_FIGURES = (
    ("mean active\nmembers", "mean_active_members", False), ("member-\nseconds off", "member_seconds_off", False),
    ("energy\nJ", "energy_joules", False), ("energy\nJ/Gbit", "joules_per_gigabit", False),
    ("changes", "changes", False),
)  # fmt: skip
_GATEWAY_FIGURES = (
    ("released\npackets", "released_packets", False), ("held", "held_packets", False),
    ("gaps\ngiven up", "gaps_given_up", False), ("duplicates\ndropped", "duplicates_dropped", False),
    ("max held\npackets", "max_held_packets", False), ("mean wait\nms", "mean_wait_ms", False),
    ("p95 wait\nms", "p95_wait_ms", False), ("silent\nms", "silent_ms", False),
)  # fmt: skip


def _flow_figures(result: RunResult) -> _Figures:
    """The columns of the table of flows; completion times if a flow transfers a file."""
    completes = any(flow.get("flow_completion_time_s") is not None for flow in result.flows.values())
    return (*_FLOW_FIGURES, _COMPLETION) if completes else _FLOW_FIGURES
