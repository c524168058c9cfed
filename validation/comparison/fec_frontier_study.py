"""The tables and figures of the page on a redundancy that chooses itself: ``docs/studies/fec-frontier.md``."""

from __future__ import annotations

from comparison import study_pages
from comparison.pages import Comparison

NAME = "fec-frontier"


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    return study_pages.comparison(NAME, ("reno", "cubic", "rack", "heard", "not_heard"))
