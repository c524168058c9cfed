"""The retransmissions of a whole run in about ten lines: causes, number of spurious ones, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from anabranch.result.format import figure
from anabranch.why.episodes import Episode, FlowWhy, Why
from anabranch.why.text import episode_line, event_line, plural, retransmission_line

if TYPE_CHECKING:
    from anabranch.result.summary import FlowSummary

MOST_FLOWS = 5
"""Largest number of flows named; flows with most retransmissions come first."""


def overview(why: Why, flows: Mapping[str, FlowSummary]) -> Iterator[tuple[str, str]]:
    """The lines of the overview, as label and text."""
    episodes = [(flow, number, episode) for flow in why.flows for number, episode in enumerate(flow.episodes, 1)]
    again = [item for flow in why.flows for item in flow.retransmissions]
    needed = sum(item.needed is True for item in again)
    spurious = sum(item.needed is False for item in again)
    undecided = len(again) - needed - spurious
    sent = sum(flow.get("sent_packets") or 0 for flow in flows.values())
    share = f" ({100 * len(again) / sent:.2g} % of those sent)" if sent else ""
    yield (
        "retransmitted",
        f"{plural(len(again), 'packet')}{share}: {needed:,} needed, {spurious:,} spurious"
        + (f", {undecided:,} undecided when the run ended" if undecided else ""),
    )
    if outside := _outside(why, flows):
        yield "not measured", outside
    if causes := _causes(why):
        yield "triggered by", causes
    kinds = Counter(episode.kind for _, _, episode in episodes)
    yield "episodes", ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    yield "cost", _cost([episode for _, _, episode in episodes])
    if len(why.flows) > 1:
        yield "by flow", _by_flow(why)
    flow, number, worst = max(episodes, key=lambda one: (one[2].end_s - one[2].start_s, len(one[2].retransmissions)))
    yield "longest episode", f"{flow.flow}, {episode_line(number, worst)}"
    if reductions := _reductions(worst):
        yield "its window", f"cwnd {figure(reductions[0][0])} → {figure(min(after for _, after in reductions))} packets"
    elif worst.events:
        yield "its window", event_line(worst.events[0])
    if worst.retransmissions:
        yield "it began with", retransmission_line(worst.retransmissions[0])


def _outside(why: Why, flows: Mapping[str, FlowSummary]) -> str:
    """The retransmissions that the flows' figures leave out: during the warm-up, and after a file's arrival."""
    again = [item for one in why.flows if one.flow in flows for item in one.retransmissions]
    count = len(again) - sum(flow.get("retransmitted_packets") or 0 for flow in flows.values())
    if count <= 0:
        return ""
    counted = sum(flow.get("spurious_retransmissions") or 0 for flow in flows.values())
    spurious = sum(item.needed is False for item in again) - counted
    return f"{plural(count, 'packet')} of these, {spurious:,} spurious: outside the measured time of the flows' figures"


def _causes(why: Why) -> str:
    every: Counter[str] = Counter()
    spurious: Counter[str] = Counter()
    for flow in why.flows:
        for cause, (count, needless) in flow.by_cause().items():
            every[cause] += count
            spurious[cause] += needless
    return ", ".join(
        f"{cause} {count:,}" + (f" ({spurious[cause]:,} spurious)" if spurious[cause] else "")
        for cause, count in every.most_common()
    )


def _cost(episodes: list[Episode]) -> str:
    """Bytes retransmitted spuriously, and the reductions of the congestion windows: in total, and without a loss."""
    wasted = sum(item.payload_bytes for one in episodes for item in one.retransmissions if item.needed is False)
    cuts = [before - after for one in episodes for before, after in _reductions(one)]
    groundless = [
        before - after
        for one in episodes
        if one.retransmissions and one.needless == len(one.retransmissions)
        for before, after in _reductions(one)
    ]
    undone = sum(event.event == "undo" for one in episodes for event in one.events)
    parts = [f"{wasted / 1000:,.1f} kB retransmitted spuriously"] if wasted else []
    parts.append(f"cwnd reduced {plural(len(cuts), 'time')}, by {figure(round(sum(cuts), 1))} packets in all")
    if groundless:
        parts.append(f"{len(groundless):,} of the reductions followed no loss")
    if undone:
        parts.append(f"{undone:,} undone")
    return "; ".join(parts)


def _reductions(episode: Episode) -> list[tuple[float, float]]:
    """Each reduction of the congestion window in an episode: before and after, in packets."""
    return [
        (event.cwnd_before_packets, event.cwnd_after_packets)
        for event in episode.events
        if event.cwnd_before_packets is not None
        and event.cwnd_after_packets is not None
        and event.cwnd_after_packets < event.cwnd_before_packets
    ]


def _by_flow(why: Why) -> str:
    def count(flow: FlowWhy) -> int:
        return len(flow.retransmissions)

    most = sorted(why.flows, key=count, reverse=True)
    more = f", {len(most) - MOST_FLOWS:,} more flows" if len(most) > MOST_FLOWS else ""
    return ", ".join(f"{flow.flow} {count(flow):,}" for flow in most[:MOST_FLOWS]) + more
