"""The tables of the page on what controllers of link groups save: ``docs/studies/link-aggregation-frontier.md``."""

from __future__ import annotations

from comparison import study_pages
from comparison.pages import Comparison

NAME = "link-aggregation-frontier"


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    return study_pages.comparison(NAME, ("frontier",))
