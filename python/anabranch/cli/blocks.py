"""``anabranch run``: a block per flow and a line per direction of a link, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.cli.common import styled
from anabranch.cli.cut import flows_shown, links_shown
from anabranch.result.format import NONE, ending, figure, made_by
from anabranch.result.remarks import (
    audit,
    copies_of,
    ends_of,
    few,
    idle_links,
    limit,
    mean,
    missing,
    of,
    replays,
    settings_of,
    surprises,
    times_of_copies,
    trace,
    waits,
)
from anabranch.text import shown
from anabranch.text.lines import WIDTH, wrapped

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.result.result import RunResult
    from anabranch.result.summary import FlowSummary, GatewaySummary, LinkSummary

_LABEL, _VALUE = 17, 22
_MANY_COPIES = 4
"""Copies of a flow that are printed individually; more are summarised."""

_Pair = tuple[str, str]

_FIGURES = (
    ("goodput", "goodput_mbit_s", "Mbit/s"), ("throughput", "throughput_mbit_s", "Mbit/s"),
    ("smoothed RTT", "mean_srtt_ms", "ms"), ("minimum RTT", "min_rtt_ms", "ms"),
    ("cwnd", "mean_cwnd_packets", "packets"), ("sent", "sent_packets", "packets"),
    ("retransmitted", "retransmitted_packets", "packets"), ("spurious", "spurious_retransmissions", ""),
    ("fast recoveries", "fast_recoveries", ""), ("timeouts", "timeouts", ""),
    ("reordered", "reordered_ratio", "%"), ("completion time", "flow_completion_time_s", "s"),
)  # fmt: skip
"""Figures of a flow's block: label, name of the figure, unit."""
_GROUP = (
    ("mean active", "mean_active_members", "members"), ("off", "member_seconds_off", "member-seconds"),
    ("energy", "energy_joules", "J"), ("energy per Gbit", "joules_per_gigabit", "J"), ("changes", "changes", ""),
)  # fmt: skip
_RELEASED = ("released", "released_packets", "packets")
_GAPS = (
    ("gaps given up", "gaps_given_up", ""), ("duplicates", "duplicates_dropped", "dropped"),
    ("held at most", "max_held_packets", "packets"), ("silent", "silent_ms", "ms"),
)  # fmt: skip
_RESTORER = (
    _RELEASED, ("held", "held_packets", "packets"), *_GAPS,
    ("mean wait", "mean_wait_ms", "ms"), ("p95 wait", "p95_wait_ms", "ms"),
)  # fmt: skip
_TUNNEL = (
    _RELEASED, ("repaired", "repaired_packets", "packets"), *_GAPS,
    ("queue", "queue_dropped_packets", "dropped"), ("sessions", "sessions", ""),
)  # fmt: skip


def print_blocks(result: RunResult, out: Console, *, all_flows: bool, all_links: bool = False) -> None:
    """Print a run in 80 columns."""
    summary = result.summary
    title = shown.plain(summary.get("scenario") or "scenario")
    facts = f"seed {summary.get('seed')}, {figure(summary.get('duration_s'))} s {made_by(summary)}"
    _headline(out, ("TAINTED, no result: " if summary.get("tainted") else "") + title, facts)
    copies = {} if all_flows else copies_of(result, _MANY_COPIES)
    shown_flows, left_out = flows_shown(result, copies, all_flows=all_flows)
    for name in shown_flows:
        flow = result.flows[name]
        table = name.partition("/")[0]
        if table not in copies:
            block(out, name, _about(result, name, ending(flow)), _flow_pairs(flow))
        else:
            names = copies[table]
            block(out, table, f"{len(names):,} copies, {_about(result, name, ends_of(result, names))}", ())
            write(out, ["  mean (minimum to maximum) of the copies:", *_copies_lines(result, names)])
            write(out, (f"  {told}" for told in times_of_copies(result, names)))
    if copies:
        write(out, ["", "--all-flows prints every copy; --json and --out have them all."])
    if left_out:
        write(out, ["", *wrapped(left_out)])
    _links(out, result, all_links=all_links)
    for name, group in result.groups.items():
        block(out, name, "link group", _pairs(group, _GROUP))
    for name, both in result.gateways.items():
        for direction, gateway in both.items():
            block(out, name, f"gateway, {direction}", _gateway_pairs(gateway))
    write(out, ["", *_remarks(result)])


def _headline(out: Console, title: str, facts: str) -> None:
    """The title with its facts, which move to a second line if the first would be too long."""
    if len(title) + 2 + len(facts) <= WIDTH:
        out.print(styled(title), f" {facts}")
        return
    for line in wrapped(title):
        out.print(styled(line), soft_wrap=True)
    out.print(facts)


def block(out: Console, name: str, about: str, pairs: Iterable[_Pair]) -> None:
    """A name with its description, and labelled values below it, two to a line if they fit."""
    out.print()
    first, *more = wrapped(f"{shown.plain(name)}: {about}" if about else shown.plain(name), "    ")
    out.print(styled(first[: len(name)]).append(first[len(name) :], style="not bold"), soft_wrap=True)
    write(out, more)
    write(out, laid_out(list(pairs)))


def laid_out(pairs: Sequence[_Pair]) -> Iterator[str]:
    """Lines of labelled values; a value too long for half a line has a whole one."""
    half = ""
    for label, value in pairs:
        cell = f"{label:<{_LABEL}}{value}"
        if len(value) > _VALUE - 2:
            if half:
                yield f"  {half}"
                half = ""
            yield from wrapped(f"  {cell}", " " * (_LABEL + 2))
        elif half:
            yield f"  {half:<{_LABEL + _VALUE}}{cell}"
            half = ""
        else:
            half = cell
    if half:
        yield f"  {half}"


def _about(result: RunResult, name: str, ended: str) -> str:
    """Description of a flow: hosts, control, stack, workload and end."""
    given = settings_of(result, name)
    parts = [f"{given['from']} to {given['to']}"] if "from" in given and "to" in given else []
    workload: Any = given.get("workload")
    if given.get("protocol") == "udp":
        parts.append("UDP")
    elif "stack" in given and workload is not None:
        parts.append(f"{_kind(given.get('cc'))} over {given['stack']}")
    if workload is None:
        parts.append("packets of programs" if given else "")
    elif (kind := _kind(workload)) == "file" and "size" in workload:
        parts.append(f"file of {workload['size']}")
    elif kind != "bulk":
        parts.append(kind)
    return ", ".join(shown.plain(part) for part in (*parts, ended) if part)


def _kind(component: Any) -> str:
    return str(component.get("kind", NONE) if isinstance(component, dict) else component)


def _with_unit(value: float | None, unit: str, *, bare: bool = False) -> str:
    if unit == "%":
        return figure(value, ratio=True)
    if value is not None and unit == "packets" and value >= 100:
        # Decimal places add nothing to hundreds of packets.
        value = round(value)
    return figure(value) if bare else f"{figure(value)} {unit}".rstrip()


def _flow_pairs(flow: FlowSummary) -> Iterator[_Pair]:
    for label, key, unit in _FIGURES:
        value = of(flow, key)
        if value is not None:
            yield label, _with_unit(value, unit)
    fec = flow.get("fec")
    if fec is not None:
        yield "redundant", _with_unit(fec.get("redundant_packets"), "packets")
        yield "recovered", _with_unit(fec.get("recovered_packets"), "packets")
    yield from waits(flow)
    if told := limit(flow):
        yield "limited by", told


def _copies_lines(result: RunResult, names: Sequence[str]) -> Iterator[str]:
    for label, key, unit in _FIGURES:
        values = [value for name in names if (value := of(result.flows[name], key)) is not None]
        if values:
            middle, low, high = mean(values), min(values), max(values)
            span = f" ({_with_unit(low, unit, bare=True)} to {_with_unit(high, unit, bare=True)})" if low < high else ""
            yield f"  {label:<{_LABEL}}{_with_unit(middle, unit)}{span}"


def _pairs(figures: Mapping[str, Any], shown: Iterable[tuple[str, str, str]]) -> Iterator[_Pair]:
    return ((label, _with_unit(figures.get(key), unit)) for label, key, unit in shown)


def _gateway_pairs(gateway: GatewaySummary) -> Iterator[_Pair]:
    if "sessions" not in gateway:
        yield from _pairs(gateway, _RESTORER)
        return
    yield from _pairs(gateway, _TUNNEL)
    for name, path in gateway.get("routes", {}).items():
        deaths = path.get("deaths", 0)
        state = path.get("state", "")
        times = "once" if deaths == 1 else f"{figure(deaths)} times"
        yield name, f"{state}, died {times}" if deaths else state


_LINK_HEAD = (("", ""), ("packets", "sent"), ("", "dropped"), ("", "lost"), ("", "reordered"), ("utili-", "zation"),
              ("mean", "queue"), ("max", "queued"), ("p95 queue", "delay"))  # fmt: skip


def _links(out: Console, result: RunResult, *, all_links: bool) -> None:
    """A line per direction of a link, below the link's name."""
    idle = set(idle_links(result))
    rows: list[tuple[str, list[tuple[str, ...]]]] = []
    names, left_out = links_shown(result, all_links=all_links)
    for name in names:
        cells = [] if name in idle else [_link_row(direction, link) for direction, link in result.links[name].items()]
        rows.append((name, cells))
    all_cells = [*zip(*_LINK_HEAD, strict=True), *(cells for _, lines in rows for cells in lines)]
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*all_cells, strict=True)]
    out.print()
    for heads in zip(*_LINK_HEAD, strict=True):
        out.print(styled(_columns(heads, widths)), soft_wrap=True)
    for name, lines in rows:
        write(out, [f"{shown.plain(name)}{'' if lines else ': idle'}", *(_columns(cells, widths) for cells in lines)])
    if left_out:
        write(out, wrapped(left_out))


def _link_row(direction: str, link: LinkSummary) -> tuple[str, ...]:
    return (
        direction, figure(link.get("sent_packets")), figure(link.get("dropped_packets")),
        figure(link.get("lost_packets")), figure(link.get("reordered_packets")),
        _percent(link.get("utilization")), _short(link.get("mean_queue_packets")),
        figure(link.get("max_queue_packets")), _short(link.get("p95_queue_delay_ms")) + " ms",
    )  # fmt: skip


def _percent(ratio: float | None) -> str:
    return NONE if ratio is None else f"{100 * ratio:.1f} %"


def _short(value: float | None) -> str:
    """A figure with three significant digits that fits its column."""
    return NONE if value is None else f"{value:,.{2 if value < 10 else 1 if value < 1000 else 0}f}"


def _columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    return f"  {first:<{widths[0]}}" + "".join(f"  {c:>{w}}" for c, w in zip(rest, widths[1:], strict=True))


def _remarks(result: RunResult) -> Iterator[str]:
    for remark in (*few(replays(result)), *surprises(result)):
        yield from wrapped(f"- {remark}", "  ")
    if result.live is None:
        for name, lacks in missing(result):
            count = f"{len(lacks)} behaviours are" if len(lacks) > 1 else "one behaviour is"
            yield from wrapped(f"- stack {name}: {count} not modelled; see anabranch explain {name}", "  ")
    if (jain := result.summary.get("fairness", {}).get("jain_index")) is not None and len(result.flows) > 1:
        yield f"Jain index {figure(jain)}"
    if result.digest:
        yield f"digest {result.digest}"
    if result.live is not None:
        yield from wrapped(audit(result.live))
        yield from wrapped(trace(result.live, result.summary.get("engine")))


LABEL = 26
"""Columns of a long label, before its value."""


def labelled(label: str, value: str, columns: int = LABEL, *, left: int = 2) -> list[str]:
    """A value beside its label, or below a label that is too long."""
    margin, indent = " " * left, " " * (left + columns + 2)
    if len(label) > columns:
        return [f"{margin}{label}", *wrapped(indent + value, indent)]
    return wrapped(f"{margin}{label:<{columns}}  {value}", indent)


def write(out: Console, lines: Iterable[str]) -> None:
    """Print lines without wrapping them."""
    for line in lines:
        out.print(line, soft_wrap=True)
