"""``anabranch run --why``: why packets were retransmitted, in sum or episode by episode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from anabranch.cli.blocks import block, write
from anabranch.text.lines import wrapped
from anabranch.text.shown import plain

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.result.result import RunResult
    from anabranch.why import Why

WORDS = ("summary", "all")
"""Values of --why; alone it is the first."""
_MARGIN = " " * 13
"""Margin of lines below an event, as wide as its time."""


def print_summary(why: Why, out: Console, result: RunResult) -> None:
    """Print connections that ended badly, then the triggers and the cost of retransmissions."""
    from anabranch.why.overview import overview

    if not _print_endings(why, out, result):
        return
    block(out, "Why packets were retransmitted", "", overview(why, result.flows))
    write(out, ["  --why=all lists each episode and each retransmission."])


def print_all(why: Why, out: Console, result: RunResult) -> None:
    """Print which connections ended badly, the counts of each flow, then its episodes."""
    from anabranch.cli.common import styled
    from anabranch.why import Retransmission, text

    if not _print_endings(why, out, result):
        return
    for flow in why.flows:
        out.print()
        _print_named(out, flow.flow, f": {text.headline(flow)}")
        for number, episode in enumerate(flow.episodes, 1):
            out.print()
            for line in wrapped(text.episode_line(number, episode), "   "):
                out.print(styled(line), soft_wrap=True)
            for item in episode.timeline():
                if isinstance(item, Retransmission):
                    style = "yellow" if item.needed is False else ""
                    for line in wrapped(f"   {text.retransmission_line(item)}", _MARGIN):
                        out.print(line, style=style, soft_wrap=True)
                else:
                    write(out, wrapped(f"   {text.event_line(item)}", _MARGIN))


def _print_named(out: Console, name: str, told: str) -> None:
    """A name, and the rest of its sentence; lines that continue it are indented."""
    from anabranch.cli.common import styled

    name = plain(name)
    first, *more = wrapped(f"{name}{told}", "  ", whole=(name,))
    out.print(styled(name).append(first[len(name) :], style="not bold"), soft_wrap=True)
    write(out, more)


def _print_endings(why: Why, out: Console, result: RunResult) -> bool:
    """Print connections that ended badly; true if there are also episodes to print."""
    from anabranch.why import text

    endings = [(name, told) for name, flow in result.flows.items() if (told := text.ending(flow))]
    for name, told in endings:
        _print_named(out, name, f" {told}")
    if any(flow.episodes for flow in why.flows):
        return True
    silent = [(name, again) for name, flow in result.flows.items() if (again := flow.get("retransmitted_packets"))]
    for name, again in silent:
        told = f"{text.plural(again, 'packet')} retransmitted, of which nothing is recorded"
        _print_named(out, name, f": {told}")
    if not endings and not silent:
        out.print("nothing was retransmitted")
    return False


def with_why(summary_json: str, why: Why) -> str:
    """The engine's document, digit by digit, with ``why`` at its end."""
    told = json.dumps(why.document(), ensure_ascii=False, allow_nan=False)
    document = summary_json.rstrip()
    return f'{document[:-1].rstrip()},"why":{told}}}'
