"""The tables and figures of the page on links that switch themselves off: ``docs/studies/link-aggregation.md``."""

from __future__ import annotations

from comparison import study_pages
from comparison.pages import Comparison

NAME = "link-aggregation"


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    return study_pages.comparison(NAME, ("figure-4", "figure-5", "figure-6"))
