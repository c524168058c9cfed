"""How much of a large run the terminal shows, and where the rest is."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from anabranch.result.remarks import idle_links

if TYPE_CHECKING:
    from anabranch.result.result import RunResult

MOST_FLOWS = 50
"""Flows that are printed; copies that are summarised are one."""
MOST_LINKS = 50
"""Links that are printed, each with both directions."""


def links_shown(result: RunResult, *, all_links: bool) -> tuple[list[str], str]:
    """The links to print, and a remark on the others; of many links, idle ones are left out first."""
    names = list(result.links)
    if all_links or len(names) <= MOST_LINKS:
        return names, ""
    idle = set(idle_links(result))
    shown = [name for name in names if name not in idle][:MOST_LINKS]
    left_out = len(names) - len(shown)
    among = f", {len(idle):,} of them idle" if idle else ""
    return shown, (
        f"{left_out:,} of {len(names):,} links are left out{among}; --all-links prints them, --json and --out have "
        "them."
    )


def flows_shown(result: RunResult, summed: Collection[str], *, all_flows: bool) -> tuple[list[str], str]:
    """The flows to print, and a remark on the others.

    Args:
        result: The run.
        summed: The flows whose copies are summarised: each is shown by the name of its first copy.
        all_flows: Whether all are printed.
    """
    first: dict[str, str] = {}
    for name in result.flows:
        table = name.partition("/")[0]
        first.setdefault(table if table in summed else name, name)
    names = list(first.values())
    if all_flows or len(names) <= MOST_FLOWS:
        return names, ""
    return names[:MOST_FLOWS], (
        f"{len(names) - MOST_FLOWS:,} of {len(names):,} flows are left out; --all-flows prints them, --json and --out "
        "have them."
    )
