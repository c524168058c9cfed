"""Remarks on a run beside its figures: limits of flows, response times, replays, surprising settings."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from anabranch.result.format import ENDINGS, figure
from anabranch.text import quantity

if TYPE_CHECKING:
    from anabranch.result.result import RunResult
    from anabranch.result.summary import FlowSummary, LinkSummary, LiveSummary

LIMITS = (
    ("cwnd_limited_share", "the congestion window"), ("rwnd_limited_share", "the receive window"),
    ("sndbuf_limited_share", "the send buffer"), ("application_limited_share", "the application"),
)  # fmt: skip
"""The limits of a sender, by the name of their share."""


def of(flow: FlowSummary, key: str) -> float | None:
    """A figure of a flow by its name."""
    return cast("float | None", flow.get(key))


def copies_of(result: RunResult, most: int) -> dict[str, list[str]]:
    """The flows with more than ``most`` copies, each with the names of its copies."""
    names: dict[str, list[str]] = {}
    for name in result.flows:
        table, slash, _ = name.partition("/")
        if slash:
            names.setdefault(table, []).append(name)
    return {table: copies for table, copies in names.items() if len(copies) > most}


def mean(values: list[float]) -> float:
    """Their arithmetic mean."""
    return sum(values) / len(values)


def ends_of(result: RunResult, names: list[str]) -> str:
    """How many of the flows ended in each way."""
    counts = Counter(result.flows[name].get("ended") for name in names)
    return ", ".join(f"{count:,} {ENDINGS.get(ended, ended)}" for ended, count in counts.most_common() if ended)


def limit(flow: FlowSummary) -> str:
    """The limits of a TCP flow, in one phrase; "" unless it is a TCP flow with one connection."""
    shares = [(of(flow, key), what) for key, what in LIMITS]
    if all(share is None for share, _ in shares):
        return ""
    known = sorted(((share, what) for share, what in shares if share is not None and share >= 0.005), reverse=True)
    parts = ", ".join(f"{what} {100 * share:.0f} %" for share, what in known) or "nothing of these"
    rest = 1.0 - sum(share for share, _ in known)
    return parts + (f"; pacing, recovery and set-up {100 * rest:.0f} %" if rest >= 0.005 else "")


def limits(result: RunResult, copies: Mapping[str, list[str]] = MappingProxyType({})) -> list[str]:
    """The limits of each TCP flow, in one sentence each; flows with ``copies`` are omitted."""
    return [
        f"{name}: limited by {told}"
        for name, flow in result.flows.items()
        if name.partition("/")[0] not in copies and (told := limit(flow))
    ]


def waits(flow: FlowSummary) -> list[tuple[str, str]]:
    """One-way delays, response times and transfers of a flow: a label and the figures of each."""
    told = []
    if flow.get("mean_one_way_delay_ms") is not None:
        mean, p95 = figure(flow.get("mean_one_way_delay_ms")), figure(flow.get("p95_one_way_delay_ms"))
        told.append(("one-way delay", f"{mean} ms, 95th percentile {p95} ms"))
    exchanges = flow.get("exchanges")
    if exchanges is not None:
        mean, p95 = figure(exchanges.get("mean_response_time_ms")), figure(exchanges.get("p95_response_time_ms"))
        done = f"{figure(exchanges.get('completed'))} responses"
        told.append(("response time", f"{mean} ms, 95th percentile {p95} ms ({done})"))
    transfers = flow.get("transfers")
    if transfers is not None:
        mean, p95 = figure(transfers.get("mean_completion_time_s")), figure(transfers.get("p95_completion_time_s"))
        done = f"{figure(transfers.get('completed'))} of {figure(transfers.get('started'))} completed"
        told.append(("transfer time", f"{mean} s, 95th percentile {p95} s ({done})"))
    return told


def times(result: RunResult, copies: Mapping[str, list[str]] = MappingProxyType({})) -> list[str]:
    """Delays of UDP flows and response times, in one sentence each; copies of a flow share a sentence."""
    told = [f"{table}: {what}" for table, names in copies.items() for what in times_of_copies(result, names)]
    for name, flow in result.flows.items():
        if name.partition("/")[0] not in copies:
            told += [f"{name}: {what} {figures}" for what, figures in waits(flow)]
    return told


def times_of_copies(result: RunResult, names: list[str]) -> list[str]:
    """The range of one-way delays and response times among copies of a flow."""
    told = []
    exchanges = [result.flows[name]["exchanges"] for name in names]
    for what, values in (
        ("mean one-way delay", [of(result.flows[n], "mean_one_way_delay_ms") for n in names]),
        ("mean response time", [one["mean_response_time_ms"] for one in exchanges if one is not None]),
    ):
        known = [v for v in values if v is not None]
        if known:
            told.append(f"{what} {figure(min(known))} to {figure(max(known))} ms among {len(names):,} copies")
    return told


def replays(result: RunResult) -> list[str]:
    """A sentence for each flow that replays a capture: the packets replayed and the frames skipped."""
    told = []
    for flow, capture in result.summary.get("captures", {}).items():
        parts = [f"{flow}: replays {capture['replayed_packets']} of {capture['ip_packets']} IP packets of its capture"]
        if capture["skipped"]:
            reasons = ", ".join(f"{count} {reason}" for reason, count in capture["skipped"].items())
            parts.append(f"skipped {sum(capture['skipped'].values())} of {capture['frames']} frames ({reasons})")
        if capture["time_went_back"]:
            parts.append(f"sorted by time: {capture['time_went_back']} packets followed later ones")
        if capture["fragments"]:
            parts.append(f"{capture['fragments']} are fragments")
        if capture["cut_off"]:
            parts.append("the capture is cut off, and its whole packets are used")
        if capture["trailing_bytes"]:
            parts.append(f"the capture ends with {capture['trailing_bytes']:,} bytes that are no part of it")
        told.append("; ".join(parts))
    return told


def missing(result: RunResult) -> Iterator[tuple[str, list[str]]]:
    """Each stack of the run whose model is incomplete, and the missing features."""
    from anabranch.keys.registry import aliases, engine_registry

    used = dict.fromkeys(flow["stack"] for flow in _scenario(result).get("flow", {}).values() if "stack" in flow)
    for item in engine_registry():
        lacks = item.get("details", {}).get("not_modelled", []) if item["kind"] == "stack" else []
        if lacks and not used.keys().isdisjoint({item["name"], *aliases(item)}):
            yield item["name"], lacks


def not_modelled(result: RunResult) -> list[str]:
    """One line for each stack of the run whose model is incomplete."""
    return [
        f"stack {name}: not modelled in this version: {'; '.join(lacks)}; see anabranch explain {name}"
        for name, lacks in missing(result)
    ]


def audit(live: LiveSummary) -> str:
    """The live engine's audit, in one sentence."""
    told = live["audit"]
    late = [figure(told[key]) for key in ("p50_lateness_ms", "p99_lateness_ms", "max_lateness_ms")]
    return (
        f"kernel {live['machine']['kernel']}; {told['released_packets']} packets left late by {late[0]} ms (median), "
        f"{late[1]} ms (99th percentile), {late[2]} ms (at most); {told['io_drops']} lost between kernel and engine"
    )


def untraced(live: LiveSummary, engine: str | None) -> str | None:
    """The reason why the kernel's TCP was not traced; ``None`` if it was."""
    if live["trace"]["detail"] is not None:
        return None
    # `run_kernel` turns the trace off because there can be none; the engine cannot know.
    return "a kernel in virtual time has no BTF" if engine == "kernel" else live["trace"]["why_not"]


def trace(live: LiveSummary, engine: str | None) -> str:
    """The extent of the trace of the kernel's TCP, or the reason for its absence."""
    if (reason := untraced(live, engine)) is not None:
        return f"the kernel's TCP was not traced: {reason}"
    traced = live["trace"]
    told = f"traced: {traced['detail']}, {traced['records']} records"
    return told + (f"; {traced['lost_records']} more are LOST" if traced["lost_records"] else "")


MOST_REMARKS = 20
"""Largest number of remarks of one kind."""
LONG_WAIT_MS = 20.0
"""From this delay on, an unlimited queue deserves a remark."""
IDLE_SHARE = 0.1
"""From this share of the measured time without a flow on, a link's utilization deserves a remark."""


def surprises(result: RunResult) -> list[str]:
    """Settings of the scenario that make a figure misleading, in one sentence each."""
    kinds = (_left_out, _too_big, _unlimited_queues, _irrelevant_windows, _idle_links, _idle_times)
    return [remark for kind in kinds for remark in few(kind(result))]


def few(remarks: Iterable[str]) -> list[str]:
    """Remarks of one kind: the first ones, and the number of the others."""
    told = list(remarks)
    more = len(told) - MOST_REMARKS
    # Replacing a single remark by a line about it would save nothing.
    return told if more <= 1 else [*told[:MOST_REMARKS], f"{more:,} more remarks of this kind are left out"]


def _left_out(result: RunResult) -> Iterator[str]:
    if result.left_out_packets:
        yield (
            f"the table of packets has the first of the run; {result.left_out_packets:,} that were sent later are left "
            "out, because they would take too much memory"
        )


def _too_big(result: RunResult) -> Iterator[str]:
    """Links that dropped packets for their size, with the flows that delivered nothing through such a black hole."""
    links = {**_scenario(result).get("link", {}), **_scenario(result).get("group", {})}
    for name, directions in result.links.items():
        for direction, link in directions.items():
            dropped = link.get("too_big_packets")
            if not dropped:
                continue
            settings = links.get(name, {}).get(direction, {})
            told = f"{name} {direction}: {dropped:,} packets were larger than its MTU of {settings.get('mtu')}"
            if settings.get("mtu_reports", True):
                yield f"{told}, and their senders were notified"
                continue
            silent = [flow for flow in _crossing(result, name) if not result.flows[flow].get("delivered_bytes")]
            held = f"; nothing was delivered of {', '.join(few_names(silent))}" if silent else ""
            yield f"{told}, and their senders were not notified{held}"


def few_names(names: list[str]) -> list[str]:
    """The first names, for a sentence."""
    return names if len(names) <= MOST_REMARKS else [*names[:MOST_REMARKS], "…"]


def _crossing(result: RunResult, link: str) -> Iterator[str]:
    """The flows whose data or acknowledgments cross a link."""
    return (flow for flow in result.flows if link in _route(result, flow))


def _scenario(result: RunResult) -> Mapping[str, Any]:
    return result.summary.get("resolved_scenario", {})


def settings_of(result: RunResult, flow: str) -> Mapping[str, Any]:
    """The keys of a flow in the resolved scenario; empty if it has none."""
    found: Mapping[str, Any] = _scenario(result).get("flow", {}).get(flow.partition("/")[0], {})
    return found


def _unlimited_queues(result: RunResult) -> Iterator[str]:
    links = {**_scenario(result).get("link", {}), **_scenario(result).get("group", {})}
    for name, directions in result.links.items():
        for direction, link in directions.items():
            settings = links.get(name, {}).get(direction, {})
            queue = settings.get("queue", {})
            waited = link.get("p99_queue_delay_ms") or 0.0
            is_unlimited = queue.get("limit") == "unlimited" and "held_limit" not in settings
            if is_unlimited and waited >= LONG_WAIT_MS:
                held = f"it held up to {figure(link.get('max_queue_packets'))} packets"
                longest = _longest_wait_ms(result, settings, link)
                told = (
                    f"1 % of the packets waited for {figure(waited)} ms or longer"
                    if longest is None
                    else f"the last of them waits for about {figure(max(longest, waited))} ms"
                )
                yield f"{name} {direction}: its queue is unlimited; {held}, and {told}"


def _longest_wait_ms(result: RunResult, settings: Mapping[str, Any], link: LinkSummary) -> float | None:
    """Waiting time of the last packet of the longest queue; ``None`` unless the rate is constant.

    The percentiles count packets that have left. If a queue grows until the end of the run, the packets with the
    longest wait are still in it.
    """
    is_constant = settings.get("service") == {"kind": "fixed"} and not _scenario(result).get("at")
    begin, end = seconds(str(_scenario(result).get("warmup"))), result.summary.get("duration_s")
    sent, used, held = link.get("sent_packets"), link.get("utilization"), link.get("max_queue_packets")
    if not is_constant or begin is None or not end or not sent or not used or not held:
        return None
    each_ms = used * (end - begin) * 1000 / sent
    return float(held * each_ms)


def _irrelevant_windows(result: RunResult) -> Iterator[str]:
    """Flows whose congestion window exceeds another window's limit; for copies, only the first."""
    told = set()
    for name, flow in result.flows.items():
        table = name.partition("/")[0]
        transport = settings_of(result, name).get("transport", {})
        cwnd, mss = flow.get("mean_cwnd_packets"), size(str(transport.get("mss")))
        if cwnd is None or mss is None or table in told:
            continue
        windows = (("receive_window", "receive window", "rwnd_limited_share"),
                   ("send_buffer", "send buffer", "sndbuf_limited_share"))  # fmt: skip
        known = [
            (most, -(of(flow, share) or 0.0), what)
            for key, what, share in windows
            if (most := size(str(transport.get(key)))) is not None
        ]
        # The smaller window; if they are equal, the window that limited the sender longer.
        bound, _, what = min(known, default=(sys.maxsize, 0.0, ""))
        if cwnd * mss > bound:
            told.add(table)
            yield (
                f"{name}: cwnd is {figure(round(cwnd))} packets, but the {what} lets at most {bound // mss:,} segments "
                "be in flight"
            )


def _idle_links(result: RunResult) -> Iterator[str]:
    idle = idle_links(result)
    if len(idle) > MOST_REMARKS:
        yield f"no packet crossed {len(idle):,} links: {', '.join(idle[:MOST_REMARKS])}, …"
        return
    for name in idle:
        yield f"{name}: no packet crossed it"


def idle_links(result: RunResult) -> list[str]:
    """Links over which no packet was sent in either direction."""
    return [
        name
        for name, directions in result.links.items()
        if not any(link.get("sent_packets") for link in directions.values())
    ]


def _idle_times(result: RunResult) -> Iterator[str]:
    """Links whose flows ran for only part of the time, while utilization covers all of it."""
    begin, end = seconds(str(_scenario(result).get("warmup"))), result.summary.get("duration_s")
    if begin is None or end is None or end <= begin:
        return
    spans_of: dict[str, list[tuple[float, float]]] = {}
    for flow, span in _spans(result).items():
        for link in _route(result, flow):
            spans_of.setdefault(link, []).append(span)
    idle = set(idle_links(result))
    for name, spans in spans_of.items():
        if name in idle or name not in result.links:
            continue
        first, last = max(begin, min(a for a, _ in spans)), min(end, max(b for _, b in spans))
        if (last - first) < (1 - IDLE_SHARE) * (end - begin):
            yield (
                f"{name}: utilization counts {figure(begin)} to {figure(end)} s; its flows ran from "
                f"{figure(first)} to {figure(last)} s"
            )


def _spans(result: RunResult) -> dict[str, tuple[float, float]]:
    """The begin and end of each flow, in seconds from the start of the run."""
    spans = {}
    for name, flow in result.flows.items():
        given = settings_of(result, name)
        start, stop = seconds(str(given.get("start"))), seconds(str(given.get("stop")))
        if start is not None and stop is not None:
            ended = flow.get("ended_at_s")
            spans[name] = (start, stop if ended is None else ended)
    return spans


def _route(result: RunResult, flow: str) -> list[str]:
    given = settings_of(result, flow)
    return [*given.get("route", []), *given.get("return_route", [])]


def seconds(text: str) -> float | None:
    """A duration in the engine's form, "200 ms"; ``None`` for anything else."""
    found = quantity.size_of(text, "time")
    return None if found is None else float(found)


def megabits(text: str) -> float | None:
    """A rate in the engine's form, "10 Mbit/s", in Mbit/s; ``None`` for anything else."""
    found = quantity.size_of(text, "rate")
    return None if found is None else float(found / 10**6)


def size(text: str) -> int | None:
    """A size in the engine's form, "128 KiB", in bytes; ``None`` for anything else."""
    found = quantity.size_of(text, "size")
    return None if found is None else int(found)
