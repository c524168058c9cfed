"""``anabranch run --why``: every retransmission, episode by episode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from anabranch.summary import FlowSummary
    from anabranch.why import Why


def print_why(why: Why, out: Console, flows: Mapping[str, FlowSummary]) -> None:
    """Print which connections ended badly, the counts of each flow, then its episodes."""
    from anabranch.cli.common import styled
    from anabranch.why import Retransmission, text

    endings = [(name, told) for name, summary in flows.items() if (told := text.ending(summary))]
    for name, told in endings:
        out.print(styled(name).append(f" {told}", style="not bold"), soft_wrap=True)
    if not any(flow.episodes for flow in why.flows):
        silent = [(name, again) for name, summary in flows.items() if (again := summary.get("retransmitted_packets"))]
        for name, again in silent:
            told = f"{text.plural(again, 'packet')} retransmitted, of which nothing is recorded"
            out.print(styled(name).append(f": {told}", style="not bold"), soft_wrap=True)
        if not endings and not silent:
            out.print("nothing was retransmitted")
        return
    for flow in why.flows:
        out.print()
        out.print(styled(flow.flow).append(f": {text.headline(flow)}", style="not bold"), soft_wrap=True)
        for number, episode in enumerate(flow.episodes, 1):
            out.print()
            out.print(styled(text.episode_line(number, episode)), soft_wrap=True)
            for item in episode.timeline():
                if isinstance(item, Retransmission):
                    style = "yellow" if item.needed is False else ""
                    out.print(f"   {text.retransmission_line(item)}", style=style, soft_wrap=True)
                else:
                    out.print(f"   {text.event_line(item)}", soft_wrap=True)


def with_why(summary_json: str, why: Why) -> str:
    """The engine's document, digit by digit, with ``why`` at its end."""
    told = json.dumps(why.document(), ensure_ascii=False, allow_nan=False)
    document = summary_json.rstrip()
    return f'{document[:-1].rstrip()},"why":{told}}}'
