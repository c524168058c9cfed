"""Tables of at most 80 columns: headings wrap at words, figures stay whole, and columns without room go below."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anabranch.text.lines import WIDTH

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_HEAD_LINES = 4
"""Lines of a heading; with more of them, columns go below instead."""
LEAST_TEXT = 14
"""Columns of a text that wraps."""
_GAP = 3


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        heading: Wraps at words, and where it has a line end.
        cells: As they are, one line each.
        is_text: Aligned left; it may wrap where there is no room.
    """

    heading: str
    cells: Sequence[str]
    is_text: bool = False

    @property
    def longest_cell(self) -> int:
        """Columns of the longest cell."""
        return max(map(len, self.cells), default=0)

    @property
    def longest_word(self) -> int:
        """Columns below which a word would break."""
        texts = (self.heading, *self.cells) if self.is_text else (self.heading,)
        return max((len(word) for text in texts for word in text.split()), default=0)

    def width(self, head_lines: int) -> int:
        """Smallest width for one-line cells and a heading of ``head_lines`` lines, unless a word is longer."""
        words = max((len(word) for word in self.heading.split()), default=0)
        fits = (
            width for width in range(words, len(self.heading) + 1) if _count_lines(self.heading, width) <= head_lines
        )
        return max(self.longest_cell, next(fits, words))


def print_table(out: Console, first: Sequence[Column], groups: Sequence[Sequence[Column]]) -> None:
    """Print tables that each begin with the ``first`` columns, followed by all ``groups`` that fit."""
    left = list(groups)
    is_first = True
    while left or is_first:
        if not is_first:
            out.print()
        count = len(left)
        while count > 1 and _widths(_flat(first, left[:count])) is None:
            count -= 1
        columns = _flat(first, left[:count])
        widths = _widths(columns) or [column.width(MOST_HEAD_LINES) for column in columns]
        out.print(_table(columns, widths), width=max(WIDTH, _total(widths)), crop=False)
        left = left[count:]
        is_first = False


def _flat(first: Sequence[Column], groups: Sequence[Sequence[Column]]) -> list[Column]:
    return [*first, *(column for group in groups for column in group)]


def _widths(columns: Sequence[Column]) -> list[int] | None:
    """Widths with the fewest lines of headings, then with texts that wrap; none if there is no room."""
    for lines in range(1, MOST_HEAD_LINES + 1):
        widths = [column.width(lines) for column in columns]
        if _total(widths) <= WIDTH:
            return widths
    for place in sorted((i for i, column in enumerate(columns) if column.is_text), key=lambda i: -widths[i]):
        least = max(LEAST_TEXT, columns[place].longest_word)
        widths[place] = max(min(least, widths[place]), widths[place] - max(0, _total(widths) - WIDTH))
    return widths if _total(widths) <= WIDTH else None


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(columns: Sequence[Column], widths: Sequence[int]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column.heading, justify="left" if column.is_text else "right", width=width, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def _count_lines(text: str, width: int) -> int:
    return sum(len(textwrap.wrap(part, max(1, width), break_on_hyphens=False)) or 1 for part in text.split("\n"))
