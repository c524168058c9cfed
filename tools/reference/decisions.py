"""The list of decisions, from the headings of the files."""

from __future__ import annotations

from pathlib import Path

from reference.markdown import NOTICE

INTRODUCTION = """\
Half a page each, where the next person would ask why.
"""


def index(folder: Path) -> str:
    """Return the list of ``NNN-*.md`` in a folder, by number."""
    files = sorted(folder.glob("[0-9]*.md"))
    links = "".join(f"- [{_heading(file)}]({file.name})\n" for file in files)
    return "\n".join([NOTICE, "# Decisions\n", INTRODUCTION, links])


def _heading(file: Path) -> str:
    first = file.read_text("utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() or file.stem
