"""The tables and figures of the page on error correction inside TCP: ``docs/studies/fec.md``."""

from __future__ import annotations

from comparison import ns2_sack_losses, study_pages
from comparison.pages import Comparison

NAME = "fec"
STUDY = "studies/fec"
FIGURES = tuple(
    f"figure-{number}{form}"
    for number in ("5a", "5b", "6a", "6b", "7", "8", "9", "10", "11")
    for form in ("", "-heard")
)
"""Every published one, repaired losses not heard of and heard of."""


def comparison() -> Comparison:
    """Write the page's tables and figures anew, from the full grid."""
    more = ns2_sack_losses.parts([*ns2_sack_losses.theirs(), *ns2_sack_losses.ours()])
    return study_pages.comparison(NAME, FIGURES, more)
