"""The table of all published claims on the documentation's front page, from the pages of the studies."""

from __future__ import annotations

from pathlib import Path

from reference import markdown

STUDIES = ("reordering", "fairness", "link-aggregation", "multipath", "fec")
"""In the order in which they were published."""
BEGIN, END = "<!-- begin claims -->\n", "<!-- end claims -->"
HEAD = ["", "claim", "published", "simulator", "live", "verdict"]
SETTLED = ("reproduced", "paper inconsistent")


def fill(page: str, root: Path) -> str:
    """Return the front page with the table in its place.

    Raises:
        SystemExit: A page has no place for it, or no table.
    """
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"docs/index.md: expected {BEGIN.strip()} and {END}")
    rows = [row for study in STUDIES for row in _rows(study, root)]
    settled = sum(row[-1] in SETTLED for row in rows)
    told = f"{settled} of {len(rows)} published claims are settled: reproduced, or the paper shown to be inconsistent."
    return f"{before}{BEGIN}\n{told}\n\n{markdown.table(HEAD, rows)}\n\n{END}{after}"


def _rows(study: str, root: Path) -> list[list[str]]:
    text = (root / "docs" / "studies" / f"{study}.md").read_text("utf-8")
    live = {row[0]: f"{row[5]} ({row[6].strip('*')})" for row in _table(text, "live", width=8)}
    rows = []
    for name, claim, published, measured, verdict, *_ in _table(text, "results", width=7):
        rows.append([f"[{name}](studies/{study}.md)", claim, published, measured, live.get(name, "–"), verdict])
    if not rows:
        raise SystemExit(f"docs/studies/{study}.md: no table of results")
    return rows


def _table(page: str, part: str, *, width: int) -> list[list[str]]:
    """The rows of the first table of a part of a page, without its head; none where the part is missing."""
    lines = page.partition(f"<!-- begin {part} -->")[2].partition(f"<!-- end {part} -->")[0].splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("|  | claim ")), len(lines))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("| "):
            break
        cells = [cell.strip() for cell in line[2:].rstrip().removesuffix("|").split(" | ")]
        if len(cells) == width:
            found.append(cells)
    return found
