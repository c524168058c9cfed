"""The tables and figures of the page on fairness over mixes of traffic: ``docs/studies/fairness-mixes.md``."""

from __future__ import annotations

from comparison import study_pages
from comparison.pages import Comparison

NAME = "fairness-mixes"
STUDY = "studies/fairness-mixes"


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    return study_pages.comparison(NAME, ("frontier", "applications", "ratio", "delay"))
