"""The tables and figures of the page on error correction inside TCP: ``docs/studies/fec.md``."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch import Study
from anabranch.plot.study import figures
from matplotlib.figure import Figure

from comparison import study_pages
from comparison.oracle import ROOT
from comparison.pages import Comparison

NAME = "fec"
STUDY = "studies/fec"
FIGURES = ("figure-5a", "figure-5b", "figure-5b-heard")


def comparison() -> Comparison:
    """Write the page's tables and figures anew, from the full grid."""
    done = Study.load(ROOT / STUDY).run()

    def drawn() -> Iterator[tuple[str, Figure]]:
        for name, _, figure in figures(done.results):
            if name in FIGURES:
                yield f"{NAME}-{name}", figure

    return Comparison(NAME, study_pages.of_study(done), [], drawn, folder="docs/studies")
