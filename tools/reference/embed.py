"""Code blocks of the documents: ```` ```rust title="path/of/file.rs" ````."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A code block; its title, if it has one, names the file that it shows."""

    language: str
    title: str | None
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page, in order."""
    for match in BLOCK.finditer(page):
        yield Block(match["language"], match["title"], match["text"])


def fill(page: str, root: Path) -> str:
    """Insert the files' text into the blocks that show files of the checkout; leave the other blocks."""

    def current(match: re.Match[str]) -> str:
        title = match["title"]
        if not title or not (root / title).is_file():
            return match[0]
        return f'```{match["language"]} title="{title}"\n{(root / title).read_text("utf-8")}```'

    return BLOCK.sub(current, page)
