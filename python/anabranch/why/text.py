"""The inspector's findings in words, for the terminal and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.result.format import BROKEN, figure
from anabranch.why.episodes import Episode, FlowWhy
from anabranch.why.retransmissions import Retransmission
from anabranch.why.window import WindowEvent

if TYPE_CHECKING:
    from anabranch.result.summary import FlowSummary


def headline(flow: FlowWhy) -> str:
    """A flow's counts."""
    again = flow.retransmissions
    needed = sum(item.needed is True for item in again)
    needless = sum(item.needed is False for item in again)
    counts = f"{plural(len(again), 'packet')} retransmitted: {needed} needed, {needless} spurious"
    if needed + needless < len(again):
        counts += f", {len(again) - needed - needless} undecided when the run ended"
    causes = ", ".join(f"{cause} {n}{_of_them(m)}" for cause, (n, m) in flow.by_cause().items())
    return f"{counts}; {plural(len(flow.episodes), 'episode')}" + (f". Triggered by {causes}" if causes else "")


def ending(flow: FlowSummary) -> str:
    """Description of a connection's abnormal end, with its time and reason; empty for a normal end."""
    ended, at = flow.get("ended"), flow.get("ended_at_s")
    if ended not in BROKEN or at is None:
        return ""
    cause = {
        "reset": "a reset broke the connection off",
        "gave-up": "retransmissions went unanswered for as long as the stack tries, or until the flow's stop",
        "refused": "a reset answered the SYN",
    }[ended]
    return f"{BROKEN[ended]} at {figure(at)} s: {cause}"


def _of_them(needless: int) -> str:
    return f" ({needless} spurious)" if needless else ""


def episode_line(number: int, episode: Episode) -> str:
    """An episode's kind, time and number of retransmissions."""
    span = f"{episode.start_s:.4f} s"
    if episode.end_s > episode.start_s:
        span = f"{episode.start_s:.4f}–{episode.end_s:.4f} s"
    count = len(episode.retransmissions)
    return f"{number}. {episode.kind}, {span}: {count} retransmitted, {episode.needed} needed"


def event_line(event: WindowEvent) -> str:
    """An event's effect on the window."""
    ssthresh = "" if event.ssthresh_packets is None else f", ssthresh {figure(event.ssthresh_packets)}"
    before, after = figure(event.cwnd_before_packets), figure(event.cwnd_after_packets)
    window = f"cwnd {before}" if before == after else f"cwnd {before} → {after}"
    return f"{event.time_s:.4f} s  {event.event}: {window}{ssthresh}"


def retransmission_line(again: Retransmission) -> str:
    """A retransmission's time, data, trigger, and whether it was needed."""
    sequence = "SYN" if again.is_syn else f"byte {again.sequence_bytes:,}"
    return f"{again.time_s:.4f} s  {sequence}  {again.cause}  {need(again)}"


def need(again: Retransmission) -> str:
    """Whether a retransmission was needed, and the outcome of the packet before it."""
    word = {True: "needed", False: "spurious", None: "undecided"}[again.needed]
    if again.is_syn:
        return word
    if again.original_s is None:
        return f"{word}: not seen before"
    before = f"sent {again.original_s:.4f} s"
    if again.original_fate == "delivered" and again.original_received_s is not None:
        late = " after all" if again.original_received_s > again.time_s else ""
        return f"{word}: {before}, arrived{late} at {again.original_received_s:.4f} s"
    if again.original_fate == "in-flight":
        return f"{word}: {before}, still under way at the end"
    where = f" at {again.original_where}" if again.original_where else ""
    # An earlier copy arrived, or error correction rebuilt the bytes.
    otherwise = "; its bytes came by other packets" if again.needed is False else ""
    what = "refused by the receiver" if again.original_fate == "refused" else again.original_fate
    return f"{word}: {before}, {what}{where}{otherwise}"


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
