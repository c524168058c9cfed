"""Retransmissions in the report: a table of episodes, and the text for a click in the sequence chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.report.ladder import LADDER, ladder_data
from anabranch.report.page import table
from anabranch.report.page import text as as_text
from anabranch.text import shown
from anabranch.why import text

if TYPE_CHECKING:
    from anabranch.result.table import Table
    from anabranch.why import Episode, Why

MAX_EPISODES = 200
"""Rows of the tables of all flows; the output of `--why --json` contains all episodes."""
FEWEST_EPISODES = 10
"""Smallest number of rows of one flow's table, whatever the number of flows."""
FEW_EPISODES = 3
"""The largest table that is open when the page opens; a longer one is folded."""
_WORDS = (7, 8)
"""Columns of those tables that hold no figures."""
MAX_FLOWS = 50
"""Largest number of flows with a table."""
MAX_TOLD = 5_000
"""Largest number of clickable retransmissions; with all of them, the report of a very lossy run would not open."""
HINT = "Click a retransmission to see why it was sent; in the chart, n and p go to the next and the previous one."


def told_on_click(why: Why, flow: str, own: Table) -> str:
    """The text area for clicks on retransmissions of ``flow``, with the data of its packets ``own``."""
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
    ladders = ladder_data(own, [(time, round(at * 1e6)) for time, at, _, _ in packets[:MAX_TOLD]])
    data = shown.script({"packets": packets[:MAX_TOLD], "episodes": episodes, **ladders})
    return (
        f"<pre id='why-told' data-hint='{as_text(hint)}'>{as_text(hint)}</pre>"
        f"{LADDER}"
        f'<script type="application/json" id="why">{data}</script>'
    )


def episodes(why: Why) -> str:
    """A table of episodes for each flow with retransmissions."""
    parts = ["<h2>Why packets were retransmitted</h2>"]
    head = ("no.", "episode", "from (s)", "to (s)", "retransmitted", "needed", "spurious", "triggered by", "the window")
    flows = [flow for flow in why.flows if flow.episodes]
    most = max(FEWEST_EPISODES, MAX_EPISODES // max(1, len(flows)))
    for number, flow in enumerate(flows[:MAX_FLOWS]):
        shown = flow.episodes[:most]
        rows = [_row(*one) for one in enumerate(shown, 1)]
        cut = f" The first {len(shown)} of {len(flow.episodes)}." if len(shown) < len(flow.episodes) else ""
        is_open = number == 0 and len(shown) <= FEW_EPISODES
        parts.append(
            f"<details{' open' if is_open else ''}><summary>{as_text(flow.flow)}: {as_text(text.headline(flow))}."
            f"{cut}</summary>{table(head, rows, left=2, words=_WORDS)}</details>"
        )
    if len(flows) > MAX_FLOWS:
        parts.append(f"<p class='soft'>The first {MAX_FLOWS} of {len(flows)} flows.</p>")
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
