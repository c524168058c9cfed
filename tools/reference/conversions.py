"""The table of formats in the guide to conversions, from the registry of formats."""

from __future__ import annotations

from anabranch.convert.formats import FORMATS, Format

from reference import markdown

BEGIN = "<!-- begin formats -->\n"
END = "<!-- end formats -->"
HEAD = ("format", "description", "read as", "written from", "recognised by", "lost")

_READ = {"scenario": "scenario", "table": "table", "run": "run"}
_WRITTEN = {
    "scenario": "anything that is read as a scenario",
    "link": "one link of a scenario or run",
    "run": "run, or scenario, which is run",
    "run or table": "table, run, or scenario, which is run",
}


def fill(page: str) -> str:
    """Return the page with the table inserted.

    Raises:
        SystemExit: The page has no markers for it.
    """
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"docs/guides/convert.md: expected {BEGIN.strip()} and {END}")
    return f"{before}{BEGIN}\n{markdown.table(HEAD, map(_row, FORMATS))}\n\n{END}{after}"


def _row(found: Format) -> tuple[str, ...]:
    read = _READ[found.reader[1]] if found.reader else ""
    written = _WRITTEN[found.writer[1]] if found.writer else ""
    endings = f" (`--out` ends with {', '.join(markdown.code(e) for e in found.endings)})" if found.writer else ""
    return markdown.code(found.name), found.title, read, f"{written}{endings}", found.recognised, found.lost
