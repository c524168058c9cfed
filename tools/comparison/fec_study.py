"""The tables and figures of the page on error correction inside TCP: ``docs/studies/fec.md``."""

from __future__ import annotations

from comparison import study_pages
from comparison.pages import Comparison

NAME = "fec"
FIGURES = ("figure-5a", "figure-5b", "figure-5b-heard", "figure-10", "figure-11")


def comparison() -> Comparison:
    """Write the page's tables and figures anew, from the full grid."""
    return study_pages.comparison(NAME, FIGURES)
