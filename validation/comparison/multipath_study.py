"""The tables and figures of the multipath study's page: ``docs/studies/multipath.md``."""

from __future__ import annotations

from reference import markdown

from comparison import scripts, study_pages
from comparison.pages import Comparison

NAME = "multipath"
STUDY = "studies/multipath"


def sensitivity() -> str:
    """Return how many claims hold with each alternative by itself, on the quick grid."""
    rows = scripts.load(f"{STUDY}/sensitivity.py").rows(full=False)
    return markdown.table(["choice", "claims that hold", "that do not"], rows)


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    chosen = ("figure-2", "figure-3", "figure-4", "methods")
    return study_pages.comparison(NAME, chosen, {"sensitivity": sensitivity()})
