"""The tables of limits and findings in the guide to diagnoses, from the engine's registries."""

from __future__ import annotations

import json

from anabranch import _engine

from reference import markdown

TABLES = {
    "limits": ("limit", "meaning", "evidence in the capture", "similar causes"),
    "findings": ("finding", "meaning", "evidence in the capture", "similar causes"),
}


def fill(page: str) -> str:
    """Return the page with the tables inserted.

    Raises:
        SystemExit: The page has no markers for a table.
    """
    terms = json.loads(_engine.diagnose_terms())
    for name, head in TABLES.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"docs/guides/diagnose.md: expected {begin.strip()} and {end}")
        rows = [(markdown.code(one["name"]), one["meaning"], one["evidence"], one["confusion"]) for one in terms[name]]
        page = f"{before}{begin}\n{markdown.table(head, rows)}\n\n{end}{after}"
    return page
