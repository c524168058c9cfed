"""The tables and figures of the fairness study's page: ``docs/studies/fairness.md``."""

from __future__ import annotations

from reference import markdown

from comparison import scripts, study_pages
from comparison.pages import Comparison

NAME = "fairness"
STUDY = "studies/fairness"


def sensitivity() -> str:
    """Return how many claims hold with each alternative by itself, on the quick grid."""
    rows = scripts.load(f"{STUDY}/sensitivity.py").rows(full=False)
    return markdown.table(["choice", "claims that hold", "that do not"], rows)


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    return study_pages.comparison(NAME, ("figure-10", "figure-12"), {"sensitivity": sensitivity()})
