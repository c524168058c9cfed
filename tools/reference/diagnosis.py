"""The table of limits in the guide to diagnoses, from the engine's registry."""

from __future__ import annotations

import json

from anabranch import _engine

from reference import markdown

BEGIN = "<!-- begin limits -->\n"
END = "<!-- end limits -->"
HEAD = ("limit", "what it means", "what in the capture shows it", "what looks the same")


def fill(page: str) -> str:
    """Return the page with the table in its place.

    Raises:
        SystemExit: There is no place for it.
    """
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"docs/guides/diagnose.md: expected {BEGIN.strip()} and {END}")
    limits = json.loads(_engine.diagnose_terms())["limits"]
    rows = [(markdown.code(one["name"]), one["meaning"], one["evidence"], one["confusion"]) for one in limits]
    return f"{before}{BEGIN}\n{markdown.table(HEAD, rows)}\n\n{END}{after}"
