"""The report's account of retransmissions: a table of episodes, and what a click in the chart of sequences tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch import shown
from anabranch.report.page import table
from anabranch.report.page import text as as_text
from anabranch.why import text

if TYPE_CHECKING:
    from anabranch.why import Episode, Why

MAX_EPISODES = 200
"""Rows of the table of one flow. All are in what `--why --json` prints."""
MAX_TABLES = 12
"""Flows that have such a table: as many as a chart has lines. Of the others the counts are shown."""
MAX_TOLD = 20_000
"""Retransmissions that can be clicked; the report of a run that sends more again than this would not open."""
HINT = "Click a retransmission to see why it was sent."


def told_on_click(why: Why, flow: str) -> str:
    """The place where a click tells about a retransmission of ``flow``, and what there is to tell."""
    episodes: list[str] = []
    packets: list[tuple[float, float, str, int]] = []
    for number, episode in enumerate((e for f in why.flows if f.flow == flow for e in f.episodes), 1):
        for again in episode.retransmissions:
            at = again.sequence_bytes / 1e6
            packets.append((again.time_s, at, text.retransmission_line(again), len(episodes)))
        episodes.append(_account(number, episode))
    if not packets:
        return ""
    hint = HINT if len(packets) <= MAX_TOLD else f"{HINT} Only the first {MAX_TOLD:,} of {len(packets):,} can be asked."
    data = shown.script({"packets": packets[:MAX_TOLD], "episodes": episodes})
    return (
        f"<pre id='why-told' data-hint='{as_text(hint)}'>{as_text(hint)}</pre>"
        f'<script type="application/json" id="why">{data}</script>'
    )


def episodes(why: Why) -> str:
    """A table of episodes for each flow that sent something again."""
    parts = ["<h2>Why packets were retransmitted</h2>"]
    head = ("", "episode", "from (s)", "to (s)", "retransmitted", "needed", "spurious", "triggered by", "the window")
    for place, flow in enumerate(flow for flow in why.flows if flow.episodes):
        shown = flow.episodes[: MAX_EPISODES if place < MAX_TABLES else 0]
        cut = f" The first {len(shown)} of {len(flow.episodes)}." if 0 < len(shown) < len(flow.episodes) else ""
        parts.append(f"<p><b>{as_text(flow.flow)}</b>: {as_text(text.headline(flow))}.{cut}</p>")
        if shown:
            parts.append(table(head, (_row(number, episode) for number, episode in enumerate(shown, 1)), left=2))
    return "".join(parts) if len(parts) > 1 else f"{parts[0]}<p>Nothing was retransmitted.</p>"


def _account(number: int, episode: Episode) -> str:
    lines = [text.episode_line(number, episode), *(f"   {text.event_line(event)}" for event in episode.events)]
    return "\n".join(lines)


def _row(number: int, episode: Episode) -> tuple[str, ...]:
    causes = dict.fromkeys(again.cause for again in episode.retransmissions)
    window = "; ".join(text.event_line(event).split("  ", 1)[1] for event in episode.events)
    return (
        str(number),
        episode.kind,
        f"{episode.start_s:.4f}",
        f"{episode.end_s:.4f}",
        str(len(episode.retransmissions)),
        str(episode.needed),
        str(episode.needless),
        ", ".join(causes),
        window,
    )
