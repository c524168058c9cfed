"""``anabranch shell``: what is said before it opens."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anabranch.scenario import Scenario


def greeting(scenario: Scenario, host: str) -> Iterator[str]:
    """Every host with its addresses and its program, a line each.

    Args:
        scenario: The network.
        host: Where the shell is.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: This build cannot run live.
    """
    from anabranch.live import hosts_of

    rows = []
    for name, v4, v6, program in hosts_of(scenario):
        if name == host:
            told = "this shell" + (", in place of its program" if program else "")
        else:
            told = f"runs {shlex.join(program)}" if program else ""
        rows.append((_shown(name), v4, v6, _shown(told)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _shown(text: str) -> str:
    """Text as a terminal shows it: what would move its cursor is written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
