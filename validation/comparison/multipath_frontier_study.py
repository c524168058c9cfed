"""The tables and figures of the page on where several routes pay: ``docs/studies/multipath-frontier.md``."""

from __future__ import annotations

from comparison import study_pages
from comparison.pages import Comparison

NAME = "multipath-frontier"
STUDY = "studies/multipath-frontier"


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    return study_pages.comparison(NAME, ("map", "situations"))
